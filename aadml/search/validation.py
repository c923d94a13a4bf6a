"""The calibrations of an index: validation clips ask it, in every way that its encoder allows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.comparison.features import Modality
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import Json, JsonObject, read_as
from aadml.runs.model_data import check_features
from aadml.search.calibration import FEWEST, HITS, Calibration, Sample, calibrate
from aadml.search.encoders import IndexEncoder, ModelEncoder
from aadml.search.exact_search import Gallery
from aadml.search.sources import of_features

FORM = 2
"""Of the curves that an index writes down; those of another form are fitted anew by the next `aadml index`."""

MOST, PRODUCTS = 1000, 20_000_000
"""Validation clips that are used, and products of clips and items after which only 200 are."""

Galleries = Mapping[Modality, tuple[NDArray[np.int64], Gallery]]
"""Modality -> numbers of the items, and their vectors."""


@dataclass(frozen=True)
class ValidationQueries:
    """Validation clips that have every modality.

    Attributes:
        vectors: modality -> (q, e).
        labels: q classes; all empty where there are none.
        numbers: (q,) of the items in the index, -1 for clips that are not in it.
    """

    vectors: Mapping[Modality, Tensor]
    labels: tuple[str, ...]
    numbers: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class IndexContent:
    """The index that is asked.

    Attributes:
        galleries: its vectors.
        labels: number of an item -> its class.
        encoder: that made them.
    """

    galleries: Galleries
    labels: Mapping[int, str]
    encoder: IndexEncoder


def own_clips(index: IndexContent, numbers: Sequence[int]) -> ValidationQueries:
    """Take validation clips of the index itself, by their numbers."""
    kept = np.asarray(sorted(numbers), dtype=np.int64)
    for own, _ in index.galleries.values():
        kept = np.intersect1d(kept, own)
    kept = _drawn(kept, index)
    vectors = {m: one.vectors[torch.from_numpy(_places(own, kept))] for m, (own, one) in index.galleries.items()}
    return ValidationQueries(vectors, tuple(index.labels.get(int(n), "") for n in kept), kept)


def other_clips(index: IndexContent, place: str | Path) -> ValidationQueries:
    """Take the validation clips of a feature file.

    Raises:
        InputError: features of another extractor or width.
    """
    encoder, source = index.encoder, of_features(place, Path(place))
    assert source.content is not None
    kept = {m: one for m, one in source.present.items() if m in encoder.facts.modalities}
    if isinstance(encoder, ModelEncoder):
        check_features(encoder.model, source.content, str(place), allow=False, modalities=list(kept))
    for modality, one in kept.items():
        wanted = encoder.facts.dimensions[modality]
        if one.features.shape[1] != wanted:
            raise InputError(f"{place}: {modality} has {one.features.shape[1]} dimensions; the index has {wanted}")
    rows = _drawn(source.content.rows("valid"), index)
    vectors = {m: encoder.embed(one.features[torch.from_numpy(rows)], m) for m, one in kept.items() if len(rows)}
    return ValidationQueries(vectors, tuple(source.items[n].label for n in rows), np.full(len(rows), -1))


def calibrations(
    index: IndexContent,
    asking: ValidationQueries,
    *,
    precision: float,
    name: str,
    on_note: Callable[[str], None] | None = None,
) -> JsonObject:
    """Fit a calibration for every kind of question; none, with a note, where there are too few validation clips.

    Clips ask the items of the index that have classes. Where the index has none but the clips do, they ask each other;
    where neither has, what fits a clip is its own partner.

    Args:
        index: that is asked.
        asking: the clips.
        precision: of best hits from the threshold on.
        name: where the clips come from.
        on_note: called with notes for the user.

    Returns:
        What the index writes down.
    """
    note, curves = on_note or (lambda _: None), list[Json]()
    classes = any(asking.labels)
    if classes and not any(index.labels.values()):
        index, asking = _each_other(index, asking)
    if len(asking) < FEWEST:
        note(f"no probabilities: {name} has {len(asking)} validation clips, {FEWEST} are needed; see --calibrate")
    else:
        for asked, to in _questions(asking, index, classes=classes):
            one = (
                _calibrated(index, asking, asked, to, precision)
                if classes
                else _of_pairs(index, asking, asked, to, precision)
            )
            if one is not None:
                curves.append(asdict(one))
                note(summary(one))
    return {"form": FORM, "data": name, "precision": precision, "curves": curves}


def read_calibrations(written: JsonObject, place: Path) -> dict[tuple[tuple[Modality, ...], Modality], Calibration]:
    """Read what an index has written down: question -> calibration.

    Raises:
        InputError: curves of another version of aadml.
    """
    curves = written.get("curves", ())
    if curves and written.get("form") != FORM:
        raise InputError(f"{place}: its probabilities are of another version of aadml; `aadml index` fits them anew")
    found = [read_as(Calibration, one, place) for one in curves] if isinstance(curves, list) else []
    return {(one.asked, one.to): one for one in found}


def _drawn(clips: NDArray[np.int64], index: IndexContent) -> NDArray[np.int64]:
    """Draw as many clips as can be asked in a bearable time."""
    largest = max(len(one) for _, one in index.galleries.values())
    most = min(MOST, max(200, PRODUCTS // max(largest, 1)))
    return clips if len(clips) <= most else np.sort(np.random.default_rng(0).permutation(clips)[:most])


def _places(numbers: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Find the rows of items by their numbers."""
    order = np.argsort(numbers)
    return np.asarray(order[np.searchsorted(numbers, wanted, sorter=order)])


def _each_other(index: IndexContent, asking: ValidationQueries) -> tuple[IndexContent, ValidationQueries]:
    numbers = np.arange(len(asking), dtype=np.int64)
    galleries = {m: (numbers, Gallery(v, index.encoder.similarity)) for m, v in asking.vectors.items()}
    labels = dict(enumerate(asking.labels))
    return IndexContent(galleries, labels, index.encoder), ValidationQueries(asking.vectors, asking.labels, numbers)


def _questions(
    asking: ValidationQueries, index: IndexContent, *, classes: bool
) -> Iterator[tuple[tuple[Modality, ...], Modality]]:
    """Name what can be asked; where only a clip's partner fits, only questions of another modality."""
    there = list(asking.vectors)
    singles: list[tuple[Modality, ...]] = [(m,) for m in there]
    both: list[tuple[Modality, ...]] = [("audio", "visual")] if {"audio", "visual"} <= set(there) else []
    for asked in singles + both:
        for to in index.galleries:
            if all(index.encoder.may_ask(m, to) for m in asked) and (classes or to not in asked):
                yield asked, to


def _calibrated(
    index: IndexContent, asking: ValidationQueries, asked: tuple[Modality, ...], to: Modality, precision: float
) -> Calibration | None:
    """Fit on what of the best hits is of a clip's own class."""
    numbers, gallery = index.galleries[to]
    labels = np.asarray([index.labels.get(int(n), "") for n in numbers], dtype=object)
    labelled, scores, fits, absent = labels != "", [], [], []
    count = min(HITS, int(labelled.sum()) - 1)
    if count < 1:
        return None
    for row, label in enumerate(asking.labels):
        if not label:
            continue
        question = torch.stack([asking.vectors[m][row] for m in asked])
        places, found = gallery.best(question, count, np.flatnonzero(labelled & (numbers != asking.numbers[row])))
        scores.append(found)
        fits.append(labels[places] == label)
        _, other = gallery.best(question, 1, np.flatnonzero(labelled & (labels != label)))
        absent.append(other[0] if len(other) else np.nan)
    return calibrate(
        asked, to, Sample(np.stack(scores), np.stack(fits)), posteriors=_are_posteriors(asking, gallery, asked),
        relevance="class", gallery=int(labelled.sum()), absent=np.asarray(absent), precision=precision,
    )  # fmt: skip


def _of_pairs(
    index: IndexContent, asking: ValidationQueries, asked: tuple[Modality, ...], to: Modality, precision: float
) -> Calibration | None:
    """Fit on whether a hit is the clip itself."""
    numbers, gallery = index.galleries[to]
    if not np.isin(asking.numbers, numbers).all():
        return None
    count = min(HITS, len(gallery))
    scores, fits = [], []
    for row, number in enumerate(asking.numbers):
        places, found = gallery.best(torch.stack([asking.vectors[m][row] for m in asked]), count)
        scores.append(found)
        fits.append(numbers[places] == number)
    sample = Sample(np.stack(scores), np.stack(fits))
    return calibrate(asked, to, sample, posteriors=False, relevance="pair", gallery=len(gallery), precision=precision)


def _are_posteriors(asking: ValidationQueries, gallery: Gallery, asked: tuple[Modality, ...]) -> bool:
    """Tell whether scores are the probability of a common class."""
    sides = [*(asking.vectors[m] for m in asked), gallery.vectors[:1000]]
    sums = [(one >= 0).all() and bool(((one.double().sum(1) - 1).abs() < 1e-4).all()) for one in sides]
    return gallery.similarity == "dot" and all(sums)


def summary(one: Calibration) -> str:
    """Say in one line what is promised and on how much that rests."""
    fits = "a clip of the same class" if one.relevance == "class" else "the clip itself"
    words = (
        f"{'+'.join(one.asked)} to {one.to}: probabilities from {one.clips} validation clips ({one.curve.kind} curve; "
        f"{fits} fits), calibration error {one.error:.3f}, of which up to {one.band:.3f} is noise"
    )
    if one.threshold is None or one.reached is None:
        words += f"; a precision of {one.precision:g} is not reached, so there is no threshold"
    else:
        share, low, high = one.reached
        words += (
            f"; from {one.threshold:.2f} on best hits fit in {share:.0%} of cases ({low:.0%} to {high:.0%}), and "
            f"{one.answered:.0%} of clips have such a hit"
        )
    return words if one.absent is None else f"{words}; AUROC of clips whose class is not there {one.absent:.3f}"
