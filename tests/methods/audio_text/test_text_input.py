"""Word vectors of captions: those of known words, one for all others, and their mean without padding."""

import pytest
import torch

from aadml.data.texts import Captions
from aadml.methods.audio_text.text_input import WordInput
from aadml.methods.audio_text.towers import padded_batch


@pytest.mark.parametrize("pooled", [True, False])
def test_a_caption_is_the_mean_of_its_words_and_padding_counts_for_nothing(pooled):
    given = Captions(("a dog barks", "rain", "a bell rings twice"))
    network = WordInput("untrained", dimension=5, seed=0, pooled=pooled)
    network.learn_words(given)
    asked = Captions(("dog", "a bell barks", "thunder rain"))
    found = network(padded_batch(network.tokens(asked), torch.arange(3)))
    known = {
        word: network.vectors[number] for number, word in enumerate(bytes(network.words.tolist()).decode().split("\n"))
    }
    other = network.vectors[-1]
    for row, text in enumerate(asked.texts):
        vectors = torch.stack([known.get(word, other) for word in text.split()])
        if pooled:
            torch.testing.assert_close(found[row], vectors.mean(0))
        else:
            assert torch.equal(found[row, : len(vectors)], vectors)
