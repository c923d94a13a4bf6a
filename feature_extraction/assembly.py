"""The last steps of an extraction job: the records of its ledger become one feature file, and its failures one list."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from feature_extraction.backbones import Extractor
from feature_extraction.feature_file import UNLABELLED, FeatureFile, Shard, Timeline, is_feature_file, write_features
from feature_extraction.ground.atomic import atomic_path, remove_leftovers
from feature_extraction.ground.errors import InputError
from feature_extraction.ledger import Ledger, Record
from feature_extraction.manifest import Row
from feature_extraction.media import REASONS
from feature_extraction.plan import Plan, fingerprint


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


def refuse_foreign(output: Path) -> None:
    """Refuse to replace what is not a feature file.

    Raises:
        InputError: `output` is a folder, or a file of another kind.
    """
    if output.is_dir():
        raise InputError(f"{output}: is a folder; give the name of a file to write")
    if output.exists() and not is_feature_file(output):
        raise InputError(f"{output}: exists and is not a feature file; it is not overwritten, name another output")


def write(output: Path, content: FeatureFile | None, failures: Sequence[Failure]) -> None:
    """Write a feature file, and first the list of its failures; what is left of an older job goes.

    Args:
        output: the feature file; the list is `<output>.failures.csv`.
        content: what to write; None removes the file.
        failures: the clips that are absent; none removes the list.

    Raises:
        InputError: the place cannot be written.
    """
    listed = output.with_name(output.name + ".failures.csv")
    for path in (output, listed):
        remove_leftovers(path)
    if failures:
        _write_failures(listed, failures)
    else:
        listed.unlink(missing_ok=True)
    if content is None:
        output.unlink(missing_ok=True)
    else:
        write_features(output, content)


def _write_failures(path: Path, failures: Sequence[Failure]) -> None:
    text = io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(field.name for field in fields(Failure))
    table.writerows(astuple(failure) for failure in failures)
    with atomic_path(path) as temporary:  # names of media are bytes, as the system has them
        temporary.write_bytes(text.getvalue().encode("utf-8", errors="surrogateescape"))


def assemble(
    plan: Plan, ledger: Ledger, missing: Mapping[int, Failure]
) -> tuple[FeatureFile | None, list[Failure], list[tuple[str, str]]]:
    """Put the records of a finished job together, in the manifest's order.

    Args:
        plan: of the job.
        ledger: its records.
        missing: by position in the job, clips without a file.

    Returns:
        The feature file (None where every clip of a whole job failed), the failures, and id and remark of odd clips.
    """
    good: list[int] = []
    failures: list[tuple[int, Failure]] = []
    warnings: list[tuple[str, str]] = []
    for number, row in enumerate(plan.rows):
        found = [ledger.find(row.id, modality, settings) for modality, settings in plan.settings.items()]
        records = [record for record in found if record is not None]
        failure = missing.get(number) or _first_failure(row, records)
        if failure is None:
            good.append(number)
            warnings += [(row.id, remark) for record in records for remark in record.warnings]
        else:
            failures.append((number, failure))
    index, count = plan.shard
    shard = Shard(
        index=index,
        count=count,
        total=len(plan.manifest.rows),
        manifest=fingerprint(plan.manifest),
        rows=np.asarray(good, dtype=np.int64) * count + index,
        failures=tuple((number * count + index, astuple(failure)) for number, failure in failures),
    )
    content = None
    if good or count > 1:
        content = _feature_file(plan, ledger, [plan.rows[number] for number in good], shard if count > 1 else None)
    return content, [failure for _, failure in failures], warnings


def _first_failure(row: Row, records: Iterable[Record]) -> Failure | None:
    """Choose one reason a clip: the one that stands first in `REASONS`."""
    order = list(REASONS)
    failed = sorted((record for record in records if record.reason), key=lambda record: order.index(record.reason))
    if not failed:
        return None
    first = failed[0]
    return Failure(row.id, row.media[first.modality], first.modality, first.reason, first.detail)


def _feature_file(plan: Plan, ledger: Ledger, rows: Sequence[Row], shard: Shard | None) -> FeatureFile:
    splits = tuple(row.split for row in rows)
    features: dict[str, NDArray[np.float32]] = {}
    timelines: dict[str, Timeline] = {}
    fitted: dict[str, dict[str, NDArray[np.float32]]] = {}
    for modality, one in plan.by_modality.items():
        found = (ledger.values(row.id, modality, plan.settings[modality]) for row in rows)
        if not plan.keeps_time(one):
            features[modality] = _matrix(found, len(rows), one.dimension)
            continue
        descriptions = list(found)
        if one.finish is not None:
            descriptions, fitted[modality] = one.finish(descriptions, splits)
        features[modality] = _matrix((one.pool(description) for description in descriptions), len(rows), one.dimension)
        if plan.sequence:
            begins = (_begins(one, ledger.find(row.id, modality, plan.settings[modality])) for row in rows)
            timelines[modality] = _timeline(descriptions, list(begins), one)
    class_names = plan.manifest.class_names
    numbers = {name: number for number, name in enumerate(class_names)}
    return FeatureFile(
        features=features,
        labels=np.asarray([numbers.get(row.label, UNLABELLED) for row in rows], dtype=np.int64),
        all_labels=_all_labels(rows, numbers) if plan.manifest.has_several_labels else None,
        ids=tuple(row.id for row in rows),
        splits=splits,
        class_names=class_names,
        provenance=plan.provenance,
        columns={name: tuple(row.columns[name] for row in rows) for name in plan.manifest.rows[0].columns},
        sequences=timelines,
        fitted=fitted,
        shard=shard,
    )


def _all_labels(rows: Sequence[Row], numbers: Mapping[str, int]) -> NDArray[np.uint8]:
    """Mark the classes of each clip: (n, C)."""
    marked = np.zeros((len(rows), len(numbers)), dtype=np.uint8)
    for number, row in enumerate(rows):
        marked[number, [numbers[label] for label in row.labels]] = 1
    return marked


def _matrix(values: Iterable[NDArray[np.float32]], n: int, dimension: int) -> NDArray[np.float32]:
    """Stack pooled descriptions (d,): (n, d)."""
    matrix = np.empty((n, dimension), dtype=np.float32)
    for number, value in enumerate(values):
        matrix[number] = value
    return matrix


def _begins(one: Extractor, record: Record | None) -> Callable[[int], NDArray[np.float64]]:
    """Return the function that turns a number of rows into the times at which they begin."""
    assert record is not None
    return lambda rows: record.start + one.times(rows, record.seconds)


def _timeline(
    descriptions: Sequence[NDArray[np.float32]], begins: Sequence[Callable[[int], NDArray[np.float64]]], one: Extractor
) -> Timeline:
    lengths = [len(description) for description in descriptions]
    times = [begin(length) for begin, length in zip(begins, lengths, strict=True)]
    return Timeline(
        values=np.concatenate([np.empty((0, one.dimension), np.float32), *descriptions]).astype(np.float32, copy=False),
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        times=np.concatenate([np.empty(0), *times]),
    )
