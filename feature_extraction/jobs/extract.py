"""From a manifest to a feature file: decode in processes, describe in batches, keep every result in a ledger, assemble.

The file is assembled from the ledger in the manifest's order, so the same command gives the same bytes however often it
was killed on the way and however many processes it used.
"""

import base64
import functools
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from aadml.feature_extraction.backbones import Extractor
from aadml.feature_extraction.engines import Engine, engine_of, need_package
from aadml.feature_extraction.engines.decoding_workers import DecodedPart, DecodingSettings, Task, Wanted
from aadml.feature_extraction.feature_file import Incomplete
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.file_content import content_of, stamp_of, text_stamp
from aadml.feature_extraction.jobs.assembly import Account, assemble, refuse_foreign, write
from aadml.feature_extraction.jobs.batching import Describer
from aadml.feature_extraction.jobs.failures import ABSENT, Failure, deciding_reason
from aadml.feature_extraction.jobs.plan import ExtractionPlan
from aadml.feature_extraction.ledger import Beginning, DamagedValues, Ledger, Progress, Record, open_ledger
from aadml.feature_extraction.manifest import Manifest, Row, is_text
from aadml.feature_extraction.media import Limits

_BLOCKING = ("timeout", "crashed")  # after these the other modality of the clip is not tried
_NOTE_SECONDS = 1.0  # from one note of the progress to the next


@dataclass(frozen=True)
class ExtractionOutcome:
    """What a job came to.

    Attributes:
        path: the feature file; None where every clip failed; one that was there before is left as it was.
        clips: how many the manifest (or its shard) names.
        failures: the clips that are absent, in the manifest's order.
        warnings: id and remark of clips that were accepted but are odd.
        reused: clips that needed no work, as the ledger had them.
        seconds: the job took.
        extractors: of the modalities that are written: all but those that every clip lacks.
        lacking: what clips that are kept never had: a silent video its sound, a recording its picture.
    """

    path: str | None
    clips: int
    failures: tuple[Failure, ...]
    warnings: tuple[tuple[str, str], ...]
    reused: int
    seconds: float
    extractors: tuple[Extractor, ...] = ()
    lacking: tuple[Failure, ...] = ()


@dataclass
class _Job:
    """A plan being carried out: what is in flight, and how far it is."""

    plan: ExtractionPlan
    ledger: Ledger
    retry_failed: bool
    progress: Callable[[int, int], None]
    missing: dict[int, dict[str, Failure]] = field(default_factory=dict)
    contents: dict[tuple[int, str], tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    reused: int = 0
    done: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    noted: float = 0.0


def extract(
    manifest: Manifest,
    output: str | os.PathLike[str],
    extractors: Sequence[Extractor],
    *,
    engine: str = "local",
    workers: int | None = None,
    time_limit: float = 120.0,
    limits: Limits | None = None,
    shard: tuple[int, int] = (0, 1),
    retry_failed: bool = False,
    sequence: bool = False,
    incomplete: Incomplete = "keep",
    command: str = "",
    progress: Callable[[int, int], None] | None = None,
) -> ExtractionOutcome:
    """Describe every clip of a manifest and write the feature file.

    Results are kept in `<output>.work`: a killed job continues there, an unchanged clip is never done twice, a changed
    file or changed settings are done again. Clips that fail are listed in `<output>.failures.csv`.

    Args:
        manifest: the clips.
        output: the feature file to make.
        extractors: one a modality.
        engine: where clips are decoded: "local", "ray", or "ray:ADDRESS" for a cluster that runs already.
        workers: decoding processes; None: one a processor.
        time_limit: seconds of processor time that one modality of a clip may take to decode.
        limits: what is too large to be decoded.
        shard: (i, n): only the rows i, i + n, i + 2n ...; `merge` joins the files.
        retry_failed: try again what failed before.
        sequence: keep the descriptions over time beside the pooled ones.
        incomplete: "keep" clips that lack a modality (a silent video) and have another, masked, or "drop" them: they
            are then failures.
        command: what to type to go on with the job; `status` says it.
        progress: called with the number of clips done and failed so far.

    Returns:
        What the job came to.

    Raises:
        InputError: the output cannot be written, is in use, or is another kind of file.
    """
    begin, place = time.monotonic(), Path(output)
    plan = ExtractionPlan(manifest, tuple(extractors), limits or Limits(), shard, sequence, incomplete)
    if time_limit <= 0 or (workers is not None and workers < 1):
        raise InputError(f"time limit {time_limit:g} s, {workers} workers: both must be above zero")
    decode = engine_of(engine)
    need_package(engine)
    refuse_foreign(place)
    with open_ledger(place.with_name(place.name + ".work")) as ledger:
        job = _Job(plan, ledger, retry_failed, progress or (lambda done, failed: None))
        ledger.note(Beginning(time.time(), len(plan.rows), command, str(Path.cwd())))
        written = None
        while written is None:
            _work(job, decode, workers, time_limit)
            written = _write(job, place)
    is_written, account = written
    return ExtractionOutcome(
        path=str(place) if is_written else None,
        clips=len(plan.rows),
        failures=account.failures,
        warnings=account.warnings,
        reused=job.reused,
        seconds=time.monotonic() - begin,
        extractors=tuple(each for each in plan.extractors if each.modality in account.modalities),
        lacking=account.lacking,
    )


def _write(job: _Job, place: Path) -> tuple[bool, Account] | None:
    """Write the feature file and its list of failures; None where the ledger lost values, and work is left again."""
    try:
        assembled, account = assemble(job.plan, job.ledger, job.missing)
        write(place, assembled, account.failures)
    except DamagedValues:
        if not job.ledger.forget_damaged():
            raise InputError(f"{place}.work: changed while it was in use; run the same command again") from None
        job.done, job.reused, job.failed = 0, 0, Counter()
        return None
    _note(job, finished=True)
    return assembled is not None, account


def _work(job: _Job, decode: Engine, workers: int | None, time_limit: float) -> None:
    """Do what the ledger does not have yet."""
    extractors = job.plan.by_modality
    wanted = {name: _wanted(one, job.plan) for name, one in extractors.items()}
    has_network = any(each.describe is not None for each in extractors.values())
    settings = DecodingSettings(wanted, time_limit, job.plan.limits, gives_way=has_network)
    decoded = decode(_tasks(job), settings, clips=max(1, len(job.plan.rows)), workers=workers)
    with Describer(extractors, functools.partial(_record, job)) as describer, closing(decoded):
        for task, parts in decoded:
            for part in parts:
                if part.reason == "missing":  # gone since the job began: nothing to remember
                    _miss(job, task.number, part.modality, part.reason, part.detail)
                elif part.reason or extractors[part.modality].describe is None:
                    _record(job, task.number, part, part.prepared)
                else:
                    describer.add(task.number, part)
            _count(job, _known_reasons(job, task) + [part.reason for part in parts])


def _wanted(one: Extractor, plan: ExtractionPlan) -> Wanted:
    """Say what the decoding processes do for an extractor: everything but networks, and pooling if nothing follows."""
    done_there = one.describe is None and not plan.keeps_time(one)
    return Wanted(one.inputs, one.prepare, one.minimum_seconds, one.pool if done_there else None)


def _tasks(job: _Job) -> Iterator[Task]:
    """Name the clips that need work; asked for one by one, so that hashing files overlaps with decoding others."""
    for number, row in enumerate(job.plan.rows):
        records: dict[str, Record] = {}
        media: dict[str, str] = {}
        for modality in job.plan.by_modality:
            if modality not in row.media:  # nobody misses a further text
                continue
            stamp = text_stamp(row.media[modality]) if is_text(modality) else stamp_of(row.media[modality])
            if stamp is None:
                absent = not row.media[modality] and any(row.media.values())
                why = (ABSENT[modality], "the manifest names none") if absent else ("missing", "no such file")
                _miss(job, number, modality, *why)
                continue
            record = _known(job, number, row, modality, stamp)
            if record is None:
                media[modality] = row.media[modality]
            else:
                records[modality] = record
        gone = [one.reason for one in job.missing.get(number, {}).values()]
        blocked = any(record.reason in _BLOCKING for record in records.values()) or "missing" in gone
        if media and not blocked:
            yield Task(number, media)
        else:
            job.reused += "missing" not in gone
            _count(job, gone + [record.reason for record in records.values()])


def _known(job: _Job, number: int, row: Row, modality: str, stamp: tuple[int, ...]) -> Record | None:
    """Find the record of a piece of work, if it is still true; else remember the content that will be described."""
    record = job.ledger.find(row.id, modality, job.plan.settings[modality])
    if record is not None and record.reason and job.retry_failed:
        record = None
    if record is not None and record.stamp == stamp:
        return record
    content = f"{stamp[0]:x}" if is_text(modality) else content_of(row.media[modality], stamp)
    if record is not None and record.content == content:
        return record
    job.contents[number, modality] = (content, stamp)
    return None


def _record(job: _Job, number: int, part: DecodedPart, description: NDArray[Any] | None) -> None:
    modality, row = part.modality, job.plan.rows[number]
    content, stamp = job.contents.pop((number, modality))
    one, values = job.plan.by_modality[modality], description
    if description is not None and one.describe is not None and not job.plan.keeps_time(one):
        values = one.pool(description)
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
        ),
        values,
    )


def _known_reasons(job: _Job, task: Task) -> list[str]:
    """Name what was known to be absent of a clip before the rest of it was decoded."""
    row, settings = job.plan.rows[task.number], job.plan.settings
    others = [job.ledger.find(row.id, name, settings[name]) for name in settings if name not in task.media]
    gone = [one.reason for one in job.missing.get(task.number, {}).values() if one.modality not in task.media]
    return gone + [record.reason for record in others if record is not None]


def _count(job: _Job, reasons: Iterable[str]) -> None:
    """Count a clip, and the first of its reasons if it failed."""
    job.done += 1
    reason = deciding_reason([*filter(None, reasons)], len(job.plan.extractors), job.plan.incomplete)
    if reason:
        job.failed[reason] += 1
    if time.time() - job.noted > _NOTE_SECONDS:
        _note(job)
    job.progress(job.done, job.failed.total())


def _note(job: _Job, *, finished: bool = False) -> None:
    job.noted = time.time()
    job.ledger.note(Progress(job.noted, job.done, job.reused, dict(job.failed), finished))


def _miss(job: _Job, number: int, modality: str, reason: str, detail: str) -> None:
    """Note what has no file; the ledger, which remembers files, does not."""
    row = job.plan.rows[number]
    job.missing.setdefault(number, {})[modality] = Failure(row.id, row.media[modality], modality, reason, detail)
