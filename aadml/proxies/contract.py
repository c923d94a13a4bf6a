"""Contract of proxies, which represent the clips of a batch in a loss."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from aadml.comparison import Comparison
from aadml.comparison.features import Modality

Encode = Callable[[Modality, Tensor], Tensor]


@dataclass(frozen=True)
class TrainingSet:
    """A training set of n clips at the start of an epoch.

    Attributes:
        bank: modality -> (n, d) embeddings, computed in evaluation mode.
        labels: (n,) classes, with the same codes as the argument `groups` of `Extending.store`; None for data without
            classes, such as audio-text pairs.
        inputs: modality -> (n, f) features, for graphs in input space.
        generator: generator of random draws.
        groups: (n,) codes of clips; captions of one clip have the same code. By default every row has its own code.
    """

    bank: Mapping[Modality, Tensor]
    labels: Tensor | None = None
    inputs: Mapping[Modality, Tensor] | None = None
    generator: torch.Generator | None = None
    groups: Tensor | None = None


@dataclass(frozen=True)
class Direction:
    """Direction of the comparison of the b clips of a batch.

    Attributes:
        rows: modalities of the anchors.
        columns: modalities of the candidates.
        index: (b,) rows of the batch in the training set.
        by_id: whether an anchor's partner is its only positive.
        generator: generator of random draws.
    """

    rows: Sequence[Modality]
    columns: Sequence[Modality]
    index: Tensor
    by_id: bool
    generator: torch.Generator


class Proxy(Protocol):
    """Module that represents the clips of a batch in a loss; `Unchanged` is a base class.

    Attributes:
        aa_on: sides of a comparison that `Objective` replaces by proxies: "all", "anchor" or "reference".
        aa_mix: share of the loss that `Objective` computes on proxies.
    """

    aa_on: str
    aa_mix: float

    def check_size(self, count: int, labels: Tensor | None, /) -> None:
        """Raise InputError if `count` training clips with `labels` (count,) are too few for the proxy."""

    def refresh(self, train: TrainingSet, /) -> None:
        """Read the training set; called before each epoch."""

    def remember(self, bank: Mapping[Modality, Tensor], /) -> None:
        """Store training embeddings (n, d) for `from_bank`."""

    def __call__(
        self, embeddings: Mapping[Modality, Tensor], index: Tensor, encode: Encode | None = None, /
    ) -> dict[Modality, Tensor]:
        """Compute the proxies of a batch.

        Args:
            embeddings: modality -> (b, d); row i of all modalities is one clip.
            index: (b,) rows of the batch in the training set.
            encode: (modality, rows (m,) of the training set) -> (m, d), for live neighbors; rows are distinct.

        Returns:
            modality -> (b, d).
        """
        ...

    def parameters(self) -> Iterator[nn.Parameter]:
        """Yield the trainable parameters."""
        ...

    def from_bank(self, vectors: Tensor, modality: Modality, /, *, k: int | None = None) -> Tensor:
        """Compute the proxies (m, d) of new items `vectors` (m, d) from k neighbors in the bank, without labels.

        By default, k is the number of neighbors in training.
        """
        ...


@runtime_checkable
class Extending(Proxy, Protocol):
    """Proxy that leaves embeddings unchanged and appends candidates to a comparison."""

    def extend(self, comparison: Comparison, direction: Direction, /) -> Comparison:
        """Append candidates to the candidates of a batch.

        Args:
            comparison: comparison of anchors (a, d) with candidates (c, d). The anchors are b vectors of each modality
                in `direction.rows`.
            direction: direction of the comparison.

        Returns:
            The comparison with the same anchors; the candidates of the batch precede the appended candidates.
        """
        ...

    def store(self, embeddings: Mapping[Modality, Tensor], groups: Tensor, index: Tensor, /) -> None:
        """Store a batch after its comparison.

        Args:
            embeddings: modality -> (b, d).
            groups: (b,) classes, or codes of clips.
            index: (b,) rows of the batch in the training set.
        """


class ProxyFactory(Protocol):
    """Function or class that builds a proxy for embeddings of some dimension and modalities."""

    def __call__(self, dimension: int, modalities: tuple[Modality, ...], /, **options: Any) -> Proxy:
        """Build a proxy for embeddings (b, dimension) of `modalities`; `options` are the options of the proxy."""
        ...
