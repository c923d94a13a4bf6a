"""MAP as the papers printed it, for the columns beside ours."""

import csv
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parent / "published"
FIGURES = ("audio_visual", "visual_audio", "mean")
NOTE = (
    "Columns marked 'published' are the test MAP printed by Zeng et al. (ICMR 2024), tables 1 to 3, on VEGAS and AVE, "
    "protocol and spread unstated; ours are on the data named above, so the two cannot be compared as they stand."
)

Published = Mapping[str, Mapping[str, float]]
"""data set -> figure -> value."""


def published(kind: str) -> dict[str, dict[str, dict[str, float]]]:
    """Read the published figures.

    Args:
        kind: "methods" (table 1) or "losses" (tables 2 and 3).

    Returns:
        name here -> data set -> "audio_visual", "visual_audio" and "mean".
    """
    found: dict[str, dict[str, dict[str, float]]] = {}
    for row in read_published(f"{kind}.csv"):
        found.setdefault(row["id"], {})[row["dataset"]] = {name: float(row[name]) for name in FIGURES}
    return found


def read_published(file: str) -> list[dict[str, str]]:
    """Read the rows of a file of published figures, by its name."""
    with (FOLDER / file).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def data_sets(kind: str) -> list[str]:
    """Name the data sets that figures of a kind were published on."""
    return list(dict.fromkeys(name for figures in published(kind).values() for name in figures))
