"""Hardness-aware deep metric learning (Zheng et al., CVPR 2019): negatives are gradually pulled nearer.

Reference: Zheng et al., Hardness-aware deep metric learning, CVPR 2019, https://doi.org/10.1109/CVPR.2019.00016
"""

from typing import Annotated, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from aadml.comparison import Comparison, Terms
from aadml.comparison.options import Fidelity, Margin, Size, Weight, Width
from aadml.comparison.pairwise import TINY, at_least_float32
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.option_types import OnlyWith
from aadml.feature_extraction.ground.options import removing
from aadml.layers.linear import Linear
from aadml.losses.kernels.class_proxies import check_classes
from aadml.losses.kernels.generated_negatives import (
    L2,
    CountsDraws,
    Phase,
    Triples,
    average,
    by_anchor,
    candidate_head,
    draw_triples,
    fixed,
    rivals_of,
    triple_cost,
    vector_penalty,
)

Form = Literal["triplet", "n-pair"]

TRUST = 1e4
"""beta, the factor of 1 / J_gen in the weight w (the authors' code)."""
BALANCE = 0.5
"""lambda, the balance of reconstruction loss and class loss (the authors' code)."""
CLASS_FACTOR = 1e4
"""Weight of the cross-entropy (the authors' code)."""
MOMENTUM = 0.9
"""Momentum of the running means. The authors' code averages over blocks of 64 steps, and the paper over an epoch."""


@removing(
    positives="one", negatives="random", seed=0, trust=TRUST, balance=BALANCE, class_factor=CLASS_FACTOR,
    momentum=MOMENTUM, l2=L2,
)  # fmt: skip
class Hdml(CountsDraws):
    """Metric loss on real triples and on triples whose negative was pulled toward the anchor and regenerated.

        z^ = a + l (n - a)  where d+ < d-, else n;    l = (d+ + (d- - d+) exp(-alpha / J_avg)) / d-
        z~ = head(G(z^))                                      the generator turns a vector into features
        encoders:   w J(a, p, n) + (1 - w) J(a, p, z~),       w = exp(-10^4 / J_gen)
        generator:  1/2 sum of |f - G(z)|^2 + 1/2 10^4 mean of CE(classifier(G(z^)), class of n)
        classifier: mean of CE(classifier(f), class of f)     f the real features of the candidates

    J is the metric loss of a triple, see `triple_cost`. d+ and d- are the distances of positive and negative from the
    anchor. J_avg is a running mean, over steps, of the metric loss on real triples, summed over the batch. J_gen is a
    running mean of the generator's loss. Neither mean has a gradient. As the metric loss falls, negatives are pulled
    nearer. As the generator improves, generated triples weigh more in the loss. Both means start at infinity (the
    authors' code: at 10^6), so training begins on real triples. The buffers `metric_average` and `generator_average`
    store the means.

    Across modalities, the generator only produces features of the candidates' modality. With `fidelity` "repaired", the
    real anchor and positive are therefore kept, and the candidates are reconstructed. With "source", as in the authors'
    code for one network, anchor and positive are regenerated too, and every row of every triple is reconstructed and
    classified. The gradient of the encoders then also passes through the distances d+ and d-. With either value, this
    loss omits the batch normalization that the authors' code has in the generator and before the last layer.

    There are two players, each with its own optimizer, in one phase. The encoders minimize the terms that a call
    returns. The gradient of these terms passes through the generator into the vectors, but not into the parameters of
    the loss. Generator and classifier (`parameters()`) minimize `generator_loss`, whose gradient reaches neither
    encoders nor heads.

    Update one player before computing the loss of the other. Candidates are of one modality, so use one instance per
    direction. Triples are redrawn after each training call. The draws depend on a counter in the state.

    Args:
        dimension: width d of the vectors (set from the data, not by the user).
        features: width f of the penultimate features (set from the network).
        classes: number C of classes (set from the data).
        form: "triplet" or "n-pair" (both are in the paper).
        margin: margin of the triplet form (1.0: AADML, section 5.2).
        pull: alpha (90: the authors' code; the library GeDML documents 7).
        hidden: width of the generator's hidden layer (512: the authors' code).
        fidelity: "source" or "repaired", see above.

    Example:
        >>> fa, fv = audio_body(audio), visual_body(visual)
        >>> comparison = Comparison.of_labels(audio_head(fa), visual_head(fv), labels, labels)
        >>> comparison = replace(comparison, candidate_features=fv, candidate_head=visual_head)
        >>> loss(comparison).total.mean().backward()
        >>> encoder_optimizer.step()
        >>> loss.generator_loss(comparison).backward()
        >>> generator_optimizer.step()
    """

    metric_average: Tensor
    generator_average: Tensor

    def __init__(
        self,
        *,
        dimension: Size,
        features: Size,
        classes: Size,
        form: Form = "triplet",
        margin: Annotated[Margin, OnlyWith("form", "triplet")] = 1.0,
        pull: Weight = 90.0,
        hidden: Width = 512,
        fidelity: Fidelity = "repaired",
    ) -> None:
        super().__init__()
        self.form, self.margin = form, margin
        self.pull, self.as_source = pull, fidelity == "source"
        self.generator = nn.Sequential(Linear(dimension, hidden), nn.ReLU(), Linear(hidden, features))
        self.classifier = nn.Linear(features, classes)
        self.register_buffer("draws", torch.zeros((), dtype=torch.int64))
        self.register_buffer("metric_average", torch.tensor(torch.inf))
        self.register_buffer("generator_average", torch.tensor(torch.inf))

    def phases(self, epochs: int) -> tuple[Phase, ...]:
        """Return the only phase, of `epochs` epochs: both players train in turn on each batch."""
        return (Phase("joint", epochs, ("encoders", "generator")),)

    def enter(self, phase: str) -> None:
        """Start a phase.

        Raises:
            InputError: the phase is not "joint".
        """
        if phase != "joint":
            raise InputError(f"hdml has no phase '{phase}'; choose joint")

    def forward(self, comparison: Comparison) -> Terms:
        """Compute the loss of the encoders.

        Args:
            comparison: a anchors against c candidates, with `candidate_head`.

        Returns:
            Per anchor, the loss of its triple; 0 for anchors without positives or without negatives. The n-pair form
            also has a penalty on the lengths of the vectors.

        Raises:
            InputError: the head is missing, or the comparison has relevance scores instead of vectors.
        """
        head = candidate_head(comparison, "hdml")
        triples = self._triples(comparison)
        anchors, candidates = comparison.vectors("hdml")
        rows = anchors[triples.anchor], candidates[triples.positive], candidates[triples.negative]
        rivals = rivals_of(comparison, triples) if self.form == "n-pair" else None
        real = triple_cost(self.form, *rows, rivals, self.margin)
        synthetic = triple_cost(self.form, *self._generated(rows, head), rivals, self.margin)
        weight = _vanishing(TRUST, self.generator_average)
        if self.training and len(real):
            self.draws += 1
            self._follow(self.metric_average, real.sum())
        penalty = vector_penalty(rows[0], rows[1]) if self.form == "n-pair" else None
        return by_anchor(weight * real + (1 - weight) * synthetic, triples, len(anchors), penalty)

    def generator_loss(self, comparison: Comparison) -> Tensor:
        """Compute the loss of generator and classifier, a scalar.

        Args:
            comparison: a anchors against c candidates, with `candidate_features` and `candidate_class`. With
                `fidelity` "source", `anchor_features` and `anchor_class` are needed too.

        Raises:
            InputError: a comparison without a needed field or with relevance scores instead of vectors, or a class
                in `candidate_class` outside the classes of the loss.
        """
        features = at_least_float32(comparison.need("candidate_features", "hdml")).detach()
        labels = comparison.need("candidate_class", "hdml")
        check_classes(labels, self.classifier.out_features, "hdml")
        rebuilt, confusion = self._reconstructed(comparison, features, labels)
        cost = (1 - BALANCE) * rebuilt + BALANCE * CLASS_FACTOR * average(confusion)
        if self.training and len(confusion):
            self._follow(self.generator_average, cost)
        return cost + average(F.cross_entropy(self.classifier(features), labels, reduction="none"))

    def pulled(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Return the negatives (m, d), pulled toward the anchors (m, d), but not nearer than the positives (m, d).

        A negative that is already nearer than its positive is unchanged.
        """
        near = ((anchor - positive).square().sum(1, keepdim=True) + TINY).sqrt()
        far = ((anchor - negative).square().sum(1, keepdim=True) + TINY).sqrt()
        near, far = (near, far) if self.as_source else (near.detach(), far.detach())
        share = (near + (far - near) * _vanishing(self.pull, self.metric_average)) / far
        return torch.where(near < far, anchor + share * (negative - anchor), negative)

    def _generated(self, rows: tuple[Tensor, Tensor, Tensor], head: nn.Module) -> tuple[Tensor, Tensor, Tensor]:
        """Return triples (m, d) with pulled, regenerated negatives; "source" also regenerates anchors and positives."""
        anchor, positive, negative = rows
        parts = (anchor, positive, self.pulled(anchor, positive, negative))
        synthetic = head(fixed(self.generator, torch.cat(parts) if self.as_source else parts[2])).to(anchor.dtype)
        if not self.as_source:
            return anchor, positive, synthetic
        first, second, third = synthetic.tensor_split(3)
        return first, second, third

    def _reconstructed(self, comparison: Comparison, features: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return the summed reconstruction error of all candidates, and the class losses (m,) of pulled negatives.

        With `fidelity` "source", the error is that of all rows of all triples, and the class losses (3m,) are those
        of anchors, positives and pulled negatives.
        """
        triples = self._triples(comparison)
        anchors, candidates = (vectors.detach() for vectors in comparison.vectors("hdml"))
        rows = anchors[triples.anchor], candidates[triples.positive], candidates[triples.negative]
        vectors, inputs, classes = self.pulled(*rows), candidates, labels[triples.negative]
        if self.as_source:
            vectors, inputs = torch.cat([*rows[:2], vectors]), torch.cat(rows)
            features = at_least_float32(_of_triples(comparison, "features", triples).detach())
            classes = _of_triples(comparison, "class", triples)
        rebuilt = (features - self.generator(inputs)).square().sum()
        guesses = fixed(self.classifier, self.generator(vectors))
        return rebuilt, F.cross_entropy(guesses, classes, reduction="none")

    def _follow(self, running: Tensor, value: Tensor) -> None:
        value = value.detach().to(running.dtype)
        followed = MOMENTUM * running + (1 - MOMENTUM) * value
        running.copy_(torch.where(running.isinf(), value, followed))

    def _triples(self, comparison: Comparison) -> Triples:
        return draw_triples(comparison, torch.Generator().manual_seed(int(self.draws)))


def _vanishing(factor: float, average: Tensor) -> Tensor:
    """Return exp(-factor / average): 1 for an infinite mean or a factor of 0, else 0 for a mean of 0."""
    return torch.exp(-factor / average.clamp_min(torch.finfo(average.dtype).tiny))


def _of_triples(comparison: Comparison, field: str, triples: Triples) -> Tensor:
    """Return the values (3m, ...) of a field of the anchors, then the positives, then the negatives of m triples."""
    anchors, candidates = (comparison.need(f"{side}_{field}", "hdml") for side in ("anchor", "candidate"))
    return torch.cat([anchors[triples.anchor], candidates[triples.positive], candidates[triples.negative]])
