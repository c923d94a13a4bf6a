"""ACMR: adversarial cross-modal retrieval (Wang et al., ACM MM 2017)."""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import permutations
from typing import Annotated, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from aadml.comparison.features import Modality
from aadml.comparison.options import Fidelity, Layers, Margin, Weight, Width
from aadml.comparison.pairwise import at_least_float32, cosine
from aadml.feature_extraction.ground.option_types import Tuning
from aadml.methods.heads import all_directions, heads
from aadml.methods.method import Context
from aadml.methods.training.learned_method import learned
from aadml.methods.training.learner import Batch, Epoch, Learner, Player


def reversal(epoch: Epoch) -> float:
    """Strength of the adversarial term: 2 / (1 + exp(-10 p)) - 1, p the share of epochs done; 0 at the start."""
    return 2 / (1 + math.exp(-10 * epoch.number / epoch.total)) - 1


def lookalike_triplet(
    vectors: Mapping[Modality, Tensor],
    inputs: Mapping[Modality, Tensor],
    labels: Tensor,
    *,
    margin: float,
    positive_weight: float,
    fidelity: Fidelity = "repaired",
) -> Tensor:
    """Triplets of partners against the clips of another class that look most alike before the encoders.

        repaired:  sum over directions (m, o) of  mean over i of  max(0, margin + w |m_i - o_i|^2 - |m_i - o_n|^2)
        source:    sum over directions (m, o) of  max(0, margin + sum over i of (w |m_i - o_i|^2 - |m_i - o_n|^2) / 2)
        n = argmax over j of another class of cos(x_i, x_j),   x the inputs of modality m

    In the source the cosine of a clip of the same class counts as 0, so that such a clip is taken where all others are
    less alike than that.

    Args:
        vectors: modality -> embeddings (b, d).
        inputs: modality -> features (b, f).
        labels: (b,) int64.
        margin: how much nearer is near enough.
        positive_weight: w, of the distance between partners.
        fidelity: "source" for one hinge a batch, as in the released code, or "repaired" for one a clip.

    Returns:
        A scalar; 0 where all clips are of one class.
    """
    other_class = labels[:, None] != labels[None, :]
    contested = other_class.any(1)
    costs = []
    for one, other in permutations(vectors, 2):
        alike = cosine(at_least_float32(inputs[one]), at_least_float32(inputs[one]))
        negative = alike.masked_fill(~other_class, 0 if fidelity == "source" else -torch.inf).argmax(1)
        near = (vectors[one] - vectors[other]).square().sum(1)
        far = (vectors[one] - vectors[other][negative]).square().sum(1)
        if fidelity == "source":
            costs.append((margin + (positive_weight * near - far).sum() / 2).relu())
        else:
            cost = (margin + positive_weight * near - far).relu()
            costs.append(cost.masked_fill(~contested, 0).mean())
    return torch.stack(costs).sum()


class AdversarialLearner(Learner):
    """Encoders that tell classes, keep partners together, and hide the modality from a classifier (Wang et al., 2017).

        encoders:             min  label_weight sum over modalities of CE(W x, y) + triplets - adv_weight lambda D
        modality classifier:  min  D = sum over modalities of CE(classifier(x), modality)
        lambda = 2 / (1 + exp(-10 p)) - 1,   p the share of epochs done;   triplets: see `lookalike_triplet`

    The two play in turn on every batch, each with its own optimizer; to subtract D is what a layer that reverses the
    gradient does. In the released code D is minimized over the modality classifier's variables alone and the encoders'
    step leaves D out, so that nothing adversarial ever reaches the encoders; `adv_weight: 0` reproduces that. The code
    also sums the triplets' norms over the batch into one hinge (`fidelity: source`), where here each clip has its own
    (`repaired`), and its encoders' step leaves the label classifier as it was drawn, where here both learn. The
    modality classifier is three linear layers without activation, as there.

    Args:
        context: dimensions and classes.
        dimension: size of the embedding (40: released code).
        visual_hidden: hidden layers of the visual encoder, tanh after each and after the last (512, 100: same source).
        hidden: hidden layers of every other modality's encoder (40, 100: same source, for its text).
        label_weight: of the label loss (100: same source).
        margin: of the triplets (0.1: same source).
        positive_weight: of the distance between partners in the triplets (5: same source).
        adv_weight: of the adversarial term; 0 reproduces the released code.
        fidelity: of the triplets: "source" for one hinge a batch, "repaired" for one a clip.
    """

    def __init__(
        self,
        context: Context,
        *,
        dimension: Width = 40,
        visual_hidden: Layers = (512, 100),
        hidden: Layers = (40, 100),
        label_weight: Weight = 100.0,
        margin: Annotated[Margin, Tuning(0.05, 0.1, 0.5)] = 0.1,
        positive_weight: Weight = 5.0,
        adv_weight: Weight = 1.0,
        fidelity: Fidelity = "repaired",
    ) -> None:
        super().__init__()
        classes = context.need_classes("acmr")
        all_directions(context)
        self.encoders = nn.ModuleDict()
        for modality, size in context.dimensions.items():
            sizes = (*(visual_hidden if modality == "visual" else hidden), dimension)
            one = replace(context, dimensions={modality: size})
            self.encoders[modality] = heads(one, "acmr", sizes, activation="tanh", last=True)[modality]
        self.classifier = nn.Linear(dimension, classes)
        half, quarter = max(dimension // 2, 1), max(dimension // 4, 1)
        self.modality_classifier = nn.Sequential(
            nn.Linear(dimension, half), nn.Linear(half, quarter), nn.Linear(quarter, len(context.modalities))
        )
        self.label_weight, self.adv_weight = label_weight, adv_weight
        self.triplet = partial(lookalike_triplet, margin=margin, positive_weight=positive_weight, fidelity=fidelity)

    def players(self) -> Mapping[str, Player]:
        """Train the encoders with the label classifier, then the modality classifier, on each batch."""
        embedding = [*self.encoders.parameters(), *self.classifier.parameters()]
        return {
            "encoders": Player(embedding, self._embedding_loss),
            "modality_classifier": Player(list(self.modality_classifier.parameters()), self._modality_loss),
        }

    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Embed a batch (b, d) -> (b, dimension)."""
        vectors: Tensor = self.encoders[modality](features)
        return vectors

    def _embedding_loss(self, batch: Batch) -> dict[str, Tensor]:
        vectors = {m: self.embed(values, m) for m, values in batch.features.items()}
        label = torch.stack([F.cross_entropy(self.classifier(v), batch.labels) for v in vectors.values()]).sum()
        triplet = self.triplet(vectors, batch.features, batch.labels)
        confusion = self._modality_entropy(vectors)
        loss = self.label_weight * label + triplet - self.adv_weight * reversal(batch.epoch) * confusion
        return {"loss": loss, "label_loss": label, "triplet_loss": triplet, "confusion": confusion}

    def _modality_loss(self, batch: Batch) -> dict[str, Tensor]:
        with torch.no_grad():
            vectors = {m: self.embed(values, m) for m, values in batch.features.items()}
        return {"loss": self._modality_entropy(vectors)}

    def _modality_entropy(self, vectors: Mapping[Modality, Tensor]) -> Tensor:
        """Cross-entropy of the modality classifier, summed over modalities: vectors (b, d) -> a scalar."""
        costs = []
        for number, values in enumerate(vectors.values()):
            target = torch.full((len(values),), number, device=values.device)
            costs.append(F.cross_entropy(self.modality_classifier(values), target))
        return torch.stack(costs).sum()


acmr = learned(AdversarialLearner)
