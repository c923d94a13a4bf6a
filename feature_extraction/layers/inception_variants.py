"""Variants of Inception-V3: structure and input of the network for a weight file.

The convolutions of all published files have tensors of equal shapes, but the files belong to three variants. A
published file is identified by its checksum. For any other file, the tensors determine some of the fields. A
warning lists the fields that remain unknown, and the options for these fields.
"""

import logging
from dataclasses import asdict, dataclass, replace

from aadml.feature_extraction.layers.inception_blocks import LastPool, PoolPadding
from aadml.feature_extraction.weights.resolve import ResolvedWeights

_log = logging.getLogger(__name__)
_IMAGENET_CLASSES = 1000
_GRAPH_OF_2015_CLASSES = 1008  # eight of them are not used


@dataclass(frozen=True)
class InceptionVariant:
    """Structure and input of the network that a weight file belongs to.

    Attributes:
        pool_padding: see `InceptionV3`.
        last_pool: see `InceptionV3`.
        transform_input: see `network_input`.
    """

    pool_padding: PoolPadding = "counted"
    last_pool: LastPool = "average"
    transform_input: bool = True

    def updated(self, overrides: "VariantOptions") -> "InceptionVariant":
        """Return a copy of the variant, updated with every value of `overrides` that is not None."""
        fields = {name: value for name, value in vars(overrides).items() if value is not None}
        return replace(self, **fields)


@dataclass(frozen=True, kw_only=True)
class VariantOptions:
    """Fields of the variant that a user sets.

    Attributes:
        pool_padding: `counted` or `excluded` (see `InceptionV3`); None for the value that the weights need.
        last_pool: `average` or `max` (see `InceptionV3`); None for the value that the weights need.
        transform_input: see `network_input`; None for the value that the weights need.
    """

    pool_padding: PoolPadding | None = None
    last_pool: LastPool | None = None
    transform_input: bool | None = None


AS_WEIGHTS = VariantOptions()
"""Options with no field set."""
_GRAPH_OF_2015 = InceptionVariant(pool_padding="excluded", last_pool="max")

INCEPTION_VARIANTS: dict[str, InceptionVariant] = {
    **dict.fromkeys(("inception-v3", "inception-v3-tv", "inception-v3-tf", "inception-v3-tf-adv"), InceptionVariant()),
    "inception-v3-gluon": InceptionVariant(transform_input=False),
    "inception-v3-2015": _GRAPH_OF_2015,
}
"""Variants of the published files, by their names in `weights.WEIGHTS`."""


def variant_of(weights: ResolvedWeights, overrides: VariantOptions) -> InceptionVariant:
    """Return the variant that a weight file belongs to.

    Args:
        weights: the file.
        overrides: fields that the user set. These fields take precedence over the content of the file.

    Returns:
        The variant, with torchvision's values for fields that are neither known nor set. A warning lists such fields.
    """
    variant, doubtful = _by_content(weights)
    guessed = [name for name in doubtful if getattr(overrides, name) is None]
    if guessed:
        _log.warning(
            "weights %s: the content does not determine %s, so torchvision's values are used (%s); to change the "
            "values, pass %s, or the name of the published file (%s)",
            weights.name,
            " and ".join(guessed),
            ", ".join(f"{name} {str(value).lower()}" for name, value in asdict(variant).items()),
            " ".join(f"--set visual.{name}=..." for name in guessed),
            ", ".join(INCEPTION_VARIANTS),
        )
    return variant.updated(overrides)


def _by_content(weights: ResolvedWeights) -> tuple[InceptionVariant, tuple[str, ...]]:
    """Return the most likely variant, and the names of the fields that are guesses."""
    if weights.published in INCEPTION_VARIANTS:
        return INCEPTION_VARIANTS[weights.published], ()
    head = weights.tensors.get("fc.weight")
    if head is None or head.ndim != 2:
        return InceptionVariant(), ("pool_padding", "last_pool", "transform_input")
    if len(head) == _GRAPH_OF_2015_CLASSES:
        return _GRAPH_OF_2015, ()
    if len(head) == _IMAGENET_CLASSES and "AuxLogits.fc.weight" in weights.tensors:
        return InceptionVariant(), ()  # only torchvision's file keeps the auxiliary head
    return InceptionVariant(), ("transform_input",)
