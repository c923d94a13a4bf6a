"""AGAH: adversary guided asymmetric hashing (Gu et al., ICMR 2019).

Reference: Gu et al., Adversary guided asymmetric hashing for cross-modal retrieval, ICMR 2019, https://doi.org/10.1145/3323873.3325045
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import permutations
from typing import Annotated, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from aadml.comparison.clips import Clips
from aadml.comparison.features import Modality
from aadml.comparison.options import LearningRate, Margin, SomeLayers, Weight, Width
from aadml.feature_extraction.ground.option_types import Tuning
from aadml.feature_extraction.ground.options import removing
from aadml.methods.adversarial.class_codes import code_loss, fitted_codes, signs
from aadml.methods.adversarial.critics import critic_loss
from aadml.methods.method import Context
from aadml.methods.networks import heads, layers
from aadml.methods.pair_losses import triplet_objective, weighted_loss
from aadml.methods.training.learned_method import learned
from aadml.methods.training.learner import Batch, Epoch, Learner, Player
from aadml.objective import Embedded

ATTENTION_SLOPE = 5.0
FEATURE_SHARE = 0.8
CRITIC_HIDDEN = 256
PENALTY = 10.0
"""Weight of the penalty on the critics' gradient norm (released code)."""
WEIGHTS = {"triplet": 1.0, "balance": 1.0, "code": 1e-3, "quantization": 1.0}
"""Weights of triplets, balance of magnitudes, asymmetric code loss and distance to sign codes (released code)."""


@removing(balance_weight=1.0, code_weight=1e-3, quantization_weight=1.0, penalty=PENALTY)
class HashingLearner(Learner):
    """Binary codes of all modalities, with critics that align the features (Gu et al., ICMR 2019).

        u = encoder(x),   f = u / |u|
        f' = 0.8 f + 0.2 (share of each class) M,   share ~ sigmoid(5 f M^T),   h = tanh(W f')
        J = triplets of h in both directions, over a whole batch, in cosine, with `margin`
            + sum of 1 / (1 + exp(cos(|h|, 1))) + class_weight sum of binary cross-entropies of f'
            + 0.001 sum of (h . b_c - k S_c)^2 (see `code_loss`) + sum of |h - sign h|^2
            - adv_weight sum over modalities m, o of mean D_m(f_o)
        critic D_m: scores features of m above those of o (see `critic_loss`)

    M contains the mean feature of each class over all modalities, scaled to length 1, and b_c is the code of class c
    (see `fitted_codes`). M and the codes are recomputed from the training clips before each epoch, and are constant at
    test. Codes are compared by Hamming distance. Critics and hashing are trained in turn on each batch.

    The released code differs in four points. Its network begins with a CNN on pixels; the toolkit's encoders are fully
    connected. The released code divides features by the norm of the *whole batch*, at test too, so that the bits of an
    item depend on the rest of the batch. The toolkit divides each item by its own norm. The released code draws the s
    of `critic_loss` for each component; the toolkit draws s for each clip. The released code collects M and the class
    codes during an epoch, from changing weights; the toolkit computes M and the codes between epochs.

    Args:
        context: dimensions and classes.
        dimension: number of bits (64: released code).
        hidden: sizes of the encoders' layers; the last is the size of f (4096, 512: the last two of the released
            image network).
        margin: margin of the triplets, in cosine (0.3: released code).
        class_weight: weight of the classifiers' loss (0: same source).
        adv_weight: weight of the critics' scores (1: same source).
        critic_learning_rate: learning rate of the critics' Adamax, with betas 0.5, 0.9 and weight decay 1e-4 (all: same
            source).

    Raises:
        InputError: clips without exactly one class, features other than vectors, or only one modality.
    """

    similarity = "hamming"
    class_features: Tensor
    class_codes: Tensor

    def __init__(
        self,
        context: Context,
        *,
        dimension: Width = 64,
        hidden: SomeLayers = (4096, 512),
        margin: Annotated[Margin, Tuning(0.1, 0.3, 1.0)] = 0.3,
        class_weight: Weight = 0.0,
        adv_weight: Weight = 1.0,
        critic_learning_rate: LearningRate = 1e-3,
    ) -> None:
        super().__init__()
        classes = context.need_classes("agah")
        width, names = hidden[-1], context.modalities
        self.encoders = heads(context, "agah", hidden, activation="relu", last=True)
        self.hashes = nn.ModuleDict({m: nn.Linear(width, dimension) for m in names})
        self.classifiers = nn.ModuleDict({m: nn.Linear(width, classes) for m in names})
        self.critics = nn.ModuleDict({m: layers((width, width, CRITIC_HIDDEN, 1), last=False) for m in names})
        self.critic_learning_rate = critic_learning_rate
        self.weights = WEIGHTS | {"class": class_weight, "adversarial": adv_weight}
        self.objective = triplet_objective(
            context, dimension, score="cosine", margin=margin, reduction="sum", combine="sum"
        )
        # both are recomputed once per epoch, from training clips only, and saved with the weights
        self.register_buffer("class_features", torch.zeros(classes, width))
        self.register_buffer("class_codes", signs(torch.rand(classes, dimension) - 0.5))

    def players(self) -> Mapping[str, Player]:
        """Return two players: the critics, and all other parameters ("hashing")."""
        critics = list(self.critics.parameters())
        critic_ids = set(map(id, critics))
        rest = [parameter for parameter in self.parameters() if id(parameter) not in critic_ids]
        settings = partial(  # settings of the released code
            replace, optimizer="adamax", learning_rate=self.critic_learning_rate, betas=(0.5, 0.9), weight_decay=1e-4,
            schedule="constant",
        )  # fmt: skip
        return {"critics": Player(critics, self._critic_loss, settings), "hashing": Player(rest, self._loss)}

    @torch.no_grad()
    def before_epoch(self, train: Clips, epoch: Epoch) -> None:
        """Compute the mean feature of every class, and fit the codes of the classes to the codes of the clips."""
        features = {
            m: torch.cat([self._features(part, m) for part in self.in_batches(train.vectors(m))])
            for m in train.modalities
        }
        members = F.one_hot(train.labels, len(self.class_features)).float().T  # (C, n)
        counts = members.sum(1, keepdim=True).clamp_min(1)
        means = torch.stack([members @ values / counts for values in features.values()]).mean(0)
        self.class_features.copy_(F.normalize(means, dim=1))
        codes = [signs(self._hash(values, m)) for m, values in features.items()]
        # the code of a class counts as an additional clip of the class, which keeps the codes apart
        labels = [train.labels] * len(codes) + [torch.arange(len(self.class_codes), device=train.labels.device)]
        self.class_codes.copy_(fitted_codes(torch.cat([*codes, self.class_codes]), torch.cat(labels), self.class_codes))

    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Compute the sign codes of a batch (b, d) -> (b, bits), plus and minus one."""
        return signs(self._hash(self._features(features, modality), modality))

    def _features(self, inputs: Tensor, modality: Modality) -> Tensor:
        """Encode a batch (b, d) as unit-norm features (b, w)."""
        return F.normalize(self.encoders[modality](inputs), dim=1)

    def _attended(self, features: Tensor) -> Tensor:
        """Return a mixture (b, w) of `features` (b, w) and the mean features of the classes.

        The mean features are weighted by their similarity to `features`.
        """
        known = (self.class_features != 0).any(1)
        attention = torch.sigmoid(ATTENTION_SLOPE * features @ self.class_features.T) * known
        share = attention / attention.sum(1, keepdim=True).clamp_min(1e-12)
        return FEATURE_SHARE * features + (1 - FEATURE_SHARE) * share @ self.class_features

    def _hash(self, features: Tensor, modality: Modality) -> Tensor:
        return torch.tanh(self.hashes[modality](self._attended(features)))

    def _critic_loss(self, batch: Batch) -> dict[str, Tensor]:
        with torch.no_grad():
            features = {m: self._features(values, m) for m, values in batch.features.items()}
        losses = [
            critic_loss(self.critics[m], features[m], features[o], batch.generator, penalty=PENALTY)
            for m, o in permutations(features, 2)
        ]
        return {"loss": torch.stack(losses).sum()}

    def _loss(self, batch: Batch) -> dict[str, Tensor]:
        features = {m: self._features(values, m) for m, values in batch.features.items()}
        hashes = {m: self._hash(values, m) for m, values in features.items()}
        labels = batch.labels
        parts = {"triplet": self.objective(Embedded(hashes, labels, batch.index), batch.generator)["loss"]}
        parts |= self._clip_losses(features, hashes, labels)
        pairs = permutations(features, 2)
        parts["adversarial"] = torch.stack([-self.critics[m](features[o]).mean() for m, o in pairs]).sum()
        return weighted_loss(parts, self.weights)

    def _clip_losses(
        self, features: Mapping[Modality, Tensor], hashes: Mapping[Modality, Tensor], labels: Tensor
    ) -> dict[str, Tensor]:
        """Compute the losses "balance", "class", "code" and "quantization", summed over clips and modalities."""
        target = F.one_hot(labels, len(self.class_codes)).float()
        logits = [self.classifiers[m](self._attended(values)) for m, values in features.items()]
        values = torch.cat(list(hashes.values()))
        flat = F.cosine_similarity(values.abs(), torch.ones_like(values))
        return {
            "balance": torch.sigmoid(-flat).sum(),
            "class": torch.stack(
                [F.binary_cross_entropy_with_logits(scores, target, reduction="sum") for scores in logits]
            ).sum(),
            "code": code_loss(values, labels.repeat(len(hashes)), self.class_codes),
            "quantization": (values - signs(values)).square().sum(),
        }


agah = learned(HashingLearner)
