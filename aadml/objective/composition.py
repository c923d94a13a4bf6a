"""Config sections of the training loss, and the objective composed of these sections."""

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
from aadml.losses import LABEL_LOSSES, LOSSES, OF_EACH_ANCHOR
from aadml.losses.contract import LabelLossFunction
from aadml.losses.kernels.generated_negatives import GenerativeLoss
from aadml.objective.embedded import BOTH, Side
from aadml.objective.left_out import is_rebuilding
from aadml.objective.objective import ALL, Loss, Objective, ObjectiveOptions, parse_directions
from aadml.objective.sections import EntrySection
from aadml.proxies import PROXIES, prefix_of
from aadml.proxies.contract import Extending, Proxy, ProxyFactory
from aadml.selections import SELECTIONS


@dataclass(frozen=True)
class Space:
    """Properties of the embeddings that an objective compares.

    Attributes:
        modalities: modalities of the clips.
        dimension: dimension d of the embeddings.
        features: width f of the penultimate features; 0 without such features.
        classes: number C of classes; 0 without classes.
    """

    modalities: tuple[Modality, ...]
    dimension: int
    features: int = 0
    classes: int = 0


@dataclass(frozen=True, kw_only=True)
class Weighted:
    """Options of a loss that is added to other losses.

    Attributes:
        weight: factor of the loss; 0 omits the loss.
    """

    weight: Weight = 1.0


class LabelLossSection(EntrySection):
    """Config section `label_loss`."""

    key, table, groups = "label_loss", LABEL_LOSSES, (Weighted,)

    def bound(self) -> Callable[..., Any]:
        """Return the label loss, bound to its options. Results that break the contract raise InputError."""
        loss = super().bound()
        return lambda outputs, labels: require_result(loss(outputs, labels), LabelLossFunction, "label loss", self.name)


class SelectionSection(EntrySection):
    """Config section `selection`."""

    key, table = "selection", SELECTIONS


class ProxySection(EntrySection):
    """Config section `proxy`."""

    key, table = "proxy", PROXIES

    def build_for(self, space: Space) -> Proxy | None:
        """Build the proxy for embeddings of `space`; return None for the identity.

        A proxy with an empty prefix is the identity (see `prefix_of`).

        Raises:
            InputError: the options do not suit `space`, or the proxy does not follow the contract `Proxy`.
        """
        proxy: Proxy | None = self.part(lambda: self._built(space))
        return proxy

    def _built(self, space: Space) -> Proxy | None:
        bound = self.bound()
        if not prefix_of(self.name):
            return None
        proxy: Proxy = bound(space.dimension, space.modalities)
        return require_result(proxy, ProxyFactory, "proxy", self.name)


class LossSection(EntrySection):
    """Config section `loss`."""

    key, table, groups = "loss", LOSSES, (Weighted, ObjectiveOptions)

    def build_for(self, space: Space, count: int) -> list[Loss]:
        """Return the losses of `count` directions: separate losses, or one shared loss if the loss has class proxies.

        Raises:
            InputError: the loss needs features or classes, which `space` does not have.
        """
        build = partial(self.part, partial(self._built, space))
        first = build()
        return [first, *(first if has_class_proxies(first) else build() for _ in range(count - 1))]

    def _built(self, space: Space) -> Any:
        bound, entry = self.bound(), self.entry
        if not (inspect.isclass(entry) and issubclass(entry, nn.Module)):
            return bound
        parameters = inspect.signature(entry).parameters
        if "features" in parameters and not space.features:
            raise InputError(
                f"loss: {self.name} generates features of a last layer, which this method does not have; choose the "
                "method aadml with at least one layer in network.hidden"
            )
        return bound(**{key: value for key, value in vars(space).items() if key in parameters})


def has_class_proxies(loss: Any) -> bool:
    """Return whether a loss compares anchors with learned class proxies, which all directions share."""
    return bool(getattr(loss, "one_for_all_directions", False))


ALL_PAIRS = SelectionSection.of("all")
IDENTITY = ProxySection.of("identity")
ROW_NORM = LabelLossSection.of("row-norm")


def compose_objective(
    space: Space,
    *,
    loss: LossSection,
    directions: Sequence[str] = (ALL,),
    selection: SelectionSection = ALL_PAIRS,
    proxy: ProxySection = IDENTITY,
) -> Objective:
    """Build an objective from its sections.

    Args:
        space: properties of the embeddings.
        loss: section of the loss of a comparison.
        directions: names of the form "anchors-candidates", or only "all" for all ordered pairs of two modalities.
        selection: section of the selection of terms.
        proxy: section of the proxy that represents clips.

    Raises:
        InputError: a direction of another form or with an absent modality, a generative loss with candidates that it
            cannot generate, a loss that does not read the candidates of the proxy, or a `space` without the
            properties required by the loss or proxy.
    """
    if list(directions) == [ALL]:
        directions = ["-".join(two) for two in permutations(space.modalities, 2)]
    for side in dict.fromkeys(side for direction in parse_directions(directions) for side in direction):
        if side not in (BOTH, *space.modalities):
            raise InputError(
                f"directions: there are no {side} features; choose from {', '.join(space.modalities)}, {BOTH}"
            )
    # the proxy is built before losses with parameters: the order of the draws determines the weights of a run
    replacement = proxy.build_for(space)
    losses = loss.build_for(space, len(directions))
    if any(isinstance(part, GenerativeLoss) for part in losses):
        _check_generated(loss.name, parse_directions(directions), replacement)
    elif isinstance(replacement, Extending) and not is_rebuilding():
        _check_appended(loss, proxy.name)
    return Objective(
        losses,
        selection.build(),
        replacement,
        directions=directions,
        reduced=loss.shared(ObjectiveOptions),
        divided=loss.name in OF_EACH_ANCHOR,
    )


def _check_generated(loss: str, directions: Sequence[tuple[Side, Side]], proxy: Proxy | None) -> None:
    """Raise InputError if some candidates, of all modalities or of a proxy, cannot be generated."""
    mixed = ["-".join(direction) for direction in directions if direction[1] == BOTH]
    if mixed:
        raise InputError(
            f"directions: {loss} generates candidates of one modality, but {mixed[0]} has candidates of all "
            "modalities; choose directions such as audio-visual"
        )
    if isinstance(proxy, Extending):
        raise InputError(
            f"loss: {loss} needs features of all candidates, but the proxy appends candidates without features; "
            "choose another proxy"
        )


def _check_appended(loss: LossSection, proxy: str) -> None:
    """Raise InputError if the loss does not read, or lacks the modality of, candidates that a proxy appends."""
    if has_class_proxies(loss.entry):
        raise InputError(
            f"loss: {loss.name} compares anchors with class proxies, not with candidates, but the proxy {proxy} only "
            "appends candidates; choose another proxy or another loss"
        )
    if (loss.name, proxy) == ("cross-clr", "expansion"):
        raise InputError(
            "loss: cross-clr reads the modality of each candidate, which the interpolated candidates of the proxy "
            "expansion lack; choose another proxy or another loss"
        )
