"""Word vectors of captions: those of known words, one for all others, and their mean without padding."""

import pytest
import torch

from aadml.data.sources.texts import Captions
from aadml.feature_extraction.backbones.word2vec import read_vectors
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.audio_text.text_input import BertInput, WordInput
from aadml.methods.audio_text.towers import input_batch


@pytest.mark.parametrize("pooled", [True, False])
def test_a_caption_is_the_mean_of_its_words_and_padding_has_no_effect(pooled):
    network = WordInput("untrained", dimension=5, seed=0, pooled=pooled)
    network.learn_words(Captions(("a dog barks", "rain", "a bell rings twice")))
    captions = Captions(("dog", "a bell barks", "thunder rain"))
    with pytest.warns(UserWarning, match=r"^1 words of 3 captions are unknown and share one vector: thunder$"):
        inputs = network.tokens(captions)
    vectors_of_captions = network(input_batch(inputs, torch.arange(3), torch.device("cpu")))
    known = {
        word: network.vectors[number] for number, word in enumerate(bytes(network.words.tolist()).decode().split("\n"))
    }
    other = network.vectors[-1]
    for row, text in enumerate(captions.texts):
        vectors = torch.stack([known.get(word, other) for word in text.split()])
        if pooled:
            torch.testing.assert_close(vectors_of_captions[row], vectors.mean(0))
        else:
            assert torch.equal(vectors_of_captions[row, : len(vectors)], vectors)


def test_a_word2vec_file_is_read_for_the_words_of_the_captions_alone(tmp_path, monkeypatch):
    path, read = tmp_path / "v.txt", []
    path.write_text("Rain 1 0\nbell 0 1\nunasked 1 1\n")

    def watched(place, words=None):
        read.append(read_vectors(place, words))
        return read[-1]

    monkeypatch.setattr("aadml.methods.audio_text.text_input.read_vectors", watched)
    network = WordInput(str(path), dimension=2, seed=0)
    given = Captions(("rain", "a bell"))
    monkeypatch.setattr("aadml.feature_extraction.backbones.word2vec._NEARLY_ORTHOGONAL", 1)
    network.learn_words(given)
    assert read[0].keys() == {"Rain", "bell"}
    with pytest.warns(UserWarning, match=r"^1 words of 2 captions are unknown and share one vector: a$"):
        network.tokens(given)


@pytest.mark.parametrize(
    ("pooled", "hint"),
    [(True, "set method.text_dimension to 3"), (False, "choose a file of vectors of an even dimension")],
)
def test_vectors_of_another_dimension_are_refused_with_advice_that_the_method_can_follow(tmp_path, pooled, hint):
    (tmp_path / "v.txt").write_text("2 3\nrain 1 0 0\nbell 0 1 0\n")
    network = WordInput(str(tmp_path / "v.txt"), dimension=2, seed=0, pooled=pooled)
    with pytest.raises(InputError, match=f"the vectors have 3 dimensions, but method.text_dimension is 2; {hint}$"):
        network.learn_words(Captions(("rain", "bell")))


def test_captions_that_are_cut_or_cannot_be_spelled_are_counted():
    pytest.importorskip("transformers")
    network = BertInput("untrained", layers=1, dimension=16, vocabulary=120, dropout=0.0)
    network.learn_words(Captions(("rain falls",)))
    with pytest.warns(UserWarning, match=r"^1 of 2 captions have words that the vocabulary cannot spell; \[UNK\]"):
        network.tokens(Captions(("rain falls", "zoom")))
    with pytest.warns(UserWarning, match="^1 of 2 captions were cut to 128 tokens$"):
        assert list(map(len, network.tokens(Captions(("rain falls", "rain " * 600))).ids)) == [4, 128]
