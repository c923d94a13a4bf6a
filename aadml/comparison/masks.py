"""Masks (a, c) that are computed on access: complete, or a few rows at a time."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar, cast

import torch
from torch import Tensor

M = TypeVar("M", Tensor, Tensor | None)
FEW = 4
"""Positives are read by column if no anchor has more than 1 / FEW of the candidates as positives."""
RowsOfMask = Callable[[slice, torch.dtype], Tensor]
"""Function that returns some rows of a mask as booleans, or as zeros and ones."""


class Mask(Generic[M]):
    """Field of a dataclass for a mask (a, c), which a function of rows may compute on first access.

    Args:
        optional: whether the default of the field is None.
    """

    def __init__(self, *, optional: bool = False) -> None:
        self._optional = optional

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object | None, owner: type) -> M:
        if instance is None:
            if not self._optional:
                raise AttributeError(self._name)  # for a dataclass, this is a field without a default
            return cast(M, None)
        value: Any = stored(instance, self._name)
        if callable(value):
            value = instance.__dict__[f"_{self._name}"] = value(slice(None), torch.bool)
        return cast(M, value)

    def __set__(self, instance: object, value: M | RowsOfMask) -> None:
        instance.__dict__[f"_{self._name}"] = value


def stored(instance: object, name: str) -> Tensor | RowsOfMask | None:
    """Return a mask of a dataclass, or the function of rows if the mask is not computed yet.

    The value has another name than its field, because `torch.compile` of torch 2.11 calls the descriptor of the field
    without end.
    """
    value: Tensor | RowsOfMask | None = instance.__dict__[f"_{name}"]
    return value


@dataclass(frozen=True)
class MaskCodes:
    """Codes of anchors and candidates, from which any rows of the masks are computed.

    Attributes:
        groups: (a,) and (c,) codes; candidates with a code unlike the anchor's are negatives.
        clips: (a,) and (c,) codes; candidates with the anchor's code are positives. None uses the groups.
        itself: (a,) column of the anchor itself (neither a positive nor a negative); -1 if the anchor is not a
            candidate. None if no anchor is a candidate.
        sides: (a,) and (c,) modalities for the mask `within`; None if this mask is not needed.
    """

    groups: tuple[Tensor, Tensor]
    clips: tuple[Tensor, Tensor] | None = None
    itself: Tensor | None = None
    sides: tuple[Tensor, Tensor] | None = None
    _prepared: dict[str, "_Ranks"] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Cache of sorted codes for all blocks of rows."""

    def cover_all_pairs(self) -> bool:
        """Return True only if every candidate that is not a positive is a negative.

        False may also mean that the codes were not compared.
        """
        return self.itself is None and (self.clips is None or self._clips_are_groups())

    def _clips_are_groups(self) -> bool:
        """Return whether the group of each anchor has no candidates besides those of its clip; False if not cheap."""
        if torch.compiler.is_compiling() or self.groups[0].device.type != "cpu":
            return False
        groups, clips = self._ranks("groups"), self._ranks("clips")
        return torch.equal(groups.stop - groups.start, clips.stop - clips.start)

    def pair_only_partners(self) -> bool:
        """Return True only if candidate i is the only positive of anchor i, and all other candidates are negatives.

        False may also mean that the codes were not compared.
        """
        if torch.compiler.is_compiling() or self.groups[0].device.type != "cpu" or self.itself is not None:
            return False
        both = self.groups, self.clips or self.groups  # of distinct groups, no pair is both positive and negative
        equal = all(left is right or torch.equal(left, right) for left, right in both)
        return equal and bool((self.groups[0].sort().values.diff() > 0).all())

    def positives(self, rows: slice, kind: torch.dtype = torch.bool) -> Tensor:
        """Return rows (r, c) of the mask of positives, as type `kind`."""
        same = self._compared(torch.eq, "groups" if self.clips is None else "clips", rows, kind)
        if self.itself is None or not same.numel():
            return same
        column = self.itself[rows, None]
        index = column.clamp_min(0)
        return same.scatter_(1, index, same.gather(1, index) * (column < 0))

    def negatives(self, rows: slice, kind: torch.dtype = torch.bool) -> Tensor:
        """Return rows (r, c) of the mask of negatives, as type `kind`."""
        return self._compared(torch.ne, "groups", rows, kind)

    def within(self, rows: slice, kind: torch.dtype = torch.bool) -> Tensor:
        """Return rows (r, c) of the mask of candidates of the anchor's own modality, as type `kind`."""
        return self._compared(torch.eq, "sides", rows, kind)

    def _compared(self, compare: Callable[..., Tensor], codes: str, rows: slice, kind: torch.dtype) -> Tensor:
        """Compare the codes of the anchors in `rows` with the codes of all candidates.

        On a CPU, a comparison of floats with a result of floats is several times as fast as a comparison of
        integers with a result of booleans.

        Args:
            compare: torch.eq or torch.ne.
            codes: name of the attribute that holds the codes.
            rows: anchors to compare.
            kind: type of the result.

        Returns:
            (r, c) zeros and ones.
        """
        left, right = getattr(self, codes)
        if torch.compiler.is_compiling():  # the compiler fuses the comparison with its use
            return compare(left[rows, None], right).to(kind)
        if kind != torch.bool and left.device.type == "cpu":
            left, right = (number.to(kind) for number in self._ranks(codes).numbers)
        left = left[rows, None]
        return compare(left, right, out=torch.empty(len(left), len(right), dtype=kind, device=left.device))

    def few_positives(self, rows: slice, kind: torch.dtype) -> tuple[Tensor, Tensor] | None:
        """Return columns that contain all positives of each anchor in `rows`, and marks of the positives.

        Returns:
            Columns (r, k) and marks (r, k), 1 for a positive and 0 for another column. None in compiled code, for
            codes that are not on a CPU, or if any anchor has the same code as more than c / FEW candidates.
        """
        codes = "groups" if self.clips is None else "clips"
        if torch.compiler.is_compiling() or self.groups[0].device.type != "cpu":
            return None
        ranks = self._ranks(codes)
        if ranks.most * FEW > len(ranks.order):
            return None
        place = ranks.start[rows, None] + torch.arange(ranks.most)
        last = len(ranks.order) - 1
        columns = ranks.order.expand(len(place), -1).gather(1, place.clamp_max_(last))  # faster than indexing
        size, room = (ranks.stop - ranks.start)[rows, None].to(kind), torch.empty(columns.shape, dtype=kind)
        present = torch.lt(torch.arange(ranks.most, dtype=kind), size, out=room)
        return columns, present if self.itself is None else present.mul_(columns != self.itself[rows, None])

    def _ranks(self, codes: str) -> "_Ranks":
        ranks = self._prepared.get(codes)
        if ranks is None:
            ranks = _Ranks.of(*getattr(self, codes))
            self._prepared[codes] = ranks
        return ranks


@dataclass(frozen=True)
class _Ranks:
    """Ranges of equal codes among the sorted codes of the candidates.

    Attributes:
        order: (c,) candidates in the order of their codes.
        start, stop: (a,) range of the code of each anchor in that order, empty for a code of no candidate.
        codes: (c,) codes of the candidates, in order.
        right: (c,) codes of the candidates, unsorted; None if these are the codes of the anchors.
    """

    order: Tensor
    start: Tensor
    stop: Tensor
    codes: Tensor
    right: Tensor | None

    @classmethod
    def of(cls, left: Tensor, right: Tensor) -> "_Ranks":
        codes, order = right.sort(stable=True)
        return cls(order, *_range(codes, left), codes, None if left is right else right)

    @cached_property
    def numbers(self) -> tuple[Tensor, Tensor]:
        """Numbers (a,) and (c,) up to 2 c; two numbers are equal if and only if their codes are equal."""
        start, stop = (self.start, self.stop) if self.right is None else _range(self.codes, self.right)
        return self.start + self.stop, start + stop

    @cached_property
    def most(self) -> int:
        """Maximum over all anchors of the number of candidates with the anchor's code; 0 without anchors."""
        return int((self.stop - self.start).max()) if len(self.start) else 0


def _range(order: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
    """Return the positions at which the range of each code starts and stops among sorted codes."""
    codes = codes.to(order.dtype)
    return torch.searchsorted(order, codes), torch.searchsorted(order, codes, right=True)


def rows_of(mask: Tensor | RowsOfMask, rows: slice, kind: torch.dtype) -> Tensor:
    """Return rows (r, c) of a mask as type `kind`.

    The mask is a tensor (a, c), a tensor (c,) that applies to every anchor, or a function of rows.
    """
    if not isinstance(mask, Tensor):
        return mask(rows, kind)
    bits = mask[rows] if mask.ndim == 2 else mask.expand(rows.stop - rows.start, -1)
    return (bits if torch.compiler.is_compiling() else bits.view(torch.uint8)).to(kind)
