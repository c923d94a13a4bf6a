"""Extraction from a manifest to a feature file, through a ledger that contains the features of decoded clips.

The file is assembled from the ledger in the order of the manifest. The same command therefore produces the same
bytes after any number of interruptions, and with any number of processes.
"""

import base64
import functools
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from aadml.feature_extraction.engines import Engine, engine_of
from aadml.feature_extraction.engines.decoding_workers import DecodedPart, DecodingSettings, Task
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.file_content import content_of, stamp_of, text_stamp
from aadml.feature_extraction.ground.segment import WHOLE
from aadml.feature_extraction.jobs.assembly import Account, assemble, refuse_foreign, write
from aadml.feature_extraction.jobs.batching import Describer, wanted_of
from aadml.feature_extraction.jobs.failures import ABSENT, Failure, deciding_reason
from aadml.feature_extraction.jobs.plan import ExtractionPlan
from aadml.feature_extraction.ledger.ledger import DamagedValues, Ledger, open_ledger
from aadml.feature_extraction.ledger.notes import Beginning, Progress
from aadml.feature_extraction.ledger.records import Record
from aadml.feature_extraction.manifest import is_text

_BLOCKING = {"timeout", "crashed", "missing"}  # after these failures, the clip's other modalities are not decoded
_NOTE_SECONDS = 1.0  # between two notes of the progress


@dataclass(frozen=True, kw_only=True)
class ExtractionOutcome(Account):
    """Result of a job.

    Attributes:
        path: path of the feature file. None if all clips failed and the job has no shards; an earlier file is then
            kept.
        clips: number of clips of the job or shard, after the division of recordings into windows.
        reused: number of clips taken from the ledger.
        seconds: duration of this call.
    """

    path: str | None
    clips: int
    reused: int
    seconds: float


@dataclass
class _Job:
    """State of a running job.

    Attributes:
        plan: plan of the job.
        ledger: records of the job.
        progress: called with the numbers of clips done and failed.
        missing: position of a clip -> modality -> failure of a modality without a file.
        reasons: position -> known reasons why a modality of the clip being decoded is absent.
        contents: (position, modality) -> checksum and stamp of the file being decoded.
        reused: number of clips taken from the ledger.
        done: number of clips done.
        failed: reason -> number of clips.
        noted: time of the latest note of the progress, in seconds since 1970.
    """

    plan: ExtractionPlan
    ledger: Ledger
    progress: Callable[[int, int], None]
    missing: dict[int, dict[str, Failure]] = field(default_factory=dict)
    reasons: dict[int, list[str]] = field(default_factory=dict)
    contents: dict[tuple[int, str], tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    reused: int = 0
    done: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    noted: float = 0.0


def execute(plan: ExtractionPlan, progress: Callable[[int, int], None] | None = None) -> ExtractionOutcome:
    """Extract the features of every clip of a plan and write the feature file.

    Results are kept in `<output>.work`; a killed job continues from there. A clip in this folder is processed again
    only after a change of its files or of the settings, after damage to its result, or to retry its failure. The
    list of failed clips is `<output>.failures.csv`.

    Args:
        plan: clips, extractors, output and settings.
        progress: called with the numbers of clips done and failed.

    Returns:
        The outcome of the job.

    Raises:
        InputError: an unavailable engine, a transformation that cannot be fitted, or an output that cannot be
            written, is in use or is a file of another kind.
    """
    begin, place = time.monotonic(), plan.output
    decode = engine_of(plan.engine)
    refuse_foreign(place)
    with open_ledger(place.with_name(place.name + ".work")) as ledger:
        job = _Job(plan, ledger, progress or (lambda done, failed: None))
        total = len(plan.manifest.rows)
        ledger.note(Beginning(time.time(), len(plan.rows), plan.command, str(Path.cwd()), total))
        is_written, account = _run(job, decode)
    return ExtractionOutcome(
        **vars(account),
        path=str(place) if is_written else None,
        clips=len(plan.rows),
        reused=job.reused,
        seconds=time.monotonic() - begin,
    )


def _run(job: _Job, decode: Engine) -> tuple[bool, Account]:
    """Extract features and write the files.

    Extraction and writing are repeated if the ledger lost values.

    Returns:
        Whether a feature file was written, and the outcome of the clips.
    """
    place = job.plan.output
    while True:
        _work(job, decode)
        try:
            assembled, account = assemble(job.plan, job.ledger, job.missing)
            write(place, assembled, account.failures)
        except DamagedValues:
            if not job.ledger.forget_damaged():
                raise InputError(
                    f"{place}.work: another program changed the folder while it was in use; run the same command again"
                ) from None
            job.done, job.reused, job.failed, job.missing = 0, 0, Counter(), {}
        else:
            _note(job, finished=True)
            return assembled is not None, account


def _work(job: _Job, decode: Engine) -> None:
    """Decode the clips that are not in the ledger, and extract their features."""
    plan, extractors = job.plan, job.plan.by_modality
    wanted = {
        name: wanted_of(extractor, keeps_time=plan.keeps_time(extractor)) for name, extractor in extractors.items()
    }
    has_network = any(extractor.describe is not None for extractor in extractors.values())
    settings = DecodingSettings(wanted, plan.time_limit, plan.limits, gives_way=has_network)
    decoded = decode(_tasks(job), settings, clips=max(1, len(plan.rows)), workers=plan.workers)
    with Describer(extractors, functools.partial(_record, job), plan.keeps_time) as describer, closing(decoded):
        for task, parts in decoded:
            for part in parts:
                if part.reason == "missing":  # removed since the start of the job, so there is nothing to record
                    _miss(job, task.number, part.modality, part.reason, part.detail)
                else:
                    describer.add(task.number, part)
            _count(job, job.reasons.pop(task.number) + [part.reason for part in parts])


def _tasks(job: _Job) -> Iterator[Task]:
    """Yield the clips to decode, one by one, so that the hashing of files overlaps with decoding."""
    for number, row in enumerate(job.plan.rows):
        reasons: list[str] = []  # of the modalities that are not decoded; "" for a known success
        media: dict[str, str] = {}
        for modality in job.plan.by_modality:
            if modality not in row.media:  # only other clips have this further text
                continue
            stamp = text_stamp(row.media[modality]) if is_text(modality) else stamp_of(row.media[modality])
            record = _kept(job, number, modality) if stamp is None else _known(job, number, modality, stamp)
            if record is not None:
                reasons.append(record.reason)
            elif stamp is None:
                absent = not row.media[modality] and any(row.media.values())
                why = (ABSENT[modality], "the manifest lists no file") if absent else ("missing", "does not exist")
                _miss(job, number, modality, *why)
                reasons.append(why[0])
            else:
                media[modality] = row.media[modality]
        if media and _BLOCKING.isdisjoint(reasons):
            job.reasons[number] = reasons
            yield Task(number, media, row.segment)
        else:
            job.reused += "missing" not in reasons
            _count(job, reasons)


def _kept(job: _Job, number: int, modality: str) -> Record | None:
    """Return the record of a deleted file of the same path; None without a record, or if the plan does not keep it.

    A failure that is to be tried again is not returned, except for a clip that lacks the modality.
    """
    if not job.plan.keeps_deleted:
        return None
    record = job.ledger.find(job.plan.rows[number].id, modality, job.plan.settings[modality])
    if record is None or not record.source or _absolute(record.source) != _source(job, number, modality):
        return None
    return record if not job.plan.retry_failed or record.reason in ("", *ABSENT.values()) else None


def _known(job: _Job, number: int, modality: str, stamp: tuple[int, ...]) -> Record | None:
    """Return the valid record of a clip and modality; None if the modality must be decoded.

    A record of the current content is valid, except a failure that is to be tried again. The content of an unreadable
    file is unknown, and equals no other content. Before None is returned, the checksum and stamp of the content are
    stored in `job.contents`. If the record has another id, stamp or path, as after renaming, a copy with the current
    id, stamp and path is appended and returned.
    """
    row, text = job.plan.rows[number], is_text(modality)
    segment = WHOLE if text else row.segment
    known_by = (*stamp, *str(segment).encode())
    record = job.ledger.find(row.id, modality, job.plan.settings[modality])
    if record is not None and (not record.content or (record.reason and job.plan.retry_failed)):
        record = None
    if record is None or record.stamp != known_by:
        content = segment.named(f"{stamp[0]:x}" if text else content_of(row.media[modality], stamp))
        if record is None or record.content != content:
            record = job.ledger.find_content(content, modality, job.plan.settings[modality]) if content else None
        if record is None:
            job.contents[number, modality] = (content, known_by)
            return None
    current = replace(record, id=row.id, stamp=known_by, source=_source(job, number, modality))
    if current != record:
        job.ledger.append(current)
    return current


def _record(job: _Job, number: int, part: DecodedPart, description: NDArray[Any] | None) -> None:
    modality, row = part.modality, job.plan.rows[number]
    content, stamp = job.contents.pop((number, modality))
    job.ledger.append(
        Record(
            id=row.id,
            modality=modality,
            settings=job.plan.settings[modality],
            content=content,
            stamp=stamp,
            reason=part.reason,
            detail=part.detail,
            warnings=part.warnings,
            start=part.start,
            seconds=part.seconds,
            fingerprint="" if part.fingerprint is None else base64.b64encode(part.fingerprint.tobytes()).decode(),
            source=_source(job, number, modality),
        ),
        description,
    )


def _source(job: _Job, number: int, modality: str) -> str:
    row = job.plan.rows[number]
    return "" if is_text(modality) else _absolute(row.segment.named(row.media[modality]))


def _absolute(path: str) -> str:
    return os.path.abspath(path)  # noqa: PTH100 - `Path.resolve` would read the links of every path


def _count(job: _Job, reasons: Iterable[str]) -> None:
    """Count a clip, and the deciding reason if the clip failed."""
    job.done += 1
    reason = deciding_reason([*filter(None, reasons)], len(job.plan.extractors))
    if reason:
        job.failed[reason] += 1
    if time.time() - job.noted > _NOTE_SECONDS:
        _note(job)
    job.progress(job.done, job.failed.total())


def _note(job: _Job, *, finished: bool = False) -> None:
    job.noted = time.time()
    job.ledger.note(Progress(job.noted, job.done, job.reused, dict(job.failed), finished))


def _miss(job: _Job, number: int, modality: str, reason: str, detail: str) -> None:
    """Store the failure of a modality without a file. The ledger does not record such failures."""
    row = job.plan.rows[number]
    job.missing.setdefault(number, {})[modality] = Failure(row.id, row.media[modality], modality, reason, detail)
