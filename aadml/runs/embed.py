"""Embedding of a feature file into a file of embeddings."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from aadml.comparison.arrays import require_finite_embeddings
from aadml.comparison.clips import Clips, numbered
from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Modality
from aadml.data.captions.captioned_sets import is_captioned
from aadml.data.captions.several_texts import every_text
from aadml.data.reading import open_data
from aadml.data.splitting.splits import clips_of
from aadml.feature_extraction.feature_file.columns import ALL_LABELS, LISTED
from aadml.feature_extraction.feature_file.names import MODALITIES
from aadml.feature_extraction.feature_file.output import checksummed_hdf5
from aadml.feature_extraction.feature_file.replacement import refuse_other_clips
from aadml.feature_extraction.foreign.tables import shown_address
from aadml.feature_extraction.ground.argument_types import with_consent
from aadml.feature_extraction.ground.atomic import atomic_path, refuse_input, refuse_other_kind
from aadml.feature_extraction.ground.strings import Note
from aadml.feature_extraction.manifest import SPLITS
from aadml.model.model import Model
from aadml.retrieval.embeddings_file import FORMAT, MODEL, ONCE, is_embeddings_file
from aadml.runs.data import takes_captions
from aadml.runs.loading import load
from aadml.runs.model_data import check_features, read_for


@with_consent("model", "features")
def embed_file(
    model: Model | str | Path,
    features: str | Path,
    output: str | Path,
    *,
    allow_other_features: bool = False,
    trust_code: bool = False,
    on_note: Note | None = None,
) -> tuple[int, str]:
    """Embed every clip of a feature file.

    Each item of a modality is embedded independently of all other items.

    The output is an HDF5 file with `/<modality>` (n, dimension) float32, `/id`, `/split` and `/class_names`. A row
    is a clip, or one of its captions. Optional arrays are `/<modality>_present` for a modality that some clips
    lack, `/label` for labels, `/labels` (n, C) for clips of several classes, and `/modalities` for modalities
    besides audio, visual and text. Classes are numbered as in the model if the model has all of them. For captioned
    sound, classes are clips, and a name of clips in several splits begins with the split, as in `test/a.wav`. The
    attributes are `format`, `similarity`, `model` (the model's facts), and `once` if sound is repeated for each
    caption of a clip. `aadml evaluate --embeddings` reads this file.

    Args:
        model: a model, or the path of a run or a model folder.
        features: a feature file of any layout, or the media or captioned sound that the model reads.
        output: path of the output.
        allow_other_features: accept features of a different extractor than that of the training features.
        trust_code: import the code from outside aadml that the model names as `module:name`.
        on_note: called with notes for the user.

    Returns:
        Number of clips, and name of the similarity of the embeddings.

    Raises:
        InputError: the model or the features cannot be read, or the output would overwrite the features, a file of
            another kind or embeddings of other clips. Other causes: the features differ from the training features in
            modalities, dimensions or extractors, or an embedding is not finite.
    """
    refuse_other_kind(output, "a file of embeddings", is_embeddings_file)
    refuse_input(output, features)
    model = model if isinstance(model, Model) else load(model)
    if model.facts.towers is not None or takes_captions(model.facts.method.arguments) or is_captioned(features):
        return _embed_media(model, features, Path(output), on_note)
    content = open_data(features)
    refuse_other_clips(output, content.ids, shown_address(features), "file of embeddings")
    check_features(model, content, shown_address(features), allow=allow_other_features, on_note=on_note)
    clips = every_text(numbered(clips_of(content, model.modalities), model.class_names))
    vectors = {m: require_finite_embeddings(model.embed_features(clips[m], m), m, clips.ids) for m in model.modalities}
    splits = dict(zip(content.ids, content.splits, strict=True))
    texts = {"id": clips.ids, "split": [splits[name] for name in clips.ids], "class_names": clips.class_names}
    present = {m: mask.numpy() for m, mask in clips.present.items()}
    labels = {"label": clips.labels.numpy()} | _all_labels([clips])
    _write(Path(output), model, vectors, labels, texts, present)
    return len(content.ids), model.method.similarity


def _embed_media(model: Model, path: str | Path, output: Path, on_note: Note | None = None) -> tuple[int, str]:
    """Embed media, or captioned sound with one row per caption.

    For captioned sound, the label of a row is the number of its clip, counted over all splits. Clips that cannot be
    decoded are left out and listed in a warning.
    """
    splits, is_sound = read_for(model, path, on_note=on_note), model.facts.towers is None
    clips = {name: splits[name] for name in SPLITS if len(splits[name])}
    named = _named_apart(clips) if is_sound else clips
    ids = (name for part in (*clips.values(), *named.values()) for name in part.ids)
    refuse_other_clips(output, ids, shown_address(path), "file of embeddings")
    parts = {name: model.embed_clips(part) for name, part in named.items()}
    labels, names = [part.labels.numpy() for part in parts.values()], list(splits.train.class_names)
    if is_sound:
        counts = [len(part.class_names) for part in parts.values()]
        labels = [numbers + sum(counts[:position]) for position, numbers in enumerate(labels)]
        names = [name for part in parts.values() for name in part.class_names]
    vectors: dict[Modality, torch.Tensor] = {}
    for modality in model.modalities:
        # packed sequences are as wide as the longest sequence of their split
        matrices = [part.matrix(modality) for part in parts.values()]
        width = max(matrix.shape[1] for matrix in matrices)
        vectors[modality] = torch.cat([F.pad(matrix, (0, width - matrix.shape[1])) for matrix in matrices])
    texts = {
        "id": [name for part in parts.values() for name in part.ids],
        "split": [name for name, part in parts.items() for _ in part.ids],
        "class_names": names,
    }
    present = {
        m: np.concatenate([part.present.get(m, torch.ones(len(part), dtype=torch.bool)) for part in parts.values()])
        for m in model.modalities
        if any(m in part.present for part in parts.values())
    }
    once = next(iter(parts.values())).once
    numbers = {"label": np.concatenate(labels)} | _all_labels(parts.values())
    _write(output, model, vectors, numbers, texts, present, once)
    return len(set(numbers["label"].tolist() if is_sound else texts["id"])), model.method.similarity


def _named_apart(parts: Mapping[str, Clips]) -> dict[str, Clips]:
    """Return captioned splits without common names of clips: repeated names and their ids begin with the split."""
    counts = Counter(name for part in parts.values() for name in part.class_names)
    named = {}
    for split, part in parts.items():
        begin = [f"{split}/" if counts[name] > 1 else "" for name in part.class_names]
        names = tuple(word + name for word, name in zip(begin, part.class_names, strict=True))
        ids = tuple(begin[label] + name for label, name in zip(part.labels.tolist(), part.ids, strict=True))
        named[split] = replace(part, class_names=names, ids=ids)
    return named


def _all_labels(parts: Iterable[Clips | Embeddings]) -> dict[str, NDArray[np.uint8]]:
    marks = [part.all_labels.numpy().astype(np.uint8) for part in parts if part.all_labels is not None]
    return {ALL_LABELS: np.concatenate(marks)} if marks else {}


def _write(
    output: Path,
    model: Model,
    vectors: Mapping[Modality, torch.Tensor],
    labels: Mapping[str, NDArray[Any]],
    texts: Mapping[str, Sequence[str]],
    present: Mapping[Modality, NDArray[np.bool_]],
    once: Sequence[Modality] = (),
) -> None:
    with atomic_path(output) as temporary, checksummed_hdf5(temporary) as file:
        file.attrs["format"] = FORMAT
        file.attrs["similarity"] = model.method.similarity
        file.attrs[MODEL] = json.dumps(model.facts.to_json())
        if once:
            file.attrs[ONCE] = list(once)
        for modality, values in vectors.items():
            mask = present.get(modality)
            rows = values.numpy() if mask is None else np.where(mask[:, None], values.numpy(), np.float32(0))
            file.dataset(modality, data=rows)
            if mask is not None:
                file.dataset(f"{modality}_present", data=mask)
        for name, numbers in labels.items() if texts["class_names"] else ():
            file.dataset(name, data=numbers)
        if not set(vectors) <= set(MODALITIES):
            texts = {**texts, LISTED: list(vectors)}
        for name, words in texts.items():
            strings = np.array(words, dtype=object)
            file.dataset(name, data=strings, dtype=h5py.string_dtype())
