"""What is in a feature file: counts, ranges, duplicates, origin, and what is worth a warning."""

import os
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from aadml.data.inspection.column_statistics import Figures, figures_of, row_hashes
from aadml.data.reading import Views, open_data
from aadml.data.splitting.split_duplicates import SAMPLE_SEED, DuplicatePair, duplicate_pairs, searched
from aadml.feature_extraction.feature_file import UNLABELLED, FeatureFile, Timeline
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.manifest import SPLITS

_SHOWN = 5


@dataclass(frozen=True)
class Duplicates:
    """Values that occur more than once.

    Args:
        within: for each split, how many clips repeat an earlier one of the same split.
        across: for each pair of splits, how many distinct values stand in both.
        examples: a few of the values that stand in two splits, as ids.
    """

    within: Mapping[str, int]
    across: Mapping[str, int]
    examples: tuple[str, ...]


class RowsInTime(TypedDict):
    """How many rows the clips have, and when these begin, where the file says it."""

    rows: int
    fewest: int
    most: int
    step: NotRequired[float | None]
    earliest: NotRequired[float | None]
    latest: NotRequired[float | None]


@dataclass(frozen=True)
class Examination:
    """The result of `examine`; every field can be written as JSON.

    Args:
        clips: how many.
        splits: clips of each split.
        classes: for each class the clips of each split; empty where the clips have no labels.
        modalities: for each modality its dimensions, range and other figures, over the clips that have it.
        present: for each modality that some clips lack, the clips of each split that have it.
        duplicates: of ids, of the feature rows of each modality, and of the rows of all modalities together.
        near_duplicates: clips that stand in two splits up to noise and encoding, of those that were looked for.
        searched: how many test and valid clips were looked for: all, or where that takes long a random sample.
        sequences: for each modality whose descriptions over time were kept: how many rows, and when they begin.
        columns: names of further columns.
        provenance: where the features of each modality come from.
        warnings: what a careful reader would want to know, one sentence each.
    """

    clips: int
    splits: Mapping[str, int]
    classes: Mapping[str, Mapping[str, int]]
    modalities: Mapping[str, Figures]
    present: Mapping[str, Mapping[str, int]]
    duplicates: Mapping[str, Duplicates]
    near_duplicates: tuple[DuplicatePair, ...]
    searched: Mapping[str, int]
    sequences: Mapping[str, RowsInTime]
    columns: tuple[str, ...]
    provenance: Mapping[str, JsonObject]
    warnings: tuple[str, ...]


def inspect(
    path: str | os.PathLike[str],
    *,
    layout: str | None = None,
    audio: str | None = None,
    visual: str | None = None,
    text: str | None = None,
    views: Views = (),
    near_duplicates: bool = False,
) -> Examination:
    """Say what is in features of any layout: counts, ranges, duplicates, origin, warnings.

    Args:
        path: a feature file, or a layout the field has.
        layout: of the file; recognized by default.
        audio: the view that counts as audio, where the layout does not say.
        visual: the view that counts as visual, where the layout does not say.
        text: the view that counts as text, where the layout does not say.
        views: those taken as further modalities: `{"flow": VIEW}`, or `["flow=VIEW"]`.
        near_duplicates: look for all clips that stand in two splits up to noise and encoding however long that takes;
            by default, where it would take many minutes, a random sample of test and valid is looked for, and a warning
            says so.

    Raises:
        InputError: nothing there, no known layout, or content that contradicts itself.
    """
    return examine(
        open_data(path, layout=layout, audio=audio, visual=visual, text=text, views=views),
        near_duplicates=near_duplicates,
    )


def examine(content: FeatureFile, *, near_duplicates: bool = False) -> Examination:
    """Look at everything that can be told from the content of a feature file; see `inspect`."""
    classes, splits = _clips_of_classes(content), {split: content.splits.count(split) for split in SPLITS}
    modalities = {name: figures_of(values, content.has(name)) for name, values in content.features.items()}
    hashes = {name: row_hashes(values) for name, values in content.features.items()}
    duplicates = {"id": find_duplicates(content.ids, content.splits, content.ids)}
    duplicates |= {name: _duplicates_among(content, rows, content.has(name)) for name, rows in hashes.items()}
    if len(hashes) > 1:
        whole = np.all([content.has(name) for name in content.features], axis=0)
        duplicates["all modalities"] = _duplicates_among(content, list(zip(*hashes.values(), strict=True)), whole)
    pairs = tuple(duplicate_pairs(content, limit=not near_duplicates))
    asked = {split: len(rows) for split, rows in searched(content, limit=not near_duplicates).items()}
    return Examination(
        clips=len(content.ids),
        splits=splits,
        classes=classes,
        modalities=modalities,
        present={
            name: {split: int(content.has(name)[content.rows(split)].sum()) for split in SPLITS}
            for name in content.features
            if not content.has(name).all()
        },
        duplicates=duplicates,
        near_duplicates=pairs,
        searched=asked,
        sequences={name: _rows_in_time(timeline) for name, timeline in content.sequences.items()},
        columns=tuple(content.columns),
        provenance=content.provenance,
        warnings=(*_warnings(content, classes, modalities, duplicates), *_duplicate_warnings(pairs, asked, splits)),
    )


def find_duplicates(values: Sequence[Hashable], splits: Sequence[str], ids: Sequence[str]) -> Duplicates:
    """Count values that repeat within a split and values that stand in two splits.

    Args:
        values: (n,) what is compared.
        splits: (n,) the split of each.
        ids: (n,) names for the examples.
    """
    bits = {split: 1 << number for number, split in enumerate(SPLITS)}
    seen: dict[Hashable, int] = {}
    within = dict.fromkeys(SPLITS, 0)
    for value, split in zip(values, splits, strict=True):
        known = seen.get(value, 0)
        within[split] += bool(known & bits[split])
        seen[value] = known | bits[split]
    pairs = [(one, two) for number, one in enumerate(SPLITS) for two in SPLITS[number + 1 :]]
    places = Counter(seen.values())
    across = {
        f"{one}-{two}": sum(n for known, n in places.items() if known & bits[one] and known & bits[two])
        for one, two in pairs
    }
    shared = (value for value, known in seen.items() if known & (known - 1))
    return Duplicates(within, across, tuple(ids[values.index(value)] for value in islice(shared, _SHOWN)))


def _duplicates_among(content: FeatureFile, values: Sequence[Hashable], there: NDArray[np.bool_]) -> Duplicates:
    """Look for values that repeat, among the clips that have them."""
    rows = np.flatnonzero(there).tolist()
    splits, ids = ([column[row] for row in rows] for column in (content.splits, content.ids))
    return find_duplicates([values[row] for row in rows], splits, ids)


def _clips_of_classes(content: FeatureFile) -> dict[str, dict[str, int]]:
    """Count the clips of each class and split; one of several classes counts in each."""
    marked, classes = content.all_labels, len(content.class_names)

    def counted(rows: NDArray[np.int64]) -> NDArray[np.int64]:
        if marked is not None:
            return np.asarray(marked[rows].sum(axis=0), dtype=np.int64)
        own = content.labels[rows]
        return np.bincount(own[own != UNLABELLED], minlength=classes).astype(np.int64)

    counts = {split: counted(content.rows(split)) for split in SPLITS}
    return {
        name: {split: int(counts[split][number]) for split in SPLITS} for number, name in enumerate(content.class_names)
    }


def _rows_in_time(timeline: Timeline) -> RowsInTime:
    """Count the rows of the clips, and say when they begin; no times where the file does not have them."""
    lengths = np.diff(timeline.offsets)
    figures: RowsInTime = {"rows": len(timeline.values), "fewest": int(lengths.min()), "most": int(lengths.max())}
    if timeline.times is None:
        return figures
    within = np.ones(max(len(timeline.times) - 1, 0), dtype=bool)
    ends = timeline.offsets[1:-1]
    within[ends[(ends > 0) & (ends < len(timeline.times))] - 1] = False  # from one clip to the next
    steps = np.diff(timeline.times)[within]
    first = timeline.times[timeline.offsets[:-1][lengths > 0]]
    return {
        **figures,
        "step": float(np.median(steps)) if len(steps) else None,
        "earliest": float(first.min()) if len(first) else None,
        "latest": float(first.max()) if len(first) else None,
    }


def _warnings(
    content: FeatureFile,
    classes: Mapping[str, Mapping[str, int]],
    modalities: Mapping[str, Figures],
    duplicates: Mapping[str, Duplicates],
) -> list[str]:
    found = list(content.notes())
    if not content.class_names:
        found.append("the clips have no labels: only a query's own partner is relevant, and methods of pairs train")
    elif content.all_labels is not None:
        several = int((content.all_labels.sum(axis=1) > 1).sum())
        found.append(f"{several} clips have several labels: methods that learn classes do not train on them")
    elif UNLABELLED in content.labels:
        without = int((content.labels == UNLABELLED).sum())
        found.append(f"{without} clips have no label: few-labels and pairs train on them, other methods without them")
    for split in SPLITS:
        if split not in content.splits:
            found.append(f"there are no {split} clips")
        else:
            absent = [name for name, counts in classes.items() if not counts[split]]
            found += [f"classes without {split} clips: {_some(absent)}"] if absent else []
    for kind, found_twice in duplicates.items():
        what = "ids" if kind == "id" else f"identical feature rows ({kind})"
        found += [f"{n} {what} repeat within {split}" for split, n in found_twice.within.items() if n]
        some = _some(list(found_twice.examples))
        found += [f"{n} {what} stand in both of {pair} ({some})" for pair, n in found_twice.across.items() if n]
    for name, figures in modalities.items():
        origin = content.provenance.get(name, {})
        unknown = origin.get("extractor", "unknown") == "unknown"
        found += [f"{name}: {warning}" for warning in [*(_guesses(figures) if unknown else []), *_flaws(figures)]]
    return list(dict.fromkeys(found))


def _duplicate_warnings(
    pairs: Sequence[DuplicatePair], asked: Mapping[str, int], splits: Mapping[str, int]
) -> list[str]:
    sampled = [f"{count} of {splits[split]} {split}" for split, count in asked.items() if count < splits[split]]
    found = [
        f"near-duplicates were looked for among {' and '.join(sampled)} clips (drawn at random, seed {SAMPLE_SEED}), "
        "as looking for all takes long; --near-duplicates does it"
    ]
    return [*(found if sampled else []), *_pair_warnings(pairs)]


def _pair_warnings(pairs: Sequence[DuplicatePair]) -> list[str]:
    counts = Counter((pair.split, pair.other_split) for pair in pairs)
    kinds = {splits: Counter[str]() for splits in counts}
    for pair in pairs:
        kinds[pair.split, pair.other_split].update(pair.distances.keys())
    return [
        f"{count} {split} clips stand in {other} up to noise or encoding "
        f"({', '.join(f'{n} by {kind}' for kind, n in kinds[split, other].items())}); "
        "`aadml convert IN OUT --drop-duplicates train` leaves them out"
        for (split, other), count in counts.items()
    ]


def _guesses(figures: Figures) -> list[str]:
    """Guess the kind of features from their range, for files that do not say what made them."""
    low, high = figures["minimum"], figures["maximum"]
    if figures["whole_numbers"] and low >= 0 and 31 < high <= 255:
        return ["whole numbers from 0 to 255, so probably 8-bit quantized; scale them before comparing kinds"]
    if low >= 0 and figures["zeros"] > 0.2:
        return [f"never negative and {figures['zeros']:.0%} zeros, so probably taken after a ReLU"]
    return []


def _flaws(figures: Figures) -> list[str]:
    found = []
    low, high = figures["minimum"], figures["maximum"]
    if figures["constant_dimensions"]:
        found.append(f"{figures['constant_dimensions']} of {figures['dimensions']} dimensions never change")
    if figures["zero_rows"]:
        found.append(f"{figures['zero_rows']} clips have only zeros")
    if max(abs(low), abs(high)) > 1e3:
        found.append(f"values from {low:.3g} to {high:.3g}; standardize them before training")
    return found


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
