"""CRNN of XIE (Xie et al., DCASE 2022; `contrastive-negative-sampling`): one vector per frame of sound.

Reference: Xie et al., Language-based audio retrieval task in DCASE 2022 challenge, DCASE 2022, https://arxiv.org/abs/2206.06108
"""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from aadml.feature_extraction.layers.masking import filled, masked, masked_batch_norm, time_mask

BANDS = 64
SILENCE = -36.04365338911715  # natural logarithm of 2^-52, the value of the front end for digital silence
_TINY = 1e-24  # makes the fourth root differentiable for a window of zeros

_BLOCKS = (  # share of channels of each convolution, and the pooling (time, bands) after it
    (0.25, (2, 4)),
    (1.0, None),
    (1.0, (2, 4)),
    (1.0, None),
    (1.0, (1, 4)),
)


class Crnn(nn.Module):
    """Five convolutions with L4 pooling, a bidirectional GRU at a quarter of the frame rate, then interpolation.

    L4 pooling, the fourth root of a sum of fourth powers, follows the convolutions 1, 3 and 5. A batch norm precedes
    every convolution. The vectors of a clip do not depend on the padding of its batch. The network of the default sizes
    has 732,354 parameters.

    Args:
        channels: channels of the last four convolutions, a multiple of 4.
        dimension: dimension of a frame's vector, even.
        dropout: dropout rate before the GRU.
    """

    def __init__(self, *, channels: int = 128, dimension: int = 300, dropout: float = 0.3) -> None:
        super().__init__()
        sizes = [1, *(int(share * channels) for share, _ in _BLOCKS)]
        self.norms = nn.ModuleList(nn.BatchNorm2d(size) for size in sizes[:-1])
        self.convolutions = nn.ModuleList(nn.Conv2d(i, o, 3, padding=1, bias=False) for i, o in pairwise(sizes))
        for convolution in self.convolutions:
            assert isinstance(convolution, nn.Conv2d)
            nn.init.kaiming_normal_(convolution.weight)
        self.recurrent = nn.GRU(channels, dimension // 2, bidirectional=True, batch_first=True)
        self.dropout = dropout
        self.dimension = dimension

    def forward(self, log_mel: Tensor, lengths: Tensor | None = None, *, pooled: bool = False) -> Tensor:
        """Embed the frames of clips.

        Args:
            log_mel: (b, t, 64) natural logarithms (`log_mel.CRNN`).
            lengths: (b,) number of frames of each clip; None if all clips have t frames.
            pooled: whether to return the GRU's outputs at a quarter of the frame rate, without interpolation.

        Returns:
            Vectors (b, t, dimension), or vectors (b, max(t, 4) // 4, dimension) if `pooled`. The vectors of padding
            are zero.
        """
        ends = lengths if lengths is not None else torch.full((len(log_mel),), log_mel.shape[1], device=log_mel.device)
        values, lengths = filled(log_mel, lengths, 4, SILENCE)
        values = values[:, None]  # (b, 1, t, bands)
        for (_, pool), norm, convolution in zip(_BLOCKS, self.norms, self.convolutions, strict=True):
            assert isinstance(norm, nn.BatchNorm2d)
            mask = time_mask(lengths, values.shape[2])
            values = F.leaky_relu(convolution(masked_batch_norm(values, norm, mask)), 0.1)
            values = masked(values, mask)
            if pool is not None:
                values = _l4_pooled(values, pool)
                lengths = None if lengths is None else lengths // pool[0]
        values = F.dropout(masked(values, time_mask(lengths, values.shape[2])), self.dropout, self.training)
        steps = torch.full_like(ends, values.shape[2]) if lengths is None else lengths
        outputs = self._over_time(values.mean(3).transpose(1, 2), steps)
        return outputs if pooled else _interpolated(outputs, steps, ends, log_mel.shape[1])

    def _over_time(self, values: Tensor, steps: Tensor) -> Tensor:
        """Run the GRU in both directions over values (b, t, channels) and return the outputs (b, t, dimension).

        In item i, the GRU runs over the first `steps[i]` rows, and the outputs after these rows are zero.
        """
        packed = pack_padded_sequence(values, steps.cpu(), batch_first=True, enforce_sorted=False)
        outputs, _ = pad_packed_sequence(self.recurrent(packed)[0], batch_first=True, total_length=values.shape[1])
        return outputs


def pooled_lengths(lengths: Tensor) -> Tensor:
    """Compute the numbers of frames (b,) at a quarter of the frame rate from the numbers of frames `lengths` (b,).

    A clip of fewer than 4 frames counts as a clip of 4 frames.
    """
    return lengths.clamp(min=4) // 2 // 2


def _l4_pooled(values: Tensor, pool: tuple[int, int]) -> Tensor:
    """Compute the fourth root of the sum of fourth powers in each window of the size `pool`, (frames, bands)."""
    mean = F.avg_pool2d(values.square().square(), pool)
    return (mean * (pool[0] * pool[1]) + _TINY).sqrt().sqrt()


def _interpolated(values: Tensor, steps: Tensor, frames: Tensor, size: int) -> Tensor:
    """Interpolate each item linearly over time, without aligned corners.

    Args:
        values: (b, s, d), padded rows of each item before interpolation.
        steps: (b,) number of rows of each item before interpolation.
        frames: (b,) number of rows of each item after interpolation; the result is zero after these rows.
        size: number of rows of the result.

    Returns:
        Interpolated rows (b, size, d).
    """
    places = torch.arange(size, device=values.device)[None, :]
    source = ((places + 0.5) * (steps.double() / frames)[:, None] - 0.5).clamp_min(0)
    last = (steps - 1)[:, None]
    left = torch.minimum(source.long(), last)
    right = torch.minimum(left + 1, last)
    weight = (source - left).clamp(0, 1)[..., None].to(values.dtype)
    wide = (-1, -1, values.shape[2])
    low = values.gather(1, left[..., None].expand(wide))
    high = values.gather(1, right[..., None].expand(wide))
    return torch.lerp(low, high, weight) * (places < frames[:, None])[..., None]
