"""MSNSCA: a multi-scale network with attention among the scales of an item (Zhang et al., NCAA 2023)."""

from typing import Annotated, Any

import torch
from annotated_types import Interval
from torch import Tensor, nn
from torch.nn import functional as F

from aadml.comparison.features import Modality
from aadml.comparison.options import Dropout, Weight, Width
from aadml.feature_extraction.ground.option_types import Tuning
from aadml.feature_extraction.ground.options import removing
from aadml.layers.dropout import DropoutLayer
from aadml.methods.label_space.scales import KERNELS, SHORTEST, ItemAttention, ScaleNetwork
from aadml.methods.method import Context
from aadml.methods.pair_losses import partner_distance, weighted_loss
from aadml.methods.training.learned_method import learned
from aadml.methods.training.learner import Batch, Learner

CLASSIFIER_HIDDEN = 32
WEIGHTS = {"label": 1.0, "apart": 0.1}
"""Weights of the cross-entropy and of the distance between partners (SMSA-VA-CMR's code)."""


@removing(memory=0, kernels=KERNELS, attention_heads=1, label_weight=1.0, apart_weight=0.1)
class MultiScaleLearner(Learner):
    """Convolutions over a vector at three scales, and attention among an item's scales (Zhang et al., NCAA 2023).

        s = t + attention(t over t)
        q = A [s_1, s_2, s_3]
        z = B (q + attention(q over s))
        J = sum of CE(classifier(z_i), y_i) + center_weight sum of mean |z_i - c(y_i)|^2 / 2
            + 0.1 mean |z_i - w_i|

    An item passes through layers of its modality, a layer shared by all modalities, and convolutions at three
    scales. The convolutions of scale k compute the token t_k. A and B are linear maps. t_k, s_k and q have the size
    `width`, and z is the embedding. Sums are over modalities, and each modality has its own classifier. y_i is the
    class of clip i, and c(y_i) is the learned center of this class. z_i and w_i are the embeddings of clip i in two
    modalities.

    The code of MSNSCA is not released. Layers, sizes and terms follow SMSA-VA-CMR by the same authors. In the code
    of SMSA-VA-CMR, attention runs over the *batch* with keys of the partner's modality, even at test. The embedding
    of an item therefore depends on neighbors in the file and on the item's partner, which is the correct answer. In
    the toolkit, the scales of an item attend only to the scales of the same item. The code of SMSA-VA-CMR applies a
    ReLU to raw audio features. On standardized features, this ReLU would set half of the values to 0, so the
    toolkit omits the ReLU.

    Args:
        context: dimensions and classes.
        dimension: size of the embedding (64: SMSA-VA-CMR's code).
        width: width of shared layer, scales and attention (128: same source).
        visual_hidden: size of the visual hidden layer (512: same source); other modalities have no hidden layer.
        dropout: share of units dropped (0.5: same source).
        center_weight: weight of the distance to the class centers (0.001 to 0.01: same source).

    Raises:
        InputError: clips without exactly one class, features other than vectors, or only one modality.
    """

    normalizes_batches = True

    def __init__(
        self,
        context: Context,
        *,
        dimension: Width = 64,
        width: Annotated[int, Interval(ge=SHORTEST, le=65_536)] = 128,
        visual_hidden: Width = 512,
        dropout: Dropout = 0.5,
        center_weight: Annotated[Weight, Tuning(0.001, 0.01, 0.1)] = 0.01,
    ) -> None:
        super().__init__()
        classes = context.need_classes("msnsca")
        context.need_vectors("msnsca")
        names = context.modalities
        self.own = nn.ModuleDict(
            {m: _own(d, visual_hidden if m == "visual" else 0, width, dropout) for m, d in context.dimensions.items()}
        )
        self.shared = nn.Linear(width, width, bias=False)
        self.scales = nn.ModuleDict({m: ScaleNetwork(width) for m in names})
        self.across_scales = ItemAttention(width)
        self.joined = nn.Linear(len(KERNELS) * width, width, bias=False)
        self.looking_back = ItemAttention(width)
        self.last = nn.Linear(width, dimension, bias=False)
        self.classifiers = nn.ModuleDict({m: _classifier(dimension, classes, dropout) for m in names})
        self.centers = nn.Parameter(torch.randn(classes, dimension))
        self.weights = WEIGHTS | {"center": center_weight}

    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Return the embeddings (b, dimension) of features (b, d); items do not attend to other items."""
        tokens = self.scales[modality](self.shared(self.own[modality](features)))
        attended = self.across_scales(tokens, tokens)
        joined = self.joined(attended.flatten(1))
        vectors: Tensor = self.last(self.looking_back(joined[:, None], attended).squeeze(1))
        return vectors

    def _loss(self, batch: Batch) -> dict[str, Tensor]:
        vectors = {m: self.embed(values, m) for m, values in batch.features.items()}
        labels = batch.labels
        parts = {
            "label": torch.stack([F.cross_entropy(self.classifiers[m](v), labels) for m, v in vectors.items()]).sum(),
            "center": torch.stack([self._center_loss(values, labels) for values in vectors.values()]).sum(),
            "apart": partner_distance(vectors),
        }
        return weighted_loss(parts, self.weights)

    def _center_loss(self, vectors: Tensor, labels: Tensor) -> Tensor:
        return (vectors - self.centers[labels]).square().sum(1).mean() / 2


def _own(dimension: int, hidden: int, width: int, dropout: float) -> nn.Sequential:
    """Build the layers of a modality before the shared layer: a module from (b, dimension) to (b, width).

    The hidden layer has `hidden` units, and is omitted if `hidden` is 0.
    """
    if not hidden:
        norm = nn.BatchNorm1d(dimension, affine=False)
        return nn.Sequential(norm, DropoutLayer(dropout), nn.Linear(dimension, width, bias=False))
    first, norm = nn.Linear(dimension, hidden, bias=False), nn.BatchNorm1d(hidden, affine=False)
    return nn.Sequential(first, norm, nn.ReLU(), DropoutLayer(dropout), nn.Linear(hidden, width, bias=False))


def _classifier(dimension: int, classes: int, dropout: float) -> nn.Sequential:
    first, last = nn.Linear(dimension, CLASSIFIER_HIDDEN, bias=False), nn.Linear(CLASSIFIER_HIDDEN, classes, bias=False)
    return nn.Sequential(first, nn.ReLU(), DropoutLayer(dropout), last)


msnsca = learned(MultiScaleLearner)
