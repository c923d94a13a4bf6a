import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aadml.feature_extraction.layers.word_pieces import SPECIAL, train_vocabulary, word_piece_tokenizer

CAPTIONS = ["a dog barks twice", "a dog barks and a bird sings", "rain falls on a tin roof", "a bird sings"]


def by_definition(captions, size):
    """Count every pair anew before each joining."""
    counts = Counter(word for caption in captions for word in caption.split())
    words = {word: [word[0], *("##" + letter for letter in word[1:])] for word in counts}
    entries = [*SPECIAL, *sorted({p for pieces in words.values() for p in pieces})]
    while len(entries) < size:
        pairs = Counter()
        for word, pieces in words.items():
            for pair in itertools.pairwise(pieces):
                pairs[pair] += counts[word]
        if not pairs:
            break
        pair = min(pairs, key=lambda p: (-pairs[p], p))
        piece = pair[0] + pair[1][2:]
        entries.append(piece)
        for word, pieces in words.items():
            out = []
            for p in pieces:
                if out and (out[-1], p) == pair:
                    out[-1] = piece
                else:
                    out.append(p)
            words[word] = out
    return tuple(dict.fromkeys(entries))


@given(st.lists(st.text("abc ", max_size=12), max_size=6), st.integers(5, 40))
def test_equals_the_definition_that_counts_anew_each_time(captions, size):
    assert train_vocabulary(captions, size=size) == by_definition(captions, size)


def test_the_order_of_captions_does_not_matter():
    assert train_vocabulary(CAPTIONS, size=60) == train_vocabulary(CAPTIONS[::-1], size=60)


def test_words_are_split_as_the_tokenizer_splits_them():
    pytest.importorskip("tokenizers")
    captions = ["a dog's low-pitched bark", "Café, (loud)", "snake_case 10 x"]
    tokenizer = word_piece_tokenizer(train_vocabulary(captions, size=10))
    assert not any("[UNK]" in tokenizer.encode(caption).tokens for caption in captions)


def test_the_tokenizer_marks_both_ends_and_knows_every_word_it_was_trained_on():
    pytest.importorskip("tokenizers")
    tokenizer = word_piece_tokenizer(train_vocabulary(CAPTIONS, size=80))
    assert [tokenizer.token_to_id(name) for name in SPECIAL] == [0, 1, 2, 3, 4]
    encoded = tokenizer.encode("A dog sings twice")
    assert encoded.tokens == ["[CLS]", "a", "dog", "sings", "twice", "[SEP]"]
    assert "[UNK]" in tokenizer.encode("zebra").tokens
