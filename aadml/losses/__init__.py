"""LOSSES: every loss of a comparison, by the name it has in configs and on the command line."""

from collections.abc import Callable

from aadml.comparison import Terms
from aadml.losses.contrastive import contrastive

Loss = Callable[..., Terms]
"""A pure function `(comparison, *, options) -> Terms`, or an `nn.Module` class whose instances are one (see DAML)."""

LOSSES: dict[str, Loss] = {
    "contrastive": contrastive,
}
