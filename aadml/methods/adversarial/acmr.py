"""ACMR: adversarial cross-modal retrieval (Wang et al., ACM MM 2017).

Reference: Wang et al., Adversarial cross-modal retrieval, ACM MM 2017, https://doi.org/10.1145/3123266.3123326
"""

import math
from collections.abc import Mapping
from functools import partial
from itertools import permutations
from typing import Annotated, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from aadml.comparison.features import Modality
from aadml.comparison.options import Fidelity, Margin, Weight, Width
from aadml.comparison.options import Layers as HiddenLayers
from aadml.comparison.pairwise import at_least_float32, cosine
from aadml.feature_extraction.ground.option_types import Tuning
from aadml.feature_extraction.ground.options import removing
from aadml.methods.method import Context
from aadml.methods.networks import Layers, PerModality, layers
from aadml.methods.training.learned_method import learned
from aadml.methods.training.learner import Batch, Epoch, Learner, Player

LABEL_WEIGHT = 100.0
"""Weight of the label loss (released code)."""
POSITIVE_WEIGHT = 5.0
"""Weight of the distance between partners in the triplets (released code)."""


def reversal(epoch: Epoch) -> float:
    """Return the strength of the adversarial term: 2 / (1 + exp(-10 p)) - 1, p the share of finished epochs."""
    return 2 / (1 + math.exp(-10 * epoch.number / epoch.total)) - 1


def lookalike_triplet(
    vectors: Mapping[Modality, Tensor],
    inputs: Mapping[Modality, Tensor],
    labels: Tensor,
    *,
    margin: float,
    fidelity: Fidelity = "repaired",
) -> Tensor:
    """Compute a triplet loss; the negative of an anchor is the clip of another class with the most similar inputs.

        repaired:  sum over directions (m, o) of  mean over i of  max(0, margin + 5 |m_i - o_i|^2 - |m_i - o_n|^2)
        source:    sum over directions (m, o) of  max(0, margin + sum over i of (5 |m_i - o_i|^2 - |m_i - o_n|^2) / 2)
        n = argmax over j of another class of cos(x_i, x_j),   x the inputs of modality m

    With `source`, the cosine of clips of the same class counts as 0. A clip of the same class is therefore chosen if
    the cosines of all clips of other classes are negative.

    Args:
        vectors: modality m -> embeddings m_i (b, d).
        inputs: modality -> features x_i (b, f).
        labels: (b,) int64.
        margin: margin of the hinge, in squared distance.
        fidelity: "source" for one hinge per batch, as in the released code, or "repaired" for one per clip.

    Returns:
        A scalar; with "repaired", 0 if all clips have the same class.
    """
    other_class = labels[:, None] != labels[None, :]
    has_negative = other_class.any(1)
    losses = []
    for anchor, other in permutations(vectors, 2):
        similarity = cosine(at_least_float32(inputs[anchor]), at_least_float32(inputs[anchor]))
        negative = similarity.masked_fill(~other_class, 0 if fidelity == "source" else -torch.inf).argmax(1)
        near = (vectors[anchor] - vectors[other]).square().sum(1)
        far = (vectors[anchor] - vectors[other][negative]).square().sum(1)
        if fidelity == "source":
            losses.append((margin + (POSITIVE_WEIGHT * near - far).sum() / 2).relu())
        else:
            hinges = (margin + POSITIVE_WEIGHT * near - far).relu()
            losses.append(hinges.masked_fill(~has_negative, 0).mean())
    return torch.stack(losses).sum()


@removing(label_weight=LABEL_WEIGHT, positive_weight=POSITIVE_WEIGHT)
class AdversarialLearner(Learner):
    """Encoders trained on classes and on pairs, and against a classifier of modalities (Wang et al., 2017).

        encoders:             min  100 sum over modalities of CE(W x, y) + triplets - adv_weight lambda D
        modality classifier:  min  D = sum over modalities of CE(classifier(x), modality)
        lambda = 2 / (1 + exp(-10 p)) - 1,   p the share of finished epochs;   triplets: see `lookalike_triplet`
        x: embedding,   W: label classifier,   y: class

    Encoders and modality classifier are trained in turn on every batch, each with its own optimizer. Subtracting D
    is equivalent to a layer that reverses the gradient. In the released code, the step of the encoders omits D, so
    no adversarial gradient reaches the encoders. With `adv_weight: 0`, the toolkit omits D too. The released code
    also sums the distances of the triplets over the batch into one hinge, like `fidelity: source`. With the option
    `fidelity: repaired`, the toolkit has one hinge per clip. The released code never trains the label classifier,
    whereas the toolkit trains this classifier. The modality classifier has three linear layers without activation,
    as in the released code.

    Args:
        context: dimensions and classes.
        dimension: size of the embedding (40: released code).
        visual_hidden: hidden layers of the visual encoder; tanh follows each layer and the output (512, 100: same
            source).
        hidden: hidden layers of every other modality's encoder (40, 100: same source, for text).
        margin: margin of the triplets (0.1: same source).
        adv_weight: weight of the adversarial term; 0 omits the term, as in the released code.
        fidelity: form of the triplets: "source" for one hinge per batch, "repaired" for one per clip.

    Raises:
        InputError: clips without exactly one class, features other than vectors, or only one modality.
    """

    def __init__(
        self,
        context: Context,
        *,
        dimension: Width = 40,
        visual_hidden: HiddenLayers = (512, 100),
        hidden: HiddenLayers = (40, 100),
        margin: Annotated[Margin, Tuning(0.05, 0.1, 0.5)] = 0.1,
        adv_weight: Weight = 1.0,
        fidelity: Fidelity = "repaired",
    ) -> None:
        super().__init__()
        classes = context.need_classes("acmr")
        context.need_vectors("acmr")
        self.encoders: PerModality[Layers] = PerModality(
            {
                m: layers((size, *(visual_hidden if m == "visual" else hidden), dimension), activation="tanh")
                for m, size in context.dimensions.items()
            }
        )
        self.classifier = nn.Linear(dimension, classes)
        half, quarter = max(dimension // 2, 1), max(dimension // 4, 1)
        self.modality_classifier = nn.Sequential(
            nn.Linear(dimension, half), nn.Linear(half, quarter), nn.Linear(quarter, len(context.modalities))
        )
        self.adv_weight = adv_weight
        self.triplet = partial(lookalike_triplet, margin=margin, fidelity=fidelity)

    def players(self) -> Mapping[str, Player]:
        """Return two players: encoders with the label classifier, and the modality classifier."""
        embedding = [*self.encoders.parameters(), *self.classifier.parameters()]
        return {
            "encoders": Player(embedding, self._embedding_loss),
            "modality_classifier": Player(list(self.modality_classifier.parameters()), self._modality_loss),
        }

    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Embed a batch (b, d) -> (b, dimension)."""
        return self.encoders[modality](features)

    def _embedding_loss(self, batch: Batch) -> dict[str, Tensor]:
        vectors = {m: self.embed(values, m) for m, values in batch.features.items()}
        label = torch.stack([F.cross_entropy(self.classifier(v), batch.labels) for v in vectors.values()]).sum()
        triplet = self.triplet(vectors, batch.features, batch.labels)
        confusion = self._modality_entropy(vectors)
        loss = LABEL_WEIGHT * label + triplet - self.adv_weight * reversal(batch.epoch) * confusion
        return {"loss": loss, "label_loss": label, "triplet_loss": triplet, "confusion": confusion}

    def _modality_loss(self, batch: Batch) -> dict[str, Tensor]:
        with torch.no_grad():
            vectors = {m: self.embed(values, m) for m, values in batch.features.items()}
        return {"loss": self._modality_entropy(vectors)}

    def _modality_entropy(self, vectors: Mapping[Modality, Tensor]) -> Tensor:
        """Compute the cross-entropy of the modality classifier, summed over modalities: vectors (b, d) -> a scalar."""
        losses = []
        for number, values in enumerate(vectors.values()):
            target = torch.full((len(values),), number, device=values.device)
            losses.append(F.cross_entropy(self.modality_classifier(values), target))
        return torch.stack(losses).sum()


acmr = learned(AdversarialLearner)
