"""The last steps of an extraction job: the records of its ledger become one feature file, and its failures one list."""

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from feature_extraction.atomic import atomic_path
from feature_extraction.backbones import Extractor
from feature_extraction.feature_file import FeatureFile, Shard, Timeline
from feature_extraction.ledger import Ledger, Record
from feature_extraction.manifest import Manifest, Row
from feature_extraction.media import REASONS


@dataclass(frozen=True)
class Failure:
    """A clip that is absent from the features.

    Attributes:
        id: of the clip.
        media: the file at fault.
        modality: that could not be had.
        reason: a key of `feature_extraction.media.REASONS`.
        detail: what was seen.
    """

    id: str
    media: str
    modality: str
    reason: str
    detail: str


def failures_path(output: Path) -> Path:
    """Name the list of failures of a feature file."""
    return output.with_name(output.name + ".failures.csv")


def write_failures(path: Path, failures: Sequence[Failure]) -> None:
    """Write the list of failures, or remove an older one where nothing failed."""
    if not failures:
        path.unlink(missing_ok=True)
        return
    text = io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(field.name for field in fields(Failure))
    table.writerows(astuple(failure) for failure in failures)
    with atomic_path(path) as temporary:  # names of media are bytes, as the system has them
        temporary.write_bytes(text.getvalue().encode("utf-8", errors="surrogateescape"))


def assemble(
    manifest: Manifest,
    shard: tuple[int, int],
    extractors: Mapping[str, Extractor],
    settings: Mapping[str, str],
    ledger: Ledger,
    missing: Mapping[int, Failure],
    provenance: Mapping[str, Mapping[str, Any]],
    *,
    sequence: bool,
) -> tuple[FeatureFile | None, list[Failure], list[tuple[str, str]]]:
    """Put the records of a finished job together, in the manifest's order.

    Args:
        manifest: the clips.
        shard: (i, n), which of its rows belong to the job.
        extractors: by modality.
        settings: by modality the fingerprint that its records carry.
        ledger: the records.
        missing: by position in the job, clips without a file.
        provenance: by modality, for the feature file.
        sequence: whether descriptions over time are kept.

    Returns:
        The feature file (None where every clip of a whole job failed), the failures, and id and remark of odd clips.
    """
    rows = manifest.rows[shard[0] :: shard[1]]
    good: list[int] = []
    failures: list[tuple[int, Failure]] = []
    warnings: list[tuple[str, str]] = []
    for number, row in enumerate(rows):
        records = [ledger.find(row.id, modality, settings[modality]) for modality in extractors]
        failure = missing.get(number) or _first_failure(row, [record for record in records if record is not None])
        if failure is not None:
            failures.append((number, failure))
            continue
        good.append(number)
        warnings += [(row.id, remark) for record in records if record is not None for remark in record.warnings]
    described = Shard(
        index=shard[0],
        count=shard[1],
        total=len(manifest.rows),
        manifest=fingerprint(manifest),
        rows=np.asarray(good, dtype=np.int64) * shard[1] + shard[0],
        failures=tuple((number * shard[1] + shard[0], astuple(failure)) for number, failure in failures),
    )
    content = None
    if good or shard[1] > 1:
        kept = [rows[number] for number in good]
        content = _feature_file(manifest, kept, extractors, settings, ledger, provenance, described, sequence)
    return content, [failure for _, failure in failures], warnings


def fingerprint(manifest: Manifest) -> str:
    """Name the content of a manifest, wherever it lies: shards belong together only where it is the same."""
    cells = [[row.id, row.label, row.split, row.columns] for row in manifest.rows]
    return hashlib.sha256(json.dumps(cells, sort_keys=True).encode()).hexdigest()


def _first_failure(row: Row, records: Iterable[Record]) -> Failure | None:
    """Choose one reason a clip: the one that stands first in `REASONS`."""
    order = list(REASONS)
    failed = sorted((record for record in records if record.reason), key=lambda record: order.index(record.reason))
    if not failed:
        return None
    first = failed[0]
    return Failure(row.id, row.media[first.modality], first.modality, first.reason, first.detail)


def _feature_file(
    manifest: Manifest,
    rows: Sequence[Row],
    extractors: Mapping[str, Extractor],
    settings: Mapping[str, str],
    ledger: Ledger,
    provenance: Mapping[str, Mapping[str, Any]],
    shard: Shard,
    sequence: bool,
) -> FeatureFile:
    splits = tuple(row.split for row in rows)
    features: dict[str, NDArray[np.float32]] = {}
    timelines: dict[str, Timeline] = {}
    fitted: dict[str, dict[str, NDArray[np.float32]]] = {}
    for modality, one in extractors.items():
        found = (ledger.values(row.id, modality, settings[modality]) for row in rows)
        if not sequence and one.finish is None:
            features[modality] = _matrix(found, len(rows), one.dimension)
            continue
        descriptions = list(found)
        if one.finish is not None:
            descriptions, fitted[modality] = one.finish(descriptions, splits)
        features[modality] = _matrix((one.pool(description) for description in descriptions), len(rows), one.dimension)
        if sequence:
            timelines[modality] = _timeline(descriptions, one.dimension)
    numbers = {name: number for number, name in enumerate(manifest.class_names)}
    return FeatureFile(
        features=features,
        labels=np.asarray([numbers[row.label] for row in rows], dtype=np.int64),
        ids=tuple(row.id for row in rows),
        splits=splits,
        class_names=manifest.class_names,
        provenance=provenance,
        columns={name: tuple(row.columns[name] for row in rows) for name in manifest.rows[0].columns},
        sequences=timelines,
        fitted=fitted,
        shard=shard if shard.count > 1 else None,
    )


def _matrix(values: Iterable[NDArray[np.float32]], n: int, dimension: int) -> NDArray[np.float32]:
    """Stack pooled descriptions (d,): (n, d)."""
    matrix = np.empty((n, dimension), dtype=np.float32)
    for number, value in enumerate(values):
        matrix[number] = value
    return matrix


def _timeline(descriptions: Sequence[NDArray[np.float32]], dimension: int) -> Timeline:
    lengths = [len(description) for description in descriptions]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    values = np.concatenate(descriptions) if descriptions else np.empty((0, dimension), dtype=np.float32)
    return Timeline(values=values.astype(np.float32, copy=False), offsets=offsets)
