"""Calibrating an index that is written, in a transaction of its own: until then it answers without probabilities."""

from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import torch

from aadml.data.reading import SYNTHETIC
from aadml.feature_extraction.feature_file import MODALITIES
from aadml.feature_extraction.ground.file_content import content_of, stamp_of
from aadml.feature_extraction.ground.json_values import JsonObject, typed
from aadml.model.model import Model
from aadml.search.encoders import load_encoder, near
from aadml.search.exact_search import Gallery
from aadml.search.filters import matching
from aadml.search.items import labels_of, meta_of, vectors_of
from aadml.search.store import connect, reading, set_meta
from aadml.search.validation import FORM, IndexContent, calibrations, other_clips, own_clips

CALIBRATION, OWN = "calibration", "the index"
"""Name of the fact that holds all calibrations, and what it says of clips of the index itself."""


def calibrate_index(
    path: Path,
    data: str | Path | None = None,
    *,
    model: Model | str | Path | None = None,
    precision: float = 0.9,
    on_note: Callable[[str], None] | None = None,
) -> None:
    """Fit what the scores of an index mean, unless that was done since its last change.

    Args:
        path: of the index.
        data: a feature file with validation clips; by default those of the index, or those that were used before.
        model: the model of the index, if it was moved.
        precision: of best hits from the threshold on.
        on_note: called with notes for the user.
    """
    with closing(connect(path)) as database, reading(database, path):
        meta = meta_of(database)
        before = meta.get(CALIBRATION, {})
        data = data or _remembered(before, path)
        asked: JsonObject = {"form": FORM, "precision": precision, **_written(data, path)}
        if {name: before.get(name) for name in asked} == asked:
            return
        vectors = {m: one for m in MODALITIES if (one := vectors_of(database, m)) is not None}
        labels, valid = labels_of(database), matching(database, "split = 'valid'").tolist()
    similarity = typed(meta["state"], "similarity", str)
    galleries = {m: (one.numbers, Gallery(torch.from_numpy(one.values), similarity)) for m, one in vectors.items()}
    index = IndexContent(galleries, labels, load_encoder(meta["encoder"], path.parent, model))
    asking = own_clips(index, valid) if data is None else other_clips(index, data)
    found = calibrations(index, asking, precision=precision, name=str(data or OWN), on_note=on_note)
    state: JsonObject = {**meta["state"], "generation": typed(meta["state"], "generation", int) + 1}
    set_meta(path, {CALIBRATION: {**found, **asked}, "state": state})


def _remembered(before: JsonObject, path: Path) -> str | None:
    """Give the feature file that an index was calibrated on; None where it was on its own clips."""
    place = str(before.get("data") or OWN)
    return None if place == OWN else place if place.startswith(SYNTHETIC) else str(path.parent / place)


def _written(data: str | Path | None, path: Path) -> JsonObject:
    """Write down what clips a calibration rests on: where they are, from the index, and the content of their file."""
    if data is None or str(data).startswith(SYNTHETIC):
        return {"data": str(data or OWN)}
    stamp = stamp_of(str(data))
    return {"data": near(data, path.parent), "content": content_of(str(data), stamp) if stamp else ""}


def outdated(meta: Mapping[str, JsonObject]) -> JsonObject:
    """Give what an index writes down when its items change: no calibration, but the clips to fit the next one on."""
    return {"data": meta.get(CALIBRATION, {}).get("data", OWN), "curves": []}
