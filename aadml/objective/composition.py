"""From names and options in a config to a training signal."""

import inspect
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from torch import nn

from aadml.comparison.types import Modality
from aadml.losses import LOSSES
from aadml.objective import Objective
from aadml.proxies import PROXIES
from aadml.selections import SELECTIONS
from feature_extraction.ground.options import checked_options
from feature_extraction.ground.tables import lookup

OBJECTIVE_OPTIONS: dict[str, Any] = {"weight": 1.0, "reduction": "mean-of-active", "combine": "mean"}
"""What the `loss` section takes beside its name and the loss's own options."""

MODULE_CONTEXT = ("dimension", "features", "classes")
"""What a loss that owns parameters is told, beside its options."""


def compose_objective(
    *,
    loss: Mapping[str, Any],
    selection: Mapping[str, Any],
    proxy: Mapping[str, Any],
    directions: Sequence[str],
    modalities: tuple[Modality, ...],
    dimension: int,
    features: int,
    classes: int,
) -> Objective:
    """Build the objective that the sections `loss`, `selection`, `proxy` and `directions` describe.

    Args:
        loss: `name`, `weight`, `reduction`, `combine`, and the loss's options.
        selection: `name` and its options.
        proxy: `name` and its options.
        directions: "anchors-candidates" each.
        modalities: that there are.
        dimension: d of the embeddings.
        features: f of the penultimate features.
        classes: C.

    Raises:
        InputError: an unknown name or option; the message gives the nearest one.
    """
    selecting = lookup(SELECTIONS, selection["name"], "selection")
    chosen = partial(selecting, **checked_options(selecting, _own(selection), "selection"))
    build = lookup(PROXIES, proxy["name"], "proxy")
    seen_as = None
    if proxy["name"] != "identity":
        seen_as = build(dimension, modalities, **checked_options(build, _own(proxy), "proxy"))
    settings = OBJECTIVE_OPTIONS | {key: loss[key] for key in OBJECTIVE_OPTIONS if key in loss}
    return Objective(
        [_loss(loss, dimension=dimension, features=features, classes=classes) for _ in directions],
        chosen,
        seen_as,
        directions=directions,
        reduction=settings["reduction"],
        combine=settings["combine"],
    )


def _loss(section: Mapping[str, Any], **context: int) -> Any:
    """Bind a loss to its options; one that owns parameters is built."""
    entry = lookup(LOSSES, section["name"], "loss")
    given = {key: value for key, value in _own(section).items() if key not in OBJECTIVE_OPTIONS}
    if inspect.isclass(entry) and issubclass(entry, nn.Module):
        takes = inspect.signature(entry).parameters
        known = {key: value for key, value in context.items() if key in takes}
        options = checked_options(entry, given | known, "loss")
        return entry(**options)
    return partial(entry, **checked_options(entry, given, "loss"))


def _own(section: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in section.items() if key != "name"}
