"""AVE (Tian et al., ECCV 2018): readers and constants.

Reference: Tian et al., Audio-visual event localization in unconstrained videos, ECCV 2018, https://doi.org/10.1007/978-3-030-01216-8_16
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from aadml.data.splitting.division import with_other_splits
from aadml.data.splitting.folds import first_five, read_lines
from aadml.feature_extraction.feature_file.content import FeatureFile
from aadml.feature_extraction.foreign.hdf5 import hdf5_arrays
from aadml.feature_extraction.ground.errors import InputError

AVE15: dict[str, tuple[int, int, int]] = {
    "Clock": (80, 10, 10),
    "Motorcycle": (81, 9, 9),
    "Train horn": (142, 17, 17),
    "Bark": (137, 17, 17),
    "Cat": (48, 6, 6),
    "Bus": (57, 6, 6),
    "Rodents, rats, mice": (89, 10, 10),
    "Toilet flush": (144, 18, 18),
    "Acoustic guitar": (150, 18, 18),
    "Frying (food)": (146, 18, 18),
    "Chainsaw": (128, 16, 16),
    "Horse": (52, 6, 6),
    "Helicopter": (144, 17, 17),
    "Baby cry, infant cry": (67, 8, 8),
    "Truck": (112, 13, 13),
}
"""The 15 classes of the audio-visual retrieval papers in their order, with numbers of train, validation and test clips.

The splits are the official splits, but the papers use 100 of the 160 clips of Clock and do not list these clips.
"""

CLOCK, CLOCK_LIMIT = "Clock", 100
"""Class with more clips (160) than the papers use, and the number of clips that they use."""
_SHARES = {"train": 0.8, "valid": 0.1, "test": 0.1}  # of the used clips of Clock
ORDER_FILES = {"train": "train_order.h5", "valid": "val_order.h5", "test": "test_order.h5"}
"""Split -> file of the feature release with the row numbers of the split in `Annotations.txt` (key `order`)."""
SET_FILES = {"train": "trainSet.txt", "valid": "valSet.txt", "test": "testSet.txt"}
"""Split -> file of the archive with the lines of `Annotations.txt` that are in the split."""
ANNOTATIONS = "Annotations.txt"


@dataclass(frozen=True)
class Annotation:
    """One line of `Annotations.txt`.

    Args:
        row: number of the line, counted from 0 without the header and empty lines.
        name: unique id, which is `video`, or `video@row` if several lines have the same video.
        label: class of the clip.
        video: YouTube id of the video.
        quality: annotated quality, such as "good".
        start: start of the event in seconds, as written.
        end: end of the event in seconds, as written.
    """

    row: int
    name: str
    label: str
    video: str
    quality: str
    start: str
    end: str


def read_annotations(path: str | os.PathLike[str]) -> tuple[Annotation, ...]:
    """Read `Annotations.txt`: class & video & quality & start & end, one clip per line.

    Raises:
        InputError: the file cannot be read or contains no annotations, or a line does not have five fields.
    """
    lines = read_lines(path, "AVE's annotations")
    parts = {n: line.split("&") for n, line in enumerate(lines, 1) if line and not line.startswith("Category&")}
    for number, words in parts.items():
        if len(words) != 5:
            raise InputError(
                f"{path}: line {number} has {len(words)} fields; write the five fields class&video&quality&start&end"
            )
    if not parts:
        raise InputError(f"{path} contains no annotations; pass AVE's Annotations.txt")
    repeats = Counter(words[1] for words in parts.values())
    return tuple(
        Annotation(row, f"{video}@{row}" if repeats[video] > 1 else video, label, video, quality, start, end)
        for row, (label, video, quality, start, end) in enumerate(parts.values())
    )


def split_files(folder: Path) -> Mapping[str, str]:
    """Return a mapping from each split to the name of the file with the clips of the split.

    The files are the lists of AVE's archive if `folder` contains `trainSet.txt`, and otherwise the order files of the
    feature release (`train_order.h5`, ...).
    """
    return SET_FILES if (folder / SET_FILES["train"]).is_file() else ORDER_FILES


def read_splits(folder: Path, annotations: Sequence[Annotation]) -> list[str]:
    """Return the split of each annotation, from the lists of AVE's archive or the order files of the feature release.

    Raises:
        InputError: a file cannot be read or is invalid, or the files do not list each clip once.
    """
    if split_files(folder) is ORDER_FILES:
        return read_orders(folder, len(annotations))
    rows = {replace(line, row=0, name=""): line.row for line in annotations}
    splits = dict[int, str]()
    for split, name in SET_FILES.items():
        for line in read_annotations(folder / name):
            row = rows.get(replace(line, row=0, name=""))
            if row is None or row in splits:
                raise InputError(
                    f"{folder / name}: the annotation '{line.label}' of the video '{line.video}' is "
                    f"{'in no line of Annotations.txt' if row is None else 'listed twice'}; use AVE's files"
                )
            splits[row] = split
    lacking = [line.video for line in annotations if line.row not in splits]
    if lacking:
        raise InputError(f"{folder}: {len(lacking)} clips are in no split ({first_five(lacking)}); use AVE's files")
    return [splits[row] for row in range(len(annotations))]


def read_orders(folder: Path, count: int) -> list[str]:
    """Return the split of each of `count` clips, in the order of `Annotations.txt`, from AVE's order files.

    The key `order` of an order file (`train_order.h5`, ...) contains row numbers of `Annotations.txt`.

    Raises:
        InputError: a file cannot be read or has no key `order`, or the files do not contain each row once.
    """
    orders = {
        split: hdf5_arrays(folder / name, ("order",))["order"].reshape(-1).astype(np.int64)
        for split, name in ORDER_FILES.items()
    }
    rows = np.concatenate(list(orders.values()))
    if not np.array_equal(np.sort(rows), np.arange(count)):
        raise InputError(
            f"{folder}: the order files contain {len(rows)} rows and do not list each of the {count} clips once; "
            "use AVE's files"
        )
    splits = np.repeat(list(orders), [len(order) for order in orders.values()])
    return [str(split) for split in splits[np.argsort(rows)]]


def class_names_of_columns(
    codes: NDArray[np.int64], annotations: tuple[Annotation, ...] | None, columns: int
) -> tuple[str, ...]:
    """Return the names of the columns of AVE's labels.

    A column is named after the most frequent annotated class of its clips. A column without annotated clips is named
    "column N", with its number N from 0. The last column is "background". If two names would be equal, all names are
    "column N".

    Args:
        codes: (n,) column of each clip.
        annotations: annotations of the same n clips, or None.
        columns: number of columns.
    """
    names = [f"column {column}" for column in range(columns - 1)] + ["background"]
    if annotations is not None:
        for column in range(columns - 1):
            labels = Counter(annotations[row].label for row in np.flatnonzero(codes == column).tolist())
            if labels:
                names[column] = labels.most_common(1)[0][0]
    return tuple(names) if len(set(names)) == len(names) else tuple(f"column {column}" for column in range(columns))


def left_out_of_clock(split_of: Mapping[int, str], limit: int, seed: int) -> set[int]:
    """Draw clips of the class Clock in the proportions of the papers' splits; return the rows of the clips not drawn.

    Args:
        split_of: row number -> split of each clip of Clock.
        limit: number of clips to draw.
        seed: seed of the draw; the result also depends on the order of the clips.

    Raises:
        InputError: `limit` is negative, or a split has too few clips.
    """
    counts = {split: round(share * limit) for split, share in _SHARES.items()}
    counts["train"] += limit - sum(counts.values())
    generator = np.random.default_rng(seed)
    left_out: set[int] = set()
    for split, count in counts.items():
        rows = [row for row, name in split_of.items() if name == split]
        if not 0 <= count <= len(rows):
            raise InputError(
                f"ave: the clock limit {limit} needs {count} {split} clips of {CLOCK}, but there are {len(rows)}; "
                "choose another limit, or pass data with more clips of the class"
            )
        left_out |= set(generator.permutation(rows)[count:].tolist())
    return left_out


def with_drawn_clock(content: FeatureFile, seed: int) -> FeatureFile:
    """Return `content` with 100 drawn clips of the class Clock and all clips of the other classes.

    The draw is that of `left_out_of_clock`, as in `aadml manifest ave`.

    Raises:
        InputError: a missing class Clock, at most 100 clips of Clock, or a split with too few clips of Clock.
    """
    if CLOCK not in content.class_names:
        raise InputError(
            f"the features have no class {CLOCK} (the first classes are {', '.join(content.class_names[:5])}); pass "
            "features of AVE with all classes"
        )
    clock = np.flatnonzero(content.labels == content.class_names.index(CLOCK))
    if len(clock) <= CLOCK_LIMIT:
        raise InputError(
            f"{CLOCK} has {len(clock)} clips, but a draw of {CLOCK_LIMIT} needs more; pass all clips of the class"
        )
    left_out = left_out_of_clock({row: content.splits[row] for row in clock.tolist()}, CLOCK_LIMIT, seed)
    return content.select(np.setdiff1d(np.arange(len(content.ids)), list(left_out)))


def with_official_validation(content: FeatureFile) -> FeatureFile:
    """Return the content of the papers' AVE file with the official validation split, and any other content unchanged.

    The papers' file has no validation split, but 1,766 train rows: the 1,577 official train rows, then the 189
    validation rows. The file is recognized by the number of clips of each class in these two parts and in the test
    split, whatever the order of the classes.
    """
    train, test = content.rows("train"), content.rows("test")
    fitted, official = (sum(counts[part] for counts in AVE15.values()) for part in (0, 1))
    if len(content.rows("valid")) or len(train) != fitted + official or len(test) != official:
        return content
    parts = (train[:fitted], train[fitted:], test)
    counts = [np.bincount(content.labels[rows], minlength=len(content.class_names)) for rows in parts]
    if Counter(zip(*(part.tolist() for part in counts), strict=True)) != Counter(AVE15.values()):
        return content
    splits = np.asarray(content.splits, dtype=object)
    splits[parts[1]] = "valid"
    note = f"the last {official} train rows are AVE's official validation split (recognized by the class counts)"
    return with_other_splits(content, splits.tolist(), note)
