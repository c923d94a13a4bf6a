"""PANNs (Kong et al., TASLP 2020): Cnn10, Cnn14 and ResNet38, from log-mel spectrograms to one vector per clip.

Parameter names equal those of the published checkpoints (Zenodo record 3987831). The last two linear layers and the
front-end constants of the checkpoints are omitted. Pooling and dropout follow Mei et al. 2022 (`audio-text_retrieval`).

Reference: Kong et al., PANNs: large-scale pretrained audio neural networks for audio pattern recognition, TASLP 2020, https://doi.org/10.1109/TASLP.2020.3030497
Reference: Mei et al., On metric learning for audio-text cross-modal retrieval, Interspeech 2022, https://arxiv.org/abs/2203.15537
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from aadml.feature_extraction.layers.masking import filled, masked, masked_batch_norm, time_mask
from aadml.feature_extraction.layers.spec_augment import spec_augment
from aadml.feature_extraction.weights.tensor_files import check_state

BANDS = 64
SILENCE = -100.0  # decibels of digital silence, 10 log10(1e-10)


class Panns(nn.Module):
    """Batch norm of the bands (`bn0`), a trunk of convolutions, and pooling over bands and time.

    The vector of a clip does not depend on the padding of its batch. Silence is appended to a clip that is too short
    for the pooling.

    Args:
        trunk: name -> block, in order; a block maps values and lengths to values and lengths.
        dimension: dimension of the vectors, the channels of the last block.
        minimum_frames: length of the shortest spectrogram that all pooling layers accept, in frames.
        dropout: dropout rate after each block.
        augment: whether SpecAugment is applied in training.
    """

    def __init__(
        self, trunk: Mapping[str, nn.Module], dimension: int, minimum_frames: int, dropout: float, augment: bool
    ) -> None:
        super().__init__()
        self.bn0 = nn.BatchNorm1d(BANDS)
        self._order = tuple(trunk)
        for name, block in trunk.items():
            self.add_module(name, block)
        self.dimension = dimension
        self.minimum_frames = minimum_frames
        self.dropout = dropout
        self.augment = augment

    def forward(self, log_mel: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Embed clips.

        Args:
            log_mel: (b, t, 64) in decibels (`log_mel.PANNS`).
            lengths: (b,) number of frames of each clip; None if all clips have t frames.

        Returns:
            (b, dimension), the mean over bands, then the sum of maximum and mean over time.
        """
        values, lengths = filled(log_mel, lengths, self.minimum_frames, SILENCE)
        mask = time_mask(lengths, values.shape[1])
        values = self._normalized(values, mask)[:, None]  # (b, 1, t, bands)
        if self.training and self.augment:
            values = spec_augment(values, lengths)
        for name in self._order:
            values, lengths = self.get_submodule(name)(values, lengths)
            values = F.dropout(values, self.dropout, self.training)
        over_bands = values.mean(3)  # (b, dimension, t'), not negative, so padding is never the maximum
        count = over_bands.shape[2] if lengths is None else lengths[:, None]
        return over_bands.amax(2) + over_bands.sum(2) / count

    def _normalized(self, values: Tensor, mask: Tensor | None) -> Tensor:
        """Normalize values (b, t, bands) by band over the frames that are not padding. Padding becomes zero."""
        if mask is None:
            rows: Tensor = self.bn0(values.flatten(0, 1))
            return rows.view(values.shape)
        return torch.zeros_like(values).masked_scatter(mask[..., None], self.bn0(values[mask]))


class ConvBlock(nn.Module):
    """Two 3 x 3 convolutions with batch norm and ReLU, then average pooling of time and bands by `pool` (1 or 2)."""

    def __init__(self, inputs: int, outputs: int, *, pool: int = 2) -> None:
        super().__init__()
        self.conv1 = _convolution(inputs, outputs)
        self.conv2 = _convolution(outputs, outputs)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.pool = pool

    def forward(self, values: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Map (b, inputs, t, f) and lengths (b,) to (b, outputs, t // pool, f // pool) and new lengths."""
        mask = time_mask(lengths, values.shape[2])
        values = F.relu(masked_batch_norm(self.conv1(values), self.bn1, mask))
        values = F.relu(masked_batch_norm(self.conv2(values), self.bn2, mask))
        return _pooled(values, lengths) if self.pool == 2 else (values, lengths)


class ResidualBlock(nn.Module):
    """Two 3 x 3 convolutions with dropout between them, and a shortcut around both convolutions.

    If `halve` is true, average pooling by 2 precedes the convolutions and the shortcut.
    """

    def __init__(self, inputs: int, outputs: int, *, halve: bool, dropout: float) -> None:
        super().__init__()
        self.conv1 = _convolution(inputs, outputs)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = _convolution(outputs, outputs)
        self.bn2 = nn.BatchNorm2d(outputs)
        nn.init.zeros_(self.bn2.weight)
        downsample = nn.Sequential(nn.AvgPool2d(2), _convolution(inputs, outputs, 1), nn.BatchNorm2d(outputs))
        if halve:
            self.downsample = downsample
        self.halve = halve
        self.dropout = dropout

    def forward(self, values: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Map (b, inputs, t, f) and lengths (b,) to (b, outputs, t', f') and new lengths; `halve` halves t and f."""
        if self.halve:
            values, lengths = _pooled(values, lengths)
        mask = time_mask(lengths, values.shape[2])
        shortcut = values
        if self.halve:
            _, project, norm = self.downsample
            assert isinstance(norm, nn.BatchNorm2d)
            shortcut = masked_batch_norm(project(values), norm, mask)
        values = F.relu(masked_batch_norm(self.conv1(values), self.bn1, mask))
        values = F.dropout(values, self.dropout, self.training)
        return F.relu(masked_batch_norm(self.conv2(values), self.bn2, mask) + shortcut), lengths


class ResidualStages(nn.Module):
    """Four stages of residual blocks (`layer1` to `layer4`), then average pooling by 2.

    Args:
        width: channels of the input and of the first stage; each later stage doubles the channels.
        blocks: number of residual blocks of each stage.
        dropout: dropout rate between the two convolutions of a block.
    """

    def __init__(self, width: int, blocks: Sequence[int], dropout: float) -> None:
        super().__init__()
        inputs = width
        for stage, count in enumerate(blocks):
            outputs = width * 2**stage
            layer = [
                ResidualBlock(inputs if i == 0 else outputs, outputs, halve=stage > 0 and i == 0, dropout=dropout)
                for i in range(count)
            ]
            self.add_module(f"layer{stage + 1}", nn.ModuleList(layer))
            inputs = outputs

    def forward(self, values: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Map (b, width, t, f) and lengths (b,) to (b, 8 width, t // 16, f // 16) and new lengths."""
        for layer in self.children():
            assert isinstance(layer, nn.ModuleList)
            for block in layer:
                values, lengths = block(values, lengths)
        return _pooled(values, lengths)


def cnn10(*, width: int = 64, dropout: float = 0.2, augment: bool = True) -> Panns:
    """Build Cnn10: four convolution blocks; `width` 64 is the published size (512-d). See `cnn14` for the arguments."""
    return Panns(_conv_blocks(width, 4, pool_last=True), 8 * width, 16, dropout, augment)


def cnn14(*, width: int = 64, dropout: float = 0.2, augment: bool = True, pool_last: bool = True) -> Panns:
    """Build Cnn14: six convolution blocks; `width` 64 is the published size (2048-d).

    Args:
        width: channels of the first block.
        dropout: dropout rate after each block.
        augment: whether SpecAugment is applied in training.
        pool_last: whether to pool after the sixth block too, as in Mei et al. but not in PANNs.
    """
    minimum = 64 if pool_last else 32
    return Panns(_conv_blocks(width, 6, pool_last=pool_last), 32 * width, minimum, dropout, augment)


def resnet38(*, width: int = 64, dropout: float = 0.2, augment: bool = True) -> Panns:
    """Build ResNet38: stages of 3, 4, 6 and 3 residual blocks; `width` 64 is the published size (2048-d).

    See `cnn14` for the arguments.
    """
    trunk = {
        "conv_block1": ConvBlock(1, width),
        "resnet": ResidualStages(width, (3, 4, 6, 3), dropout),
        "conv_block_after1": ConvBlock(8 * width, 32 * width, pool=1),
    }
    return Panns(trunk, 32 * width, 32, dropout, augment)


PANNS_NETWORKS = {"cnn10": cnn10, "cnn14": cnn14, "resnet38": resnet38}


def load_published(network: Panns, weights: Mapping[str, Tensor]) -> None:
    """Load published weights into `network`, without the linear layers (`fc`) and the front end (`spec`, `logmel`).

    Args:
        network: result of a function in `PANNS_NETWORKS`.
        weights: parameter name -> tensor of the published file.

    Raises:
        InputError: a weight is missing or unknown, or has a wrong shape. The message contains the first such weight.
    """
    expected = network.state_dict()
    state = {k: v for k, v in expected.items() if k.endswith("num_batches_tracked")}
    state |= {k: v for k, v in weights.items() if "fc" not in k and not k.startswith(("spec", "logmel"))}
    check_state(state, expected, "PANNs")
    network.load_state_dict(state)


def _conv_blocks(width: int, count: int, *, pool_last: bool) -> dict[str, nn.Module]:
    sizes = [1, *(width * 2**i for i in range(count))]
    pools = [2] * (count - 1) + [2 if pool_last else 1]
    return {f"conv_block{i + 1}": ConvBlock(sizes[i], sizes[i + 1], pool=pools[i]) for i in range(count)}


def _convolution(inputs: int, outputs: int, size: int = 3) -> nn.Conv2d:
    convolution = nn.Conv2d(inputs, outputs, size, padding=size // 2, bias=False)
    nn.init.xavier_uniform_(convolution.weight)
    return convolution


def _pooled(values: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor | None]:
    values = F.avg_pool2d(values, 2)
    if lengths is None:
        return values, None
    lengths = lengths // 2
    return masked(values, time_mask(lengths, values.shape[2])), lengths
