"""What can be audited: a run under a protocol, a user's function, a user's command."""

import shlex
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from numpy.typing import NDArray

from aadml.comparison.types import Clips, Embeddings, Modality, Splits
from aadml.protocols.audit import Embed
from aadml.protocols.evaluation import embed_under, evaluate_under, protocols_of
from aadml.protocols.protocol import Subject
from feature_extraction.feature_file import FeatureFile, write_features
from feature_extraction.ground.errors import InputError

Arrays = Mapping[str, NDArray[Any]]
Function = Callable[[Arrays, NDArray[np.int64]], Arrays]
"""(features: modality -> (n, d) array, labels (n,)) -> modality -> (n, e) array."""


@dataclass(frozen=True)
class ProtocolPipeline:
    """A trained subject under a named protocol."""

    subject: Subject
    protocol: str

    def embedder(self, splits: Splits, split: str) -> Embed:
        """Prepare the protocol on `splits`; clips are then embedded as if they were the scored split."""
        parts = protocols_of(self.protocol)
        subject = replace(self.subject, splits=splits)
        for part in parts:
            subject = part.before(subject, split) if part.before is not None else subject

        def embed(clips: Clips) -> Embeddings:
            scored = replace(subject.splits, **{split: clips})  # type: ignore[arg-type]
            return embed_under(replace(subject, splits=scored), parts, split)

        return embed

    def reported_map(self, splits: Splits, split: str) -> float:
        """Return the MAP under the protocol."""
        return evaluate_under(replace(self.subject, splits=splits), self.protocol, split=split).map_mean


@dataclass(frozen=True)
class FunctionPipeline:
    """A user's function `(features: modality -> (n, d) array, labels (n,)) -> modality -> (n, e) array`."""

    function: Function

    def embedder(self, splits: Splits, split: str) -> Embed:
        """Call the function on whatever is to be embedded."""
        return self._embed

    def reported_map(self, splits: Splits, split: str) -> None:
        """Make no number."""

    def _embed(self, clips: Clips) -> Embeddings:
        features: dict[str, NDArray[Any]] = {m: clips.matrix(m).numpy() for m in clips.modalities}
        made = self.function(features, clips.labels.numpy())
        return _embeddings(clips, {m: np.asarray(made[m]) for m in clips.modalities})


@dataclass(frozen=True)
class CommandPipeline:
    """A user's command with {input} (a feature file) and {output} (HDF5 with a dataset for each modality)."""

    command: str

    def embedder(self, splits: Splits, split: str) -> Embed:
        """Run the command on whatever is to be embedded."""
        return self._embed

    def reported_map(self, splits: Splits, split: str) -> None:
        """Make no number."""

    def _embed(self, clips: Clips) -> Embeddings:
        with tempfile.TemporaryDirectory() as folder:
            given, made = Path(folder) / "input.h5", Path(folder) / "output.h5"
            write_features(given, _content(clips))
            words = [word.format(input=given, output=made) for word in shlex.split(self.command)]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode:
                told = (done.stderr.strip().splitlines() or ["no message"])[-1]
                raise InputError(f"the command ended with {done.returncode}: {told}")
            with h5py.File(made) as file:
                return _embeddings(clips, {m: np.asarray(file[m]) for m in clips.modalities})


def _content(clips: Clips) -> FeatureFile:
    features: dict[str, NDArray[Any]] = {m: clips.matrix(m).numpy() for m in clips.modalities}
    return FeatureFile(features, clips.labels.numpy(), clips.ids, ("test",) * len(clips), clips.class_names)


def _embeddings(clips: Clips, made: Mapping[Modality, NDArray[np.floating]]) -> Embeddings:
    counts = {len(values) for values in made.values()}
    if counts != {len(clips)}:
        raise InputError(f"{sorted(counts)} embeddings came of {len(clips)} clips")
    vectors = {m: torch.from_numpy(np.array(values, dtype=np.float32)) for m, values in made.items()}
    return Embeddings(vectors, clips.labels, clips.ids, class_names=clips.class_names)
