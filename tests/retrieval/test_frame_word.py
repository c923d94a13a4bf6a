import pytest
import torch

from aadml.comparison.relevance import relevance
from aadml.retrieval.frame_word import FORMS, frame_word_scores, pack, unpack
from aadml.retrieval.scores import score_source
from feature_extraction.ground.errors import InputError


def sequences(count, steps, seed):
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, steps + 1, (count,), generator=generator)
    return torch.randn(count, steps, 5, generator=generator), lengths


@pytest.mark.parametrize("form", FORMS)
def test_packed_sequences_score_as_their_relevance_both_ways(form):
    (frames, lengths), (words, word_lengths) = sequences(6, 9, 0), sequences(4, 3, 1)
    expected = relevance(frames, lengths, words, word_lengths, form=form)
    audio = pack(frames, lengths, side="frames", form=form)
    text = pack(words, word_lengths, side="words", form=form)
    torch.testing.assert_close(frame_word_scores(audio, text), expected)
    torch.testing.assert_close(frame_word_scores(text, audio), expected.T)
    torch.testing.assert_close(torch.from_numpy(score_source(text, audio, "frame-word").block(1, 3)), expected.T[1:3])


def test_sequences_survive_packing_without_what_lies_behind_their_end():
    values, lengths = sequences(5, 7, 2)
    found, found_lengths, side, form = unpack(pack(values, lengths, side="words"))
    assert (side, form) == ("words", "mean")
    assert torch.equal(found_lengths, lengths)
    for row, length in enumerate(lengths):
        assert torch.equal(found[row, :length], values[row, :length])
        assert not found[row, length:].any()


def test_what_is_no_sequence_or_of_the_same_side_is_refused():
    values, lengths = sequences(3, 4, 3)
    audio = pack(values, lengths, side="frames")
    with pytest.raises(InputError, match="are not sequences"):
        frame_word_scores(audio, torch.randn(3, 24))
    with pytest.raises(InputError, match="cannot compare frames"):
        frame_word_scores(audio, audio)
    with pytest.raises(InputError, match="cannot compare words"):
        frame_word_scores(pack(values, lengths, side="words", form="max-word"), audio)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_long_sequences_keep_their_exact_length_in_half_precision(dtype):
    lengths = torch.tensor([1, 1023, 1024, 2049, 3001, 4095, 5000])
    packed = pack(torch.ones(7, 5000, 1).to(dtype), lengths, side="frames", form="max-word")
    values, found, side, form = unpack(packed)
    assert torch.equal(found, lengths)
    assert (side, form) == ("frames", "max-word")
    assert torch.equal(values.sum((1, 2)).long(), lengths)


def test_rows_written_before_lengths_were_in_two_parts_are_read():
    row = torch.zeros(1, 4 + 2000)
    row[0, :4] = torch.tensor([1500.0, 1.0, 0.0, 2.0])
    assert unpack(row)[1:] == (torch.tensor([1500]), "frames", FORMS[2])
