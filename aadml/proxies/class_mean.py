"""Class-mean proxy: a clip and the mean of its class, the simplest control for proxies with a bank."""

from collections.abc import Mapping
from typing import Annotated, Literal

import torch
from torch import Tensor

from aadml.comparison.features import Modality
from aadml.comparison.options import Share
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.option_types import OnlyWith
from aadml.proxies.contract import Encode, TrainingSet
from aadml.proxies.unchanged import Unchanged


class ClassMean(Unchanged):
    """Sum of a clip and the mean of the other training clips of its class, in its own modality.

        proxy_i = x_i + 1/(n_c - 1) sum over j in the class c of i, j != i, of  b_j

    The means are computed from the bank of the anchor-aware proxy, without gradient or parameters. Without labels all
    clips are one class. A new clip is its own proxy, and so is a clip that is alone in its class.

    Args:
        dimension: d of the embeddings.
        modalities: modalities of the embeddings.
        residual: "none" (only the mean), "add" x + mean, or "convex" (1 - w) x + w mean.
        residual_weight: w.
        aa_on: sides of a comparison that `Objective` replaces by proxies: "all", "anchor" or "reference".
        aa_mix: share of the loss that `Objective` computes on proxies; the rest is computed on the embeddings.
    """

    prefix = "class-mean-"

    def __init__(
        self,
        dimension: int,
        modalities: tuple[Modality, ...],
        *,
        residual: Literal["none", "add", "convex"] = "add",
        residual_weight: Annotated[Share, OnlyWith("residual", "convex")] = 0.5,
        aa_on: Literal["all", "anchor", "reference"] = "all",
        aa_mix: Share = 0.5,
    ) -> None:
        super().__init__(dimension, modalities)
        self.residual, self.residual_weight = residual, residual_weight
        self.aa_on, self.aa_mix = aa_on, aa_mix
        self._means: Mapping[Modality, Tensor] = {}
        self._alone = torch.zeros(0, dtype=torch.bool)

    def refresh(self, train: TrainingSet) -> None:
        """Compute for every training clip the mean of the others of its class from `bank` and `labels`."""
        first = next(iter(train.bank.values()))
        labels = torch.zeros(len(first), dtype=torch.int64) if train.labels is None else train.labels
        code = torch.unique(labels.to(first.device), return_inverse=True)[1]
        others = torch.bincount(code)[code] - 1
        self._alone = others == 0
        self._means = {m: _of_others(values.detach(), code, others) for m, values in train.bank.items()}

    def forward(
        self, embeddings: Mapping[Modality, Tensor], index: Tensor, encode: Encode | None = None
    ) -> dict[Modality, Tensor]:
        """Compute the proxies of a batch; `encode` is not used.

        Raises:
            InputError: `refresh` was not called.
        """
        if not self._means:
            raise InputError("proxy: there are no class means yet; call refresh before each epoch")
        index = index.to(self._alone.device)
        alone = self._alone[index][:, None]
        return {
            m: torch.where(alone, x, self._seen(x, self._means[m][index].to(x.dtype))) for m, x in embeddings.items()
        }

    def _seen(self, vectors: Tensor, means: Tensor) -> Tensor:
        if self.residual == "add":
            return vectors + means
        return means if self.residual == "none" else torch.lerp(vectors, means, self.residual_weight)


def _of_others(bank: Tensor, code: Tensor, others: Tensor) -> Tensor:
    """Return the mean of the other rows of each row's class (n, d); 0 for a row alone in its class."""
    sums = bank.new_zeros(int(code.max()) + 1 if len(code) else 0, bank.shape[1]).index_add(0, code, bank)
    return (sums[code] - bank) / others.clamp_min(1)[:, None]
