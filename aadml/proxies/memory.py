"""Cross-batch memory (XBM; Wang et al., CVPR 2020).

A clip represents itself, and anchors have additional candidates: stored embeddings of training clips outside the batch,
without gradient. The memory is the control for proxies with a bank: it measures the effect of the bank itself.

Reference: Wang et al., Cross-batch memory for embedding learning, CVPR 2020, https://doi.org/10.1109/CVPR42600.2020.00642
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from aadml.comparison import Comparison
from aadml.comparison.features import Modality
from aadml.comparison.options import Count
from aadml.feature_extraction.ground.errors import InputError
from aadml.proxies.contract import Direction, TrainingSet
from aadml.proxies.unchanged import Unchanged


@dataclass(frozen=True)
class Remembered:
    """Stored embeddings of m clips.

    Attributes:
        vectors: modality -> (m, d), without gradient.
        groups: (m,) classes, or codes of clips.
        index: (m,) rows of the training set.
    """

    vectors: Mapping[Modality, Tensor]
    groups: Tensor
    index: Tensor

    def take(self, rows: Tensor | slice) -> "Remembered":
        """Return the embeddings of the clips `rows`."""
        return Remembered({m: v[rows] for m, v in self.vectors.items()}, self.groups[rows], self.index[rows])


class Memory(Unchanged):
    """Proxy that adds candidates: stored embeddings of training clips.

        candidates_i = { y_j : j in the batch }  and  { b_j : j in memory, not in the batch },   b without gradient

    A stored clip of the anchor's class is a positive. If only an anchor's partner is a positive, the stored clip is
    ignored instead. Stored clips of other classes are negatives. A clip of the batch is a candidate once, with its
    current embedding.

    Args:
        dimension: d of the embeddings.
        modalities: modalities of the embeddings.
        size: "all" for the training set as embedded at the start of the epoch, like the bank of the anchor-aware
            proxy; or, as Wang et al. do, the length of a queue of the last embeddings. The queue includes the
            embeddings of the batch. At the start of an epoch, the queue contains random clips, which are embedded
            again.
        batch: "live" for candidates of the batch with gradient; or "fixed" for candidates of the batch without
            gradient, as in pytorch-metric-learning. With "fixed", only anchors receive gradients.
    """

    prefix = "xbm-"

    def __init__(
        self,
        dimension: int,
        modalities: tuple[Modality, ...],
        *,
        size: Count | Literal["all"] = "all",
        batch: Literal["live", "fixed"] = "live",
    ) -> None:
        super().__init__(dimension, modalities)
        self.size, self.batch = size, batch
        self.remembered: Remembered | None = None

    def refresh(self, train: TrainingSet) -> None:
        """Store the training set for size "all"; otherwise store a queue of random clips of the training set.

        `train.generator` draws the clips of the queue.

        Raises:
            InputError: a queue must be drawn, and `train.generator` is None.
        """
        first = next(iter(train.bank.values()))
        index = torch.arange(len(first), device=first.device)
        codes = next((codes for codes in (train.labels, train.groups) if codes is not None), index)
        everything = Remembered({m: v.detach() for m, v in train.bank.items()}, codes.to(first.device), index)
        if self.size == "all":
            self.remembered = everything
            return
        if train.generator is None:
            raise InputError(
                "proxy.size: a queue begins with random clips, but the training set has no generator; pass a generator"
            )
        drawn = torch.randperm(len(index), generator=train.generator, device=train.generator.device)[: self.size]
        self.remembered = everything.take(drawn.to(first.device))

    def store(self, embeddings: Mapping[Modality, Tensor], groups: Tensor, index: Tensor) -> None:
        """Append a batch to the queue and remove the oldest embeddings; do nothing for size "all".

        See `Extending.store` for the arguments.
        """
        if self.size == "all":
            return
        new = Remembered({m: values.detach() for m, values in embeddings.items()}, groups, index)
        old = self.remembered or new.take(slice(0))
        parts = {m: torch.cat([old.vectors[m].to(values.dtype), values]) for m, values in new.vectors.items()}
        both = Remembered(parts, torch.cat([old.groups, groups]), torch.cat([old.index, index]))
        self.remembered = both.take(slice(-int(self.size), None))

    def extend(self, comparison: Comparison, direction: Direction) -> Comparison:
        """Append the stored embeddings to the candidates of a batch.

        Returns:
            The comparison with the c candidates of the batch, followed by m stored candidates for each of
            `direction.columns`.

        Raises:
            InputError: a comparison with relevance scores or guides, a comparison without classes or `within`, or a
                missing call of `refresh` for size "all".
        """
        if comparison.relevance is not None or comparison.guides:
            raise InputError(
                "xbm: the comparison has relevance scores or guides of a selection, which stored embeddings lack; "
                "choose another proxy"
            )
        index, columns = direction.index, direction.columns
        past = self._past(len(index))
        if self.batch == "fixed":
            comparison = replace(comparison, candidates=comparison.candidates.detach())
        if past is None:
            return comparison
        same = comparison.need("anchor_class", "xbm")[:, None] == past.groups
        outside = ~torch.isin(past.index, index)
        within = torch.tensor([[row == column for column in columns] for row in direction.rows], device=same.device)
        within = within.repeat_interleave(len(index), 0).repeat_interleave(len(past.index), 1)
        candidates = [past.vectors[modality].to(comparison.candidates.dtype) for modality in columns]
        times = len(columns)
        return replace(
            comparison,
            candidates=torch.cat([comparison.candidates, *candidates]),
            positives=_beside(comparison.positives, same & outside & (not direction.by_id), times),
            negatives=_beside(comparison.negatives, ~same & outside, times),
            within=torch.cat([comparison.need("within", "xbm"), within], 1),
            candidate_features=None,
            candidate_class=torch.cat([comparison.need("candidate_class", "xbm"), past.groups.repeat(times)]),
        )

    def _past(self, batch: int) -> Remembered | None:
        """Return the stored clips to compare with a batch of `batch` clips; None if there are no such clips.

        With size "all", all stored clips are returned. Otherwise, at most the last `size` - `batch` stored clips
        are returned.
        """
        if self.size == "all":
            if self.remembered is None:
                raise InputError("proxy: the memory is empty; call refresh before each epoch")
            return self.remembered
        room = int(self.size) - batch
        if self.remembered is None or room <= 0:
            return None
        return self.remembered.take(slice(-room, None))


def _beside(mask: Tensor, remembered: Tensor, times: int) -> Tensor:
    return torch.cat([mask, remembered.repeat(1, times)], 1)
