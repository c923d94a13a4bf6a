"""Sources of an index: a feature file, a manifest of media, or a folder of media, as items and their features."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.comparison.features import Modality
from aadml.data.manifests.listing import media_files, utf8
from aadml.data.reading import is_address, open_data
from aadml.feature_extraction.backbones import Extractor
from aadml.feature_extraction.feature_file.content import UNLABELLED, FeatureFile, Texts, Timeline
from aadml.feature_extraction.feature_file.names import MODALITIES
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.foreign.tables import shown_address
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.ground.media_suffixes import MEDIA_SUFFIXES, PICTURE_SUFFIXES, SOUND_SUFFIXES
from aadml.feature_extraction.ground.strings import Note
from aadml.feature_extraction.jobs.extract import execute
from aadml.feature_extraction.jobs.failures import ABSENT, Failure
from aadml.feature_extraction.jobs.plan import ExtractionPlan
from aadml.feature_extraction.jobs.windows import without_window
from aadml.feature_extraction.manifest import LABELS_SEPARATOR, Manifest, Row, read_manifest
from aadml.model.facts import difference, fingerprint
from aadml.runs.model_data import check_features
from aadml.search.captions import caption_items
from aadml.search.encoders import IndexEncoder, ModelEncoder
from aadml.search.facts import near
from aadml.search.store import Item


@dataclass(frozen=True)
class Present:
    """Features of a modality, for the n items that have the modality.

    Attributes:
        rows: (n,) positions among all items.
        features: (n, d) float32.
        timeline: features over time; None if no moments are kept or the source lacks the times.
    """

    rows: NDArray[np.int64]
    features: Tensor
    timeline: Timeline | None = None


@dataclass(frozen=True)
class IndexSource:
    """Clips to be indexed.

    Attributes:
        items: the clips, followed by the captions that are items.
        present: modality -> features of the items that have the modality.
        origins: modality -> provenance of its features.
        failures: files that could not be read.
        content: content of the feature file; None if the source is media.
        embedded: whether the features are already vectors of the model.
    """

    items: tuple[Item, ...]
    present: Mapping[Modality, Present]
    origins: Mapping[str, JsonObject] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()
    content: FeatureFile | None = None
    embedded: bool = False

    def clips(self) -> NDArray[np.int64]:
        """Return the positions (n,) of the clips of the n items."""
        places = {item.id: place for place, item in enumerate(self.items)}
        return np.asarray([places[item.clip] for item in self.items], dtype=np.int64)

    def with_texts(self, texts: Texts) -> "IndexSource":
        """Return the source with the texts of the items. If any item has several texts, each text becomes an item."""
        texts, items, places = Texts.sorted(texts.values, texts.rows), self.items, texts.rows
        if not texts.is_first.all():
            captions = caption_items(items, texts)
            places, items = len(items) + np.arange(len(captions), dtype=np.int64), (*items, *captions)
        return replace(
            self, items=items, present={**self.present, "text": Present(places, torch.from_numpy(texts.values))}
        )

    def columns(self) -> dict[str, list[str]]:
        """Return the columns of the items: name -> a value per item, "" if unknown."""
        names = dict.fromkeys(name for item in self.items for name in item.columns)
        return {name: [item.columns.get(name, "") for item in self.items] for name in names}


@dataclass(frozen=True)
class Work:
    """Settings of reading media.

    Attributes:
        folder: folder for unfinished work.
        workers: decoding processes; None starts one per processor.
        moments: whether features over time are kept.
        progress: called with a description of the work and the numbers of clips done and failed.
        on_note: called with notes for the user.
    """

    folder: Path
    workers: int | None = None
    moments: bool = False
    progress: Callable[[str, int, int], None] | None = None
    on_note: Note | None = None


def is_media(place: str | Path) -> bool:
    """Return whether a source is media for extraction: a manifest, or a folder with media files."""
    path = Path(place)
    return path.suffix.lower() == ".csv" or (path.is_dir() and bool(_files(path)))


def has_texts(place: str | Path) -> bool:
    """Return whether a source of media is a manifest with texts.

    Raises:
        InputError: the manifest is invalid.
    """
    return Path(place).is_file() and any(row.media.get("text") for row in read_manifest(place).rows)


def is_readable(place: str | Path) -> bool:
    """Return whether a source is an existing file or folder, an address, or the name of synthetic data."""
    return is_address(place) or Path(place).exists()


def of_features(
    place: str | Path, index: Path, media: str | Path | None = None, *, moments: bool = False
) -> IndexSource:
    """Read a feature file of any layout.

    Args:
        place: path or address of the file, or the name of synthetic data.
        index: path of the index. Paths of media in its folder are stored relative to this folder.
        media: a manifest with the media of the clips, or of the recordings whose windows are the clips.
        moments: whether features over time are read.

    Raises:
        InputError: a file or manifest that cannot be read, a file without a modality that an index stores, or `moments`
            for a file without features over time.
    """
    content = open_data(place, undivided="labeled")
    places = {} if media is None else {row.id: row.media for row in read_manifest(media).rows}
    windows = {clip: form[0] for clip in content.ids if clip not in places and (form := without_window(clip))}
    items = tuple(
        Item(clip, _relative(places.get(windows.get(clip, clip), {}), index), split, _label(content, n), columns)
        for n, (clip, split) in enumerate(zip(content.ids, content.splits, strict=True))
        for columns in [{name: values[n] for name, values in content.columns.items()}]
    )
    present = {m: _present(content, m, moments=moments) for m in MODALITIES if m in content.features}
    if not present and content.texts is None:
        raise InputError(
            f"{shown_address(place)} has only {', '.join(content.features) or 'clips without features'}, but an index "
            f"stores {', '.join(MODALITIES)}; pass features of at least one of these modalities"
        )
    if moments and all(some.timeline is None for some in present.values()):
        raise InputError(
            f"--moments: {shown_address(place)} has no features over time; extract features with `aadml extract "
            "--sequence`"
        )
    source = IndexSource(items, present, content.provenance, content=content)
    return source if content.texts is None else source.with_texts(content.texts)


def accepted(
    source: IndexSource, encoder: IndexEncoder, place: str, *, allow: bool = False, on_note: Note | None = None
) -> IndexSource:
    """Return the clips of a feature file, with only the modalities that an encoder embeds.

    Captions are left out if the encoder does not embed text. A note reports the modalities that are left out.

    Args:
        source: clips of the feature file.
        encoder: encoder of the index.
        place: path of the feature file, for messages.
        allow: accept features of a different extractor than the extractor of the model's training features.
        on_note: called with notes for the user.

    Raises:
        InputError: no modality that the encoder embeds, features of a different width than the features of the encoder,
            or features of a different extractor without `allow`.
    """
    known = ", ".join(encoder.facts.modalities)
    present = {m: some for m, some in source.present.items() if m in encoder.facts.modalities}
    if not present:
        raise InputError(
            f"{place} has {', '.join(source.present)}, but the index embeds {known}; "
            "pass features of at least one of these modalities"
        )
    left = [modality for modality in source.present if modality not in present]
    if left and on_note:
        on_note(f"the index embeds only {known}; these modalities of {place} are left out: {', '.join(left)}")
    if isinstance(encoder, ModelEncoder):
        assert source.content is not None
        check_features(encoder.model, source.content, place, allow=allow, on_note=on_note, modalities=list(present))
    else:
        check_extraction(source, encoder.facts.dimensions, encoder.facts.features, place)
    items = source.items if "text" in present else tuple(item for item in source.items if item.caption is None)
    return replace(source, items=items, present=present)


def check_extraction(
    source: IndexSource, widths: Mapping[Modality, int], known: Mapping[Modality, JsonObject], place: str
) -> None:
    """Raise InputError if the features of a file and the features of an index differ in width or extractor.

    Args:
        source: clips of the file.
        widths: dimensions of the features of the index, by modality; other modalities are not checked.
        known: fingerprints of the extractors of the index, by modality. An unknown extractor is not checked.
        place: path of the file, for the message.
    """
    hint = "pass features of the extractor of the index, or build another index"
    for modality, items in source.present.items():
        dimensions, width = items.features.shape[1], widths.get(modality)
        if width not in (None, dimensions):
            raise InputError(f"{place}: {modality} has {dimensions} dimensions, but the index has {width}; {hint}")
        expected, origin = known.get(modality), fingerprint(source.origins.get(modality, {}))
        if expected and origin and (other := difference(expected, origin)):
            raise InputError(f"{place}: the {modality} features were computed by {other}; {hint}")


def _present(content: FeatureFile, modality: Modality, *, moments: bool) -> Present:
    """Return the features of a modality, for the items that have the modality.

    Without `moments`, or without stored times, features over time are left out.
    """
    rows = np.flatnonzero(content.has(modality)).astype(np.int64)
    timeline = content.sequences.get(modality) if moments else None
    if timeline is not None:
        timeline = None if timeline.times is None else timeline.select(rows)
    features = torch.from_numpy(np.array(content.features[modality][rows]))
    return Present(rows, features, timeline)


def _label(content: FeatureFile, row: int) -> str:
    if content.labels[row] == UNLABELLED:
        return ""
    if content.all_labels is None:
        return content.class_names[int(content.labels[row])]
    return LABELS_SEPARATOR.join(content.class_names[n] for n in np.flatnonzero(content.all_labels[row]))


def of_media(place: str | Path, index: Path, extractors: Sequence[Extractor], work: Work) -> IndexSource:
    """Extract features from a manifest or a folder of media, each modality separately, as clips may lack a modality.

    Extraction resumes unfinished work and identifies files by their content.

    Raises:
        InputError: no media, an invalid manifest, or no clip that can be read.
    """
    manifest, items = listed(place, index)
    rows = {row.id: n for n, row in enumerate(manifest.rows)}
    present: dict[Modality, Present] = {}
    contents: dict[Modality, FeatureFile] = {}
    failures: list[Failure] = []
    for extractor in extractors:
        modality = extractor.modality
        part = tuple(row for row in manifest.rows if may_have(row.media.get(modality, ""), modality))
        content, failed = _extracted(replace(manifest, rows=part), extractor, work) if part else (None, ())
        failures += [failure for failure in failed if failure.reason not in ABSENT.values()]
        if content is not None:
            order = np.asarray([rows[clip] for clip in content.ids], dtype=np.int64)
            present[modality] = replace(_present(content, modality, moments=work.moments), rows=order)
            contents[modality] = content
    origins = {modality: content.provenance[modality] for modality, content in contents.items()}
    source = IndexSource(items, present, origins, tuple(failures))
    if "text" in contents and (texts := contents["text"].texts) is not None:
        source = source.with_texts(Texts(texts.values, present["text"].rows[texts.rows]))
    return readable(source, place, work.on_note)


def listed(place: str | Path, index: Path) -> tuple[Manifest, tuple[Item, ...]]:
    """List the media of a manifest or a folder; return the manifest and an item per row.

    The media files are not read.

    Raises:
        InputError: the folder has no media, or the manifest is invalid.
    """
    path = Path(place)
    manifest = _of_folder(path) if path.is_dir() else read_manifest(path)
    splits = ("",) * len(manifest.rows) if path.is_dir() else tuple(row.split for row in manifest.rows)
    return manifest, tuple(
        Item(row.id, _relative(row.media, index), split, LABELS_SEPARATOR.join(row.labels), row.columns)
        for row, split in zip(manifest.rows, splits, strict=True)
    )


def _extracted(manifest: Manifest, extractor: Extractor, work: Work) -> tuple[FeatureFile | None, tuple[Failure, ...]]:
    def progress(done: int, failed: int) -> None:
        if work.progress is not None:
            work.progress(f"{extractor.modality} of {len(manifest.rows)}", done, failed)

    output = work.folder / f"{extractor.modality}.h5"
    plan = ExtractionPlan(
        manifest, output, [extractor], workers=work.workers, sequence=work.moments, keeps_deleted=False
    )
    outcome = execute(plan, progress)
    return None if outcome.path is None else read_features(outcome.path), outcome.failures


def readable(source: IndexSource, place: str | Path, on_note: Note | None = None) -> IndexSource:
    """Return a source of media without the clips that have neither a modality nor a caption.

    A note reports the number of these clips; clips of failures do not count.

    Raises:
        InputError: no clip has a modality.
    """
    if not source.present:
        first = source.failures[:1]
        reason = "".join(f" ({failure.media}: {failure.reason}, {failure.detail})" for failure in first)
        raise InputError(
            f"{place}: none of {len(source.items)} clips can be read{reason}; "
            "check the media files and the modalities of the index"
        )
    rows = np.concatenate([some.rows for some in source.present.values()])
    rows = np.unique(np.concatenate([rows, source.clips()[rows]]))
    present = {m: replace(some, rows=np.searchsorted(rows, some.rows)) for m, some in source.present.items()}
    items = tuple(source.items[n] for n in rows)
    left = {item.id for item in source.items} - {item.id for item in items} - {failed.id for failed in source.failures}
    if left and on_note:
        on_note(f"clips of {place} that have none of the modalities of the index are left out: {len(left)}")
    return replace(source, items=items, present=present)


def _of_folder(folder: Path) -> Manifest:
    """List a folder of media; ids are paths relative to the folder."""
    files = _files(folder)
    if not files:
        raise InputError(
            f"{folder} has no media files; pass a folder of sounds, pictures or videos, a manifest, or a feature file"
        )
    names = [utf8(os.path.relpath(file, folder)) for file in files]
    if len(set(names)) < len(names):
        doubled = next(name for n, name in enumerate(names) if name in names[:n])
        raise InputError(f"{folder}: two files have the name '{doubled}' in UTF-8; rename one of the two files")
    rows = tuple(
        Row(id=name, media=dict.fromkeys(("audio", "visual"), str(file)), label="", split="test", columns={})
        for name, file in zip(names, files, strict=True)
    )
    return Manifest(str(folder), rows, ())


def _files(folder: Path) -> list[Path]:
    return media_files(folder, MEDIA_SUFFIXES | PICTURE_SUFFIXES)


def may_have(path: str, modality: str) -> bool:
    """Return whether a file may have a modality, according to the suffix of the file.

    For the modality text, `path` is the text itself. An empty `path` has no modality.
    """
    if modality == "text":
        return bool(path)
    lacking = PICTURE_SUFFIXES if modality == "audio" else SOUND_SUFFIXES
    return bool(path) and Path(path).suffix.lower() not in lacking


def _relative(media: Mapping[str, str], index: Path) -> dict[str, str]:
    return {m: near(media[m], index.parent) for m in ("audio", "visual") if may_have(media.get(m, ""), m)}
