"""Manifests as contents of feature files, for division into splits; the features are numbers of clips and texts."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from aadml.comparison.clips import Splits
from aadml.comparison.features import Features
from aadml.data.sources.media_files import MediaFiles
from aadml.data.sources.texts import Captions
from aadml.data.splitting.division import connected
from aadml.feature_extraction.feature_file.class_codes import class_codes
from aadml.feature_extraction.feature_file.content import FeatureFile, Texts
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.manifest import RECORDING, SPLITS, Manifest, Row, is_text, read_manifest


def is_manifest(path: str | Path) -> bool:
    """Return whether a path has the ending of a manifest of media."""
    return Path(path).suffix == ".csv"


def read_media(path: str | Path, modalities: Sequence[str]) -> tuple[FeatureFile, Manifest]:
    """Return a manifest as the content of a feature file, with the numbers of clips and of texts as features.

    Args:
        path: path of the manifest.
        modalities: modalities to read.

    Returns:
        The content, in which clips of one file are of one recording, and the manifest.

    Raises:
        InputError: the file is not a manifest, or has no column, no files or no texts for a modality.
    """
    if not is_manifest(path):
        raise InputError(f"{path} is not a CSV file, but networks (towers) are trained on media; pass a manifest")
    manifest = read_manifest(path)
    for modality in modalities:
        if modality not in manifest.rows[0].media:
            raise InputError(f"{path} has no column for {modality}; add a column, or leave towers.{modality} out")
        if modality != "text" and not any(row.media[modality] for row in manifest.rows):
            raise InputError(f"{path}: no clip has a file for {modality}; add files, or leave towers.{modality} out")
    rows = manifest.rows
    labels, all_labels = class_codes(manifest, rows)
    texts, has_file = None, {m: np.asarray([bool(row.media[m]) for row in rows]) for m in modalities if m != "text"}
    present = {modality: flags for modality, flags in has_file.items() if not flags.all()}
    features = {m: np.arange(len(rows), dtype=np.float32)[:, None] for m in modalities}
    if "text" in modalities:
        owners = np.asarray([number for number, row in enumerate(rows) for _ in _texts(row)], dtype=np.int64)
        if not len(owners):
            raise InputError(f"{path}: no clip has a text; add texts, or leave towers.text out")
        texts = Texts(np.arange(len(owners), dtype=np.float32)[:, None], owners)
        features["text"], has_text = texts.first_of_each(len(rows))
        present |= {} if has_text.all() else {"text": has_text}
        texts = texts if len(owners) > has_text.sum() else None
    content = FeatureFile(
        features=features,
        present=present,
        texts=texts,
        labels=labels,
        all_labels=all_labels,
        ids=tuple(row.id for row in rows),
        splits=tuple(row.split for row in rows),
        class_names=manifest.class_names,
        columns={name: tuple(row.columns[name] for row in rows) for name in rows[0].columns} | _recordings(rows),
    )
    return content, manifest


def _recordings(rows: Sequence[Row]) -> dict[str, tuple[str, ...]]:
    """Return the column `recording`, in which clips of one file have equal cells; {} if each clip is a recording."""
    names = [row.columns.get(RECORDING) or row.id for row in rows]
    groups = connected([names, *([row.media[modality] for row in rows] for modality in ("audio", "visual"))])
    first = dict(zip(reversed(groups), reversed(names), strict=True))
    return {RECORDING: tuple(first[group] for group in groups)} if len(first) < len(rows) else {}


def with_media(splits: Splits, manifest: Manifest) -> Splits:
    """Return splits with the media and captions of a manifest in place of the numbers of clips and texts."""
    sources = {m: _source(manifest, m) for m in splits.train.modalities}
    for name in SPLITS:
        clips = splits[name]
        features: dict[str, Features] = {m: s.select(clips.matrix(m)[:, 0].long()) for m, s in sources.items()}
        splits = splits.having(name, replace(clips, features=features))
    return splits


def _source(manifest: Manifest, modality: str) -> MediaFiles | Captions:
    if modality == "text":
        return Captions(tuple(text for row in manifest.rows for text in _texts(row)))
    media = [(row.media[modality], row.segment) for row in manifest.rows]
    numbers = {clip: number for number, clip in enumerate(dict.fromkeys(media))}
    items = torch.tensor([numbers[clip] for clip in media], dtype=torch.int64)
    paths, segments = zip(*numbers, strict=True)
    return MediaFiles(paths, items, segments=segments)


def _texts(row: Row) -> list[str]:
    return [text for name, text in row.media.items() if is_text(name) and text.strip()]
