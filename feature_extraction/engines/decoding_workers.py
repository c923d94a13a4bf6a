"""Decoding in processes of a pool: whatever a file does to its decoder costs that clip alone."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import av
import cv2
import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.ground.worker_pool import Lost, Reported, WorkerPool
from aadml.feature_extraction.ground.worker_process import Conditions
from aadml.feature_extraction.media import Frames, Limits, MediaFailure, Sound, Text, decode
from aadml.feature_extraction.media.fingerprints import picture_fingerprint, sound_fingerprint

_PATIENCE = 30  # times the limit of processor time: what waits so long waits for a disk that is gone


@dataclass(frozen=True)
class Wanted:
    """What is wanted of one modality.

    Attributes:
        inputs: what to decode.
        prepare: what to make of it in the decoding process; picklable.
        minimum_seconds: shorter clips are refused.
        pool: what to make of the prepared clip at last, there as well; None: it is wanted as it is.
    """

    inputs: Sound | Frames | Text
    prepare: Callable[[NDArray[Any]], NDArray[Any]]
    minimum_seconds: float
    pool: Callable[[NDArray[Any]], NDArray[Any]] | None = None


@dataclass(frozen=True)
class Task:
    """One clip to be decoded.

    Attributes:
        number: the caller's name for it.
        media: per modality that is wanted, the file; of text, the text.
    """

    number: int
    media: Mapping[str, str]


@dataclass(frozen=True)
class DecodedPart:
    """What became of one modality of a clip: `prepared`, or a reason and a detail.

    Attributes:
        modality: of the clip.
        prepared: what the extractor made of it in the decoding process.
        reason: a key of `REASONS`, or empty.
        detail: what was seen.
        warnings: what is odd about a clip that was accepted.
        start: when its sound or picture begins, in seconds after the beginning of the file.
        seconds: how long it lasts.
        fingerprint: (256,) by which it is known again after another encoding; see `fingerprints`.
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
    tasks: Iterator[Task],
    wanted: Mapping[str, Wanted],
    *,
    workers: int,
    time_limit: float,
    limits: Limits,
    gives_way: bool = False,
) -> Generator[tuple[Task, list[DecodedPart]]]:
    """Decode clips in processes of their own.

    A clip during which a process died is decoded again at the end, alone in a fresh process: an earlier clip may have
    damaged the process, or clips beside it may have taken the memory. Only a second death is the clip's own.

    Args:
        tasks: the clips; the next one is asked for when a process is free.
        wanted: what is wanted of each modality.
        workers: how many processes.
        time_limit: seconds of processor time that one modality of a clip may take; on the clock it may take many times
            as long, so that no clip is lost because the machine is busy.
        limits: what is too large.
        gives_way: whether the processes take only the time that this one, busy with a network, leaves on the
            processors: a network whose threads wait for each other loses more than a decoder does.

    Yields:
        Each task with its parts, in the order in which they are finished. After a part that failed as `timeout` or
        `crashed` the remaining modalities of that clip are not tried.

    Raises:
        RuntimeError: a process ended before it was ready: a defect of the installation, not of a clip.
    """
    start = partial(decoders, wanted, time_limit=time_limit, limits=limits, gives_way=gives_way)
    suspects: list[Task] = []
    with start(workers=workers) as pool:
        yield from decoded_by(pool, tasks, suspects)
    for task in suspects:
        with start(workers=1) as pool:
            yield from decoded_by(pool, iter([task]))


def decoders(
    wanted: Mapping[str, Wanted], *, workers: int, time_limit: float, limits: Limits, gives_way: bool = False
) -> WorkerPool[Task]:
    """Give the processes that decode clips, to be used as a context; args as of `decode_all`."""
    conditions = Conditions(_PATIENCE * time_limit, time_limit, gives_way=gives_way, setup=_quiet)
    return WorkerPool(partial(_decoded, dict(wanted), limits), workers, conditions)


def decoded_by(
    pool: WorkerPool[Task], tasks: Iterator[Task], suspects: list[Task] | None = None
) -> Generator[tuple[Task, list[DecodedPart]]]:
    """Decode clips in the processes of a pool; see `decode_all`.

    Args:
        pool: of `decoders`.
        tasks: the clips.
        suspects: collects the clips during which a process died, to be decoded again; None: they come back as
            `crashed`.
    """
    parts: dict[int, list[DecodedPart]] = {}
    for event in pool.work_off(tasks):
        known = parts.setdefault(event.task.number, [])
        if isinstance(event, Reported):
            known.append(event.value)
            continue
        del parts[event.task.number]
        if isinstance(event, Lost) and not event.late and suspects is not None:
            suspects.append(event.task)
        else:
            yield event.task, _without(known, event) if isinstance(event, Lost) else [*known, event.value]


def _without(known: Sequence[DecodedPart], event: Lost[Task]) -> list[DecodedPart]:
    """Give the parts that came before a process was lost, and the one at which it was."""
    media, done = event.task.media, {part.modality for part in known}
    modality = next(name for name in media if name not in done)
    detail = "killed at the time limit" if event.late else f"the decoding process ended with {event.ending}"
    return [*known, DecodedPart(modality, reason="timeout" if event.late else "crashed", detail=detail)]


def _quiet() -> None:
    """Let decoders use one thread and keep their remarks to themselves."""
    cv2.setNumThreads(1)
    av.logging.set_level(None)


def _decoded(
    wanted: Mapping[str, Wanted], limits: Limits, task: Task, report: Callable[[DecodedPart], None]
) -> DecodedPart:
    """Decode one clip: all parts but the last are reported, the last one is the result."""
    *first, last = task.media.items()
    for modality, path in first:
        report(_part(modality, path, wanted[modality], limits))
    return _part(*last, wanted[last[0]], limits)


def _part(modality: str, path: str, wanted: Wanted, limits: Limits) -> DecodedPart:
    try:
        clip = decode(path, wanted.inputs, limits, wanted.minimum_seconds)
        prepared = wanted.prepare(clip.values)
        if wanted.pool is not None:
            prepared = wanted.pool(prepared)
        fingerprint = _fingerprint(clip.values, wanted.inputs)
    except MediaFailure as failure:
        return DecodedPart(modality, reason=failure.reason, detail=failure.detail)
    except MemoryError:
        return DecodedPart(modality, reason="too-large", detail="not enough memory")
    except Exception as error:  # whatever else one clip does, it costs one clip; the detail says what it was
        return DecodedPart(modality, reason="crashed", detail=" ".join(f"{type(error).__name__}: {error}".split()))
    if np.issubdtype(prepared.dtype, np.floating) and not np.isfinite(prepared).all():
        return DecodedPart(modality, reason="corrupt", detail="its description holds NaN or infinity")
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
