import pytest
import torch

from aadml.comparison.embeddings import Embeddings
from aadml.comparison.frame_word import relevance
from aadml.feature_extraction.ground.errors import InputError
from aadml.retrieval.evaluation import evaluate
from aadml.retrieval.frame_word import frame_word_scores, pack, pack_each, unpack
from aadml.retrieval.scores import score_source


def sequences(count, steps, seed):
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, steps + 1, (count,), generator=generator)
    return torch.randn(count, steps, 5, generator=generator), lengths


def test_packed_sequences_score_as_their_relevance_both_ways():
    (frames, lengths), (words, word_lengths) = sequences(6, 9, 0), sequences(4, 3, 1)
    expected = relevance(frames, lengths, words, word_lengths)
    audio = pack(frames, lengths, side="frames")
    text = pack(words, word_lengths, side="words")
    torch.testing.assert_close(frame_word_scores(audio, text), expected)
    torch.testing.assert_close(frame_word_scores(text, audio), expected.T)
    torch.testing.assert_close(torch.from_numpy(score_source(text, audio, "frame-word").block(1, 3)), expected.T[1:3])


def test_packed_sequences_are_evaluated_by_their_similarity():
    (frames, lengths), (words, word_lengths) = sequences(6, 3, 0), sequences(6, 3, 1)
    vectors = {"audio": pack(frames, lengths, side="frames"), "text": pack(words, word_lengths, side="words")}
    embeddings = Embeddings(vectors, torch.arange(6), tuple("abcdef"), "frame-word")
    evaluation = evaluate(embeddings)
    assert (evaluation.similarity, evaluation.directions[0].name) == ("frame-word", "audio-text")


def test_scores_are_the_same_bits_however_the_work_is_cut():
    (frames, lengths), (words, word_lengths) = sequences(7, 1100, 4), sequences(40, 9, 5)
    lengths[:3], word_lengths[4:6] = torch.tensor([0, 1100, 1]), 0
    audio = pack(frames, lengths, side="frames")
    text = pack(words, word_lengths, side="words")
    whole = frame_word_scores(audio, text, budget=1 << 60)
    for budget in (1, 1 << 14, 1 << 17):
        assert torch.equal(frame_word_scores(audio, text, budget=budget), whole)
    assert torch.equal(frame_word_scores(text, audio, budget=1 << 17), whole.T)
    assert torch.equal(frame_word_scores(audio[2:4], text[::3]), whole[2:4, ::3]), "whoever else is there"
    assert not whole[0].any()
    assert not whole[:, 4:6].any()
    wide = relevance(frames.double(), lengths, words.double(), word_lengths)
    torch.testing.assert_close(whole.double(), wide, rtol=1e-6, atol=1e-9)


def test_scores_are_the_definition_as_loops():
    (frames, lengths), (words, word_lengths) = sequences(3, 4, 6), sequences(2, 3, 7)
    found = frame_word_scores(pack(frames, lengths, side="frames"), pack(words, word_lengths, side="words"))
    for i in range(3):
        for j in range(2):
            one, other = frames[i, : lengths[i]].tolist(), words[j, : word_lengths[j]].tolist()
            dots = [[sum(p * q for p, q in zip(unit(f), unit(g), strict=True)) for g in other] for f in one]
            expected = sum(max(0.0, dot) for row in dots for dot in row) / len(one) / len(other)
            assert float(found[i, j]) == pytest.approx(expected, abs=1e-6)


def unit(vector):
    length = sum(value * value for value in vector) ** 0.5
    return [value / length for value in vector]


def test_the_list_of_sequences_to_pack_is_used_up():
    parts = [torch.ones(3, 2), torch.full((1, 2), 2.0)]
    rows = pack_each(parts, side="words")
    assert not parts
    assert unpack(rows)[1].tolist() == [3, 1]


MANY = """
import torch
from aadml.comparison.embeddings import Embeddings
from aadml.retrieval.evaluation import evaluate
from aadml.retrieval.frame_word import pack_each

audio = pack_each([torch.randn(700, 64) for _ in range({clips})], side="frames")
text = pack_each([torch.randn(1, 64) for _ in range({clips} * 5)], side="words")
labels = torch.arange({clips} * 5) // 5
ids = tuple(map(str, range(len(labels))))
vectors = dict(audio=audio, text=text)
evaluate(Embeddings(vectors, labels, ids, "frame-word", once=("audio",), rows=dict(audio=labels)))
"""


@pytest.mark.slow
def test_an_evaluation_takes_the_memory_of_its_sounds_once(peak_bytes):
    few, many = (peak_bytes(MANY.format(clips=clips)) for clips in (2, 152))
    held = 150 * 700 * 64 * 4
    assert many - few < 3 * held, "a copy for every caption, or for every step of the work, would be more"


def test_sequences_survive_packing_without_what_lies_behind_their_end():
    values, lengths = sequences(5, 7, 2)
    found, found_lengths, side = unpack(pack(values, lengths, side="words"))
    assert side == "words"
    assert torch.equal(found_lengths, lengths)
    for row, length in enumerate(lengths):
        assert torch.equal(found[row, :length], values[row, :length])
        assert not found[row, length:].any()


def test_what_is_no_sequence_or_of_the_same_side_is_refused():
    values, lengths = sequences(3, 4, 3)
    audio = pack(values, lengths, side="frames")
    with pytest.raises(InputError, match="are not packed sequences"):
        frame_word_scores(audio, torch.randn(3, 24))
    with pytest.raises(InputError, match="cannot compare frames"):
        frame_word_scores(audio, audio)
    formula = audio.clone()
    formula[:, 3] += 1
    with pytest.raises(InputError, match="are not packed sequences"):
        frame_word_scores(formula, pack(values, lengths, side="words"))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_long_sequences_keep_their_exact_length_in_half_precision(dtype):
    lengths = torch.tensor([1, 1023, 1024, 2049, 3001, 4095, 5000])
    packed = pack(torch.ones(7, 5000, 1).to(dtype), lengths, side="frames")
    values, found, side = unpack(packed)
    assert torch.equal(found, lengths)
    assert side == "frames"
    assert torch.equal(values.float().sum((1, 2)).long(), lengths)


def test_rows_written_before_lengths_were_in_two_parts_are_read():
    row = torch.zeros(1, 4 + 2000)
    row[0, :4] = torch.tensor([1500.0, 1.0, 0.0, 0.0])
    assert unpack(row)[1:] == (torch.tensor([1500]), "frames")
