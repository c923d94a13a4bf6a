"""TLCA: two-stage triplets, semi-hard, then hard with augmentation (Zeng and Ikeda, 2023)."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from aadml.comparison import Comparison
from aadml.comparison.types import Modality
from aadml.losses.triplet import triplet
from aadml.methods.heads import all_directions
from aadml.methods.label_space.interpolation import check_lines, interpolated
from aadml.methods.label_space.regression import label_cost, label_space_encoders
from aadml.methods.label_space_learner import NONE, Section
from aadml.methods.learned import LearnedMethod
from aadml.methods.learner import Batch, Learner, Player, Stage
from aadml.methods.method import Context, Method
from aadml.methods.settings import Training
from aadml.objective import Embedded, Objective
from aadml.selections import SELECTIONS
from feature_extraction.ground.errors import InputError

FIRST, SECOND = "semi-hard", "hard"


class CurriculumLearner(Learner):
    """See `tlca`.

    Args:
        context: dimensions and classes.
        network: the section of that name.
        label_loss: the section of that name.
        margin: of the triplets.
        metric_weight: of the triplets beside the label loss.
        share: part of the epochs that the first stage takes.
        shares: where on a line candidates are made up.
        lines: which lines.
    """

    def __init__(
        self,
        context: Context,
        *,
        network: Mapping[str, Any],
        label_loss: Section,
        margin: float,
        metric_weight: float,
        share: float,
        shares: tuple[float, ...],
        lines: tuple[str, ...],
    ) -> None:
        super().__init__()
        self.encoders = label_space_encoders(context, "tlca", network)
        self.label_cost = label_cost(label_loss)
        self.metric_weight, self.share = metric_weight, share
        self.shares, self.lines = shares, lines
        semi_hard = partial(SELECTIONS["semi-hard"], margin=margin, keep="all")
        loss, directions = partial(triplet, margin=margin), all_directions(context)
        self.objectives = {
            FIRST: Objective(loss, semi_hard, None, directions=directions),
            SECOND: Objective(loss, self._hard, None, directions=directions),
        }

    def players(self) -> Mapping[str, Player]:
        """Train the encoders for one loss."""
        return {"all": Player(list(self.parameters()), self._loss)}

    def stages(self, epochs: int) -> Sequence[Stage]:
        """Train on semi-hard triplets, then on hard ones from the best weights so far."""
        first = min(round(self.share * epochs), epochs)
        return [stage for stage in (Stage(FIRST, first), Stage(SECOND, epochs - first)) if stage.epochs]

    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Embed a batch in label space (b, d) -> (b, C)."""
        vectors: Tensor = self.encoders[modality](features)
        return vectors

    def _hard(self, comparison: Comparison, generator: torch.Generator) -> Comparison:
        """Keep the farthest positive and the nearest negative, among candidates that are there or made up."""
        more = interpolated(comparison, generator, shares=self.shares, lines=self.lines)
        return SELECTIONS["batch-hard"](more, generator)

    def _loss(self, batch: Batch) -> dict[str, Tensor]:
        vectors = {m: self.embed(values, m) for m, values in batch.features.items()}
        label = self.label_cost(vectors, batch.labels)
        embedded = Embedded(vectors, batch.labels, batch.index)
        metric = self.objectives[batch.epoch.stage](embedded, batch.generator)
        loss = label + self.metric_weight * metric["loss"]
        return {"loss": loss, "label_loss": label, "metric_loss": metric["loss"], "active": metric["active"]}


def tlca(
    context: Context,
    settings: Training,
    *,
    network: Mapping[str, Any] = NONE,
    label_loss: Section = "row-norm",
    margin: float = 1.2,
    metric_weight: float = 1.0,
    first_share: float = 0.5,
    shares: tuple[float, ...] = (0.25, 0.5, 0.75),
    lines: tuple[str, ...] = ("same-class", "anchor-negative"),
) -> Method:
    """Triplets in label space, first semi-hard, then hard among points made up in between (Zeng and Ikeda, 2023).

        stage 1:  label loss + triplets whose negative is farther than the positive, by less than `margin`
        stage 2:  label loss + triplets of the farthest positive and the nearest negative, among the candidates and
                  points on lines between them (see `interpolated`)

    Stage 2 starts from the best weights of stage 1 with a new optimizer. No code was released, and the abstract names
    the stages and the interpolation alone: network, margin and label loss are AADML's (whose group it comes from),
    how stages are divided and where points are made up is configuration. With "anchor-negative" lines the nearest
    negative mostly is the point nearest to the anchor, so that such triplets never run out.

    Args:
        context: dimensions and classes.
        settings: the `training` section; its epochs are those of both stages together.
        network: see `label_space_network`.
        label_loss: a name of LABEL_LOSSES with `weight` and its options.
        margin: of the triplets, in squared distance (1.2: AADML, section 5.2).
        metric_weight: of the triplets beside the label loss.
        first_share: part of the epochs that stage 1 takes, 0 to 1.
        shares: where on a line points are made up, 0 to 1 each.
        lines: "same-class", "anchor-negative", both, or [] for hard triplets alone.

    Raises:
        InputError: an option out of range.
    """
    if not 0 <= first_share <= 1:
        raise InputError(f"method.first_share: {first_share:g} given; 0 to 1 is possible")
    check_lines(shares, lines)
    learner = CurriculumLearner(
        context,
        network=network,
        label_loss=label_loss,
        margin=margin,
        metric_weight=metric_weight,
        share=first_share,
        shares=shares,
        lines=lines,
    )
    return LearnedMethod(learner, context, settings)
