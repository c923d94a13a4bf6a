"""Calibration of an index on validation clips, for every kind of query that the clips can form."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.comparison.arrays import require_finite_embeddings
from aadml.comparison.features import Modality
from aadml.feature_extraction.foreign.tables import shown_address
from aadml.feature_extraction.ground.errors import DamagedFileError, InputError
from aadml.feature_extraction.ground.file_content import content_of, stamp_of
from aadml.feature_extraction.ground.json_values import read_as
from aadml.feature_extraction.ground.strings import Note
from aadml.feature_extraction.manifest import LABELS_SEPARATOR
from aadml.retrieval.exact_search import Gallery
from aadml.retrieval.posteriors import are_posteriors
from aadml.search.calibration import FEWEST, HITS, Calibration, Sample, calibrate
from aadml.search.captions import as_clips, clips_of_captions
from aadml.search.checksums import ITEMS, BlockChecks
from aadml.search.encoders import IndexEncoder
from aadml.search.facts import OF_INDEX, CalibrationRecord, IndexFacts, located, near, write_facts
from aadml.search.filters import matching
from aadml.search.items import Galleries, galleries_of, labels_of
from aadml.search.sources import IndexSource, accepted, is_readable, of_features

FORM, READABLE = 4, (2, 3, 4)
"""Version of the curves in an index, and versions that can be read.

The next `aadml index` fits curves of other versions again. In version 2, clips with several classes were relevant only
if all their classes were equal. In versions 2 and 3, the item of a clip of another file was a hit of this clip, and
only validation clips with every modality counted.
"""

PRECISION = 0.9
"""Requested share of relevant hits of a first calibration."""

MOST, PRODUCTS = 1000, 20_000_000
"""Largest number of validation clips, and largest product of clips and items.

The product never reduces the number of clips below 200.
"""

Query = tuple[tuple[Modality, ...], Modality]
"""Modalities of a query, and the modality of the items."""


@dataclass(frozen=True)
class ValidationQueries:
    """Validation clips that have every modality of a kind of query.

    Attributes:
        vectors: modality -> (q, e).
        labels: class of each of the q clips, or several classes joined by "|"; all "" if no clip has a class.
        numbers: (q,) numbers of the items with the same ids; -1 for clips that are not in the index.
    """

    vectors: Mapping[Modality, Tensor]
    labels: tuple[str, ...]
    numbers: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class ValidationClips:
    """Validation clips, which may lack modalities.

    Attributes:
        labels: class of each of the n clips, like the labels of ValidationQueries.
        numbers: (n,) numbers of the items, like the numbers of ValidationQueries.
        rows: modality -> (n,) rows of the clips among the vectors of the modality; -1 for clips without the modality.
        vectors: function that returns the vectors of a modality in some rows.
    """

    labels: tuple[str, ...]
    numbers: NDArray[np.int64]
    rows: Mapping[Modality, NDArray[np.int64]]
    vectors: Callable[[Modality, NDArray[np.int64]], Tensor]

    @property
    def count(self) -> int:
        """Largest number of clips with a common modality."""
        return max((int((rows >= 0).sum()) for rows in self.rows.values()), default=0)

    def queries(self, modalities: tuple[Modality, ...], most: int) -> ValidationQueries | None:
        """Return the clips that have all `modalities`, or a random sample of `most` of them; None for too few clips."""
        if not self.rows.keys() >= {*modalities}:
            return None
        clips = np.flatnonzero(np.all([self.rows[m] >= 0 for m in modalities], axis=0))
        if len(clips) < FEWEST:
            return None
        if len(clips) > most:
            clips = np.sort(np.random.default_rng(0).permutation(clips)[:most])
        vectors = {m: self.vectors(m, self.rows[m][clips]) for m in modalities}
        return ValidationQueries(vectors, tuple(self.labels[n] for n in clips), self.numbers[clips])


@dataclass(frozen=True)
class IndexContent:
    """Vectors and classes of the items that validation clips query, and the encoder of the index.

    Attributes:
        galleries: numbers and vectors of the items, by modality.
        labels: number of an item -> its class.
        encoder: encoder of the index.
        clips: number of a caption -> number of its clip.
    """

    galleries: Galleries
    labels: Mapping[int, str]
    encoder: IndexEncoder
    clips: dict[int, int] = field(default_factory=dict)


def calibrate_index(
    begin: Callable[[], sqlite3.Connection],
    folder: Path,
    facts: IndexFacts,
    data: str | Path | None,
    encoder: IndexEncoder,
    precision: float | None,
    note: Note,
) -> None:
    """Calibrate an index, unless the last calibration is still valid.

    Args:
        begin: called before the first change; returns the index in an open transaction.
        folder: folder of the index.
        facts: facts of the index.
        data: a feature file with validation clips; None for the file of the last calibration, or for the index itself.
            While the last file is missing or does not fit the index, its curves are kept until the index changes, and
            then the clips of the index are used.
        encoder: encoder of the index.
        precision: requested share of relevant hits among the best hits above the threshold; None for the share of the
            last calibration, or PRECISION.
        note: called with notes for the user.

    Raises:
        InputError: unreadable `data`, features of `data` that do not fit the index, a precision without the file of the
            last calibration, or an index that cannot be written.
        sqlite3.DatabaseError: the index is damaged.
    """
    before = facts.calibration
    last = None if before.data == OF_INDEX else located(before.data, folder)
    unusable = "" if data is not None or last is None else _why_unusable(last, before.content, encoder)
    if unusable and precision not in (None, before.precision):
        raise InputError(f"precision: {unusable}; pass another file with --calibrate")
    if unusable and before.curves and before.content is not None:
        return
    data = data or (None if unusable else last)
    precision = precision or before.precision or PRECISION
    record = CalibrationRecord(
        FORM, before.data if data is None else near(data, folder), precision, before.clips, before.curves,
        None if data is None else _checksum(str(data)),
    )  # fmt: skip
    if unusable:
        note(f"{unusable}, so the validation clips of the index are used; pass another file with --calibrate")
    if record == before:
        return
    database = begin()
    BlockChecks(database, ITEMS).check_all()
    galleries = galleries_of(database, encoder.similarity)
    index = IndexContent(galleries, labels_of(database), encoder, clips_of_captions(database))
    numbers = matching(database, "split = 'valid'")
    clips = _indexed_clips(index, numbers) if data is None else _other_clips(index, database, data)
    curves = _curves(index, clips, precision, shown_address(data or OF_INDEX), note)
    count = None if unusable and not curves else clips.count  # a missing file has no known number of clips
    record = replace(record, clips=count, curves=[asdict(curve) for curve in curves])
    write_facts(database, replace(facts, calibration=record, state=facts.state.next()))


def read_calibrations(record: CalibrationRecord, place: Path) -> dict[Query, Calibration]:
    """Read the calibrations of an index, by kind of query.

    Raises:
        InputError: another version of aadml fitted the curves, or the curves are damaged.
    """
    if record.curves and record.form not in READABLE:
        raise InputError(
            f"{place}: another version of aadml fitted the probabilities; run `aadml index SOURCE -o {place}` to fit "
            "the probabilities again"
        )
    try:
        json.dumps(record.curves, allow_nan=False)
    except ValueError as error:
        raise DamagedFileError(
            f"{place}: the probabilities of the index are damaged ({error}); build the index again"
        ) from error
    calibrations = [read_as(Calibration, curve, place) for curve in record.curves]
    return {(calibration.asked, calibration.to): calibration for calibration in calibrations}


def why_uncalibrated(record: CalibrationRecord) -> str:
    """Return the reason why a kind of query has no calibration, as a clause."""
    if record.clips is None:
        return "the index is not calibrated; run `aadml index` to calibrate it"
    if record.clips < FEWEST:
        return f"{record.data} has {record.clips} of the {FEWEST} validation clips that are needed"
    return f"the validation clips of {record.data} cannot form such queries"


def _checksum(data: str) -> str | None:
    """Return the checksum of a feature file; None if there is no such file, as for synthetic data."""
    stamp = stamp_of(data)
    return None if stamp is None else content_of(data, stamp)


def _why_unusable(last: str, content: str | None, encoder: IndexEncoder) -> str:
    """Return the reason why the file of the last calibration cannot be used, as a clause; "" if the file is usable.

    A file with the checksum `content` was used before, and is not read again.
    """
    if not is_readable(last):
        return f"{last} does not exist"
    try:
        if _checksum(last) != content:
            other_clips(encoder, last)
    except InputError as error:
        return f"{shown_address(last)} cannot be used for the probabilities ({error})"
    return ""


def _indexed_clips(index: IndexContent, numbers: NDArray[np.int64]) -> ValidationClips:
    numbers = numbers[_counted([index.labels.get(int(n), "") for n in numbers])]
    labels = tuple(index.labels.get(int(n), "") for n in numbers)
    rows = {m: _rows(as_clips(items, index.clips), numbers) for m, (items, _) in index.galleries.items()}

    def vectors(modality: Modality, rows: NDArray[np.int64]) -> Tensor:
        return index.galleries[modality][1].vectors[torch.from_numpy(rows)]

    return ValidationClips(labels, numbers, rows, vectors)


def other_clips(encoder: IndexEncoder, place: str | Path) -> IndexSource:
    """Read a feature file with validation clips for calibrating an index.

    Raises:
        InputError: the file cannot be read as features, or the features do not fit the index.
    """
    return accepted(of_features(place, Path(place)), encoder, shown_address(place))


def _other_clips(index: IndexContent, database: sqlite3.Connection, place: str | Path) -> ValidationClips:
    """Return the validation clips of a feature file.

    Without classes, no clip counts as a clip of the index, because files without ids have equal default ids.
    """
    source = other_clips(index.encoder, place)
    assert source.content is not None
    valid, clips = source.content.rows("valid"), source.clips()
    valid = valid[_counted([source.items[n].label for n in valid])]
    labels = tuple(source.items[n].label for n in valid)
    labelled = any(labels)
    numbers = [_number(database, source.items[n].id) if labelled else -1 for n in valid]
    known: dict[Modality, dict[int, Tensor]] = {modality: {} for modality in source.present}

    def vectors(modality: Modality, rows: NDArray[np.int64]) -> Tensor:
        items, of_row = source.present[modality], known[modality]
        if new := [row for row in rows.tolist() if row not in of_row]:
            embedded = index.encoder.embed(items.features[torch.tensor(new)], modality)
            require_finite_embeddings(embedded, modality, [source.items[n].id for n in items.rows[new]])
            of_row.update(zip(new, embedded, strict=True))
        return torch.stack([of_row[row] for row in rows.tolist()])

    rows = {m: _rows(clips[items.rows], valid) for m, items in source.present.items()}
    return ValidationClips(labels, np.asarray(numbers, dtype=np.int64), rows, vectors)


def _number(database: sqlite3.Connection, name: str) -> int:
    """Return the number of the item with an id; -1 if the index lacks the item."""
    row = database.execute("SELECT number FROM item WHERE id = ?", (name,)).fetchone()
    return -1 if row is None else int(row[0])


def _curves(index: IndexContent, clips: ValidationClips, precision: float, name: str, note: Note) -> list[Calibration]:
    """Fit a calibration for every kind of query that the clips can form, and report each calibration by `note`.

    If no modality has FEWEST validation clips, or no kind of query has relevant items, the reason is reported.
    """
    classes = any(clips.labels)
    if clips.count < FEWEST:
        note(
            f"the probabilities are not fitted: {name} has {clips.count} of the {FEWEST} validation clips "
            f"{'with a class ' * classes}that are needed; divide the clips with `aadml manifest --split` or, for "
            "features, `aadml convert --split`, or pass another file with --calibrate"
        )
        return []
    calibrations = list(_calibrations(index, clips, precision, classes=classes))
    if not calibrations:
        note(
            f"the probabilities are not fitted: the validation clips of {name} cannot form queries with relevant "
            "items; pass a file of clips with classes with --calibrate"
        )
    for calibration in calibrations:
        note(summary(calibration))
    return calibrations


def _calibrations(
    index: IndexContent, clips: ValidationClips, precision: float, *, classes: bool
) -> Iterator[Calibration]:
    """Yield the calibration of every kind of query that the clips can form.

    Clips with classes query the items with classes. If no item has a class, the clips query each other. Clips
    without classes query all items, or each other if the clips are not in the index, and only the partner of a clip
    is relevant.
    """
    each_other = not any(index.labels.values()) if classes else bool((clips.numbers < 0).any())
    largest = max(len(gallery) for _, gallery in index.galleries.values())
    queries_with = cache(partial(clips.queries, most=min(MOST, max(200, PRODUCTS // max(largest, 1)))))
    for modalities, to in _kinds(list(clips.rows), index, classes=classes):
        queries = queries_with(modalities if classes and not each_other else (*modalities, to))
        if queries is not None:
            searched, queries = _each_other(index, queries) if each_other else (index, queries)
            calibration = _calibrated(searched, queries, (modalities, to), classes=classes, precision=precision)
            if calibration is not None:
                yield calibration


def _counted(labels: Sequence[str]) -> NDArray[np.int64]:
    """Return the positions of the clips with a class, or of all clips if no clip has a class."""
    labelled = np.asarray([label != "" for label in labels], dtype=np.bool_)
    return np.flatnonzero(labelled | (not labelled.any()))


def _rows(clips: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the first row of each wanted clip among `clips`; -1 for a clip that is absent."""
    order, present = np.argsort(clips, kind="stable"), np.isin(wanted, clips)
    rows = np.full(len(wanted), -1, dtype=np.int64)
    rows[present] = order[np.searchsorted(clips, wanted[present], sorter=order)]
    return rows


def _each_other(index: IndexContent, queries: ValidationQueries) -> tuple[IndexContent, ValidationQueries]:
    numbers = np.arange(len(queries), dtype=np.int64)
    galleries = {m: (numbers, Gallery(v, index.encoder.similarity)) for m, v in queries.vectors.items()}
    labels = dict(enumerate(queries.labels))
    return IndexContent(galleries, labels, index.encoder), ValidationQueries(queries.vectors, queries.labels, numbers)


def _kinds(known: Sequence[Modality], index: IndexContent, *, classes: bool) -> Iterator[Query]:
    """Yield the kinds of query for which the encoder can compare the query with the items.

    Without classes, the modality of the items differs from the modalities of the query.
    """
    singles: list[tuple[Modality, ...]] = [(m,) for m in known]
    both: list[tuple[Modality, ...]] = [("audio", "visual")] if {"audio", "visual"} <= set(known) else []
    for modalities in singles + both:
        for to in index.galleries:
            if all(index.encoder.can_query(m, to) for m in modalities) and (classes or to not in modalities):
                yield modalities, to


def _calibrated(
    index: IndexContent, queries: ValidationQueries, kind: Query, *, classes: bool, precision: float
) -> Calibration | None:
    """Fit the calibration of one kind of query; None if no query has a relevant item.

    Without classes, only the query's own clip is relevant.
    """
    modalities, to = kind
    numbers, gallery = index.galleries[to]
    numbers = as_clips(numbers, index.clips)
    labels = np.asarray([index.labels.get(int(n), "") for n in numbers], dtype=object)
    rows = np.flatnonzero(labels != "") if classes else np.arange(len(numbers))
    count = min(HITS, len(rows) - classes)
    if count < 1:
        return None
    searched = gallery if len(rows) == len(gallery) else gallery.only(rows)
    vectors = torch.stack([queries.vectors[m] for m in modalities], 1)
    same_clip = partial(_equal, numbers[rows], queries.numbers)
    relevant = same_clip
    if classes:
        relevant = partial(_share_class, _rows_by_class(labels[rows]), len(rows), queries.labels)
        if not any((relevant(n) & ~same_clip(n)).any() for n in range(len(queries))):
            return None
    hits = list(searched.best_of_each(vectors, count, same_clip if classes else None))
    count = min(len(best) for _, best in hits)  # several captions of the query's clip may be excluded
    if count < 1:
        return None
    scores = np.stack([best[:count] for _, best in hits])
    fits = np.stack([relevant(n)[order[:count]] for n, (order, _) in enumerate(hits)])
    absent = [best for _, best in searched.best_of_each(vectors, 1, relevant)] if classes else []
    return calibrate(
        modalities, to, Sample(scores, fits), gallery=len(rows), precision=precision,
        posteriors=classes and _are_posteriors(queries, gallery, modalities), relevance="class" if classes else "pair",
        absent=np.concatenate(absent) if classes else None,
    )  # fmt: skip


def _equal(items: NDArray[np.int64], queries: NDArray[np.int64], query: int) -> NDArray[np.bool_]:
    return np.asarray(items == queries[query])


def _rows_by_class(labels: Iterable[str]) -> dict[str, list[int]]:
    rows: dict[str, list[int]] = {}
    for row, label in enumerate(labels):
        for name in label.split(LABELS_SEPARATOR):
            rows.setdefault(name, []).append(row)
    return rows


def _share_class(rows: Mapping[str, list[int]], count: int, labels: Sequence[str], query: int) -> NDArray[np.bool_]:
    """Return whether each of `count` items has a class of a query."""
    shared = np.zeros(count, dtype=np.bool_)
    for name in labels[query].split(LABELS_SEPARATOR):
        shared[rows.get(name, [])] = True
    return shared


def _are_posteriors(queries: ValidationQueries, gallery: Gallery, modalities: Sequence[Modality]) -> bool:
    """Return whether scores are inner products of posteriors, and thus probabilities of a common class."""
    sides = [*(queries.vectors[m] for m in modalities), gallery.vectors[:1000]]
    return gallery.similarity == "dot" and all(map(are_posteriors, sides))


def summary(calibration: Calibration) -> str:
    """Return a line that describes the probabilities of one kind of query and the threshold."""
    threshold = f"there is no threshold, because a precision of {calibration.precision:g} is not reached"
    if calibration.threshold is not None and calibration.reached is not None:
        threshold = f"above {calibration.threshold:.2f}, {calibration.reached[0]:.0%} of the best hits are relevant"
    return (
        f"{'+'.join(calibration.asked)} to {calibration.to}: probabilities from {calibration.clips} validation clips "
        f"(calibration error {calibration.error:.3f}); {threshold}"
    )
