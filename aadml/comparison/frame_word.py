"""Frame-by-word relevance of two sequences (Xie et al., ICASSP 2022).

Reference: Xie et al., Unsupervised audio-caption aligning learns correspondences between individual sound events and
textual phrases, ICASSP 2022, https://doi.org/10.1109/ICASSP43922.2022.9747336
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from aadml.comparison.autograd_functions import Gradients, once_differentiable

BLOCK = 1 << 22
"""Maximum number of frame-word products in memory: 16 MiB in float32, and a few times as much for their gradient."""


def relevance(
    frames: Tensor,
    frame_lengths: Tensor,
    words: Tensor,
    word_lengths: Tensor,
    *,
    normalize: bool = True,
    legacy_padding: bool = False,
    block: int = BLOCK,
) -> Tensor:
    """Compute the relevance S of each sequence of words g to each sequence of frames f from inner products.

        S = mean over t, w of  max(0, f_t . g_w)

    Negative products are "trimmed" to 0. Either side may be of any modality: the relevance of frames to frames is
    the similarity within audio. Memory is bounded by `block`: products are computed for a block of pairs at a time,
    and again for the gradient. Scores are float32 or better, also under autocast.

    Args:
        frames: (a, t, d), padded at the end.
        frame_lengths: (a,) int64, number of frames before the padding.
        words: (c, w, d), padded at the end.
        word_lengths: (c,) int64, number of words before the padding.
        normalize: scale every frame and word to unit length first, as in the released code; Xie et al. omit this
            step.
        legacy_padding: average over the padding too, as the released code does in training.
        block: maximum number of products in memory; a single pair of sequences may have more.

    Returns:
        (a, c) scores; without `legacy_padding`, 0 for a sequence of length 0.
    """
    if legacy_padding:
        frame_lengths = torch.full_like(frame_lengths, frames.shape[1])
        word_lengths = torch.full_like(word_lengths, words.shape[1])
    left, right = _cleaned(frames, frame_lengths, normalize), _cleaned(words, word_lengths, normalize)
    if not len(left) or not len(right):
        return left.sum((1, 2))[:, None] + right.sum((1, 2))[None, :]
    pair = max(left.shape[1] * right.shape[1], 1)
    wide = min(max(block // pair, 1), len(right))
    high = max(block // (pair * wide), 1)
    columns = list(zip(torch.split(right, wide), torch.split(word_lengths, wide), strict=True))
    rows = []
    for x, x_lengths in zip(torch.split(left, high), torch.split(frame_lengths, high), strict=True):
        scores = [
            _Recomputed.apply(x, x_lengths, y, y_lengths)  # type: ignore[no-untyped-call]
            for y, y_lengths in columns
        ]
        rows.append(torch.cat(scores, 1))
    return torch.cat(rows)


def _cleaned(vectors: Tensor, lengths: Tensor, normalize: bool) -> Tensor:
    """Return vectors with zeros in the padding, scaled to unit length if `normalize`."""
    values = vectors if vectors.dtype == torch.float64 else vectors.float()
    values = values.masked_fill(~_real(lengths, vectors.shape[1])[..., None], 0)
    return F.normalize(values, dim=-1, eps=1e-12) if normalize else values


def _real(lengths: Tensor, count: int) -> Tensor:
    return torch.arange(count, device=lengths.device)[None, :] < lengths[:, None]


class _Recomputed(torch.autograd.Function):
    """Scores of a block of pairs; the products are recomputed for the gradient instead of saved."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        ctx.save_for_backward(*inputs)
        return _block(*inputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, above: Tensor) -> Gradients:
        frames, frame_lengths, words, word_lengths = ctx.saved_tensors
        frames, words = frames.detach().requires_grad_(), words.detach().requires_grad_()
        with torch.enable_grad():
            scores = _block(frames, frame_lengths, words, word_lengths)
        to_frames, to_words = torch.autograd.grad(scores, (frames, words), above)
        return to_frames, None, to_words, None


def _block(frames: Tensor, frame_lengths: Tensor, words: Tensor, word_lengths: Tensor) -> Tensor:
    """Return the scores (a, c) of all pairs of a block: frames (a, t, d) with words (c, w, d).

    Padding after the longest sequence of frames and after the longest sequence of words is cut off.
    """
    frames = frames[:, : max(int(frame_lengths.max()), 1)]
    words = words[:, : max(int(word_lengths.max()), 1)]
    with torch.autocast(frames.device.type, enabled=False):
        products = frames.flatten(0, 1) @ words.flatten(0, 1).T
    products = products.view(*frames.shape[:2], *words.shape[:2])  # (a, t, c, w)
    return products.relu().sum(3).sum(1) / (frame_lengths.clamp_min(1)[:, None] * word_lengths.clamp_min(1)[None, :])
