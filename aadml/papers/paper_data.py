"""The parts of the AADML paper that a reproduction covers, and the size of its data."""

from collections.abc import Collection

from aadml.feature_extraction.feature_file import FeatureFile
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.registry import lookup
from aadml.reports.published import PAPER


def chosen_parts(only: str | None, data_sets: Collection[str]) -> tuple[list[str], list[str]]:
    """Return parts in the order of the paper, and notes on parts that are left out.

    Args:
        only: names of parts, separated by commas; None is all.
        data_sets: names of the available data sets.

    Raises:
        InputError: a part is unknown, or no part uses these data sets.
    """
    names = [name.strip() for name in (only or ",".join(PAPER.parts)).split(",") if name.strip()]
    for name in names:
        lookup(PAPER.parts, name, "part of the paper")
    parts, notes = [], []
    for name, part in PAPER.parts.items():
        absent = [data_set for data_set in part.data_sets if data_set not in data_sets]
        if name not in names:
            continue
        if len(absent) < len(part.data_sets):
            parts.append(name)
        if absent:
            without = f"without {' and '.join(PAPER.data_sets[data_set].name for data_set in absent)}"
            flags = " and no ".join(f"--{data_set}" for data_set in absent)
            notes.append(f"{name}: {without if name in parts else 'left out'} (no {flags} given)")
    if not parts:
        possible = sorted({data_set for name in names for data_set in PAPER.parts[name].data_sets})
        flags = " or ".join(f"--{data_set} F.h5" for data_set in possible)
        raise InputError(f"--only {only}: the data set of these parts is missing; pass {flags}")
    return parts, notes


def other_size(data_set: str, content: FeatureFile) -> list[str]:
    """Return a note if the size of the data differs from that in the paper.

    Args:
        data_set: "vegas" or "ave".
        content: features of the data set.
    """
    clips, classes = len(content.ids), len(content.class_names)
    expected = PAPER.data_sets[data_set]
    if (clips, classes) == (expected.clips, expected.classes):
        return []
    same = [other.name for other in PAPER.data_sets.values() if (other.clips, other.classes) == (clips, classes)]
    guess = f" (the size of {same[0]})" if same else ""
    return [
        f"{clips:,} clips of {classes} classes{guess}; the paper's {expected.name} has {expected.clips:,} of "
        f"{expected.classes}, so its values were measured on other data"
    ]
