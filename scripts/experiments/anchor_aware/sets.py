"""What the data sets of an experiment are, written down beside its ledger, so that no row is of other data."""

import csv
import io
from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from aadml.comparison.clips import Splits
from aadml.feature_extraction.ground.atomic import write_text
from aadml.feature_extraction.ground.errors import InputError
from aadml.runs.environment import data_hash

SETS = "sets.csv"
DRAWN_BY_CLASS = ("av_digits", "av_digits by speakers")
"""Sets of the plan whose pairs are drawn by class, so that a pair is a label."""
SHARED = (0.0, 0.25, 0.5, 0.75)
"""Of their variance within a class, what both modalities of a drawn clip have in common."""
_DRAWN = "synthetic AVE, share "


def drawn_name(share: float) -> str:
    """Name the drawn set of a share."""
    return f"{_DRAWN}{share:g}"


def drawn_place(share: float) -> str:
    """Say by which name of data the drawn set of a share is read."""
    return f"synthetic:ave:shared={share:g}"


def is_drawn(name: str) -> bool:
    """Tell whether a set is one that the plan draws itself."""
    return name.startswith(_DRAWN)


@dataclass(frozen=True)
class SetFacts:
    """What a data set is.

    Attributes:
        name: as rows have it.
        train: clips.
        valid: clips.
        test: clips.
        classes: how many.
        sha256: of the content, whatever file it lies in; of the validation clips of seed 0.
    """

    name: str
    train: int
    valid: int
    test: int
    classes: int
    sha256: str

    @classmethod
    def of(cls, name: str, splits: Splits) -> "SetFacts":
        """Describe a data set."""
        counts = [len(splits[split]) for split in ("train", "valid", "test")]
        return cls(name, counts[0], counts[1], counts[2], len(splits.train.class_names), data_hash(splits))


def read_facts(folder: Path) -> dict[str, SetFacts]:
    """Read what is written down; nothing where there is nothing.

    Raises:
        InputError: a damaged file.
    """
    path = folder / SETS
    if not path.is_file():
        return {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            found = [_facts_of(one) for one in csv.DictReader(file)]
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise InputError(f"{path}: damaged ({error})") from error
    return {one.name: one for one in found}


def _facts_of(cells: Mapping[str, str]) -> SetFacts:
    counts = [int(cells[key]) for key in ("train", "valid", "test", "classes")]
    return SetFacts(cells["name"], counts[0], counts[1], counts[2], counts[3], cells["sha256"])


def keep_facts(folder: Path, facts: Mapping[str, SetFacts]) -> None:
    """Write down what data sets are, beside those that are there.

    Raises:
        InputError: rows are of other data of the same name.
    """
    known = read_facts(folder)
    for name, one in facts.items():
        if name in known and known[name] != one:
            raise InputError(f"{folder / SETS}: {name} is other data than the file of that name; rename the file")
    lines = [[field.name for field in fields(SetFacts)]]
    lines += [[str(value) for value in astuple(one)] for one in {**known, **facts}.values()]
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(lines)
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / SETS, stream.getvalue())
