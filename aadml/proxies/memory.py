"""Cross-batch memory (XBM; Wang et al., Cross-batch memory for embedding learning, CVPR 2020).

A clip stands for itself, but anchors also meet candidates that are not in the batch: embeddings remembered of the
training set, held fixed. This is the control of every proxy with a bank: it says what a bank alone gives.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from aadml.comparison import Comparison
from aadml.comparison.features import Modality
from aadml.comparison.options import Count
from aadml.feature_extraction.ground.errors import InputError
from aadml.proxies.unchanged import Unchanged


@dataclass(frozen=True)
class Remembered:
    """Embeddings of m clips.

    Attributes:
        vectors: modality -> (m, d), without gradient.
        groups: (m,) classes, or codes of clips.
        index: (m,) rows of the training set.
    """

    vectors: Mapping[Modality, Tensor]
    groups: Tensor
    index: Tensor

    def take(self, rows: Tensor | slice) -> "Remembered":
        """Return some of the clips."""
        return Remembered({m: v[rows] for m, v in self.vectors.items()}, self.groups[rows], self.index[rows])


class Memory(Unchanged):
    """Let anchors meet, beside the candidates of the batch, those that are remembered of the training set.

        candidates_i = { y_j : j in the batch }  and  { b_j : j in memory, not in the batch },   b without gradient

    Of one class is a positive, where pairs go by id none that is remembered; of another a negative. A clip of the batch
    is there once, as it is embedded now.

    Args:
        dimension: d of the embeddings.
        modalities: that will be seen.
        size: "all": the whole training set as it was embedded when the epoch began, which is the bank of the
            anchor-aware proxy; or how many of the last embeddings, those of the batch among them, a queue holds (the
            paper). A queue begins each epoch with clips drawn by lot, embedded anew.
        batch: whether candidates of the batch are "live", with gradient, or "fixed" as those remembered are (the
            reading of pytorch-metric-learning, which moves anchors alone).
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

    def refresh(
        self,
        bank: Mapping[Modality, Tensor],
        labels: Tensor | None = None,
        inputs: Mapping[Modality, Tensor] | None = None,
        generator: torch.Generator | None = None,
        *,
        groups: Tensor | None = None,
    ) -> None:
        """Remember the training set, or clips drawn by `generator` as many as a queue holds; `inputs` are not used.

        Raises:
            InputError: a queue without a generator.
        """
        device = next(iter(bank.values())).device
        index = torch.arange(len(next(iter(bank.values()))), device=device)
        codes = index if labels is None and groups is None else groups if labels is None else labels
        assert codes is not None
        whole = Remembered({m: values.detach() for m, values in bank.items()}, codes.to(device), index)
        if self.size == "all":
            self.remembered = whole
            return
        if generator is None:
            raise InputError("proxy.size: a queue begins with clips drawn by lot and needs a generator")
        drawn = torch.randperm(len(index), generator=generator, device=generator.device)[: self.size]
        self.remembered = whole.take(drawn.to(device))

    def store(self, embeddings: Mapping[Modality, Tensor], groups: Tensor, index: Tensor) -> None:
        """Append a batch to a queue, whose oldest embeddings leave it; the whole training set stays as it is."""
        if self.size == "all":
            return
        new = Remembered({m: values.detach() for m, values in embeddings.items()}, groups, index)
        old = self.remembered or new.take(slice(0))
        parts = {m: torch.cat([old.vectors[m].to(values.dtype), values]) for m, values in new.vectors.items()}
        both = Remembered(parts, torch.cat([old.groups, groups]), torch.cat([old.index, index]))
        self.remembered = both.take(slice(-int(self.size), None))

    def extend(
        self,
        comparison: Comparison,
        rows: Sequence[Modality],
        columns: Sequence[Modality],
        index: Tensor,
        *,
        by_id: bool,
        generator: torch.Generator,
    ) -> Comparison:
        """Append what is remembered to the candidates of a batch; nothing is drawn.

        Returns:
            The comparison with c + m candidates a modality of `columns`, those of the batch first.

        Raises:
            InputError: a comparison by scores that are not of two vectors, or guided ones; or no refresh yet.
        """
        if comparison.relevance is not None or comparison.guides:
            raise InputError("xbm: remembered embeddings have neither relevance scores nor guides of a selection")
        past = self._past(len(index))
        if self.batch == "fixed":
            comparison = replace(comparison, candidates=comparison.candidates.detach())
        if past is None:
            return comparison
        same = comparison.need("anchor_class", "xbm")[:, None] == past.groups
        there = ~torch.isin(past.index, index)
        within = torch.tensor([[row == column for column in columns] for row in rows], device=same.device)
        within = within.repeat_interleave(len(index), 0).repeat_interleave(len(past.index), 1)
        kept = comparison.candidates
        candidates = [past.vectors[modality].to(kept.dtype) for modality in columns]
        times = len(columns)
        return replace(
            comparison,
            candidates=torch.cat([kept, *candidates]),
            positives=_beside(comparison.positives, same & there & (not by_id), times),
            negatives=_beside(comparison.negatives, ~same & there, times),
            within=torch.cat([comparison.need("within", "xbm"), within], 1),
            candidate_features=None,
            candidate_class=torch.cat([comparison.need("candidate_class", "xbm"), past.groups.repeat(times)]),
        )

    def _past(self, batch: int) -> Remembered | None:
        """Give what is remembered beside a batch, None where that is nothing."""
        if self.size == "all":
            if self.remembered is None:
                raise InputError("proxy: nothing is remembered yet; refresh the memory before each epoch")
            return self.remembered
        room = int(self.size) - batch
        if self.remembered is None or room <= 0:
            return None
        return self.remembered.take(slice(-room, None))


def _beside(mask: Tensor, remembered: Tensor, times: int) -> Tensor:
    """Append to a mask (a, c) one of what is remembered (a, m), once for each modality of the candidates."""
    return torch.cat([mask, remembered.repeat(1, times)], 1)
