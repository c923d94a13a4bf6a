"""Windows of long recordings: clips of equal length at a fixed step, in place of the rows of a manifest."""

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import av

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.segment import Segment
from aadml.feature_extraction.ground.worker_pool import Finished, WorkerPool, processors
from aadml.feature_extraction.ground.worker_process import Conditions
from aadml.feature_extraction.manifest import Manifest, Row, with_recordings
from aadml.feature_extraction.media.decoding import recording_seconds
from aadml.feature_extraction.media.inputs import MediaFailure

_SHORTEST = 0.5  # share of the length; a shorter last window is omitted
_TAIL = 0.05  # share of the length that may follow the last window, since encoders pad recordings
_MOST = 1_000_000  # windows of a recording; a recording with more windows has an invalid length
_FORM = re.compile(r"(\d+(?:\.\d+)?)s?(?:/(\d+(?:\.\d+)?)s?)?", re.ASCII)
_WINDOW = re.compile(r"(.+)@(\d+\.\d+)-(\d+\.\d+)", re.DOTALL | re.ASCII)
_PROCESSOR_SECONDS = 600.0  # to find the length of a recording whose header does not state one


@dataclass(frozen=True)
class Windows:
    """Division of recordings into clips.

    Attributes:
        length: seconds of a window.
        step: seconds from the beginning of a window to the beginning of the next window.
    """

    length: float
    step: float

    def of(self, recording: Segment) -> Iterator[Segment]:
        """Yield the windows of a recording with a finite end.

        The last window may be shorter than `length`, but is omitted if its length is below half of `length`. The
        last window is also omitted if at most 5 % of `length` remains after the previous window. A recording
        shorter than `length` is one window.
        """
        number, start, end = 0, recording.start, -math.inf
        while not number or (
            round(recording.end - start, 6) >= _SHORTEST * self.length and recording.end - end > _TAIL * self.length
        ):
            end = min(round(start + self.length, 6), recording.end)
            yield Segment(start, end)
            number += 1
            start = round(recording.start + number * self.step, 6)


def read_windows(text: str) -> Windows:
    """Parse "10s" (length of a window) or "10s/5s" (length and step).

    Raises:
        InputError: the text has another form, or a time is not from 0.01 s to 1,000,000 s.
    """
    form = _FORM.fullmatch(text)
    length, step = (float(form[1]), float(form[2] or form[1])) if form else (0.0, 0.0)
    if min(length, step) < 0.01 or max(length, step) > 1e6:
        raise InputError(
            f"windows {text[:80]} is not a length of windows; pass LENGTH or LENGTH/STEP from 0.01 s to 1,000,000 s, "
            "such as 10s or 10s/5s"
        )
    return Windows(length, step)


def windowed(manifest: Manifest, windows: Windows, workers: int | None = None) -> Manifest:
    """Replace each row of a manifest by the windows of its recording or segment, with ids such as `ID@10.0-20.0`.

    The columns `start` and `end` contain the times of a window in seconds. The column `recording` contains the name of
    the window's recording. A recording without a valid length, such as a missing file, remains one clip; its
    extraction reports the reason.

    Args:
        manifest: the recordings.
        windows: length and step of the windows.
        workers: number of processes that read the lengths of the files; None for one process per processor.

    Raises:
        InputError: an existing file cannot be read, or a window has the id of another clip.
    """
    rows = with_recordings(manifest.rows)
    paths = list(dict.fromkeys(path for row in rows if row.segment.end == math.inf for path in row.files))
    conditions = Conditions(processor_limit=_PROCESSOR_SECONDS, setup=partial(av.logging.set_level, None))
    with WorkerPool(_seconds, max(1, min(workers or processors(), len(paths))), conditions) as pool:
        seconds = {event.task: event.value for event in pool.work_off(paths) if isinstance(event, Finished)}
    clips = tuple(clip for row in rows for clip in _clips(row, windows, seconds))
    doubled = [name for name, count in Counter(clip.id for clip in clips).items() if count > 1]
    if doubled:
        raise InputError(
            f"{manifest.path}: a window and another clip have the id '{doubled[0]}'; "
            "change the id of one of the two recordings"
        )
    return replace(manifest, rows=clips)


def _seconds(path: str, report: Callable[[object], None]) -> float:
    """Return the length of a recording in seconds; 0 for a file without sound or video.

    The function runs in a worker.

    Raises:
        InputError: an existing file cannot be read, perhaps only for a moment.
    """
    try:
        return recording_seconds(path)
    except MediaFailure as failure:
        if failure.reason == "missing" and os.path.isfile(path):  # noqa: PTH113 - a path may contain anything
            raise InputError(
                f"{path}: the length of the recording is unknown, because the file cannot be read ({failure.detail}); "
                "repeat the command, or remove the recording from the manifest"
            ) from failure
        return 0.0


def _clips(row: Row, windows: Windows, seconds: Mapping[str, float]) -> Iterator[Row]:
    start, end = row.segment.start, row.segment.end
    if end == math.inf:
        end = max((seconds.get(path, 0.0) for path in row.files), default=0.0)
    if not start < end < start + _MOST * windows.step:
        yield replace(row, columns={"start": "", "end": "", **row.columns})
        return
    for window in windows.of(Segment(start, round(end, 6))):
        times = {"start": str(window.start), "end": str(window.end)}
        yield replace(row, id=f"{row.id}@{window}", columns={**row.columns, **times})


def without_window(name: str) -> tuple[str, Segment] | None:
    """Split an id such as `ID@10.0-20.0` into the id of the recording and the segment; return None for any other id."""
    form = _WINDOW.fullmatch(name)
    return form and (form[1], Segment(float(form[2]), float(form[3])))
