"""Inception-V3 (Szegedy et al., CVPR 2016), pooled to 2048 dimensions, with torchvision's parameter names.

The published files of torchvision and timm, and ports with the same names, can all be loaded. Their classifier and
auxiliary head are not used. These files contain different networks of the same shape. The provenance of the features
records the file.

Reference: Szegedy et al., Rethinking the Inception architecture for computer vision, CVPR 2016, https://doi.org/10.1109/CVPR.2016.308
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.fusion import fuse_conv_bn_eval

from aadml.feature_extraction.backbones import Description, Extractor, FrameRate
from aadml.feature_extraction.frontends.inference import Runner, chosen_device, loaded, seeded, uses_bfloat16
from aadml.feature_extraction.frontends.whitening import PcaWhitening, reduced, youtube8m_whitening
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.file_content import sha256
from aadml.feature_extraction.ground.options import removing
from aadml.feature_extraction.layers.inception_blocks import LastPool, Mixed, PoolPadding, Unit, blocks
from aadml.feature_extraction.layers.inception_variants import AS_WEIGHTS, InceptionVariant, VariantOptions, variant_of
from aadml.feature_extraction.media import Frames
from aadml.feature_extraction.weights.resolve import load_weights
from aadml.feature_extraction.weights.table import weights_path
from aadml.feature_extraction.weights.tensor_files import check_state

Reduction = Callable[[Description], Description]

DIMENSION = 2048
REDUCED = 1024
SIDE = 299  # pixels
# frames; fixed, so that a clip's values cannot depend on the other clips; 5 leaves no padding for a clip of 10 frames
_BATCH_CPU, _BATCH = 5, 8
_IMAGENET_MEAN, _IMAGENET_SD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_UNUSED = ("fc.", "AuxLogits.")  # prefixes of the tensors of classifier and auxiliary head


class InceptionV3(nn.Module):
    """Inception-V3 up to its pooled features.

    Args:
        pool_padding: whether the 3x3 average pools inside the blocks include the zeros beyond the border: "counted" for
            torchvision's and timm's files, "excluded" for weights that come from TensorFlow or Keras.
        last_pool: pool of the last block, "average", or "max" as in TensorFlow's graph of 2015-12-05 and its ports.
    """

    def __init__(self, *, pool_padding: PoolPadding = "counted", last_pool: LastPool = "average") -> None:
        super().__init__()
        self.Conv2d_1a_3x3 = Unit(3, 32, 3, stride=2, same=False)
        self.Conv2d_2a_3x3 = Unit(32, 32, 3, same=False)
        self.Conv2d_2b_3x3 = Unit(32, 64, 3)
        self.Conv2d_3b_1x1 = Unit(64, 80, 1)
        self.Conv2d_4a_3x3 = Unit(80, 192, 3, same=False)
        width, self.blocks = 192, list[str]()
        for name, branches in blocks(last_pool):
            block = Mixed(width, branches, pool_padding=pool_padding)
            self.add_module(name, block)
            self.blocks.append(name)
            width = block.outputs

    def forward(self, images: Tensor) -> Tensor:
        """Compute the pooled features of images.

        Args:
            images: (n, 3, h, w) normalized by `network_input`; the weights were trained on 299 x 299 pixels.

        Returns:
            (n, 2048), the mean over the last grid.
        """
        x = self.Conv2d_2b_3x3(self.Conv2d_2a_3x3(self.Conv2d_1a_3x3(images)))
        x = F.max_pool2d(x, 3, stride=2)
        x = F.max_pool2d(self.Conv2d_4a_3x3(self.Conv2d_3b_1x1(x)), 3, stride=2)
        for name in self.blocks:
            x = getattr(self, name)(x)
        pooled: Tensor = x.mean(dim=(2, 3))
        return pooled


def network_input(frames: Tensor, *, transform_input: bool) -> Tensor:
    """Normalize frames as the weights of the network require.

    Torchvision's network reads images that are normalized by ImageNet's mean and deviation. The option
    `transform_input` maps these images to the range of TensorFlow's images. The published file needs this option, and
    `pretrained=True` sets the option.

    Args:
        frames: (n, h, w, 3) uint8 RGB.
        transform_input: True for values in [-1, 1], x / 127.5 - 1 (for weights that descend from TensorFlow's, such as
            torchvision's); False for ImageNet's mean and deviation (for GluonCV's weights).

    Returns:
        (n, 3, h, w) float32, in channels-last memory.
    """
    images = frames.permute(0, 3, 1, 2).float()
    if transform_input:
        return images / 127.5 - 1.0
    mean, deviation = (torch.tensor(v, device=images.device)[:, None, None] for v in (_IMAGENET_MEAN, _IMAGENET_SD))
    return (images / 255.0 - mean) / deviation


def load_inception_v3(tensors: Mapping[str, Tensor], variant: InceptionVariant) -> InceptionV3:
    """Build the network of a weight file.

    Args:
        tensors: tensors with torchvision's names, with or without the auxiliary head and the classifier.
        variant: variant of the network that the file belongs to.

    Returns:
        The network, in evaluation mode.

    Raises:
        InputError: a tensor is missing or unknown, or has a wrong shape. Tensors of the classifiers are not checked.
    """
    build = _build(variant)
    with torch.device("meta"):
        expected = build().state_dict()
    counters = {n: torch.zeros((), dtype=torch.int64) for n in expected if n.endswith("num_batches_tracked")}
    state = counters | {n: tensor for n, tensor in tensors.items() if not n.startswith(_UNUSED)}
    check_state(state, expected, "Inception-V3 (torchvision's names)")
    return loaded(build, {n: state[n].to(tensor.dtype) for n, tensor in expected.items()}).eval()


def _build(variant: InceptionVariant) -> partial[InceptionV3]:
    return partial(InceptionV3, pool_padding=variant.pool_padding, last_pool=variant.last_pool)


def folded(network: InceptionV3) -> InceptionV3:
    """Fold each batch normalization into the preceding convolution, in place, and return the network.

    The folded network needs a third less memory traffic.
    """
    for module in network.modules():
        if isinstance(module, Unit) and isinstance(module.bn, nn.BatchNorm2d):
            module.conv = fuse_conv_bn_eval(module.conv, module.bn)
            module.add_module("bn", nn.Identity())
    return network


@removing(matrices="auto")
def inception_v3(
    *,
    weights: str = "auto",
    variant: VariantOptions = AS_WEIGHTS,
    reduction: Literal["none", "own-pca", "youtube-8m"] = "none",
    eight_bit: bool = False,
    precision: Literal["float32", "bfloat16", "auto"] = "float32",
    frames_per_second: FrameRate = 1.0,
    device: str = "auto",
) -> Extractor:
    """Build Inception-V3 for frames: 2048-d, or 1024-d after whitening; pooling is the mean over frames.

    Args:
        weights: `auto` (torchvision's file), `untrained`, a name in the table of weights, a weight file, or its folder.
        variant: structure and input of the network, as differences from the variant of the weights.
        reduction: `none`; `own-pca` (PCA with whitening to 1024, fitted to the frames of the training clips and stored
            in the feature file); `youtube-8m` (the released matrices).
        eight_bit: whether reduced values are quantized to 8 bits, as in YouTube-8M.
        precision: `float32`; `bfloat16` (autocast); `auto` (bfloat16 if the hardware supports it, otherwise float32).
        frames_per_second: frames per second to use; at most the first 300 frames of a clip are used.
        device: `auto`, `cpu` or `cuda`.

    Returns:
        The extractor.

    Raises:
        InputError: an option has an invalid value, or the weights or matrices are not available or not valid.
    """
    reduce, checksums = _reduction(reduction, eight_bit)
    target = chosen_device(device, "inception-v3")
    half = uses_bfloat16(precision, target)
    network, actual, checksum, about = _loaded(weights, variant)
    parameters = {
        **asdict(actual),
        "side": SIDE,
        "frames_per_second": frames_per_second,
        "reduction": reduction,
        "eight_bit": eight_bit,
        "precision": "bfloat16" if half else "float32",
        "weights": checksum,
        **checksums,
    }
    return Extractor(
        name="inception-v3",
        modality="visual",
        dimension=DIMENSION if reduction == "none" else REDUCED,
        inputs=Frames(frames_per_second=frames_per_second, height=SIDE, width=SIDE),
        parameters=parameters,
        about=about,
        prepare=np.asarray,
        describe=_describer(folded(network), target, actual.transform_input, half, reduce),
        batch_clips=8,  # five minutes of frames are 80 MB
        fit=PcaWhitening(REDUCED, eight_bit) if reduction == "own-pca" else None,
    )


def _describer(
    network: InceptionV3, device: torch.device, transform_input: bool, half: bool, reduce: Reduction | None
) -> Callable[[Sequence[NDArray[Any]]], list[Description]]:
    network.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]

    def pool(network: InceptionV3, items: Mapping[str, Tensor]) -> Tensor:
        vectors: Tensor = network(network_input(items["frames"], transform_input=transform_input))
        return vectors

    run = Runner(network, pool, device, half, _BATCH_CPU if device.type == "cpu" else _BATCH)

    def describe(clips: Sequence[NDArray[Any]]) -> list[Description]:
        rows = run([{"frames": frame} for frame in clip] for clip in clips)
        return [reduce(part) for part in rows] if reduce else rows

    return describe


def _loaded(weights: str, overrides: VariantOptions) -> tuple[InceptionV3, InceptionVariant, str, dict[str, str]]:
    """Return the network, its variant, the checksum of its weights (or "untrained"), and `about` of the extractor."""
    about = {"torch": str(torch.__version__)}
    if weights == "untrained":
        variant = InceptionVariant().updated(overrides)
        return seeded(_build(variant)).eval(), variant, "untrained", about
    file = load_weights(weights, "inception-v3")
    variant = variant_of(file, overrides)
    return load_inception_v3(file.tensors, variant), variant, file.sha256, about | {"weight_file": file.name}


def _reduction(reduction: str, eight_bit: bool) -> tuple[Reduction | None, dict[str, str]]:
    """Return the reduction of youtube-8m by the released matrices, and the provenance of the matrices.

    For all other reductions, the result is (None, {}).
    """
    if eight_bit and reduction == "none":
        raise InputError(
            "inception-v3.eight_bit quantizes reduced values, but reduction is none; "
            "set reduction to own-pca or youtube-8m"
        )
    if reduction != "youtube-8m":
        return None, {}
    path = weights_path("youtube-8m-pca")
    return partial(reduced, youtube8m_whitening(path, REDUCED), eight_bit=eight_bit), {"matrices": sha256(path)}
