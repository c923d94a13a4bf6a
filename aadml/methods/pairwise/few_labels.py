"""Few labels, many pairs: a trunk trained on classes of the labeled clips, and on matching of all clips."""

from typing import Any

import torch
from torch import Tensor, nn

from aadml.comparison.clips import Clips
from aadml.comparison.features import Modality
from aadml.comparison.options import Width
from aadml.comparison.transfer import sent
from aadml.feature_extraction.feature_file.content import UNLABELLED
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import removing
from aadml.methods.method import Context
from aadml.methods.networks import NETWORK, Network, encoders
from aadml.methods.pairwise.matching import Matching, on_sphere
from aadml.methods.training.learned_method import learned
from aadml.methods.training.learner import Batch, Epoch, Learner, on_device
from aadml.objective.composition import (
    ALL_PAIRS,
    IDENTITY,
    LabelLossSection,
    LossSection,
    SelectionSection,
    Space,
    Weighted,
)
from aadml.objective.left_out import is_rebuilding
from aadml.objective.neighbor_positives import NEIGHBORS, Neighbors
from aadml.objective.objective import Directions

CROSS_ENTROPY, NT_XENT = LabelLossSection.of("ce"), LossSection.of("nt-xent")

LABELED = 200
"""Number of labeled clips drawn for each step; all labeled clips if there are fewer."""


@removing(temperature=1.0, labeled=LABELED, learn_temperature=True, duplicates="mask")
class FewLabelsLearner(Learner):
    """Classification of the labeled clips and matching of all clips, with one trunk per modality.

    Two linear layers follow each trunk. The first layer maps into label space, under the label loss of the labeled
    clips. The second layer maps onto the sphere where pairs are matched, as in `pairs`. Embeddings are the posteriors,
    compared by inner product: the probability that two items have the same class. With `loss.weight: 0`, the method
    trains only on labels, as a control.

    Args:
        context: dimensions of the modalities, classes.
        network: the `network` section: hidden layers, dropout and input noise of each modality's trunk.
        pair_dimension: size of the vectors for matching pairs; the embedding has one dimension per class.
        label_loss: the `label_loss` section; the next four arguments are sections too.
        loss: loss of pairs; not computed if its weight is 0.
        selection: selection of the pairs in the loss.
        neighbors: positives besides a clip's partner, and their weights.
        directions: (anchors, candidates); "all" ordered pairs of modalities by default.

    Raises:
        InputError: clips with no class or several classes, features other than vectors, only one modality, or sections
            that contradict each other (see `Matching`).
    """

    similarity = "dot"
    learns_beside_batches = True
    _train: Clips

    def __init__(
        self,
        context: Context,
        *,
        network: Network = NETWORK,
        pair_dimension: Width = 64,
        label_loss: LabelLossSection = CROSS_ENTROPY,
        loss: LossSection = NT_XENT,
        selection: SelectionSection = ALL_PAIRS,
        neighbors: Neighbors = NEIGHBORS,
        directions: Directions = ("all",),
    ) -> None:
        super().__init__()
        classes = context.need_classes("few-labels", of_all=False)
        self.encoders = encoders(context, "few-labels", classes, network)
        widths = {m: self.encoders[m].predicted.in_features for m in self.encoders}
        self.spheres = nn.ModuleDict({m: nn.Linear(width, pair_dimension) for m, width in widths.items()})
        self.label_loss, self.label_weight = label_loss.build(), label_loss.shared(Weighted).weight
        self.pair_weight = loss.shared(Weighted).weight
        self.matching = Matching(
            Space(context.modalities, pair_dimension, classes=classes if is_rebuilding() else 0),
            loss=loss, selection=selection, proxy=IDENTITY, directions=directions, neighbors=neighbors,
            seed=context.seed,
        )  # fmt: skip
        self.needs_same_texts = self.matching.needs_same_texts
        self._rows = torch.empty(0, dtype=torch.int64)

    def check_clips(self, train: Clips) -> None:
        """Raise InputError if there are too few training clips for the number of neighbors in the options."""
        self.matching.check_clips(train)

    def before_epoch(self, train: Clips, epoch: Epoch) -> None:
        """Determine the labeled clips and, unless the weight of pairs is 0, refresh the state of `Matching`.

        Raises:
            InputError: no training clip has a label.
        """
        self._train, self._rows = train, (train.labels != UNLABELLED).nonzero()[:, 0]
        if not len(self._rows):
            raise InputError("few-labels: no training clip has a label; choose the method pairs")
        if self.pair_weight:
            self.matching.refresh(train, self._on_sphere_all)

    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Compute the class posteriors (b, C) of features (b, d)."""
        # in double precision, because a saturated softmax in float32 has ties
        return torch.softmax(self.encoders[modality](features).double(), 1).float()

    def _loss(self, batch: Batch) -> dict[str, Tensor]:
        label = self._label_loss(batch)
        parts = {"loss": self.label_weight * label, "label_loss": label}
        if not self.pair_weight:
            return parts
        vectors = {m: self._on_sphere(values, m) for m, values in batch.features.items()}
        matched = self.matching(vectors, batch, self._on_sphere)
        parts["loss"] = parts["loss"] + self.pair_weight * matched.pop("loss")
        return parts | matched

    def _label_loss(self, batch: Batch) -> Tensor:
        """Compute the label loss of labeled clips that are redrawn in each step, summed over modalities."""
        order = torch.randperm(len(self._rows), generator=batch.generator)[:LABELED]
        rows = self._rows[sent(order, self._rows.device)]
        labels = self._train.labels[rows].to(self.device)
        losses = [
            self.label_loss(self.encoders[m](on_device(self._train[m], rows, self.device)), labels)
            for m in self._train.modalities
        ]
        return torch.stack(losses).sum()

    def _on_sphere(self, features: Any, modality: Modality) -> Tensor:
        return on_sphere(self.spheres[modality](self.encoders[modality].features(features)))

    def _on_sphere_all(self, clips: Clips, modality: Modality) -> Tensor:
        """Compute unit vectors (n, pair_dimension) of one modality of `clips`, without gradients.

        The networks compute in evaluation mode.
        """
        with self.evaluated():
            return torch.cat([self._on_sphere(part, modality) for part in self.in_batches(clips.vectors(modality))])


few_labels = learned(FewLabelsLearner)
