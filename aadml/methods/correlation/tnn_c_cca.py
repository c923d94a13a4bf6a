"""TNN-C-CCA: deep triplet neural networks with cluster CCA (Zeng, Yu and Oyama, ACM TOMM 2020)."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

import torch
from torch import Tensor, nn

from aadml.comparison import Comparison
from aadml.comparison.clips import Clips
from aadml.comparison.features import Modality
from aadml.comparison.options import Dropout, Fidelity, Layers, Margin, Ridge, Share, Width
from aadml.comparison.scores import Score
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.option_types import Tuning
from aadml.methods.correlation.algebra import canonical, centered, covariance, mixed_cross_covariance
from aadml.methods.method import Context, Method
from aadml.methods.networks import layers
from aadml.methods.training.learned_method import LearnedMethod
from aadml.methods.training.learner import Batch, Epoch, Learner, Player
from aadml.methods.training.settings import Training
from aadml.objective import Embedded, Objective
from aadml.objective.composition import Space, compose_objective
from aadml.objective.sections import Section

Selection = Callable[[Comparison, torch.Generator], Comparison]


class ClusterSolution(nn.Module):
    """A linear cluster CCA, kept as buffers.

    Args:
        sizes: modality -> number of dimensions it projects from.
        dimension: directions kept.
        ridge: added to the diagonals of both covariances.
        pair_weight: weight of the pairs in the cross-covariance.
    """

    def __init__(self, sizes: Mapping[Modality, int], *, dimension: int, ridge: float, pair_weight: float) -> None:
        super().__init__()
        if not 1 <= dimension <= min(sizes.values()):
            raise InputError(
                f"method.dimension: {dimension} canonical directions asked for; 1 to {min(sizes.values())} are possible"
            )
        self.ridge, self.pair_weight, self.dimension = ridge, pair_weight, dimension
        for modality, size in sizes.items():
            self.register_buffer(f"mean_{modality}", torch.zeros(size, dtype=torch.float64))
            self.register_buffer(f"weights_{modality}", torch.eye(size, dimension, dtype=torch.float64))

    def solve(self, values: Mapping[Modality, Tensor], labels: Tensor) -> None:
        """Fit to paired values (n, d) a modality and their labels (n,)."""
        (first, mean_first), (second, mean_second) = (centered(one) for one in values.values())
        cross = mixed_cross_covariance(first, second, labels.to(first.device), self.pair_weight)
        solution = canonical(covariance(first, self.ridge), covariance(second, self.ridge), cross, self.dimension)
        means, weights = (mean_first, mean_second), (solution.first, solution.second)
        for modality, mean, weight in zip(values, means, weights, strict=True):
            self.get_buffer(f"mean_{modality}").copy_(mean)
            self.get_buffer(f"weights_{modality}").copy_(weight)

    def forward(self, values: Tensor, modality: Modality) -> Tensor:
        """Project (b, d) -> (b, dimension), float32."""
        exact = values.double() - self.get_buffer(f"mean_{modality}")
        return (exact @ self.get_buffer(f"weights_{modality}")).float()


def without_partners(selection: Selection) -> Selection:
    """Take an anchor's own partner out of its positives, before `selection` sees them."""

    def select(comparison: Comparison, generator: torch.Generator) -> Comparison:
        column = torch.arange(comparison.positives.shape[1], device=comparison.own.device)
        partner = comparison.own[:, None] == column
        return selection(replace(comparison, positives=comparison.positives & ~partner), generator)

    return select


class TripletLearner(Learner):
    """See `tnn_c_cca`.

    Args:
        names: the modality of the anchors, and that of positives and negatives.
        branches: modality -> network of its triplets.
        solution: the cluster CCA.
        objective: what the triplets cost.
        cca_first: whether the solution lies below the networks or on top of them.
    """

    def __init__(
        self,
        names: tuple[Modality, Modality],
        branches: nn.ModuleDict,
        solution: ClusterSolution,
        objective: Objective,
        *,
        cca_first: bool,
    ) -> None:
        super().__init__()
        self.names, self.branches, self.solution = names, branches, solution
        self.objective, self.cca_first = objective, cca_first
        self._train: Clips | None = None

    def players(self) -> Mapping[str, Player]:
        """Train the branches; the cluster CCA is solved, not trained."""
        return {"branches": Player(list(self.parameters()), self._loss)}

    def before_epoch(self, train: Clips, epoch: Epoch) -> None:
        """Solve the cluster CCA below the networks once, or remember the clips for the one on top."""
        self._train = train
        if self.cca_first and epoch.number == 0:
            self.solution.solve({m: train.matrix(m) for m in self.names}, train.labels)

    def calibrate(self, valid: Clips) -> None:
        """Solve the cluster CCA on top for the weights of this epoch, so that the whole method is scored."""
        self._solve_on_top()

    def finish(self, train: Clips, valid: Clips) -> None:
        """Solve the cluster CCA on top for the weights that were kept."""
        self._train = train
        self._solve_on_top()

    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Embed a batch (b, d) -> (b, dimension)."""
        outputs = self._outputs(features, modality)
        return outputs if self.cca_first else self.solution(outputs, modality)

    def _outputs(self, features: Tensor, modality: Modality) -> Tensor:
        below = self.solution(features, modality) if self.cca_first else features
        outputs: Tensor = self.branches[modality](below)
        return outputs

    def _solve_on_top(self) -> None:
        if self.cca_first or self._train is None:
            return
        train = self._train
        with torch.no_grad():
            outputs = {m: self._outputs(train.matrix(m).to(self.device), m) for m in self.names}
        self.solution.solve(outputs, train.labels)

    def _loss(self, batch: Batch) -> dict[str, Tensor]:
        vectors = {m: self._outputs(batch.features[m], m) for m in self.names}
        parts: dict[str, Tensor] = self.objective(Embedded(vectors, batch.labels, batch.index), batch.generator)
        return parts


def tnn_c_cca(
    context: Context,
    settings: Training,
    *,
    dimension: Width = 10,
    hidden: Layers = (100, 100, 100),
    dropout: Dropout = 0.1,
    share: bool = False,
    order: Literal["cca-first", "tnn-first"] = "cca-first",
    margin: Annotated[Margin, Tuning(0.2, 0.5, 1.0)] = 0.5,
    score: Score = "squared-euclidean",
    selection: Section = "all",
    ridge: Ridge = 1e-4,
    pair_weight: Share = 0.2,
    fidelity: Fidelity = "repaired",
) -> Method:
    """Triplet networks on top of cluster CCA: anchors audio, positives and negatives visual (Zeng et al., TOMM 2020).

    Cluster CCA (see `c_cca`) is solved on the training clips; a branch for each modality maps its projections through
    hidden layers and an output layer (tanh, dropout), then a sigmoid; triplets of a batch train the branches. In the
    released code the other order exists too (`order: tnn-first`): branches on the features, cluster CCA on their
    outputs. That code also passes a flag which leaves the cluster part out, and accumulates it in the wrong shape; here
    the cluster part is always in. Which distance the triplets take is not settled by the code; with the cosine a margin
    of 0.5 could not be met, since outputs of a sigmoid of a tanh have cosines of 0.65 and more. The triplets of that
    code never have an anchor's own partner for positive (`fidelity: source`); here they do (`repaired`), for it is what
    the anchor shall be found by. Its batch-hard form mines over a list of triplets, and is not reproduced.

    Args:
        context: dimensions of the two modalities.
        settings: the `training` section; the published schedule has 500 batches an epoch and 10 epochs.
        dimension: of the cluster CCA and of the embedding (10: code of the AADML paper's group).
        hidden: hidden layers of a branch (same source).
        dropout: share of units dropped, of the output layer too (same source).
        share: one branch for both modalities (a variant of the code) instead of one each.
        order: "cca-first" or "tnn-first".
        margin: of the triplets (0.5: the peak of the published sweep from 0.1 to 1.1).
        score: in which nearness is measured, see `aadml.losses.triplet.triplet`.
        selection: the section of that name: "all" triplets of a batch, or "batch-hard" (both in the code).
        ridge: added to the covariances of the cluster CCA.
        pair_weight: weight of the pairs in its cross-covariance (0.2: same source).
        fidelity: "source" to leave an anchor's partner out of its positives, "repaired" to keep it.
    """
    names = context.need_pair("tnn-c-cca")
    context.need_classes("tnn-c-cca")
    cca_first = order == "cca-first"
    own = dict(context.dimensions)
    below = {m: dimension if cca_first else own[m] for m in names}
    if share and len(set(below.values())) > 1:
        raise InputError("method.share: one branch for both modalities needs features of one size, or order: cca-first")
    solution = ClusterSolution(
        own if cca_first else dict.fromkeys(names, dimension), dimension=dimension, ridge=ridge, pair_weight=pair_weight
    )
    objective = compose_objective(
        Space(names, dimension, classes=context.classes),
        loss={"name": "triplet", "margin": margin, "score": score},
        selection=selection,
        directions=("-".join(names),),
    )
    if fidelity == "source":
        objective.selection = without_partners(objective.selection)
    branches = _branches(below, hidden, dimension, dropout, share=share)
    return LearnedMethod(TripletLearner(names, branches, solution, objective, cca_first=cca_first), context, settings)


def _branches(
    below: Mapping[Modality, int], hidden: tuple[int, ...], dimension: int, dropout: float, *, share: bool
) -> nn.ModuleDict:
    made: dict[str, nn.Module] = {}
    for modality, size in below.items():
        one = next(iter(made.values())) if share and made else None
        inner = layers((size, *hidden, dimension), activation="tanh", dropout=dropout)
        made[modality] = one or nn.Sequential(inner, nn.Sigmoid())
    return nn.ModuleDict(made)
