"""Matching: the loss of a batch of pairs, with optional proxies, a bank, and neighbors as positives."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor
from torch.nn import functional as F

from aadml.comparison.clips import Clips
from aadml.comparison.features import Matrix, Modality
from aadml.comparison.stored_rows import BLOCK
from aadml.data.inspection.column_statistics import row_hashes
from aadml.feature_extraction.ground.errors import InputError
from aadml.losses import TRAINS_WITHOUT_NEGATIVES, WEIGHS_POSITIVES
from aadml.methods.pairwise.learned_scale import LearnedScale
from aadml.methods.pairwise.teacher import dcca_space
from aadml.methods.training.learner import Batch, on_device
from aadml.objective import Embedded
from aadml.objective.composition import LossSection, ProxySection, SelectionSection, Space, compose_objective
from aadml.objective.embedded import Bank
from aadml.objective.left_out import is_rebuilding
from aadml.objective.neighbor_positives import NeighborOptions, NeighborPositives
from aadml.objective.objective import Directions
from aadml.proxies.contract import Extending, TrainingSet

Encode = Callable[[Any, Modality], Tensor]
"""(features of some clips, modality) -> their vectors (b, d)."""


class Matching(LearnedScale):
    """The loss of a batch of pairs; see `PairLearner` for the options.

    If the loss has a temperature, the temperature is learned. Clips with equal ids, or equal features in some
    modality, are not negatives of each other.

    Args:
        space: space of the embeddings.
        loss: the `loss` section; the next four arguments are sections too.
        selection: selection of the pairs in the loss.
        proxy: proxies that replace clips in training.
        directions: modalities of anchors and candidates.
        neighbors: positives besides a clip's partner.
        seed: seed of the DCCA that defines a space of neighbors.

    Raises:
        InputError: a loss whose temperature cannot be learned, a loss or proxy that does not support weights of
            neighbors, a loss without a gradient if all clips are positives, proxies in place of a bank's candidates,
            neighbors in the space of a DCCA without exactly two modalities, or a `space` without a modality or
            property required by the sections.
    """

    __call__: Callable[..., dict[str, Tensor]]

    def __init__(
        self,
        space: Space,
        *,
        loss: LossSection,
        selection: SelectionSection,
        proxy: ProxySection,
        directions: Directions,
        neighbors: NeighborOptions,
        seed: int,
    ) -> None:
        super().__init__()
        self.objective = compose_objective(space, loss=loss, selection=selection, proxy=proxy, directions=directions)
        start = getattr(loss.options, "temperature", None)
        if start is not None:
            self.learn_scale(self.objective, start)
        if not is_rebuilding():
            _check(neighbors, loss, self.objective.proxy)
        self._taught = neighbors.positives != "none" and neighbors.space == "dcca"
        if self._taught and len(space.modalities) != 2:
            raise InputError(
                f"neighbors.space is dcca, which needs exactly two modalities, but the clips have "
                f"{', '.join(space.modalities)}; set neighbors.space to embedding"
            )
        teacher = "determines neighbors by a teacher that is trained once (neighbors.space: dcca)"
        self.needs_same_texts = teacher if self._taught else ""
        self.banked = neighbors.candidates == "bank"
        self.neighbors = None if neighbors.positives == "none" else NeighborPositives(space.modalities, neighbors)
        # whether the loss depends only on the batch, not on bank, proxies or neighbors
        self.of_batch_alone = self.objective.proxy is None and self.neighbors is None and not self.banked
        self._seed, self._teacher = seed, dict[Modality, Tensor]()
        self._groups = torch.empty(0, dtype=torch.int64)
        self._bank: Bank | None = None
        self._train: Clips | None = None

    def check_clips(self, train: Clips) -> None:
        """Raise InputError if there are too few training clips for the number of neighbors in the options."""
        if self.neighbors is not None:
            self.neighbors.check_size(len(train))
        self.objective.check_size(len(train), None)

    def refresh(self, train: Clips, embed_all: Callable[[Clips, Modality], Tensor]) -> None:
        """Refresh bank, neighbors and proxies for an epoch, as far as the options need these.

        Duplicates are found in the first epoch. If the texts are redrawn, duplicates are found in every epoch.

        Args:
            train: the training clips.
            embed_all: (clips, modality) -> (n, d), in evaluation mode.

        Raises:
            InputError: neighbors in the space of a DCCA are needed, but there are several workers.
        """
        if self._taught and self._train is not train:
            self._teacher = dcca_space(train, seed=self._seed)
        self._train = train
        device = train.labels.device
        if len(self._groups) != len(train) or train.drawn_by is not None:
            self._groups = same_clips(train).to(device)
        proxy = self.objective.proxy
        if self.of_batch_alone:
            return
        bank = {m: embed_all(train, m).to(device) for m in train.modalities}
        inputs = train.matrices
        generator = torch.Generator().manual_seed(torch.initial_seed() % 2**62)
        if self.neighbors is not None:
            self.neighbors.refresh(bank, self._teacher if self._taught else inputs, self._groups, generator)
        if proxy is not None:
            proxy.refresh(TrainingSet(bank, None, inputs, generator, self._groups))
        self._bank = Bank(bank, self._groups) if self.banked else None

    def forward(self, vectors: Mapping[Modality, Tensor], batch: Batch, encode: Encode) -> dict[str, Tensor]:
        """Compute the loss of a batch.

        Args:
            vectors: modality -> (b, d).
            batch: batch of the vectors.
            encode: encoder for proxies with live neighbors.

        Returns:
            "loss", "active", and "scale" if the temperature is learned.
        """
        scale = self.bounded_scale()
        index = batch.index.to(self._groups.device)
        columns = torch.arange(len(self._groups), device=index.device) if self.banked else index
        neighbors = self.neighbors
        near = None if neighbors is None else {m: neighbors.among(index, m, columns) for m in vectors}
        embedded = Embedded(
            vectors, self._groups[index], index, "id", neighbors=near, bank=self._bank, present=batch.present
        )

        def encoded(modality: Modality, rows: Tensor) -> Tensor:
            assert self._train is not None
            return encode(on_device(self._train[modality], rows, rows.device), modality)

        return {**self.objective(embedded, batch.generator, encoded), **scale}


def on_sphere(vectors: Tensor) -> Tensor:
    """Scale vectors (b, d) to length 1."""
    return F.normalize(vectors, dim=1)


def _hashes(features: Matrix) -> NDArray[np.bytes_]:
    return np.array([key for rows in features.split(BLOCK) for key in row_hashes(rows.cpu().numpy())], dtype="S16")


def same_clips(clips: Clips) -> Tensor:
    """Return the group (n,) of each clip; clips with equal ids, or equal features in a modality, share a group."""
    count = len(clips)
    owners = [clips.rows(m).cpu().numpy() for m in clips.modalities]
    codes = [
        np.unique(_hashes(clips.vectors(m))[rows], return_inverse=True)[1]
        for m, rows in zip(clips.modalities, owners, strict=True)
    ]
    owners.append(np.arange(count))
    codes.append(np.unique(np.array(clips.ids, dtype=object), return_inverse=True)[1])
    nodes = np.concatenate([code.reshape(-1) + number * count for number, code in enumerate(codes)])
    clip = np.concatenate(owners)
    size = count * (len(codes) + 1)  # a node for each clip, each distinct vector of each modality, and each id
    edges = coo_array((np.ones(len(nodes), dtype=bool), (clip, count + nodes)), shape=(size, size))
    groups = connected_components(edges, directed=False)[1][:count]
    return torch.from_numpy(groups.astype(np.int64))


def _check(neighbors: NeighborOptions, loss: LossSection, proxy: Any) -> None:
    every = neighbors.positives == "all"
    losses = TRAINS_WITHOUT_NEGATIVES if every else WEIGHS_POSITIVES
    # equal weights are refused if all clips are positives
    equal = "" if every else "set neighbors.weights to equal, or "
    if not neighbors.alike and loss.name not in WEIGHS_POSITIVES:
        raise InputError(
            f"neighbors.weights is {neighbors.weights}, but the loss {loss.name} weights all positives equally; {equal}"
            f"choose a loss from {', '.join(losses)}"
        )
    shared_softmax = getattr(loss.options, "multi_positive", None)
    if every and loss.name not in losses and not shared_softmax:
        softmax = "" if shared_softmax is None else ", or set loss.multi_positive to true"
        raise InputError(
            f"neighbors.positives is all, which leaves no negatives, but the loss {loss.name} compares each positive "
            f"only with negatives; choose a loss from {', '.join(losses)}{softmax}"
        )
    if not neighbors.alike and isinstance(proxy, Extending):
        raise InputError(
            f"neighbors.weights is {neighbors.weights}, but the proxy appends candidates, which have no weights; "
            f"{equal}choose another proxy"
        )
    if neighbors.candidates == "bank" and isinstance(proxy, Extending):
        raise InputError(
            "with neighbors.candidates=bank, all training clips are candidates, but the proxy appends further "
            "candidates; choose another proxy, or set neighbors.candidates to batch"
        )
    if neighbors.candidates == "bank" and getattr(proxy, "aa_on", "anchor") != "anchor":
        raise InputError(
            f"proxy.aa_on is {proxy.aa_on}, but with neighbors.candidates=bank, proxies replace only anchors; set "
            "proxy.aa_on to anchor"
        )
