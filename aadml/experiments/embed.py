"""Embeddings of a feature file, written for use elsewhere."""

import json
from pathlib import Path

import h5py
import numpy as np
import torch

from aadml.data import open_data
from aadml.experiments.run import load_run
from aadml.types import Modality
from feature_extraction.atomic import atomic_path
from feature_extraction.errors import InputError


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
    with atomic_path(output) as temporary, h5py.File(temporary, "w", track_order=False) as file:
        file.attrs["format"] = "aadml-embeddings"
        file.attrs["similarity"] = encoder.method.similarity
        file.attrs["run"] = json.dumps(dict(config.values))
        for modality, values in vectors.items():
            file.create_dataset(modality, data=values.numpy(), track_times=False)
        file.create_dataset("label", data=content.labels, track_times=False)
        for name, texts in (("id", content.ids), ("split", content.splits), ("class_names", content.class_names)):
            file.create_dataset(name, data=np.array(texts, dtype=object), dtype=h5py.string_dtype(), track_times=False)
    return len(content.ids), encoder.method.similarity
