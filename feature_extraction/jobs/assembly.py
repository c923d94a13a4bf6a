"""The last steps of an extraction job: the records of its ledger become one feature file, and its failures one list."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.backbones import Description, Extractor
from aadml.feature_extraction.feature_file import (
    FeatureFile,
    FeatureRows,
    ModalityRows,
    Shard,
    Texts,
    gathered,
    is_feature_file,
    spread,
    write_rows,
)
from aadml.feature_extraction.feature_file.class_codes import class_codes
from aadml.feature_extraction.ground.atomic import refuse_other_kind, remove_leftovers
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.jobs.failures import Failure, deciding, is_list_of_failures, write_failures
from aadml.feature_extraction.jobs.plan import ExtractionPlan, fingerprint
from aadml.feature_extraction.ledger import Ledger, Record, Track
from aadml.feature_extraction.manifest import FURTHER_TEXT, Row, is_text

Descriptions = Callable[[], Iterator[Description]]
PENDING_NOTE = "{}: of a shard, before what is fitted on all training clips; `aadml merge` fits it"


@dataclass(frozen=True)
class Assembled:
    """What a feature file is to hold.

    Attributes:
        head: all but the numbers of its modalities.
        rows: these, by modality; they are made while they are written.
    """

    head: FeatureFile
    rows: Mapping[str, ModalityRows]


@dataclass(frozen=True)
class Account:
    """What became of the clips of a job.

    Attributes:
        modalities: that are written.
        failures: the clips that are absent, in the manifest's order.
        lacking: what clips that are kept never had, in the manifest's order.
        warnings: id and remark of clips that were accepted but are odd.
    """

    modalities: tuple[str, ...]
    failures: tuple[Failure, ...]
    lacking: tuple[Failure, ...]
    warnings: tuple[tuple[str, str], ...]


def refuse_foreign(output: Path) -> None:
    """Refuse to replace what is not a feature file, or not a list of failures beside it.

    Raises:
        InputError: no file can be there, or one of another kind is.
    """
    refuse_other_kind(output, "a feature file", is_feature_file)
    refuse_other_kind(_list_of(output), "a list of failures", is_list_of_failures)


def write(output: Path, assembled: Assembled | None, failures: Sequence[Failure]) -> None:
    """Write a feature file, and first the list of its failures.

    Args:
        output: the feature file; the list is `<output>.failures.csv`.
        assembled: what to write; None leaves a file that is there as it is.
        failures: the clips that are absent; none removes the list.

    Raises:
        InputError: the place cannot be written.
    """
    listed = _list_of(output)
    for path in (output, listed):
        remove_leftovers(path)
    if failures:
        write_failures(listed, failures)
    else:
        listed.unlink(missing_ok=True)
    if assembled is not None:
        write_rows(output, assembled.head, assembled.rows)


def _list_of(output: Path) -> Path:
    return output.with_name(output.name + ".failures.csv")


def assemble(
    plan: ExtractionPlan, ledger: Ledger, missing: Mapping[int, Mapping[str, Failure]]
) -> tuple[Assembled | None, Account]:
    """Put the records of a finished job together, in the manifest's order.

    Args:
        plan: of the job.
        ledger: its records; they are read again while the result is written.
        missing: by position in the job and by modality, what has no file.

    Returns:
        What to write (None where every clip of a whole job failed), and what became of the clips.
    """
    good = array("q")
    tracks = {modality: Track() for modality in plan.by_modality}
    wanted = len(plan.extractors)
    failures: list[tuple[int, Failure]] = []
    lacking: list[Failure] = []
    warnings: list[tuple[str, str]] = []
    for number, row in enumerate(plan.rows):
        found = {modality: ledger.find(row.id, modality, settings) for modality, settings in plan.settings.items()}
        records = {modality: record for modality, record in found.items() if record is not None and not record.reason}
        troubles = [*missing.get(number, {}).values(), *_troubles(row, found.values())]
        failure = deciding(troubles, wanted, plan.incomplete)
        if failure is not None:
            failures.append((number, failure))
            continue
        good.append(number)
        lacking += troubles
        for modality, track in tracks.items():
            track.add(records.get(modality))
        warnings += [(row.id, remark) for record in records.values() for remark in record.warnings]
    assembled, modalities = None, tuple(one.modality for one in plan.extractors)
    if good or plan.shard[1] > 1:
        assembled = _assembled(
            plan, ledger, [plan.rows[number] for number in good], tracks, _shard(plan, good, failures)
        )
        modalities = tuple(assembled.rows)
    return assembled, Account(modalities, tuple(failure for _, failure in failures), tuple(lacking), tuple(warnings))


def _troubles(row: Row, records: Iterable[Record | None]) -> list[Failure]:
    """Name what the records say could not be had."""
    return [
        Failure(row.id, row.media[one.modality], one.modality, one.reason, one.detail)
        for one in records
        if one is not None and one.reason
    ]


def _shard(plan: ExtractionPlan, good: Sequence[int], failures: Sequence[tuple[int, Failure]]) -> Shard | None:
    index, count = plan.shard
    if count == 1:
        return None
    return Shard(
        index=index,
        count=count,
        total=len(plan.manifest.rows),
        manifest=fingerprint(plan.manifest),
        rows=np.asarray(good, dtype=np.int64) * count + index,
        failures=tuple((number * count + index, astuple(failure)) for number, failure in failures),
        pending=plan.pending,
        sequence=plan.sequence,
        incomplete=plan.incomplete,
    )


def _assembled(
    plan: ExtractionPlan, ledger: Ledger, rows: Sequence[Row], tracks: Mapping[str, Track], shard: Shard | None
) -> Assembled:
    splits = tuple(row.split for row in rows)
    labels, all_labels = class_codes(plan.manifest, rows)
    own_names = [one.modality for one in plan.extractors]
    if shard is None:
        own_names = written_modalities({modality: tracks[modality].present for modality in own_names})
    made, fitted = {}, {}
    for modality, one in plan.by_modality.items():
        if modality not in own_names and not modality.startswith(FURTHER_TEXT):
            continue
        read = partial(tracks[modality].descriptions, ledger)
        if one.fit is not None and modality not in plan.pending:
            own = (split for split, has in zip(splits, tracks[modality].present, strict=True) if has)
            train = (values for values, split in zip(read(), own, strict=True) if split == "train")
            fitted[modality] = one.fit.arrays(train)
            read = partial(_mapped, one.fit.transformation(fitted[modality]), read)
        made[modality] = _rows(plan, one, tracks[modality], read)
    head = FeatureFile(
        features={},
        labels=labels,
        all_labels=all_labels,
        ids=tuple(row.id for row in rows),
        splits=splits,
        class_names=plan.manifest.class_names,
        provenance={modality: _origin(plan, modality) for modality in own_names},
        columns={name: tuple(row.columns[name] for row in rows) for name in plan.manifest.rows[0].columns},
        fitted=fitted,
        shard=shard,
        fingerprints={modality: tracks[modality].fingerprints for modality in own_names if modality != "text"},
        present={modality: tracks[modality].present for modality in own_names if not tracks[modality].present.all()},
        texts=_texts(made, tracks),
    )
    return Assembled(head, {modality: made[modality] for modality in own_names})


def written_modalities(present: Mapping[str, NDArray[np.bool_]]) -> list[str]:
    """Return the modalities that some clip has; all where there are no clips.

    A shard keeps all modalities, as a clip of another shard may have them.

    Args:
        present: (n,) by modality, the clips that have the modality.
    """
    return [modality for modality, clips in present.items() if clips.any() or not len(clips)]


def _texts(made: Mapping[str, ModalityRows], tracks: Mapping[str, Track]) -> Texts | None:
    """Gather all texts, where a clip has several."""
    if not any(track.present.any() for modality, track in tracks.items() if modality.startswith(FURTHER_TEXT)):
        return None
    there = {modality: track.present for modality, track in tracks.items() if is_text(modality)}
    values = np.concatenate([made[modality].pooled.array()[own] for modality, own in there.items()])
    return Texts.sorted(values, np.concatenate([np.flatnonzero(own) for own in there.values()]).astype(np.int64))


def _origin(plan: ExtractionPlan, modality: str) -> JsonObject:
    origin = plan.provenance[modality]
    return {**origin, "notes": [PENDING_NOTE.format(modality)]} if modality in plan.pending else origin


def _rows(plan: ExtractionPlan, one: Extractor, track: Track, read: Descriptions) -> ModalityRows:
    """Say how the numbers of one modality are read from the ledger when they are written."""
    n, lengths, kind = len(track.lengths), track.lengths, np.dtype(np.float32)
    pending = one.modality in plan.pending
    width = (track.width or one.dimension) if pending else one.dimension
    pooled = partial(_mapped, one.pool if plan.keeps_time(one) else np.asarray, read)
    made = FeatureRows((n, width), kind, lambda: gathered(spread(pooled(), track.present, width)))
    if not (plan.sequence or pending):
        return ModalityRows(made)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    total = int(offsets[-1])
    times = FeatureRows((total,), np.dtype(np.float64), lambda: gathered(track.times(one)))
    return ModalityRows(made, FeatureRows((total, width), kind, lambda: gathered(read())), offsets, times)


def _mapped(change: Callable[[Description], Description], read: Descriptions) -> Iterator[Description]:
    return map(change, read())
