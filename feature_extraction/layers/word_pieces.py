"""WordPiece vocabularies from captions, with ties in alphabetical order, and tokenizers of such vocabularies."""

import itertools
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from aadml.feature_extraction.ground.import_paths import optional

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_MARK = "##"
_WORD = re.compile(r"[^\W_]+|[^\w\s]|_")


def train_vocabulary(captions: Iterable[str], *, size: int = 2000) -> tuple[str, ...]:
    """Build a vocabulary: special entries, all characters, then joins of the most frequent pairs of pieces.

    Among equally frequent pairs, the alphabetically first pair is joined, so equal captions produce equal vocabularies.
    The trainer of `tokenizers` joins such pairs in the order of a hash table, which differs from run to run. Source of
    the algorithm: byte-pair encoding (Sennrich et al., ACL 2016), as in that trainer.

    Reference: Sennrich et al., Neural machine translation of rare words with subword units, ACL 2016, https://doi.org/10.18653/v1/P16-1162

    Args:
        captions: cleaned captions of the training split; words are split as by the tokenizer.
        size: maximum number of entries, including the five special entries; all characters are entries, even beyond
            this maximum.

    Returns:
        The entries in the order of their ids; pieces within a word begin with `##`.
    """
    counts = Counter(word for caption in captions for word in _words(caption))
    words = [[letter if i == 0 else _MARK + letter for i, letter in enumerate(word)] for word in sorted(counts)]
    weights = [counts[word] for word in sorted(counts)]
    entries = [*SPECIAL, *sorted({piece for word in words for piece in word})]
    pairs: Counter[tuple[str, str]] = Counter()
    places: dict[tuple[str, str], set[int]] = defaultdict(set)
    for number in range(len(words)):
        _count(words[number], weights[number], number, pairs, places)
    while len(entries) < size and pairs:
        pair, most = min(pairs.items(), key=lambda item: (-item[1], item[0]))
        if most < 1:
            break
        entries.append(pair[0] + pair[1].removeprefix(_MARK))
        for number in sorted(places.pop(pair)):
            _count(words[number], -weights[number], number, pairs, places)
            words[number] = _joined(words[number], pair, entries[-1])
            _count(words[number], weights[number], number, pairs, places)
        del pairs[pair]
    return tuple(dict.fromkeys(entries))


def word_piece_tokenizer(vocabulary: Sequence[str]) -> Any:
    """Build the `tokenizers.Tokenizer` of a vocabulary.

    The tokenizer converts a text to lowercase, and splits the text at spaces and punctuation. [CLS] is the first
    piece, and [SEP] is the last piece.

    Args:
        vocabulary: the entries in the order of their ids, including the special entries.

    Raises:
        InputError: `tokenizers` is not installed.
    """
    tokenizers = optional("tokenizers", "a word-piece tokenizer", "aadml[hub]")
    ids = {entry: number for number, entry in enumerate(vocabulary)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = tokenizers.processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    return tokenizer


def _words(caption: str) -> list[str]:
    """Split a caption into lowercase words without accents, as BERT does; each punctuation mark is a word."""
    plain = "".join(c for c in unicodedata.normalize("NFD", caption.lower()) if unicodedata.category(c) != "Mn")
    return _WORD.findall(plain)


def _count(
    word: list[str],
    weight: int,
    number: int,
    pairs: Counter[tuple[str, str]],
    places: dict[tuple[str, str], set[int]],
) -> None:
    """Add `weight` to the count of each pair of neighbors in a word.

    If `weight` is positive, the number of the word is added to the places of each pair.
    """
    for pair in itertools.pairwise(word):
        pairs[pair] += weight
        if weight > 0:
            places[pair].add(number)


def _joined(word: list[str], pair: tuple[str, str], piece: str) -> list[str]:
    joined: list[str] = []
    for part in word:
        if joined and (joined[-1], part) == pair:
            joined[-1] = piece
        else:
            joined.append(part)
    return joined
