"""Parts shared by losses that generate negatives: triples, losses of triples, and phases of training."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self, runtime_checkable

import torch
from torch import Tensor, nn

from aadml.comparison import Comparison, Terms
from aadml.comparison.host_reads import read_once
from aadml.comparison.pairwise import TINY, dot
from aadml.comparison.row_choice import columns_by_lot
from aadml.feature_extraction.ground.errors import InputError
from aadml.losses.kernels.likelihood import of_each_positive
from aadml.losses.kernels.row_blocks import Near

Form = Literal["triplet", "contrastive", "n-pair"]

L2 = 3e-3
"""Weight of the length penalty in the n-pair form, as for `n-pair` (HDML's authors' code)."""


@dataclass(frozen=True)
class Phase:
    """Phase of training.

    Attributes:
        name: name of the phase, for `enter`.
        epochs: number of epochs.
        players: parts to train: "encoders", "generator" or both, each with its own optimizer.
    """

    name: str
    epochs: int
    players: tuple[str, ...]


@runtime_checkable
class GenerativeLoss(Protocol):
    """Loss with a generator; `parameters()` are trained by a separate optimizer."""

    def __call__(self, comparison: Comparison) -> Terms:
        """Compute the loss of the encoders; its gradient does not reach `parameters()`."""

    def parameters(self) -> Iterator[nn.Parameter]:
        """Yield the parameters of the generator, and of the classifier if the loss has one."""

    def generator_loss(self, comparison: Comparison) -> Tensor:
        """Compute the loss of the generator, a scalar; its gradient reaches no encoder."""

    def phases(self, epochs: int) -> tuple[Phase, ...]:
        """Return the phases of `epochs` epochs of training."""

    def enter(self, phase: str) -> None:
        """Start a phase, given its name."""


class CountsDraws(nn.Module):
    """Module with a buffer `draws`, the number of its draws, that stays on the CPU, where draws are seeded."""

    draws: Tensor

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        draws = self.draws
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.draws = draws if draws.device.type == "cpu" else self.draws
        return self


@dataclass(frozen=True)
class Triples:
    """m triples of anchor, positive and negative, as rows of a comparison.

    Attributes:
        anchor: (m,) int64 rows of the anchors.
        positive: (m,) int64 rows of the candidates.
        negative: (m,) int64 rows of the candidates.
    """

    anchor: Tensor
    positive: Tensor
    negative: Tensor


def draw_triples(comparison: Comparison, generator: torch.Generator) -> Triples:
    """Draw one positive and one negative for each anchor, as in the batches of triplets of DAML and HDML.

    Args:
        comparison: a anchors against c candidates; anchors without positives or without negatives have no triples.
        generator: generator of the draws, on the CPU.
    """
    codes = comparison.codes_of_both()

    def anchors() -> Tensor:
        return (comparison.positives.any(1) & comparison.negatives.any(1)).nonzero()[:, 0]

    anchor = anchors() if codes is None else read_once(codes, "anchors of triples", anchors)
    positive, negative = (
        columns_by_lot(mask[anchor], generator) for mask in (comparison.positives, comparison.negatives)
    )
    return Triples(anchor, positive, negative)


def triple_cost(
    form: Form, anchor: Tensor, positive: Tensor, negative: Tensor, rivals: Tensor | None, margin: float
) -> Tensor:
    """Return the losses (m,) of m triples, in one of three forms.

        triplet       max(0, D_ap^2 - D_an^2 + margin)
        contrastive   1/2 D_ap^2 + 1/2 max(0, margin - D_an)^2
        n-pair        log(1 + sum over n' in N_a of exp(x_a . x_n' - x_a . x_p))

    D is the Euclidean distance. N_a contains the negatives that are marked in row a of `rivals`.

    Args:
        form: one of `Form`.
        anchor: (m, d).
        positive: (m, d).
        negative: (m, d).
        rivals: (m, m) bool, whether the negative of the column may be used for the anchor of the row. Only the form
            n-pair needs `rivals`; None for other forms.
        margin: for triplet, margin of the squared distances; for contrastive, margin of the distance.
    """
    if form == "n-pair":
        assert rivals is not None
        mine = (anchor * positive).sum(1, keepdim=True)
        everyone = torch.cat([mine, dot(anchor, negative)], 1)
        first = torch.zeros_like(everyone)
        first[:, 0] = 1
        others = torch.cat([torch.zeros_like(mine), rivals.to(mine.dtype)], 1)
        return of_each_positive(everyone, Near(first), others).total
    near = (anchor - positive).square().sum(1)
    far = (anchor - negative).square().sum(1)
    if form == "triplet":
        return (near - far + margin).clamp_min(0)
    return 0.5 * near + 0.5 * (margin - (far + TINY).sqrt()).clamp_min(0).square()


def rivals_of(comparison: Comparison, triples: Triples) -> Tensor:
    """Return a mask (m, m), True where the negative of the column is a negative of the anchor of the row."""
    return comparison.negatives[triples.anchor][:, triples.negative]


def vector_penalty(anchor: Tensor, positive: Tensor) -> Tensor:
    """Return the length penalty of inner-product losses for m pairs of an anchor and a positive, each (m, d).

    The penalty is (L2 / 4) (mean |x_a|^2 + mean |x_p|^2), with means over the pairs; 0 without pairs.
    """
    return 0.25 * L2 * (anchor.square().sum() + positive.square().sum()) / max(len(anchor), 1)


def by_anchor(cost: Tensor, triples: Triples, anchors: int, penalty: Tensor | None = None) -> Terms:
    """Sum the losses (m,) of triples by anchor; `anchors` is the number of anchors."""
    total = cost.new_zeros(anchors).index_add(0, triples.anchor, cost)
    nothing = torch.zeros(anchors, dtype=torch.int64, device=cost.device)
    active = nothing.index_add(0, triples.anchor, (cost > 0).long())
    return Terms(total, active, nothing.index_add(0, triples.anchor, torch.ones_like(triples.anchor)), penalty)


def average(cost: Tensor) -> Tensor:
    """Return the mean of m losses (m,), 0 if there are none."""
    return cost.sum() / max(len(cost), 1)


def fixed(module: nn.Module, inputs: Tensor) -> Tensor:
    """Apply a module to inputs, so that the gradient reaches the inputs, but not the parameters of the module."""
    state = {name: value.detach() for name, value in (*module.named_parameters(), *module.named_buffers())}
    outputs = torch.func.functional_call(module, state, (inputs,))
    assert isinstance(outputs, Tensor)
    return outputs


def candidate_head(comparison: Comparison, loss: str) -> nn.Module:
    """Return the last layer of the candidates' network, which embeds generated features.

    Raises:
        InputError: the comparison has no last layer.
    """
    if comparison.candidate_head is None:
        raise InputError(
            f"{loss} needs 'candidate_head', the last layer of the candidates, but this comparison lacks the "
            "layer; pass the layer, or choose a direction with candidates of one modality"
        )
    return comparison.candidate_head
