"""From names and options in a config to a training signal."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from typing import Any

from torch import nn

from aadml.comparison.features import Modality
from aadml.comparison.options import Weight
from aadml.feature_extraction.ground.contracts import require_result
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.registry import Registry, lookup
from aadml.losses import LOSSES, OF_EACH_ANCHOR
from aadml.objective.embedded import BOTH
from aadml.objective.left_out import LeftOut, is_left_out
from aadml.objective.objective import ALL, Loss, Objective, ObjectiveOptions, parse_directions
from aadml.objective.sections import Named, Section, named
from aadml.proxies import PROXIES, prefix_of
from aadml.proxies.contract import Proxy, ProxyFactory
from aadml.selections import SELECTIONS


@dataclass(frozen=True, kw_only=True)
class Weighted:
    """What the section of a loss takes that stands beside others.

    Attributes:
        weight: factor of the loss; 0 leaves it out.
    """

    weight: Weight = 1.0


@dataclass(frozen=True)
class Space:
    """What an objective is built for.

    Attributes:
        modalities: that there are.
        dimension: d of the embeddings.
        features: f of the penultimate features, 0 where there are none.
        classes: C, 0 where there are none.
    """

    modalities: tuple[Modality, ...]
    dimension: int
    features: int = 0
    classes: int = 0


def compose_objective(
    space: Space,
    *,
    loss: Section,
    directions: Sequence[str],
    selection: Section = "all",
    proxy: Section = "identity",
) -> Objective:
    """Build the objective that the sections `loss`, `selection`, `proxy` and `directions` describe.

    Args:
        space: of the embeddings.
        loss: `name`, `weight`, `reduction`, `combine`, and the loss's options.
        directions: "anchors-candidates" each, or "all" alone.
        selection: `name` and its options.
        proxy: `name` and its options.

    Raises:
        InputError: an unknown name or option; the message gives the nearest one.
    """
    if list(directions) == [ALL]:
        directions = ["-".join(two) for two in permutations(space.modalities, 2)]
    for side in dict.fromkeys(side for direction in parse_directions(directions) for side in direction):
        if side not in (BOTH, *space.modalities):
            raise InputError(
                f"directions: no {side} features here; there are {', '.join(space.modalities)}, and {BOTH}"
            )
    cost = named(loss)
    # built before losses that own parameters: the order of drawing them decides a run's weights
    stands_for = _part(PROXIES, named(proxy), partial(_proxy, space=space))
    return Objective(
        _losses(cost, space, len(directions)),
        _part(SELECTIONS, named(selection), _selection),
        stands_for,
        directions=directions,
        reduced=cost.shared(ObjectiveOptions),
        divided=cost.name in OF_EACH_ANCHOR,
    )


def _part(table: Registry[Any], section: Named, build: Callable[[Named], Any]) -> Any:
    """Build the part that a section names; a model that is loaded leaves out what comes from outside."""
    return LeftOut(partial(build, section)) if is_left_out(table, section.name) else build(section)


def _selection(section: Named) -> Callable[..., Any]:
    entry = lookup(SELECTIONS, section.name, "selection")
    return partial(entry, **section.keywords(entry, "selection"))


def _proxy(section: Named, space: Space) -> Proxy | None:
    """Build a proxy; None for one that leaves every clip as it is."""
    entry = lookup(PROXIES, section.name, "proxy")
    options = section.keywords(entry, "proxy")
    if not prefix_of(section.name):
        return None
    proxy = entry(space.dimension, space.modalities, **options)
    return require_result(proxy, ProxyFactory, "proxy", section.name)


def _losses(section: Named, space: Space, count: int) -> list[Loss]:
    """Build one loss a direction; of those whose parameters all directions share (proxies of classes) one for all."""
    build = partial(_loss, space=space)
    first = _part(LOSSES, section, build)
    shared = getattr(first, "one_for_all_directions", False)
    return [first, *(first if shared else _part(LOSSES, section, build) for _ in range(count - 1))]


def _loss(section: Named, space: Space) -> Loss:
    """Bind a loss to its options; one that owns parameters is built."""
    entry = lookup(LOSSES, section.name, "loss")
    options = section.keywords(entry, "loss", Weighted, ObjectiveOptions)
    if not (inspect.isclass(entry) and issubclass(entry, nn.Module)):
        function: Callable[..., Any] = entry
        return partial(function, **options)
    takes = inspect.signature(entry).parameters
    if "features" in takes and not space.features:
        raise InputError(
            f"loss: {section.name} makes up features of a last layer, which this method has none of; aadml has"
        )
    built: Loss = entry(**options, **{key: value for key, value in vars(space).items() if key in takes})
    return built
