"""Decoding in worker processes; a file that crashes or hangs its decoder does not affect other files."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.ground.kept_workers import worker_pool
from aadml.feature_extraction.ground.segment import WHOLE, Segment
from aadml.feature_extraction.ground.worker_pool import Lost, Reported, WorkerPool, processors
from aadml.feature_extraction.ground.worker_process import Conditions
from aadml.feature_extraction.media.decoding import decode
from aadml.feature_extraction.media.fingerprints import picture_fingerprint, sound_fingerprint
from aadml.feature_extraction.media.inputs import Frames, Limits, MediaFailure, Sound, Text

_PATIENCE = 30  # wall-clock limit / processor-time limit; reading from a lost disk takes no processor time


@dataclass(frozen=True)
class Wanted:
    """Decoding and preprocessing of one modality.

    Attributes:
        inputs: input to decode: sound, frames or text.
        prepare: preprocessing in the decoding process; picklable.
        minimum_seconds: minimum duration in seconds; shorter clips fail.
        pool: pooling of the prepared clip in the decoding process; None for no pooling in that process.
    """

    inputs: Sound | Frames | Text
    prepare: Callable[[NDArray[Any]], NDArray[Any]]
    minimum_seconds: float
    pool: Callable[[NDArray[Any]], NDArray[Any]] | None = None


@dataclass(frozen=True)
class DecodingSettings:
    """Settings shared by all clips of a job.

    Attributes:
        wanted: decoding and preprocessing by modality.
        time_limit: seconds of processor time for one modality of a clip. The wall-clock limit is many times as long, so
            that a busy machine does not make a clip fail.
        limits: limits of the media that are decoded.
        gives_way: whether decoders run with low priority because this process runs a network. Sharing processors slows
            a network more than a decoder, because the threads of a network wait for each other.
    """

    wanted: Mapping[str, Wanted]
    time_limit: float
    limits: Limits
    gives_way: bool = False


@dataclass(frozen=True)
class Task:
    """Clip to decode.

    Attributes:
        number: number of the clip, set by the caller.
        media: file by requested modality; for text, the text itself.
        segment: part of the files that is the clip.
    """

    number: int
    media: Mapping[str, str]
    segment: Segment = WHOLE


@dataclass(frozen=True)
class DecodedPart:
    """Result for one modality of a clip: the array `prepared`, or the reason and detail of a failure.

    Attributes:
        modality: name of the modality.
        prepared: output of `Wanted.prepare` and `Wanted.pool`; None for a failure.
        reason: key of `REASONS`; "" for success.
        detail: description of the failure.
        warnings: warnings about an accepted clip.
        start: beginning of the sound or picture, in seconds after the beginning of the segment. If the clip is
            a whole file, the seconds are counted from the beginning of the file.
        seconds: duration in seconds.
        fingerprint: (256,) bytes that identify the clip after re-encoding (see `media.fingerprints`); None for a
            text and for a failure.
    """

    modality: str
    prepared: NDArray[Any] | None = None
    reason: str = ""
    detail: str = ""
    warnings: tuple[str, ...] = ()
    start: float = 0.0
    seconds: float = 0.0
    fingerprint: NDArray[np.uint8] | None = None


def decode_all(
    tasks: Iterator[Task], settings: DecodingSettings, /, *, clips: int, workers: int | None
) -> Generator[tuple[Task, list[DecodedPart]]]:
    """Decode clips in processes of this machine.

    A clip whose process crashed is decoded again at the end, alone in a new process. Other clips may have damaged
    the first process or used up the memory. The clip fails only if the second process crashes as well. A clip that
    exceeds the time limit fails at once.

    Args:
        tasks: the clips; at most one clip is drawn before a process is free.
        settings: modalities and limits.
        clips: upper bound of the number of tasks.
        workers: number of processes; None for one process per processor.

    Yields:
        Each task with its parts, in the order of completion. After the loss of a clip's process, the last part has
        the reason `timeout` or `crashed`, and the remaining modalities of the clip are not decoded.

    Raises:
        RuntimeError: a process ended before it was ready, or was not ready in time, because of a defective
            installation.
    """
    suspects: list[Task] = []
    with decoders(settings, min(workers or processors(), clips)) as pool:
        yield from decoded_by(pool, tasks, suspects)
    for task in suspects:
        with decoders(settings, 1) as pool:
            yield from decoded_by(pool, iter([task]))


def decoders(settings: DecodingSettings, workers: int) -> AbstractContextManager[WorkerPool[Task]]:
    """Return a context manager whose value is a pool of decoding processes."""
    limit = settings.time_limit
    conditions = Conditions(
        _PATIENCE * limit, limit, gives_way=settings.gives_way, setup=partial(av.logging.set_level, None)
    )
    return worker_pool(partial(_decoded, dict(settings.wanted), settings.limits), workers, conditions)


def decoded_by(
    pool: WorkerPool[Task], tasks: Iterator[Task], suspects: list[Task] | None = None
) -> Generator[tuple[Task, list[DecodedPart]]]:
    """Decode clips in the processes of a pool; see `decode_all`.

    Args:
        pool: result of `decoders`.
        tasks: the clips.
        suspects: list that is extended with the clips whose process crashed; None to yield these clips as failed.
    """
    parts: dict[int, list[DecodedPart]] = {}
    for event in pool.work_off(tasks):
        reported = parts.setdefault(event.task.number, [])
        if isinstance(event, Reported):
            reported.append(event.value)
            continue
        del parts[event.task.number]
        if isinstance(event, Lost) and not event.late and suspects is not None:
            suspects.append(event.task)
        else:
            yield event.task, _with_loss(reported, event) if isinstance(event, Lost) else [*reported, event.value]


def _with_loss(reported: Sequence[DecodedPart], event: Lost[Task]) -> list[DecodedPart]:
    """Return the parts decoded before the loss of a process, and a failure for the next modality."""
    modality = list(event.task.media)[len(reported)]
    detail = "killed at the time limit" if event.late else f"the decoding process ended with {event.ending}"
    return [*reported, DecodedPart(modality, reason="timeout" if event.late else "crashed", detail=detail)]


def _decoded(
    wanted: Mapping[str, Wanted], limits: Limits, task: Task, report: Callable[[DecodedPart], None]
) -> DecodedPart:
    """Decode one clip. All parts except the last are reported, and the last part is returned."""
    *first, last = task.media.items()
    for modality, path in first:
        report(_part(modality, path, wanted[modality], limits, task.segment))
    return _part(*last, wanted[last[0]], limits, task.segment)


def _part(modality: str, path: str, wanted: Wanted, limits: Limits, segment: Segment) -> DecodedPart:
    try:
        clip = decode(path, wanted.inputs, limits, wanted.minimum_seconds, segment)
        prepared = wanted.prepare(clip.values)
        prepared = np.asarray(prepared if wanted.pool is None else wanted.pool(prepared))
        fingerprint = _fingerprint(clip.values, wanted.inputs)
    except MediaFailure as failure:
        return DecodedPart(modality, reason=failure.reason, detail=failure.detail)
    except MemoryError:
        return DecodedPart(modality, reason="too-large", detail="not enough memory")
    except Exception as error:  # any other error fails only this clip, with the error as detail
        return DecodedPart(modality, reason="crashed", detail=" ".join(f"{type(error).__name__}: {error}".split()))
    if np.issubdtype(prepared.dtype, np.floating) and not np.isfinite(prepared).all():
        return DecodedPart(modality, reason="corrupt", detail="the features contain NaN or infinity")
    return DecodedPart(
        modality,
        prepared=prepared,
        warnings=clip.remarks,
        start=clip.start,
        seconds=clip.seconds,
        fingerprint=fingerprint,
    )


def _fingerprint(values: NDArray[Any], inputs: Sound | Frames | Text) -> NDArray[np.uint8] | None:
    if isinstance(inputs, Text):
        return None
    return sound_fingerprint(values, inputs.sample_rate) if isinstance(inputs, Sound) else picture_fingerprint(values)
