"""Conversion of a manifest's labels to the class numbers of a feature file."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.feature_file.content import UNLABELLED
from aadml.feature_extraction.manifest import Manifest, Row


def class_codes(manifest: Manifest, rows: Sequence[Row]) -> tuple[NDArray[np.int64], NDArray[np.uint8] | None]:
    """Return the class numbers of clips.

    Args:
        manifest: manifest with the class names.
        rows: n clips of the manifest.

    Returns:
        The class numbers (n,) of the clips, `UNLABELLED` for a clip without a class, and an array (n, C) of all
        classes. The array contains 1 for each class of a clip and 0 elsewhere. If no clip of the manifest has
        several classes, the array is None.
    """
    numbers = {name: number for number, name in enumerate(manifest.class_names)}
    labels = np.asarray([numbers.get(row.label, UNLABELLED) for row in rows], dtype=np.int64)
    if not manifest.has_several_labels:
        return labels, None
    marked = np.zeros((len(rows), len(numbers)), dtype=np.uint8)
    for number, row in enumerate(rows):
        marked[number, [numbers[label] for label in row.labels]] = 1
    return labels, marked
