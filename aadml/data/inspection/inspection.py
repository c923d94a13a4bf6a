"""Inspection of a feature file: counts, ranges, duplicates, origin, warnings."""

import os
import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from aadml.data.inspection.column_statistics import ColumnStatistics, compute_statistics, row_hashes
from aadml.data.inspection.duplicates import Duplicates, find_duplicates
from aadml.data.inspection.retrieval_task import TASK, TaskExamination, examine_task
from aadml.data.reading import Views, open_data
from aadml.data.splitting.folds import first_five
from aadml.data.splitting.shared_clips import recording_notes
from aadml.data.splitting.split_duplicates import SAMPLE_SEED, DuplicatePair, duplicate_pairs, searched
from aadml.feature_extraction.feature_file.content import UNLABELLED, FeatureFile, Timeline
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.manifest import SPLITS, open_manifest

if TYPE_CHECKING:
    from aadml.data.inspection.recipes import RecipeMatch


class RowsInTime(TypedDict):
    """Statistics of a modality with features over time: numbers of its rows, and their times if times are stored.

    Without stored times, `step`, `earliest` and `latest` are absent.

    Attributes:
        rows: number of rows of all clips.
        fewest: smallest number of rows of a clip.
        most: largest number of rows of a clip.
        step: median seconds from one row to the next; None if no clip has two rows.
        earliest: smallest time of the first row of a clip, in seconds; None without rows.
        latest: largest time of the first row of a clip, in seconds; None without rows.
    """

    rows: int
    fewest: int
    most: int
    step: NotRequired[float | None]
    earliest: NotRequired[float | None]
    latest: NotRequired[float | None]


@dataclass(frozen=True)
class Examination:
    """Statistics of a data set, as computed by `examine`; every field can be written as JSON.

    Args:
        clips: number of clips.
        splits: split -> number of clips.
        classes: class -> split -> number of clips; empty if the clips have no labels.
        modalities: modality -> its dimensions, range and other statistics, over the clips that have the modality. A
            modality that no clip has is left out.
        present: modality that some clips lack -> split -> number of clips with the modality.
        duplicates: "id", a modality or "all modalities" -> duplicate ids, feature rows of the modality, or rows of all
            modalities together.
        near_duplicates: pairs of a test or valid clip and a clip of an earlier split that are equal, exactly or nearly.
        searched: "test" or "valid" -> number of clips that were looked up in the earlier splits: all clips, or a random
            sample if looking up all clips would take many minutes.
        sequences: modality with features over time -> number of its rows, and their times.
        columns: names of the columns that the manifest of the clips had besides ids, media, labels and splits.
        provenance: origin of the features of each modality.
        warnings: warnings, one sentence each.
        recipes: known recipes (network and settings) nearest to the features; empty if no media were given.
    """

    clips: int
    splits: Mapping[str, int]
    classes: Mapping[str, Mapping[str, int]]
    modalities: Mapping[str, ColumnStatistics]
    present: Mapping[str, Mapping[str, int]]
    duplicates: Mapping[str, Duplicates]
    near_duplicates: tuple[DuplicatePair, ...]
    searched: Mapping[str, int]
    sequences: Mapping[str, RowsInTime]
    columns: tuple[str, ...]
    provenance: Mapping[str, JsonObject]
    warnings: tuple[str, ...]
    recipes: "tuple[RecipeMatch, ...]" = ()


def inspect(
    path: str | os.PathLike[str],
    *,
    layout: str | None = None,
    audio: str | None = None,
    visual: str | None = None,
    text: str | None = None,
    views: Views = (),
    near_duplicates: bool = False,
    media: str | os.PathLike[str] | None = None,
) -> Examination | TaskExamination:
    """Return the counts, ranges, duplicates, origin and warnings of features, or statistics of a retrieval task.

    Args:
        path: a feature file, or a file or folder of another layout; or "mteb:TASK", the data of a retrieval task, for
            which a `TaskExamination` is returned (see `examine_task`).
        layout: layout of the file; recognized by default.
        audio: name of the array (or view) of audio, if the layout does not define it.
        visual: name of the array (or view) of visual, if the layout does not define it.
        text: name of the array (or view) of text, if the layout does not define it.
        views: arrays (or views) of further modalities: `{"flow": VIEW}`, or `["flow=VIEW"]`.
        near_duplicates: search the earlier splits for near-duplicates (equal up to noise and encoding) of every test
            and valid clip. By default, a search that would take many minutes uses only a random sample of these clips,
            with a warning.
        media: manifest of the same clips, to find the known recipe (network and settings) of the features.

    Raises:
        InputError: data, a manifest or a weight file that cannot be read, a manifest without clips of the features, or
            an option that does not apply to the data.
        MissingExtraError: a package that the data need is not installed.
    """
    if str(path).startswith(TASK):
        options = {"layout": layout, "audio": audio, "visual": visual, "text": text, "views": views, "media": media}
        passed = ", ".join(name for name, value in (options | {"near_duplicates": near_duplicates}).items() if value)
        if passed:
            raise InputError(f"{path}: options do not apply to a retrieval task (passed: {passed}); omit the options")
        return examine_task(str(path).removeprefix(TASK))
    content = open_data(path, layout=layout, audio=audio, visual=visual, text=text, views=views)
    matches: tuple[RecipeMatch, ...] = ()
    if media is not None:
        from aadml.data.inspection.recipes import recipe_matches  # late: imports the networks

        matches = recipe_matches(content, open_manifest(media))
    return replace(examine(content, near_duplicates=near_duplicates), recipes=matches)


def examine(content: FeatureFile, *, near_duplicates: bool = False) -> Examination:
    """Return the counts, ranges, duplicates, origin and warnings of a feature file's content; see `inspect`."""
    classes, splits = _clips_of_classes(content), {split: content.splits.count(split) for split in SPLITS}
    masks = {name: content.has(name) for name in content.features}
    modalities = {m: compute_statistics(rows, masks[m]) for m, rows in content.features.items() if masks[m].any()}
    hashes = {name: row_hashes(values) for name, values in content.features.items()}
    duplicates = {"id": find_duplicates(content.ids, content.splits, content.ids)}
    duplicates |= {name: _duplicates_among(content, rows, masks[name]) for name, rows in hashes.items()}
    if len(hashes) > 1:
        rows = list(zip(*hashes.values(), strict=True))
        duplicates["all modalities"] = _duplicates_among(content, rows, np.all(list(masks.values()), axis=0))
    pairs = tuple(duplicate_pairs(content, limit=not near_duplicates))
    counts = {split: len(rows) for split, rows in searched(content, limit=not near_duplicates).items()}
    warnings = chain(
        content.notes(), _label_warnings(content), _split_warnings(content, classes), recording_notes(content),
        _repeat_warnings(duplicates),
        _value_warnings(content, modalities), _pair_warnings(pairs, counts, splits),
    )  # fmt: skip
    return Examination(
        clips=len(content.ids),
        splits=splits,
        classes=classes,
        modalities=modalities,
        present={
            name: {split: int(mask[content.rows(split)].sum()) for split in SPLITS}
            for name, mask in masks.items()
            if not mask.all()
        },
        duplicates=duplicates,
        near_duplicates=pairs,
        searched=counts,
        sequences={name: _rows_in_time(timeline) for name, timeline in content.sequences.items()},
        columns=tuple(content.columns),
        provenance=content.provenance,
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _duplicates_among(content: FeatureFile, values: Sequence[Hashable], present: NDArray[np.bool_]) -> Duplicates:
    rows = np.flatnonzero(present).tolist()
    splits, ids = ([column[row] for row in rows] for column in (content.splits, content.ids))
    return find_duplicates([values[row] for row in rows], splits, ids)


def _clips_of_classes(content: FeatureFile) -> dict[str, dict[str, int]]:
    """Count the clips of each class and split; a clip of several classes counts in each of its classes."""
    counts = {}
    for split in SPLITS:
        if content.all_labels is not None:
            counts[split] = content.all_labels[content.rows(split)].sum(axis=0)
        else:
            labels = content.labels[content.rows(split)]
            counts[split] = np.bincount(labels[labels != UNLABELLED], minlength=len(content.class_names))
    return {name: {split: int(counts[split][n]) for split in SPLITS} for n, name in enumerate(content.class_names)}


def _rows_in_time(timeline: Timeline) -> RowsInTime:
    """Return the numbers of rows, and statistics of the times of the rows if the timeline has times."""
    lengths = np.diff(timeline.offsets)
    numbers: RowsInTime = {"rows": len(timeline.values), "fewest": int(lengths.min()), "most": int(lengths.max())}
    if timeline.times is None:
        return numbers
    steps = np.concatenate([np.diff(timeline.times[start:stop]) for start, stop in pairwise(timeline.offsets)])
    first = timeline.times[timeline.offsets[:-1][lengths > 0]]
    return {
        **numbers,
        "step": float(np.median(steps)) if len(steps) else None,
        "earliest": float(first.min()) if len(first) else None,
        "latest": float(first.max()) if len(first) else None,
    }


def _label_warnings(content: FeatureFile) -> Iterator[str]:
    names = content.class_names
    if not names:
        yield (
            "the clips have no labels, so only a query's own partner is relevant, and only methods for pairs can train"
        )
    if negative := [name for name in names if re.fullmatch("-[1-9][0-9]*", name)]:
        yield f"classes have negative numbers as names, which often mark clips without a label: {first_five(negative)}"
    if len(names) == 1:
        yield f"all labeled clips have the class '{names[0]}', so each clip is relevant to each query"
    without = int((content.labels == UNLABELLED).sum()) if names else 0
    if content.all_labels is not None:
        several = int((content.all_labels.sum(axis=1) > 1).sum())
        yield f"{several} clips have several labels; methods that train on classes leave these clips out"
    elif without:
        yield f"{without} clips have no label; only the methods few-labels and pairs train on these clips"


def _split_warnings(content: FeatureFile, classes: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    for split in SPLITS:
        absent = [name for name, counts in classes.items() if not counts[split]]
        if split not in content.splits:
            yield f"there are no {split} clips"
        elif absent:
            yield f"classes have no {split} clips: {first_five(absent)}"


def _repeat_warnings(duplicates: Mapping[str, Duplicates]) -> Iterator[str]:
    for kind, repeats in duplicates.items():
        what = "ids" if kind == "id" else f"identical feature rows ({kind})"
        yield from (f"{n} {what} repeat within {split}" for split, n in repeats.within.items() if n)
        examples = ", ".join(repeats.examples)
        yield from (f"{n} {what} are in both splits of {pair} ({examples})" for pair, n in repeats.across.items() if n)


def _value_warnings(content: FeatureFile, modalities: Mapping[str, ColumnStatistics]) -> Iterator[str]:
    for name, statistics in modalities.items():
        low, high = statistics["minimum"], statistics["maximum"]
        if content.provenance.get(name, {}).get("extractor", "unknown") == "unknown" and low >= 0:
            if statistics["whole_numbers"] and 31 < high <= 255:
                yield f"{name}: values are whole numbers from 0 to 255, probably 8-bit; scale them before comparisons"
            elif statistics["zeros"] > 0.2:
                yield f"{name}: values are never negative and {statistics['zeros']:.0%} are zeros, as after a ReLU"
        if statistics["constant_dimensions"]:
            yield f"{name}: {statistics['constant_dimensions']} of {statistics['dimensions']} dimensions never change"
        if statistics["zero_rows"]:
            yield f"{name}: {statistics['zero_rows']} clips have only zeros"
        if max(abs(low), abs(high)) > 1e3:
            yield f"{name}: values range from {low:.3g} to {high:.3g}; standardize them before training"


def _pair_warnings(
    pairs: Sequence[DuplicatePair], searched_clips: Mapping[str, int], splits: Mapping[str, int]
) -> Iterator[str]:
    sampled = [f"{n} of {splits[split]} {split}" for split, n in searched_clips.items() if n < splits[split]]
    if sampled:
        yield (
            f"only {' and '.join(sampled)} clips (drawn at random, seed {SAMPLE_SEED}) were searched for "
            "near-duplicates, because a search of all clips takes long; --near-duplicates searches all clips"
        )
    counts = Counter((pair.split, pair.other_split) for pair in pairs)
    for (split, other), count in counts.items():
        same = [pair for pair in pairs if (pair.split, pair.other_split) == (split, other)]
        kinds = Counter(kind for pair in same for kind in pair.distances)
        yield (
            f"{count} {split} clips are also in {other}, up to noise or encoding "
            f"({', '.join(f'{n} by {kind}' for kind, n in kinds.items())}); "
            f"`aadml convert IN OUT --drop-duplicates train` removes the copies in {other}"
        )
