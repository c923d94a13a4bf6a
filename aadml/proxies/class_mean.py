"""Class-mean proxy: the mixture of a clip with the mean of the other clips of its class.

This proxy is the simplest control for proxies with a bank.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from aadml.comparison.features import Modality
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues, completed, removing
from aadml.proxies.contract import Encode, TrainingSet
from aadml.proxies.mixture import EVEN, MIXTURE, MixtureOptions, unused, uses_only_mixtures
from aadml.proxies.unchanged import Unchanged


@removing(residual_weight=EVEN)
class ClassMean(Unchanged):
    """Proxy that mixes a clip with the mean of the other training clips of the same class, modality by modality.

        proxy_i = x_i + 1/(n_c - 1) sum over j in the class c of i, j != i, of  b_j

    The means are computed from the bank b of embeddings at the start of the epoch, without gradient or parameters.
    Without labels all clips are one class. The proxy of a new clip, or of the only clip of a class, is the clip itself.

    Args:
        dimension: d of the embeddings.
        modalities: modalities of the embeddings.
        mixture: options of the mixture of a clip with the mean, see `MixtureOptions`.
    """

    prefix = "class-mean-"

    def __init__(self, dimension: int, modalities: tuple[Modality, ...], *, mixture: MixtureOptions = MIXTURE) -> None:
        super().__init__(dimension, modalities)
        self._mixture, self.aa_on, self.aa_mix = mixture, mixture.aa_on, mixture.aa_mix
        self._means: Mapping[Modality, Tensor] = {}
        self._alone = torch.zeros(0, dtype=torch.bool)

    def refresh(self, train: TrainingSet) -> None:
        """Compute the mean of the other clips of the same class, for every training clip and modality.

        The means are computed from `train.bank` and `train.labels`.
        """
        first = next(iter(train.bank.values()))
        labels = torch.zeros(len(first), dtype=torch.int64) if train.labels is None else train.labels
        code = torch.unique(labels.to(first.device), return_inverse=True)[1]
        others = torch.bincount(code)[code] - 1
        self._alone = others == 0
        self._means = {m: _of_others(values.detach(), code, others) for m, values in train.bank.items()}

    def forward(
        self, embeddings: Mapping[Modality, Tensor], index: Tensor, encode: Encode | None = None
    ) -> dict[Modality, Tensor]:
        """Compute the proxies (b, d) of a batch, by modality; `encode` is not used.

        Raises:
            InputError: `refresh` was not called.
        """
        if not self._means:
            raise InputError("proxy: there are no class means yet; call refresh before each epoch")
        index = index.to(self._alone.device)
        alone, means = self._alone[index][:, None], {m: values[index] for m, values in self._means.items()}
        joined = self._mixture.joined
        return {m: torch.where(alone, x, joined(x, means[m].to(x.dtype))) for m, x in embeddings.items()}


def _of_others(bank: Tensor, code: Tensor, others: Tensor) -> Tensor:
    """Return means (n, d): for each row, the mean of the other rows of its class, or 0 without other rows."""
    sums = bank.new_zeros(int(code.max()) + 1 if len(code) else 0, bank.shape[1]).index_add(0, code, bank)
    return (sums[code] - bank) / others.clamp_min(1)[:, None]


def degeneracy(options: OptionValues) -> str | None:
    """Return a warning about options that make the proxy degenerate or unused; None otherwise.

    Args:
        options: options of the class-mean proxy; missing options have their defaults.
    """
    chosen = completed(ClassMean, options, "proxy")
    if uses_only_mixtures(chosen):
        return "without residual, proxies are detached class means, so the metric loss does not train the encoders"
    return unused(chosen)
