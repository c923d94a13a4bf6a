"""Part of a recording, from the columns `start` and `end` of a manifest."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

_LONGEST = 1e9  # seconds; later times do not fit into the time stamps of media files


@dataclass(frozen=True, slots=True)
class Segment:
    """Part of a recording.

    Attributes:
        start: beginning, in seconds after the beginning of the file.
        end: end, in seconds after the beginning of the file; infinity for the end of the recording.
    """

    start: float = 0.0
    end: float = math.inf

    @property
    def is_whole(self) -> bool:
        """Whether the segment is the whole recording."""
        return self == WHOLE

    @property
    def length(self) -> float:
        """Length in seconds; infinity for a segment up to the end of the recording."""
        return self.end - self.start

    def __str__(self) -> str:
        """Return the times, such as "10.0-20.0", or "10.0-" without an end; "" for the whole recording."""
        end = "" if self.end == math.inf else str(self.end)
        return "" if self.is_whole else f"{self.start}-{end}"

    def named(self, name: str) -> str:
        """Return `name` with the times, such as "a.mp4@10.0-20.0".

        An empty name and the name of a whole recording are returned unchanged.
        """
        return name if self.is_whole or not name else f"{name}@{self}"


WHOLE = Segment()
"""The whole recording."""


def segment_of(columns: Mapping[str, str]) -> Segment:
    """Return the segment in the columns `start` and `end`. A missing column or an empty cell sets no limit.

    Raises:
        ValueError: a cell is not a number of seconds from 0 to 1e9, or the end is not after the start.
    """
    cells = {name: columns.get(name, "").strip() for name in ("start", "end")}
    if not any(cells.values()):
        return WHOLE
    start, end = _seconds("start", cells["start"], 0.0), _seconds("end", cells["end"], math.inf)
    if end <= start:
        raise ValueError(f"the end '{cells['end'][:80]}' is not after the start '{cells['start'][:80] or 0}'")
    return Segment(start, end)


def _seconds(name: str, cell: str, default: float) -> float:
    try:
        seconds = float(cell) if cell else default
    except ValueError:
        seconds = math.nan
    if cell and not (0 <= seconds <= _LONGEST and cell.isascii() and "_" not in cell):
        raise ValueError(f"the {name} '{cell[:80]}' is not a number of seconds from 0 to {_LONGEST:.0e}")
    return seconds + 0.0  # -0.0 becomes 0.0
