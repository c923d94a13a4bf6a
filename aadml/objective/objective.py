"""The training objective: losses of the comparisons in all directions, reduced to one number."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, get_args

import torch
from torch import Tensor, nn

from aadml.comparison import Comparison, Terms
from aadml.comparison.features import Modality
from aadml.comparison.masks import stored
from aadml.comparison.opposites import share_results
from aadml.comparison.processes import group
from aadml.feature_extraction.feature_file.names import MODALITIES, is_modality
from aadml.feature_extraction.ground.contracts import Condition, require_part, require_result
from aadml.feature_extraction.ground.errors import InputError, one_line
from aadml.feature_extraction.ground.option_types import OwnSection
from aadml.losses.contract import LossFunction
from aadml.objective.embedded import BOTH, Embedded, Side, laid_out, modalities_of, stacked
from aadml.proxies.contract import Direction, Encode, Extending, Proxy
from aadml.selections.contract import SelectionFunction

Loss = Callable[[Comparison], Terms]
Selection = Callable[[Comparison, torch.Generator], Comparison]


Directions = Annotated[Sequence[str], OwnSection()]
"""Directions as names: "anchors-candidates" for each, or only "all" for every ordered pair of modalities."""

ALL = "all"


def parse_directions(names: Sequence[str]) -> tuple[tuple[Side, Side], ...]:
    """Return a pair (anchors, candidates) for each name, such as "audio-visual" or "both-both".

    The result is empty if "all" is the only name.

    Raises:
        InputError: a name does not consist of two sides, joined by a hyphen. A side is a modality or "both".
    """
    if list(names) == [ALL]:
        return ()
    directions = []
    for name in names:
        sides = str(name).split("-")
        if len(sides) != 2 or not all(side == BOTH or is_modality(side) for side in sides):
            raise InputError(
                f"directions: '{name}' does not have the form ANCHORS-CANDIDATES; join two of {', '.join(MODALITIES)}, "
                f"{BOTH} (or another modality of the data) with a hyphen"
            )
        directions.append((sides[0], sides[1]))
    return tuple(directions)


Reduction = Literal["sum", "mean", "mean-of-active", "per-anchor"]


@dataclass(frozen=True, kw_only=True)
class ObjectiveOptions:
    """Options for reducing all terms to one number.

    Attributes:
        reduction: reduction of the terms of a direction, see `reduce`.
        combine: "mean" or "sum" of the directions' losses.
    """

    reduction: Reduction = "mean-of-active"
    combine: Literal["mean", "sum"] = "mean"


REDUCED = ObjectiveOptions()


@dataclass(frozen=True)
class Counts:
    """Counts of the terms and anchors of a direction, the divisors of the direction's loss.

    Attributes:
        active: number of nonzero terms.
        possible: number of terms.
        anchors: number of anchors.
    """

    active: Tensor
    possible: Tensor
    anchors: Tensor | int

    @classmethod
    def of(cls, terms: Terms) -> "Counts":
        """Count the terms and anchors of one comparison."""
        return cls(terms.active.sum(), terms.possible.sum(), len(terms.total))

    def over_processes(self) -> "Counts":
        """Return the sum of the counts over all processes. A process counts only its own anchors and their terms."""
        if group.count() == 1:
            return self
        anchors = torch.full((), int(self.anchors), device=self.active.device)
        return Counts(*group.summed([self.active, self.possible, anchors]))


def reduce(terms: Terms, reduction: str, counts: Counts | None = None) -> Tensor:
    """Reduce per-anchor terms to one number.

    Args:
        terms: totals, active and possible counts, each (a,), and optionally a scalar penalty.
        reduction: "sum" of all terms, "mean" over possible terms, "mean-of-active" over nonzero terms, or
            "per-anchor", the mean of the anchors' totals.
        counts: divisors; by default the counts of these terms.

    Returns:
        A scalar: the reduced totals, plus the penalty without division. Without terms, the reduced totals are 0.

    Raises:
        InputError: the reduction is unknown.
    """
    alone = counts is None and len(terms.total) > 0
    if alone and (reduction == "per-anchor" or (reduction == "mean" and terms.one_each)):
        total = terms.total.mean()
    elif reduction == "per-anchor":
        total = terms.total.sum() / torch.as_tensor(counts.anchors if counts else 0).clamp_min(1)
    elif reduction == "mean":
        total = terms.total.sum() / (counts.possible if counts else terms.possible.sum()).clamp_min(1)
    elif reduction == "mean-of-active":
        total = terms.total.sum() / (counts.active if counts else terms.active.sum()).clamp_min(1)
    elif reduction == "sum":
        total = terms.total.sum()
    else:
        raise InputError(f"loss.reduction is '{reduction}'; choose from {', '.join(get_args(Reduction))}")
    return total if terms.penalty is None else total + terms.penalty


class Objective(nn.Module):
    """Training objective: the reduced terms of loss(selection(comparison)) over all directions.

    Args:
        losses: one function comparison -> terms for all directions, or one function per direction if a loss has
            parameters.
        selection: (comparison, generator) -> comparison.
        proxy: module that represents anchors and candidates; None if clips represent themselves. `proxy.aa_on`
            selects the sides of a comparison that proxies replace. The loss is `proxy.aa_mix` times the loss on
            proxies, plus 1 - `proxy.aa_mix` times the loss on embeddings. A proxy that leaves vectors unchanged may
            append candidates instead.
        directions: names of the directions, see `parse_directions`.
        reduced: options for reducing all terms to one number.
        divided: whether each process computes the loss of its own anchors only, instead of all anchors.

    Attributes:
        compiled: whether losses are compiled in training mode, by the function `compiled`; False at first. The
            gradient of a compiled loss can be computed only once.

    Raises:
        InputError: a direction is not of the form "anchors-candidates", or the list of losses and the list of
            directions differ in length.
    """

    def __init__(
        self,
        losses: Loss | Sequence[Loss],
        selection: Selection,
        proxy: Proxy | None,
        *,
        directions: Sequence[str],
        reduced: ObjectiveOptions = REDUCED,
        divided: bool = False,
    ) -> None:
        super().__init__()
        self.directions = parse_directions(directions)
        self.losses = tuple(losses) if isinstance(losses, Sequence) else (losses,) * len(self.directions)
        if len(self.losses) != len(self.directions):
            raise InputError(
                f"directions: the number of losses is {len(self.losses)}, but the number of directions is "
                f"{len(self.directions)}; pass one loss per direction, or a single loss without a list"
            )
        self.owned = nn.ModuleList(dict.fromkeys(loss for loss in self.losses if isinstance(loss, nn.Module)))
        self.selection = selection
        self.proxy = proxy
        self.reduction, self.combine = reduced.reduction, reduced.combine
        self.divided = divided
        self.compiled = False
        self._graphs: dict[Loss, Callable[[Comparison], Any]] = {}

    def forward(self, batch: Embedded, generator: torch.Generator, encode: Encode | None = None) -> dict[str, Tensor]:
        """Return the objective of a batch. Each of several processes returns a summand of the objective.

        Args:
            batch: embeddings with their groups.
            generator: generator of the selection's draws.
            encode: (modality, row numbers in the training set) -> embeddings, for proxies that embed neighbors
                again in each step.

        Returns:
            The scalars "loss" and "active". "active" is the share of nonzero terms, as the mean over directions.

        Raises:
            InputError: a modality of a direction has no embeddings, or the proxy, selection or loss rejects the
                batch.
        """
        laid = self.comparisons(batch)
        proxy = self.proxy
        if proxy is None or float(proxy.aa_mix) == 0:
            return self._compare(laid, generator)
        if isinstance(proxy, Extending):
            return self._compare(self._extended(laid, batch, proxy, generator), generator)
        raw, mix = batch.vectors, float(proxy.aa_mix)
        proxies = proxy(raw, batch.index, encode)
        for modality, vectors in raw.items():
            require_part(proxies.get(modality), _of_shape(*vectors.shape), f"proxies of {modality}", "proxy", proxy)
        anchors = proxies if proxy.aa_on in ("all", "anchor") else raw
        candidates = proxies if proxy.aa_on in ("all", "reference") else batch.candidates.vectors
        seen = self._compare(self._among(laid, anchors, candidates), generator)
        if mix == 1:
            return seen
        plain = self._compare(laid, generator)
        return {key: mix * seen[key] + (1 - mix) * plain[key] for key in seen}

    def check_size(self, count: int, labels: Tensor | None) -> None:
        """Check that some training clip can have the proxy's number of neighbors.

        Args:
            count: number of clips.
            labels: (count,) classes of the clips; None if there are no classes.

        Raises:
            InputError: no clip can have that many neighbors.
        """
        if self.proxy is not None:
            self.proxy.check_size(count, labels)

    def without_proxy(self, batch: Embedded, generator: torch.Generator) -> dict[str, Tensor]:
        """Return the objective of clips outside a proxy's bank: each clip represents itself."""
        return self._compare(self.comparisons(batch), generator)

    def comparisons(self, batch: Embedded) -> list[Comparison]:
        """Return the comparison of every direction, before any selection."""
        return [laid_out(batch, direction) for direction in self.directions]

    def _extended(
        self, laid: Sequence[Comparison], batch: Embedded, proxy: Extending, generator: torch.Generator
    ) -> list[Comparison]:
        """Append the candidates of a proxy to the comparisons; in training, also store the batch in the proxy."""
        extended = []
        for comparison, direction in zip(laid, self.directions, strict=True):
            rows, columns = (modalities_of(batch.vectors, side) for side in direction)
            place = Direction(rows, columns, batch.index, batch.relation == "id", generator)
            extended.append(proxy.extend(comparison, place))
        if self.training:
            proxy.store(batch.vectors, batch.groups, batch.index)
        return extended

    def _among(
        self, laid: Sequence[Comparison], anchors: Mapping[Modality, Tensor], candidates: Mapping[Modality, Tensor]
    ) -> list[Comparison]:
        """Return the comparisons with their vectors replaced by other vectors of the same clips."""
        return [
            comparison.with_vectors(stacked(anchors, direction[0]), stacked(candidates, direction[1]))
            for comparison, direction in zip(laid, self.directions, strict=True)
        ]

    def _compare(self, comparisons: Sequence[Comparison], generator: torch.Generator) -> dict[str, Tensor]:
        if not self.compiled:
            share_results(comparisons)
        losses, shares = [], []
        for loss_of, comparison in zip(self.losses, comparisons, strict=True):
            if not (len(comparison.anchors) and len(comparison.candidates)):  # no clip of this batch has the modality
                losses.append(comparison.anchors.sum() * 0 + comparison.candidates.sum() * 0)
                shares.append(comparison.anchors.new_zeros(()))
                continue
            loss, share = self._part(loss_of, selected_by(self.selection, comparison, generator))
            losses.append(loss)
            shares.append(share)
        loss = torch.stack(losses).sum()
        return {
            "loss": loss / len(losses) if self.combine == "mean" else loss,
            "active": torch.stack([share.detach().float() for share in shares]).mean(),
        }

    def _part(self, loss_of: Loss, comparison: Comparison) -> tuple[Tensor, Tensor]:
        """Return this process's parts of the loss and of the share of nonzero terms in a direction."""
        if not self.divided:
            loss, share = self._run(loss_of, partial(_reduced, loss_of, self.reduction))(comparison)
            return group.portion(loss), group.portion(share)
        terms = terms_of(self._run(loss_of, loss_of), _own_anchors(comparison))
        here = Counts.of(terms)
        counts = here.over_processes()
        return reduce(terms, self.reduction, counts), here.active / counts.possible.clamp_min(1)

    def _run(self, loss_of: Loss, compute: Callable[[Comparison], Any]) -> Callable[[Comparison], Any]:
        """Return `compute`, or its compiled form, which is kept for the loss."""
        if not (self.compiled and self.training):
            return compute
        self._graphs[loss_of] = self._graphs.get(loss_of) or compiled(compute)
        return self._graphs[loss_of]


def terms_of(loss: Loss, comparison: Comparison) -> Terms:
    """Return the terms of a comparison.

    Raises:
        InputError: a result other than Terms, a penalty other than a scalar, or another part with a shape other
            than (a,). A further cause is a total without gradient, for nonzero terms of a comparison with gradient.
    """
    terms = require_result(loss(comparison), LossFunction, "loss", loss)
    per_anchor = _of_shape(len(comparison.anchors))
    for name in ("total",) if terms.one_each else ("total", "active", "possible"):
        require_part(getattr(terms, name), per_anchor, name, "loss", loss)
    if terms.penalty is not None:
        require_part(terms.penalty, _of_shape(), "penalty", "loss", loss)
    if not torch.compiler.is_compiling() and _needs_gradient(comparison) and not terms.total.requires_grad:
        # a batch without nonzero terms needs no gradient, which compiled code cannot read
        computed = Condition("a Tensor with gradient, computed from the comparison", lambda _: not terms.active.any())
        require_part(terms.total, computed, "total", "loss", loss)
    return terms


def selected_by(selection: Selection, comparison: Comparison, generator: torch.Generator) -> Comparison:
    """Return the comparison that a selection makes of `comparison`.

    Raises:
        InputError: the selection does not return a comparison, or a mask is not a bool Tensor (a, c).
    """
    selected = require_result(selection(comparison, generator), SelectionFunction, "selection", selection)
    mask = _of_shape(len(selected.anchors), len(selected.candidates), dtype=torch.bool)
    for name in ("positives", "negatives"):
        if not callable(stored(selected, name)):  # a mask that is not computed yet
            require_part(getattr(selected, name), mask, name, "selection", selection)
    return selected


def _of_shape(*shape: int, dtype: torch.dtype | None = None) -> Condition:
    return Condition(
        f"a {'bool ' if dtype is torch.bool else ''}Tensor of shape {shape}",
        lambda part: isinstance(part, Tensor) and part.shape == shape and dtype in (None, part.dtype),
    )


def _needs_gradient(comparison: Comparison) -> bool:
    inputs = (comparison.anchors, comparison.candidates, comparison.relevance)
    return torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in inputs)


def _reduced(loss: Loss, reduction: str, comparison: Comparison) -> tuple[Tensor, Tensor]:
    """Return the reduced loss of a comparison and the share of nonzero terms."""
    terms = terms_of(loss, comparison)
    counts = Counts.of(terms)
    return reduce(terms, reduction, counts), counts.active / counts.possible.clamp_min(1)


def compiled(compute: Callable[[Comparison], Any]) -> Callable[[Comparison], Any]:
    """Return a function of comparisons that `torch.compile` compiles, as one graph, at the first call.

    The call raises InputError if the function cannot be compiled.
    """

    def traced(comparison: Comparison) -> Any:
        return compute(comparison)

    traced.__code__ = traced.__code__.replace()  # graphs of one code object share a limit of compilations
    graph = torch.compile(traced, fullgraph=True)

    def call(comparison: Comparison) -> Any:
        try:
            return graph(_Open.of(comparison))
        except (torch._dynamo.exc.TorchDynamoException, _limit_error()) as error:
            compute(comparison)  # a loss that breaks its contract has an error of its own
            raise InputError(
                f"training.compile: the loss cannot be compiled ({one_line(str(error))[:80]}); "
                "set training.compile to false"
            ) from error

    return call


class _Open(Comparison):
    """Comparison that `torch.compile` reads by attribute.

    torch 2.7 to 2.11 read all fields of a frozen dataclass in advance, and thereby compute every mask.
    """

    __dataclass_params__ = None

    @classmethod
    def of(cls, comparison: Comparison) -> "_Open":
        opened = object.__new__(cls)
        opened.__dict__.update(vars(comparison))
        return opened


def _limit_error() -> type[Exception]:
    """Return the error of too many graphs of one function; torch 2.6 has it under another name."""
    exc = torch._dynamo.exc
    names = ("FailOnRecompileLimitHit", "FailOnCacheLimitHit")
    return next((getattr(exc, name) for name in names if hasattr(exc, name)), exc.TorchDynamoException)


def _own_anchors(comparison: Comparison) -> Comparison:
    """Return the comparison of the anchors of this process with all candidates."""
    count = len(comparison.anchors)
    if group.own(count) == slice(0, count):
        return comparison
    return comparison.narrow(rows=torch.arange(count, device=comparison.anchors.device)[group.own(count)])
