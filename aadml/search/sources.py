"""What is indexed: a feature file, a manifest of media, or a folder of media, as items and their features."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.comparison.features import Modality
from aadml.data import open_data
from aadml.data.manifests.listing import MEDIA_SUFFIXES, PICTURE_SUFFIXES, SOUND_SUFFIXES, media_files, utf8
from aadml.feature_extraction.backbones import Extractor
from aadml.feature_extraction.feature_file import MODALITIES, UNLABELLED, FeatureFile, Timeline, read_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.jobs.extract import extract
from aadml.feature_extraction.jobs.failures import ABSENT, Failure
from aadml.feature_extraction.manifest import LABELS_SEPARATOR, Manifest, Row, read_manifest
from aadml.search.encoders import near
from aadml.search.store import Item


@dataclass(frozen=True)
class Present:
    """The items that have one modality.

    Attributes:
        rows: (n,) their places among the items.
        features: (n, d) float32.
        timeline: their descriptions over time; None where these are not kept.
    """

    rows: NDArray[np.int64]
    features: Tensor
    timeline: Timeline | None = None


@dataclass(frozen=True)
class IndexSource:
    """What is to stand in an index.

    Attributes:
        items: the clips.
        present: modality -> features of the items that have it.
        origins: modality -> what made its features.
        failures: files that could not be read.
        content: the feature file, where the source is one.
        embedded: whether the features are vectors of the model already.
    """

    items: tuple[Item, ...]
    present: Mapping[Modality, Present]
    origins: Mapping[str, JsonObject] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()
    content: FeatureFile | None = None
    embedded: bool = False

    def columns(self) -> dict[str, list[str]]:
        """Give the further columns of the items."""
        names = dict.fromkeys(name for item in self.items for name in item.columns)
        return {name: [item.columns.get(name, "") for item in self.items] for name in names}


@dataclass(frozen=True)
class Work:
    """How media are read.

    Attributes:
        folder: in which the work is kept.
        workers: decoding processes; None: one a processor.
        moments: whether descriptions over time are kept.
        progress: called with what is being done and the numbers of clips done and failed.
    """

    folder: Path
    workers: int | None = None
    moments: bool = False
    progress: Callable[[str, int, int], None] | None = None


def is_media(place: str | Path) -> bool:
    """Tell whether a source is media, which must be extracted: a manifest, or a folder of them."""
    path = Path(place)
    return path.suffix.lower() == ".csv" or (path.is_dir() and bool(_files(path)))


def of_features(
    place: str | Path, index: Path, media: str | Path | None = None, *, moments: bool = False
) -> IndexSource:
    """Take a feature file of any layout.

    Args:
        place: of the file.
        index: that is made.
        media: a manifest that says where the media of its clips are.
        moments: whether descriptions over time are taken.

    Raises:
        InputError: no such file, no known layout, or no descriptions over time where they are wanted.
    """
    content = open_data(place, undivided=True)
    places = {} if media is None else {row.id: row.media for row in read_manifest(media).rows}
    columns = list(content.columns)
    items = tuple(
        Item(
            id=name,
            media=_written(places.get(name, {}), index),
            split=content.splits[n],
            label=_label(content, n),
            columns={key: content.columns[key][n] for key in columns},
        )
        for n, name in enumerate(content.ids)
    )
    present = {m: _present(content, m, moments=moments) for m in MODALITIES if m in content.features}
    if moments and all(one.timeline is None for one in present.values()):
        raise InputError(f"--moments: {place} has no descriptions over time; `aadml extract --sequence` keeps them")
    return IndexSource(items, present, content.provenance, content=content)


def _present(content: FeatureFile, modality: Modality, *, moments: bool) -> Present:
    """Give the items that have a modality, with what the file keeps of them over time where that is wanted."""
    rows = np.flatnonzero(content.has(modality)).astype(np.int64)
    timeline = _timeline(content, modality) if moments else None
    lacking = len(rows) < len(content.ids)
    features = torch.from_numpy(np.array(content.features[modality][rows]))
    return Present(rows, features, timeline.select(rows) if timeline is not None and lacking else timeline)


def _timeline(content: FeatureFile, modality: Modality) -> Timeline | None:
    """Give what a file keeps over time, if it says when."""
    timeline = content.sequences.get(modality)
    return None if timeline is None or timeline.times is None else timeline


def _label(content: FeatureFile, row: int) -> str:
    if content.labels[row] == UNLABELLED:
        return ""
    if content.all_labels is None:
        return content.class_names[int(content.labels[row])]
    return LABELS_SEPARATOR.join(content.class_names[n] for n in np.flatnonzero(content.all_labels[row]))


def of_media(place: str | Path, index: Path, extractors: Sequence[Extractor], work: Work) -> IndexSource:
    """Extract a manifest or a folder of media, each modality by itself: a clip may have only one.

    The work is kept and goes on where it was; files are known again by their content.

    Raises:
        InputError: no media, or a manifest that is wrong.
    """
    manifest, items = listed(place, index)
    rows = {row.id: n for n, row in enumerate(manifest.rows)}
    present: dict[Modality, Present] = {}
    origins: dict[str, JsonObject] = {}
    failures: list[Failure] = []
    for one in extractors:
        part = tuple(row for row in manifest.rows if may_have(row.media[one.modality], one.modality))
        content, failed = _extracted(replace(manifest, rows=part), one, work) if part else (None, ())
        failures += [failure for failure in failed if failure.reason not in ABSENT.values()]
        if content is not None:
            order = np.asarray([rows[name] for name in content.ids], dtype=np.int64)
            values = torch.from_numpy(np.array(content.features[one.modality]))
            present[one.modality] = Present(order, values, _timeline(content, one.modality) if work.moments else None)
            origins[one.modality] = content.provenance[one.modality]
    if not present:
        raise InputError(f"{place}: none of {len(manifest.rows)} clips could be read{_first(failures)}")
    return with_any(IndexSource(items, present, origins, tuple(failures)))


def listed(place: str | Path, index: Path) -> tuple[Manifest, tuple[Item, ...]]:
    """List the media of a manifest or a folder without reading them."""
    path = Path(place)
    manifest = _of_folder(path) if path.is_dir() else read_manifest(path)
    splits = ("",) * len(manifest.rows) if path.is_dir() else tuple(row.split for row in manifest.rows)
    return manifest, tuple(
        Item(row.id, _written(row.media, index), split, LABELS_SEPARATOR.join(row.labels), row.columns)
        for row, split in zip(manifest.rows, splits, strict=True)
    )


def _extracted(manifest: Manifest, one: Extractor, work: Work) -> tuple[FeatureFile | None, tuple[Failure, ...]]:
    def progress(done: int, failed: int) -> None:
        if work.progress is not None:
            work.progress(f"{one.modality} of {len(manifest.rows)}", done, failed)

    outcome = extract(
        manifest, work.folder / f"{one.modality}.h5", [one], workers=work.workers, sequence=work.moments,
        progress=progress,
    )  # fmt: skip
    return None if outcome.path is None else read_features(outcome.path), outcome.failures


def with_any(source: IndexSource) -> IndexSource:
    """Leave out the items of which nothing could be read."""
    kept = np.unique(np.concatenate([one.rows for one in source.present.values()]))
    present = {m: replace(one, rows=np.searchsorted(kept, one.rows)) for m, one in source.present.items()}
    return replace(source, items=tuple(source.items[n] for n in kept), present=present)


def _of_folder(folder: Path) -> Manifest:
    """List a folder of media: an id is the path below it."""
    files = _files(folder)
    if not files:
        raise InputError(
            f"{folder}: holds no media; sounds, pictures, videos, a manifest or a feature file are indexed"
        )
    names = [utf8(os.path.relpath(file, folder)) for file in files]
    if len(set(names)) < len(names):
        raise InputError(f"{folder}: two files have names that are the same as UTF-8")
    rows = tuple(
        Row(id=name, media=dict.fromkeys(("audio", "visual"), str(file)), label="", split="test", columns={})
        for name, file in zip(names, files, strict=True)
    )
    return Manifest(str(folder), rows, ())


def _files(folder: Path) -> list[Path]:
    return media_files(folder, MEDIA_SUFFIXES | PICTURE_SUFFIXES)


def may_have(path: str, modality: str) -> bool:
    """Tell by the name of a file whether it may have a modality."""
    lacking = PICTURE_SUFFIXES if modality == "audio" else SOUND_SUFFIXES
    return bool(path) and Path(path).suffix.lower() not in lacking


def _written(media: Mapping[str, str], index: Path) -> dict[str, str]:
    return {m: near(media[m], index.parent) for m in ("audio", "visual") if may_have(media.get(m, ""), m)}


def _first(failures: Sequence[Failure]) -> str:
    return f" ({failures[0].media}: {failures[0].reason}, {failures[0].detail})" if failures else ""
