"""Embeddings of a feature file, written for use elsewhere."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import h5py
import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from aadml.comparison.types import Modality
from aadml.configuration.config import Config
from aadml.data import open_data
from aadml.data.captioned_sets import captioned_splits, is_captioned
from aadml.model.encoder import Encoder
from aadml.runs.train import load_run
from feature_extraction.ground.atomic import atomic_path
from feature_extraction.ground.errors import InputError


def embed_file(run: Path, features: Path, output: Path) -> tuple[int, str]:
    """Embed every clip of a feature file with a trained run, each item of each modality alone.

    The output is an HDF5 file with `/<modality>` (n, dimension) float32, `/label`, `/id`, `/split`, `/class_names` and
    the attributes `similarity` and `run` (the run's config): `aadml evaluate --embeddings` reads it.

    Args:
        run: a trained run folder.
        features: a feature file of any layout.
        output: where to write.

    Returns:
        How many clips, and the name of the similarity that belongs to the embeddings.

    Raises:
        InputError: the file's modalities or dimensions are not those the run was trained on.
    """
    config, splits, encoder = load_run(run)
    if is_captioned(features):
        return _embed_captioned(config, encoder, features, output)
    content = open_data(features)
    vectors: dict[Modality, torch.Tensor] = {}
    for modality in splits.train.modalities:
        if modality not in content.features:
            raise InputError(f"{features}: has no {modality} features; there are {', '.join(content.features)}")
        values = torch.from_numpy(np.array(content.features[modality]))
        wanted = splits.train.dimension(modality)
        if values.shape[1] != wanted:
            raise InputError(f"{features}: {modality} has {values.shape[1]} dimensions; {run} was trained on {wanted}")
        vectors[modality] = encoder.embed(values, modality)
    texts = {"id": content.ids, "split": content.splits, "class_names": content.class_names}
    _write(output, config, encoder, vectors, content.labels, texts)
    return len(content.ids), encoder.method.similarity


def _embed_captioned(config: Config, encoder: Encoder, path: Path, output: Path) -> tuple[int, str]:
    """Embed captioned sound: a row a pair of clip and caption, the clips numbered through all splits as labels."""
    wanted = {key: config["method"][key] for key in ("cleaning", "captions") if key in config["method"]}
    if not wanted:
        raise InputError(f"{path}: holds sound and captions; {config.method} embeds vectors")
    splits = captioned_splits(path, **wanted)
    parts = {name: encoder.embed_clips(splits[name]) for name in ("train", "valid", "test")}
    before, labels = 0, []
    for part in parts.values():
        labels.append(part.labels.numpy() + before)
        before += len(part.class_names)
    vectors: dict[Modality, torch.Tensor] = {}
    for modality in splits.train.modalities:
        # packed sequences are as wide as the longest of their split
        wide = max(part.vectors[modality].shape[1] for part in parts.values())
        rows = [F.pad(v := part.vectors[modality], (0, wide - v.shape[1])) for part in parts.values()]
        vectors[modality] = torch.cat(rows)
    texts = {
        "id": [name for part in parts.values() for name in part.ids],
        "split": [name for name, part in parts.items() for _ in part.ids],
        "class_names": [name for part in parts.values() for name in part.class_names],
    }
    _write(output, config, encoder, vectors, np.concatenate(labels), texts)
    return len(texts["id"]), encoder.method.similarity


def _write(
    output: Path,
    config: Config,
    encoder: Encoder,
    vectors: Mapping[Modality, torch.Tensor],
    labels: NDArray[np.int64],
    texts: Mapping[str, Sequence[str]],
) -> None:
    with atomic_path(output) as temporary, h5py.File(temporary, "w", track_order=False) as file:
        file.attrs["format"] = "aadml-embeddings"
        file.attrs["similarity"] = encoder.method.similarity
        file.attrs["run"] = json.dumps(dict(config.values))
        for modality, values in vectors.items():
            file.create_dataset(modality, data=values.numpy(), track_times=False)
        file.create_dataset("label", data=labels, track_times=False)
        for name, written in texts.items():
            strings = np.array(written, dtype=object)
            file.create_dataset(name, data=strings, dtype=h5py.string_dtype(), track_times=False)
