"""PARTS: the tables and figures of the AADML paper, and the data sets that each is of."""

from collections.abc import Sequence
from dataclasses import dataclass

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.registry import lookup

DATA_SETS = {"vegas": "VEGAS", "ave": "AVE"}
"""Name of a data set here -> in the paper."""


@dataclass(frozen=True)
class PaperPart:
    """A table or a figure.

    Attributes:
        title: of its section.
        data_sets: that it is of.
    """

    title: str
    data_sets: tuple[str, ...] = tuple(DATA_SETS)


PARTS = {
    "table-1": PaperPart("Table 1: methods"),
    "table-2": PaperPart("Table 2: losses on VEGAS, with and without anchor-aware proxies", ("vegas",)),
    "table-3": PaperPart("Table 3: losses on AVE, with and without anchor-aware proxies", ("ave",)),
    "figure-3": PaperPart("Figure 3: precision-scope@K"),
    "figure-4": PaperPart("Figure 4: the number of neighbors k"),
    "figure-5": PaperPart("Figure 5: loss and MAP by epoch"),
    "clock-draw": PaperPart("Which 100 clips of Clock: how much the draw moves the score", ("ave",)),
}
"""The last is not of the paper: its AVE set holds 100 of the 160 clips of a class, and which ones is not known."""


def chosen_parts(only: str | None, there: Sequence[str]) -> tuple[list[str], list[str]]:
    """Choose parts by name.

    Args:
        only: names separated by commas; None takes all.
        there: the data sets that were given.

    Returns:
        The parts, in the order of the paper, and what is left out and why.

    Raises:
        InputError: an unknown part, or none that can be made from these data sets.
    """
    names = [name.strip() for name in (only or ",".join(PARTS)).split(",") if name.strip()]
    for name in names:
        lookup(PARTS, name, "part of the paper")
    found = [name for name in PARTS if name in names and set(PARTS[name].data_sets) & set(there)]
    notes = []
    for name in (name for name in PARTS if name in names):
        absent = [one for one in PARTS[name].data_sets if one not in there]
        if absent:
            what = "left out" if name not in found else f"without {' and '.join(DATA_SETS[one] for one in absent)}"
            notes.append(f"{name}: {what} (no {' and no '.join(f'--{one}' for one in absent)} given)")
    if not found:
        needed = sorted({one for name in names for one in PARTS[name].data_sets})
        raise InputError(f"--only {only}: needs {' or '.join(f'--{one} F.h5' for one in needed)}")
    return found, notes
