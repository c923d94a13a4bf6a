"""Last step of an extraction job: one feature file and one list of failures from the records of the ledger."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.backbones import Extractor
from aadml.feature_extraction.feature_file.class_codes import class_codes
from aadml.feature_extraction.feature_file.content import FeatureFile, Shard, Texts
from aadml.feature_extraction.feature_file.reading import is_feature_file
from aadml.feature_extraction.feature_file.rows import FeatureRows, ModalityRows, gathered, spread
from aadml.feature_extraction.feature_file.writing import write_rows
from aadml.feature_extraction.ground.atomic import refuse_links, refuse_other_kind, remove_leftovers
from aadml.feature_extraction.ground.errors import DamagedFileError
from aadml.feature_extraction.jobs.failures import Failure, deciding, is_list_of_failures, write_failures
from aadml.feature_extraction.jobs.fitting import fitted
from aadml.feature_extraction.jobs.plan import ExtractionPlan, fingerprint
from aadml.feature_extraction.ledger.ledger import Ledger
from aadml.feature_extraction.ledger.track import Track
from aadml.feature_extraction.manifest import FURTHER_TEXT, Row, is_text

_PENDING_NOTE = "{} is not transformed yet; `aadml merge` fits the transformation to the training clips of all shards"


@dataclass(frozen=True)
class Assembled:
    """Content of a feature file to write.

    Attributes:
        head: content except features and sequences.
        rows: features and sequences by modality, computed during writing.
    """

    head: FeatureFile
    rows: Mapping[str, ModalityRows]


@dataclass(frozen=True)
class Account:
    """Outcome of the clips of a job.

    Attributes:
        extractors: extractors of the written modalities; all extractors if no file is written.
        failures: failed clips, in the order of the manifest.
        lacking: absent modalities of kept clips, such as the sound of a silent video.
        warnings: (id, warning) for each warning about a kept clip.
    """

    extractors: tuple[Extractor, ...]
    failures: tuple[Failure, ...]
    lacking: tuple[Failure, ...]
    warnings: tuple[tuple[str, str], ...]


def refuse_foreign(output: Path) -> None:
    """Raise InputError if the output or its list of failures would replace a file of another kind.

    A symbolic link in place of the list of failures also raises InputError.
    """
    refuse_other_kind(output, "a feature file", is_feature_file)
    refuse_links(_list_of(output))
    refuse_other_kind(_list_of(output), "a list of failures", is_list_of_failures)


def write(output: Path, assembled: Assembled | None, failures: Sequence[Failure]) -> None:
    """Write the list of failed clips, then the feature file.

    Args:
        output: the feature file; the list is `<output>.failures.csv`.
        assembled: content of the file; None keeps an existing file.
        failures: failed clips; the list is removed if there are none.

    Raises:
        DamagedValues: values in the ledger do not match their checksum.
        InputError: a file cannot be written.
        OSError: a temporary file or an old list cannot be removed.
    """
    table = _list_of(output)
    for path in (output, table):
        remove_leftovers(path)
    if failures:
        write_failures(table, failures)
    else:
        table.unlink(missing_ok=True)
    if assembled is not None:
        write_rows(output, assembled.head, assembled.rows)


def _list_of(output: Path) -> Path:
    return output.with_name(output.name + ".failures.csv")


def assemble(
    plan: ExtractionPlan, ledger: Ledger, missing: Mapping[int, Mapping[str, Failure]]
) -> tuple[Assembled | None, Account]:
    """Combine the records of a finished job, in the order of the manifest.

    Args:
        plan: plan of the job.
        ledger: records of the job. The ledger must stay open until the content is written, because writing reads
            the values.
        missing: position in the job -> modality -> failure of a modality without a file.

    Returns:
        Content to write, and the outcome of the clips. The content is None if all clips failed and the job has no
        shards.

    Raises:
        DamagedFileError: values in the ledger have another shape than the extractor computes.
        DamagedValues: values in the ledger do not match their checksum. Reads of the content raise this error too.
        InputError: a transformation cannot be fitted.
    """
    good = array("q")
    tracks = {modality: Track() for modality in plan.by_modality}
    failures: list[tuple[int, Failure]] = []
    lacking: list[Failure] = []
    warnings: list[tuple[str, str]] = []
    for number, row in enumerate(plan.rows):
        absent = missing.get(number, {})
        listed = row.media.keys() - absent.keys()
        newest = ((name, ledger.find(row.id, name, key)) for name, key in plan.settings.items() if name in listed)
        records = {name: record for name, record in newest if record is not None}
        failed = {name: record for name, record in records.items() if record.reason}
        troubles = [*absent.values()]
        troubles += [Failure(row.id, row.media[name], name, r.reason, r.detail) for name, r in failed.items()]
        failure = deciding(troubles, len(plan.extractors))
        if failure is not None:
            failures.append((number, failure))
            continue
        good.append(number)
        lacking += troubles
        for modality, track in tracks.items():
            track.add(records.get(modality))
        warnings += [(row.id, warning) for record in records.values() for warning in record.warnings]
    assembled, extractors = None, tuple(plan.extractors)
    if good or plan.shard[1] > 1:
        rows = [plan.rows[number] for number in good]
        assembled = _assembled(plan, ledger, rows, tracks, _shard(plan, good, failures))
        extractors = tuple(extractor for extractor in extractors if extractor.modality in assembled.rows)
    return assembled, Account(extractors, tuple(failure for _, failure in failures), tuple(lacking), tuple(warnings))


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
    )


def _assembled(
    plan: ExtractionPlan, ledger: Ledger, rows: Sequence[Row], tracks: Mapping[str, Track], shard: Shard | None
) -> Assembled:
    splits = tuple(row.split for row in rows)
    labels, all_labels = class_codes(plan.manifest, rows)
    present = {modality: track.present for modality, track in tracks.items()}
    written = [extractor.modality for extractor in plan.extractors]
    if shard is None:
        written = written_modalities({modality: present[modality] for modality in written})
    modality_rows, arrays = {}, {}
    for modality, extractor in plan.by_modality.items():
        if modality not in written and not modality.startswith(FURTHER_TEXT):
            continue
        modality_rows[modality] = _rows(plan, extractor, tracks[modality], ledger)
        if extractor.fit is not None and modality not in plan.pending:
            modality_rows[modality], arrays[modality] = fitted(
                modality_rows[modality],
                extractor.fit,
                splits,
                present[modality],
                sequence=plan.sequence,
                pool=extractor.pool,
            )
    notes = {modality: {"notes": [_PENDING_NOTE.format(modality)]} for modality in plan.pending}
    head = FeatureFile(
        features={},
        labels=labels,
        all_labels=all_labels,
        ids=tuple(row.id for row in rows),
        splits=splits,
        class_names=plan.manifest.class_names,
        provenance={modality: {**plan.provenance[modality], **notes.get(modality, {})} for modality in written},
        columns={name: tuple(row.columns[name] for row in rows) for name in plan.manifest.rows[0].columns},
        fitted=arrays,
        shard=shard,
        fingerprints={modality: tracks[modality].fingerprints for modality in written if modality != "text"},
        present={modality: present[modality] for modality in written if not present[modality].all()},
        texts=_texts(modality_rows, present),
    )
    return Assembled(head, {modality: modality_rows[modality] for modality in written})


def written_modalities(present: Mapping[str, NDArray[np.bool_]]) -> list[str]:
    """Return the modalities that at least one clip has; all modalities for a job without clips.

    Args:
        present: by modality, (n,) mask of the clips that have the modality.
    """
    return [modality for modality, mask in present.items() if mask.any() or not len(mask)]


def _texts(rows: Mapping[str, ModalityRows], present: Mapping[str, NDArray[np.bool_]]) -> Texts | None:
    """Return the features of all texts; None if no clip has several texts."""
    if not any(mask.any() for modality, mask in present.items() if modality.startswith(FURTHER_TEXT)):
        return None
    masks = {modality: mask for modality, mask in present.items() if is_text(modality)}
    values = np.concatenate([rows[modality].pooled.array()[mask] for modality, mask in masks.items()])
    return Texts.sorted(values, np.concatenate([np.flatnonzero(mask) for mask in masks.values()]).astype(np.int64))


def _rows(plan: ExtractionPlan, extractor: Extractor, track: Track, ledger: Ledger) -> ModalityRows:
    """Return the untransformed rows of one modality. The values are read from the ledger only during iteration.

    Raises:
        DamagedFileError: the values have another shape than the extractor computes.
    """
    n, lengths, kind = len(track.lengths), track.lengths, np.dtype(np.float32)
    over_time, default = plan.keeps_time(extractor), (True, extractor.dimension)
    width = extractor.dimension if extractor.fit is None else max(track.shapes, default=default)[1]
    if track.shapes - {(over_time, width)}:
        raise DamagedFileError(
            f"{plan.output}.work: the values of {extractor.modality} have another shape than the extractor "
            f"{extractor.name} computes; remove this folder to decode all clips again"
        )
    read = partial(track.descriptions, ledger)
    pool = extractor.pool if over_time else np.asarray
    pooled = FeatureRows((n, width), kind, lambda: gathered(spread(map(pool, read()), track.present, width)))
    if not over_time:
        return ModalityRows(pooled)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    total = int(offsets[-1])
    times = FeatureRows((total,), np.dtype(np.float64), lambda: gathered(track.times(extractor)))
    return ModalityRows(pooled, FeatureRows((total, width), kind, lambda: gathered(read())), offsets, times)
