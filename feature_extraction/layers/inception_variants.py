"""How weight files of Inception-V3 want the network to be built and fed: files of one shape, but of three kinds.

The kind is known by content: by checksum where the file is a published one, else by what its tensors tell. What they do
not tell is stated, with the option that decides it.
"""

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from torch import Tensor

from aadml.feature_extraction.layers.inception_blocks import LastPool, PoolPadding
from aadml.feature_extraction.weights.resolve import ResolvedWeights

_log = logging.getLogger(__name__)
_IMAGENET_CLASSES = 1000
_GRAPH_OF_2015_CLASSES = 1008  # eight of them are not used


@dataclass(frozen=True)
class InceptionVariant:
    """How a weight file wants the network to be built and fed.

    Attributes:
        pool_padding: see `InceptionV3`.
        last_pool: see `InceptionV3`.
        transform_input: see `network_input`.
    """

    pool_padding: PoolPadding = "counted"
    last_pool: LastPool = "average"
    transform_input: bool = True


@dataclass(frozen=True)
class Asked:
    """What a user chooses of a reading; None leaves a field to the file."""

    pool_padding: PoolPadding | None
    last_pool: LastPool | None
    transform_input: bool | None

    def over(self, reading: InceptionVariant) -> InceptionVariant:
        """Put what was chosen into a reading."""
        return replace(reading, **{name: value for name, value in vars(self).items() if value is not None})


_GRAPH_OF_2015 = InceptionVariant(pool_padding="excluded", last_pool="max")

INCEPTION_VARIANTS: dict[str, InceptionVariant] = {
    "inception-v3": InceptionVariant(),
    "inception-v3-tv": InceptionVariant(),
    "inception-v3-tf": InceptionVariant(),
    "inception-v3-tf-adv": InceptionVariant(),
    "inception-v3-gluon": InceptionVariant(transform_input=False),
    "inception-v3-2015": _GRAPH_OF_2015,
}
"""What is known of the files of `weights.WEIGHTS`."""


def variant_of(weights: ResolvedWeights, given: Asked) -> InceptionVariant:
    """Read a file as its content says, save where the user says otherwise.

    Args:
        weights: the file.
        given: what the user chose of it.

    Returns:
        The reading; a warning names what is neither known nor given, and how to decide it.
    """
    reading, doubtful = _by_content(weights)
    open_fields = [name for name in doubtful if getattr(given, name) is None]
    if open_fields:
        how = ", ".join(f"{name} {str(value).lower()}" for name, value in asdict(reading).items())
        options = " ".join(f"--set visual.{name}=..." for name in open_fields)
        _log.warning(
            "weights %s: the content does not tell its %s, and it is read as torchvision's (%s); to decide, give %s, "
            "or the name of the published file that it is (%s)",
            weights.name,
            " and ".join(open_fields),
            how,
            options,
            ", ".join(INCEPTION_VARIANTS),
        )
    return given.over(reading)


def _by_content(weights: ResolvedWeights) -> tuple[InceptionVariant, tuple[str, ...]]:
    """Return the likeliest reading, and the fields of it that are a guess."""
    if weights.published in INCEPTION_VARIANTS:
        return INCEPTION_VARIANTS[weights.published], ()
    classes = _classes(weights.tensors)
    if classes == _GRAPH_OF_2015_CLASSES:
        return _GRAPH_OF_2015, ()
    if classes is None:
        return InceptionVariant(), ("pool_padding", "last_pool", "transform_input")
    if classes == _IMAGENET_CLASSES and "AuxLogits.fc.weight" in weights.tensors:
        return InceptionVariant(), ()  # only torchvision's file has kept the auxiliary head
    return InceptionVariant(), ("transform_input",)


def _classes(tensors: Mapping[str, Tensor]) -> int | None:
    head = tensors.get("fc.weight")
    return None if head is None or head.ndim != 2 else len(head)
