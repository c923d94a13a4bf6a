"""How large the paper's data sets are, so that other data, or files that were mixed up, are noticed before a night."""

import numpy as np

from aadml.data.synthetic import SHAPES
from aadml.feature_extraction.feature_file import FeatureFile

SIZES = {
    name: (sum(int(np.sum(SHAPES[name][part])) for part in ("train", "valid", "test")), SHAPES[name]["classes"])
    for name in ("vegas", "ave")
}
"""Clips of all splits, and classes, of the files that the paper's values are of (docs/reproduce.md)."""


def other_size(data_set: str, content: FeatureFile) -> list[str]:
    """Say how data differ in size from the paper's; nothing where they do not.

    Args:
        data_set: "vegas" or "ave".
        content: its features.
    """
    found = len(content.ids), len(content.class_names)
    if found == SIZES[data_set]:
        return []
    others = [name.upper() for name, size in SIZES.items() if size == found]
    guess = f" (is it {others[0]}?)" if others else ""
    clips, classes = SIZES[data_set]
    return [
        f"{found[0]:,} clips of {found[1]} classes{guess}; the paper's {data_set.upper()} has {clips:,} of {classes}, "
        "so its values are of other data"
    ]
