"""Deep adversarial metric learning (Duan et al., CVPR 2018): a generator synthesizes hard negatives.

Reference: Duan et al., Deep adversarial metric learning, CVPR 2018, https://openaccess.thecvf.com/content_cvpr_2018/html/Duan_Deep_Adversarial_Metric_CVPR_2018_paper.html
"""

import torch
from torch import Tensor, nn

from aadml.comparison import Comparison, Terms
from aadml.comparison.options import Margin, Size, Width
from aadml.comparison.pairwise import at_least_float32
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import removing
from aadml.layers.linear import Linear
from aadml.losses.kernels.generated_negatives import (
    L2,
    CountsDraws,
    Form,
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

PHASES = ("metric", "generator", "joint")

ADVERSARY = 50.0
"""lambda_2, the weight of J_adv (GeDML's reimplementation)."""
METRIC_SHARE, GENERATOR_SHARE = 0.2, 0.1
"""Shares of the epochs, at the start, that train only the encoders, then only the generator. The paper pretrains the
encoders for an unstated time."""


@removing(
    positives="one", negatives="random", seed=0, regularization=1.0, adversary=ADVERSARY, l2=L2,
    metric_share=METRIC_SHARE, generator_share=GENERATOR_SHARE,
)  # fmt: skip
class Daml(CountsDraws):
    """Metric loss on triples whose negative is generated from the features of a real triple.

        f~ = G(f_a, f_p, f_n)                          features (penultimate activations) in, features out
        x~ = head(f~)                                  the last layer of the candidates embeds f~
        encoders:   loss of (x_a, x_p, x~)             triplet, contrastive or n-pair, see `triple_cost`
        generator:  |f~ - f_a|^2 + |f~ - f_n|^2 + 50 J_adv,   the mean over triples

    J_adv is large while the generated negative is not hard: max(0, |x~ - x_a|^2 - |x_p - x_a|^2 - margin) for
    triplet, max(0, |x~ - x_a|^2 - margin^2) for contrastive, max(0, x_a . x_p - x_a . x~ - margin) for n-pair. For
    triplet, J_adv is the paper's. For contrastive and n-pair, J_adv is this project's extension.

    There are two players, each with its own optimizer. The encoders minimize the terms that a call returns. The
    gradient of these terms passes through the generator into the features, but not into the generator's parameters.
    The generator (`parameters()`) minimizes `generator_loss`, whose gradient reaches neither encoders nor heads.
    `phases` returns the order of training. The first phase trains only the encoders, on real negatives. The second
    phase trains only the generator. The last phase trains encoders and generator in turn on each batch.

        for phase in loss.phases(epochs):
            loss.enter(phase.name)
            for comparison in batches(phase.epochs):
                if "encoders" in phase.players: step(encoder_optimizer, loss(comparison).total.mean())
                if "generator" in phase.players: step(generator_optimizer, loss.generator_loss(comparison))

    Update one player before computing the loss of the other. Candidates are of one modality, so use one instance
    per direction. The features of both sides must be equally wide. Triples are redrawn after each training call.
    The draws depend on a counter in the state, so a resumed run draws the triples of an uninterrupted run.

    Args:
        features: width f of the penultimate features (set from the network, not by the user).
        form: "triplet", "contrastive" or "n-pair" (the paper has all three metric losses).
        margin: margin of J_adv, and of the metric loss except for n-pair (1.0: GeDML's reimplementation; AADML,
            section 5.2).
        hidden: width of the generator's two hidden layers (1024: GeDML).

    Example:
        >>> fa, fv = audio_body(audio), visual_body(visual)
        >>> comparison = Comparison.of_labels(audio_head(fa), visual_head(fv), labels, labels)
        >>> comparison = replace(comparison, anchor_features=fa, candidate_features=fv, candidate_head=visual_head)
        >>> loss(comparison).total.mean().backward()
        >>> encoder_optimizer.step()
        >>> loss.generator_loss(comparison).backward()
        >>> generator_optimizer.step()
    """

    def __init__(
        self,
        *,
        features: Size,
        form: Form = "triplet",
        margin: Margin = 1.0,
        hidden: Width = 1024,
    ) -> None:
        super().__init__()
        self.form, self.margin, self.features = form, margin, features
        self.phase = "joint"
        first, second, last = Linear(3 * features, hidden), Linear(hidden, hidden), Linear(hidden, features)
        self.generator = nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), last)
        self.register_buffer("draws", torch.zeros((), dtype=torch.int64))

    def phases(self, epochs: int) -> tuple[Phase, ...]:
        """Return three phases of `epochs` epochs in total: encoders, generator, then both; a phase may be empty."""
        metric, alone = int(epochs * METRIC_SHARE), int(epochs * GENERATOR_SHARE)
        return (
            Phase("metric", metric, ("encoders",)),
            Phase("generator", alone, ("generator",)),
            Phase("joint", epochs - metric - alone, ("encoders", "generator")),
        )

    def enter(self, phase: str) -> None:
        """Start a phase: negatives are generated in "joint", and real in the other phases.

        Before the first call, the phase is "joint".

        Raises:
            InputError: the phase does not exist.
        """
        if phase not in PHASES:
            raise InputError(f"daml has no phase '{phase}'; choose one of {', '.join(PHASES)}")
        self.phase = phase

    def forward(self, comparison: Comparison) -> Terms:
        """Compute the loss of the encoders.

        Args:
            comparison: a anchors against c candidates, with `anchor_features`, `candidate_features`,
                `candidate_head`.

        Returns:
            Per anchor, the loss of its triple; 0 for anchors without positives or without negatives. The n-pair
            form also has a penalty on the lengths of the vectors.

        Raises:
            InputError: a comparison without a needed field or with relevance scores instead of vectors, or features
                whose width is not `features`. Only the phase "joint" needs `candidate_head`.
        """
        triples, features = self._triples(comparison)
        anchors, candidates = comparison.vectors("daml")
        anchor, positive = anchors[triples.anchor], candidates[triples.positive]
        negative = candidates[triples.negative]
        if self.phase == "joint":
            head = candidate_head(comparison, "daml")
            negative = head(fixed(self.generator, torch.cat(features, 1))).to(anchor.dtype)
        rivals = rivals_of(comparison, triples) if self.form == "n-pair" else None
        cost = triple_cost(self.form, anchor, positive, negative, rivals, self.margin)
        if self.training:
            self.draws += 1
        penalty = vector_penalty(anchor, positive) if self.form == "n-pair" else None
        return by_anchor(cost, triples, len(anchors), penalty)

    def generator_loss(self, comparison: Comparison) -> Tensor:
        """Return the generator's loss (a scalar; 0 without triples); arguments and errors are those of `forward`."""
        triples, features = self._triples(comparison)
        anchor_features, positive_features, negative_features = (part.detach() for part in features)
        generated = self.generator(torch.cat([anchor_features, positive_features, negative_features], 1))
        hard = (generated - anchor_features).square().sum(1)
        close = (generated - negative_features).square().sum(1)
        anchors, candidates = (vectors.detach() for vectors in comparison.vectors("daml"))
        vector = fixed(candidate_head(comparison, "daml"), generated)
        adversary = self._adversary(anchors[triples.anchor], candidates[triples.positive], vector)
        return average(hard + close + ADVERSARY * adversary)

    def _adversary(self, anchor: Tensor, positive: Tensor, generated: Tensor) -> Tensor:
        """Return J_adv (m,) of the generated negatives."""
        if self.form == "n-pair":
            return ((anchor * (positive - generated)).sum(1) - self.margin).clamp_min(0)
        far = (anchor - generated).square().sum(1)
        if self.form == "contrastive":
            return (far - self.margin**2).clamp_min(0)
        return (far - (anchor - positive).square().sum(1) - self.margin).clamp_min(0)

    def _triples(self, comparison: Comparison) -> tuple[Triples, tuple[Tensor, Tensor, Tensor]]:
        """Draw triples, and gather the features (m, f) of their anchors, positives and negatives."""
        anchors = at_least_float32(comparison.need("anchor_features", "daml"))
        candidates = at_least_float32(comparison.need("candidate_features", "daml"))
        for features in (anchors, candidates):
            if features.shape[1] != self.features:
                raise InputError(
                    f"daml was built for features of width {self.features}, but features of width "
                    f"{features.shape[1]} were passed; pass features of width {self.features}"
                )
        triples = draw_triples(comparison, torch.Generator().manual_seed(int(self.draws)))
        return triples, (anchors[triples.anchor], candidates[triples.positive], candidates[triples.negative])
