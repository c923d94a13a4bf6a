"""TNN-C-CCA: deep triplet neural networks with cluster CCA (Zeng, Yu and Oyama, ACM TOMM 2020).

Reference: Zeng et al., Deep triplet neural networks with cluster-CCA for audio-visual cross-modal retrieval, ACM TOMM
2020, https://doi.org/10.1145/3387164
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from aadml.comparison import Comparison
from aadml.comparison.clips import Clips
from aadml.comparison.features import Modality
from aadml.comparison.options import Dropout, Fidelity, Layers, Margin, Width
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.option_types import Tuning
from aadml.feature_extraction.ground.options import removing
from aadml.methods.correlation.projection import solve_buffers
from aadml.methods.method import Context
from aadml.methods.networks import layers
from aadml.methods.training.learned_method import learned
from aadml.methods.training.learner import Batch, Epoch, Learner, Player
from aadml.objective import Embedded
from aadml.objective.composition import ALL_PAIRS, LossSection, SelectionSection, Space, compose_objective

Selection = Callable[[Comparison, torch.Generator], Comparison]


RIDGE = 1e-4
"""Constant added to the diagonals of the covariances of the cluster CCA."""
PAIR_WEIGHT = 0.2
"""Weight of the pairs in the cross-covariance, as in `c_cca` (code of the AADML paper's group)."""


class ClusterSolution(nn.Module):
    """Linear solution of a cluster CCA, stored in buffers.

    Args:
        sizes: modality -> number of input dimensions.
        dimension: number of directions.

    Raises:
        InputError: `dimension` is below 1, or larger than the smaller number of input dimensions.
    """

    def __init__(self, sizes: Mapping[Modality, int], dimension: int) -> None:
        super().__init__()
        if not 1 <= dimension <= min(sizes.values()):
            raise InputError(f"method.dimension is {dimension}; pass a whole number from 1 to {min(sizes.values())}")
        self.dimension = dimension
        for modality, size in sizes.items():
            self.register_buffer(f"mean_{modality}", torch.zeros(size, dtype=torch.float64))
            self.register_buffer(f"weights_{modality}", torch.eye(size, dimension, dtype=torch.float64))

    def solve(self, values: Mapping[Modality, Tensor], labels: Tensor) -> None:
        """Fit the solution to paired values (n, d) by modality and their labels (n,)."""
        solve_buffers(self, values, labels, pair_weight=PAIR_WEIGHT, ridge=RIDGE, dimension=self.dimension)

    def forward(self, values: Tensor, modality: Modality) -> Tensor:
        """Project values (b, d) of one modality to vectors (b, dimension) float32."""
        exact = values.double() - self.get_buffer(f"mean_{modality}")
        return (exact @ self.get_buffer(f"weights_{modality}")).float()


def without_partners(selection: Selection) -> Selection:
    """Return a selection that removes each anchor's partner from the positives and then applies `selection`."""

    def select(comparison: Comparison, generator: torch.Generator) -> Comparison:
        column = torch.arange(comparison.positives.shape[1], device=comparison.own.device)
        partner = comparison.own[:, None] == column
        return selection(replace(comparison, positives=comparison.positives & ~partner), generator)

    return select


@removing(share=False, order="cca-first", score="squared-euclidean", ridge=1e-4, pair_weight=0.2)
class TripletLearner(Learner):
    """Triplet networks after cluster CCA, with anchors of the first modality (Zeng et al., TOMM 2020).

    Cluster CCA (see `c_cca`) is solved on the training clips. A branch for each modality maps the projections
    through hidden layers and an output layer, each with tanh and dropout, and through a sigmoid. Triplets of a
    batch train the branches: anchors of the first modality (audio in the paper) against clips of the second. The
    released code passes a flag that omits the cluster part. Without the flag, the code would accumulate this part
    in the wrong shape. The toolkit always includes the cluster part. The code does not define the distance of the
    triplets. With the cosine, a margin of 0.5 could not be reached, since outputs of a sigmoid of a tanh have
    cosines of at least 0.648. In the code, an anchor's partner is never a positive, and the loss is the mean over
    all triplets (`fidelity: source`). In the toolkit, the partner is a positive, and the loss is the mean over the
    triplets with a loss above zero (`repaired`). The code's batch-hard form mines over a list of triplets, and is
    not reproduced. The published schedule has 10 epochs of 500 batches.

    Args:
        context: dimensions of the two modalities.
        dimension: dimensions of the cluster CCA and of the embedding (10: code of the AADML paper's group).
        hidden: hidden layers of a branch (same source).
        dropout: share of units dropped, in the output layer too (same source).
        margin: margin of the triplets (0.5: the peak of the published sweep from 0.1 to 1.1).
        selection: the `selection` section: "all" triplets of a batch, or "batch-hard" (both in the code).
        fidelity: "source" to exclude an anchor's partner from its positives and to count triplets without loss,
            "repaired" to include the partner and to omit these triplets.

    Raises:
        InputError: clips without exactly two modalities of vectors or without exactly one class, or more directions
            than input dimensions.
    """

    def __init__(
        self,
        context: Context,
        *,
        dimension: Width = 10,
        hidden: Layers = (100, 100, 100),
        dropout: Dropout = 0.1,
        margin: Annotated[Margin, Tuning(0.2, 0.5, 1.0)] = 0.5,
        selection: SelectionSection = ALL_PAIRS,
        fidelity: Fidelity = "repaired",
    ) -> None:
        super().__init__()
        names = context.need_pair("tnn-c-cca")
        context.need_classes("tnn-c-cca")
        self.names = names
        self.solution = ClusterSolution(context.dimensions, dimension)
        self.objective = compose_objective(
            Space(names, dimension, classes=context.classes),
            loss=LossSection.of("triplet", margin=margin, **({"reduction": "mean"} if fidelity == "source" else {})),
            selection=selection,
            directions=("-".join(names),),
        )
        if fidelity == "source":
            self.objective.selection = without_partners(self.objective.selection)
        sizes = (dimension, *hidden, dimension)
        self.branches = nn.ModuleDict(
            {m: nn.Sequential(layers(sizes, activation="tanh", dropout=dropout), nn.Sigmoid()) for m in names}
        )

    def players(self) -> Mapping[str, Player]:
        """Return one player, the branches; the cluster CCA is solved, not trained."""
        return {"branches": Player(list(self.parameters()), self._loss)}

    def before_epoch(self, train: Clips, epoch: Epoch) -> None:
        """Solve the cluster CCA before the first epoch."""
        if epoch.number == 0:
            self.solution.solve({m: train.matrix(m) for m in self.names}, train.labels)

    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Embed a batch (b, d) -> (b, dimension)."""
        vectors: Tensor = self.branches[modality](self.solution(features, modality))
        return vectors

    def _loss(self, batch: Batch) -> dict[str, Tensor]:
        vectors = {m: self.embed(batch.features[m], m) for m in self.names}
        parts: dict[str, Tensor] = self.objective(Embedded(vectors, batch.labels, batch.index), batch.generator)
        return parts


tnn_c_cca = learned(TripletLearner)
