"""Measurement of the two constants of a set that the controls of R5 need, during training of R5.

Usage: python -m scripts.experiments.anchor_aware.r5_pilot F.h5
"""

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import ClassVar

import torch
from torch import Tensor

from aadml.comparison.features import Modality
from aadml.configuration.config import DEFAULT_METHOD, resolve
from aadml.configuration.files import ConfigFile, open_config
from aadml.proxies.anchor_aware import AnchorAware
from aadml.proxies.attention import Attention
from aadml.proxies.contract import Encode
from aadml.proxies.readings import Keys
from aadml.runs.data import load_splits
from aadml.runs.train import train_into
from aadml.studies.grid import Overrides
from scripts.experiments.anchor_aware.contenders import ANCHOR_AWARE, NARROW
from scripts.experiments.anchor_aware.experiment import STEPS, DataSet
from scripts.experiments.anchor_aware.fold import HERE
from scripts.experiments.anchor_aware.ledger import Ledger
from scripts.experiments.anchor_aware.r5 import PLANNED, in_place_of_r5, r5_options

SEEDS = range(190, 195)


class Observed(AnchorAware):
    """R5 that records, for every step and modality, the two measurements that the controls need."""

    prefix = "observed-"
    weights: ClassVar[list[float]] = []
    noise: ClassVar[list[float]] = []

    @torch.no_grad()
    def _record(self, attention: Attention, inputs: Keys) -> None:
        own = own_weights(attention, inputs).mean()
        self.weights.append(1 - own.item())

    def attended(self, attention: Attention, inputs: Keys) -> Tensor:
        """Apply attention as R5 does."""
        self._record(attention, inputs)
        return super().attended(attention, inputs)

    def forward(
        self, embeddings: Mapping[Modality, Tensor], index: Tensor, encode: Encode | None = None
    ) -> dict[Modality, Tensor]:
        """Compute the proxies of R5."""
        proxies = super().forward(embeddings, index, encode)
        for modality, vectors in embeddings.items():
            moved = (proxies[modality] - vectors).detach()
            self.noise.append((moved.square().mean() / vectors.detach().square().mean()).sqrt().item())
        return proxies


def own_weights(attention: Attention, inputs: Keys) -> Tensor:
    """Return R5's weight of each anchor on itself (b,), the mean over heads and keys j."""
    query = attention.query(inputs.queries[:, 0]).unflatten(1, (attention.heads, -1))
    found = []
    for j in range(inputs.keys.shape[1]):
        if not inputs.mask[:, j].any():
            continue
        key = attention.key(inputs.keys[:, j]).unflatten(1, (attention.heads, -1))
        logits = torch.einsum("ihe,nhe->hin", query, key) * query.shape[2] ** -0.5
        shares = logits.masked_fill(~inputs.mask[:, j], -torch.inf).softmax(2)
        found.append(shares.diagonal(dim1=1, dim2=2).mean(0))
    return torch.stack(found).mean(0)


def measured(data: str) -> tuple[float, float]:
    """Train R5 on the pilot seeds; return the means of `Planned.weight` and `Planned.noise` over all steps."""
    planned = PLANNED[Path(data).stem]
    options = r5_options(planned.options, Ledger((HERE,)))
    assert options is not None
    base = Overrides(NARROW).within(ConfigFile({**open_config(DEFAULT_METHOD).values, "data": data}))
    resolved = resolve(base.values)
    clips = len(load_splits(resolved).train)
    steps = -(-clips // resolved.training.batch)
    config = in_place_of_r5(DataSet(base.values, steps, clips).config(ANCHOR_AWARE, options, STEPS), Observed, planned)
    with tempfile.TemporaryDirectory() as folder:
        for seed in SEEDS:
            train_into(config.seeded(seed), Path(folder) / str(seed))
    return fmean(Observed.weights), fmean(Observed.noise)


if __name__ == "__main__":
    print(measured(sys.argv[1]))
