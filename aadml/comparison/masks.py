"""Masks (a, c) that are made when they are asked for: whole, or a few rows at a time."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar, cast

import torch
from torch import Tensor

M = TypeVar("M", Tensor, Tensor | None)
RowsOfMask = Callable[[slice, torch.dtype], Tensor]
"""Gives some rows of a mask, as true and false, or as zeros and ones."""


class Mask(Generic[M]):
    """A field of a dataclass that is set to a mask (a, c), or to what gives its rows, and is read as a mask.

    Args:
        optional: whether the field may be left out, and is None then.
    """

    def __init__(self, *, optional: bool = False) -> None:
        self._optional = optional

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object | None, owner: type) -> M:
        kept = None if instance is None else instance.__dict__[self._name]
        if instance is None and not self._optional:
            raise AttributeError(self._name)  # how a dataclass sees that there is no default
        if callable(kept):
            assert instance is not None
            kept = instance.__dict__[self._name] = kept(slice(None), torch.bool)
        return cast(M, kept)

    def __set__(self, instance: object, value: M | RowsOfMask) -> None:
        instance.__dict__[self._name] = value


@dataclass(frozen=True)
class MaskCodes:
    """Who belongs to whom, by codes of anchors and candidates, from which any rows of the masks are made.

    Attributes:
        groups: (a,) and (c,) codes; what is of another group is a negative.
        clips: (a,) and (c,) codes that make a positive; None where the group does.
        itself: (a,) the column that holds the anchor itself, which is neither, or -1; None where there are none.
        sides: (a,) and (c,) modalities, for the mask `within`; None where nobody asks.
    """

    groups: tuple[Tensor, Tensor]
    clips: tuple[Tensor, Tensor] | None = None
    itself: Tensor | None = None
    sides: tuple[Tensor, Tensor] | None = None
    _prepared: dict[tuple[str, torch.dtype], tuple[Tensor, Tensor]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )  # codes as they are compared, kept from one block of rows to the next

    def leave_nobody_out(self) -> bool:
        """Say whether what is no positive is a negative."""
        return self.clips is None and self.itself is None

    def positives(self, rows: slice, kind: torch.dtype = torch.bool) -> Tensor:
        """Mark the positives of some anchors (r, c)."""
        same = self._compared(torch.eq, "groups" if self.clips is None else "clips", rows, kind)
        if self.itself is None or not same.numel():
            return same
        column = self.itself[rows, None]
        place = column.clamp_min(0)
        return same.scatter_(1, place, same.gather(1, place) * (column < 0))

    def negatives(self, rows: slice, kind: torch.dtype = torch.bool) -> Tensor:
        """Mark the negatives of some anchors (r, c)."""
        return self._compared(torch.ne, "groups", rows, kind)

    def within(self, rows: slice, kind: torch.dtype = torch.bool) -> Tensor:
        """Mark the candidates of the anchors' own modality (r, c)."""
        return self._compared(torch.eq, "sides", rows, kind)

    def _compared(self, compare: Callable[..., Tensor], codes: str, rows: slice, kind: torch.dtype) -> Tensor:
        """Compare codes, as zeros and ones of the type of scores: several times as fast to make and to use as bits."""
        made = (codes, kind) in self._prepared
        one, other = self._prepared[codes, kind] if made else _as_numbers(getattr(self, codes), kind)
        if not made and not torch.compiler.is_compiling():
            self._prepared[codes, kind] = one, other
        one = one[rows]
        return compare(one, other, out=torch.empty(len(one), other.shape[1], dtype=kind, device=one.device))


def _as_numbers(codes: tuple[Tensor, Tensor], kind: torch.dtype) -> tuple[Tensor, Tensor]:
    """Give codes (a, 1) and (1, c) for a comparison, on a processor as scores if their type holds them exactly."""
    one, other = codes[0][:, None], codes[1][None, :]
    if kind != torch.bool and one.device.type == "cpu" and _are_small(codes):
        return one.to(kind), other.to(kind)
    return one, other


def _are_small(codes: tuple[Tensor, Tensor]) -> bool:
    """Say whether codes are whole numbers that every type of scores holds exactly."""
    if torch.compiler.is_compiling():  # what values are is not known there
        return False
    whole = not any(one.is_floating_point() for one in codes)
    return whole and all(not one.numel() or int(one.abs().max()) < 1 << 24 for one in codes)


def rows_of(mask: Tensor | RowsOfMask, rows: slice, kind: torch.dtype) -> Tensor:
    """Give some rows (r, c) of a mask, or of what gives them, as zeros and ones; a mask (c,) is that of every row."""
    if not isinstance(mask, Tensor):
        return mask(rows, kind)
    bits = mask[rows] if mask.ndim == 2 else mask.expand(rows.stop - rows.start, -1)
    return bits.view(torch.uint8).to(kind)
