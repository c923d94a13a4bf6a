import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from aadml.comparison.frame_word import relevance


def definition(frames, frame_lengths, words, word_lengths, normalize):
    scores = torch.zeros(len(frames), len(words), dtype=torch.float64)
    for i in range(len(frames)):
        for j in range(len(words)):
            f, g = frames[i, : frame_lengths[i]], words[j, : word_lengths[j]]
            if not len(f) or not len(g):
                continue
            if normalize:
                f, g = f / f.norm(dim=1, keepdim=True), g / g.norm(dim=1, keepdim=True)
            products = [[float(a @ b) for b in g] for a in f]
            scores[i, j] = sum(max(0.0, p) for row in products for p in row) / (len(f) * len(g))
    return scores


def sequences(seed, least=1):
    random = torch.Generator().manual_seed(seed)
    frames = torch.randn(3, 6, 4, generator=random, dtype=torch.float64)
    words = torch.randn(5, 4, 4, generator=random, dtype=torch.float64)
    return (
        frames,
        torch.randint(least, 7, (3,), generator=random),
        words,
        torch.randint(least, 5, (5,), generator=random),
    )


@given(
    seed=st.integers(0, 2**32 - 1),
    normalize=st.booleans(),
    block=st.sampled_from([1, 30, 70, 10**6]),
    least=st.integers(0, 1),
)
def test_is_its_definition_whatever_the_block(seed, normalize, block, least):
    given_ = sequences(seed, least)
    scores = relevance(*given_, normalize=normalize, block=block)
    assert torch.allclose(scores, definition(*given_, normalize), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("block", [1, 10**6])
def test_gradient_is_that_of_finite_differences(block):
    frames, frame_lengths, words, word_lengths = (part[:2] for part in sequences(0, least=0))

    def scores(f, g):
        return relevance(f, frame_lengths, g, word_lengths, block=block)

    assert torch.autograd.gradcheck(scores, (frames.requires_grad_(), words.requires_grad_()))


def test_what_the_padding_holds_is_nobodys_business():
    frames, frame_lengths, words, word_lengths = sequences(1)
    expected = relevance(frames, frame_lengths, words, word_lengths)
    for i, length in enumerate(frame_lengths):
        frames[i, length:] = torch.nan
    frames.requires_grad_()
    scores = relevance(frames, frame_lengths, words, word_lengths)
    scores.sum().backward()
    assert torch.allclose(scores, expected)
    assert not torch.isnan(frames.grad).any()


def test_legacy_padding_averages_over_all_positions():
    frames, frame_lengths, words, word_lengths = sequences(2)
    for i, length in enumerate(frame_lengths):
        frames[i, length:] = 0
    for j, length in enumerate(word_lengths):
        words[j, length:] = 0
    shares = frame_lengths[:, None] * word_lengths[None, :] / (6 * 4)
    plain = relevance(frames, frame_lengths, words, word_lengths)
    assert torch.allclose(
        relevance(frames, frame_lengths, words, word_lengths, legacy_padding=True), plain * shares, rtol=1e-9
    )


def test_of_nobody_with_somebody_is_an_empty_matrix():
    frames, frame_lengths, words, word_lengths = sequences(3)
    assert relevance(frames[:0], frame_lengths[:0], words, word_lengths).shape == (0, 5)


def test_autocast_does_not_touch_it():
    frames, frame_lengths, words, word_lengths = sequences(4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = relevance(frames.float(), frame_lengths, words.float(), word_lengths)
    assert torch.equal(inside, relevance(frames.float(), frame_lengths, words.float(), word_lengths))


LONG = """
import torch
from aadml.comparison.frame_word import relevance
frames = torch.randn(32, 1500, 300, requires_grad=True)
lengths = torch.full((32,), 1500)
relevance(frames, lengths, frames[:3], lengths[:3]).sum().backward()
assert frames.grad.abs().sum() > 0
"""


@pytest.mark.slow
def test_of_long_recordings_stays_under_two_gibibytes(peak_bytes):
    assert peak_bytes(LONG) < 2 << 30
