"""Conversion: features of any layout become a feature file."""

import os
from collections.abc import Callable
from typing import Literal

from aadml.data.raw import read_class_names
from aadml.data.reading import open_data
from aadml.data.splits import without_incomplete_classes
from feature_extraction.feature_file import FeatureFile, write_features


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    layout: str | None = None,
    audio: str | None = None,
    visual: str | None = None,
    class_names: str | os.PathLike[str] | None = None,
    test_fold: int | None = None,
    incomplete_classes: Literal["keep", "drop"] = "keep",
    on_note: Callable[[str], None] | None = None,
) -> FeatureFile:
    """Turn features of any supported layout into a feature file.

    Args:
        source: what is read; "synthetic:ave" and "synthetic:vegas" draw features of their sizes.
        target: the feature file to write.
        layout: of `source`; recognized by default.
        audio: the view that counts as audio, where the layout does not say.
        visual: the view that counts as visual, where the layout does not say.
        class_names: a file with the names of the classes, one per line, in the order of the labels.
        test_fold: which fold is the test split; the last by default.
        incomplete_classes: what is done with classes that miss train or test clips.
        on_note: called with a sentence on each thing done on the way.

    Returns:
        What was written.

    Raises:
        InputError: nothing there, no known layout, content that contradicts itself, or a target that cannot be written.
    """
    names = read_class_names(class_names) if class_names else None
    content = open_data(source, layout=layout, audio=audio, visual=visual, class_names=names, test_fold=test_fold)
    notes: list[str] = []
    if incomplete_classes == "drop":
        content, notes = without_incomplete_classes(content, str(source))
    for note in (*notes, *content.notes()):
        if on_note:
            on_note(note)
    write_features(target, content)
    return content
