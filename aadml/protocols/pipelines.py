"""What can be audited: a run under a protocol, a user's function, a user's command."""

import shlex
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from numpy.typing import NDArray

from aadml.comparison.clips import Clips, Splits
from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Modality
from aadml.feature_extraction.feature_file import FeatureFile, write_features
from aadml.feature_extraction.foreign import open_hdf5
from aadml.feature_extraction.ground.errors import InputError
from aadml.protocols.audit import Embed
from aadml.protocols.evaluation import embed_under, evaluate_under, prepare_subject, protocols_of
from aadml.protocols.protocol import Subject

Arrays = Mapping[str, NDArray[Any]]
Function = Callable[[Arrays, NDArray[np.int64]], Arrays]
"""(features: modality -> (n, d) array, labels (n,)) -> modality -> (n, e) array."""


@dataclass(frozen=True)
class ProtocolPipeline:
    """A trained subject under a named protocol."""

    subject: Subject
    protocol: str

    @property
    def preparation(self) -> str:
        """Say what the protocol does with a data set before anything is embedded."""
        before = [part for part in protocols_of(self.protocol) if part.before is not None]
        return f"the protocol {self.protocol} prepared itself anew" if before else ""

    def embedder(self, splits: Splits, split: str) -> Embed:
        """Prepare the protocol on `splits`; clips are then embedded as if they were the scored split."""
        subject, parts = prepare_subject(replace(self.subject, splits=splits), self.protocol, split)

        def embed(clips: Clips) -> Embeddings:
            scored = subject.splits.having(split, clips)
            return embed_under(replace(subject, splits=scored), parts, split)

        return embed

    def reported_map(self, splits: Splits, split: str) -> float:
        """Return the MAP under the protocol."""
        return evaluate_under(replace(self.subject, splits=splits), self.protocol, split=split).map_mean


@dataclass(frozen=True)
class FunctionPipeline:
    """A user's function `(features: modality -> (n, d) array, labels (n,)) -> modality -> (n, e) array`."""

    function: Function
    preparation: str = ""

    def embedder(self, splits: Splits, split: str) -> Embed:
        """Call the function on whatever is to be embedded."""
        return self._embed

    def reported_map(self, splits: Splits, split: str) -> None:
        """Make no number."""

    def _embed(self, clips: Clips) -> Embeddings:
        features: dict[str, NDArray[Any]] = {m: clips.matrix(m).numpy() for m in clips.modalities}
        made = self.function(features, clips.labels.numpy())
        if not isinstance(made, Mapping) or any(m not in made for m in clips.modalities):
            raise InputError(
                f"the encoder returned {_shown(made)}; wanted a mapping with {', '.join(clips.modalities)}"
            )
        return _embeddings(clips, {m: np.asarray(made[m]) for m in clips.modalities})


@dataclass(frozen=True)
class CommandPipeline:
    """A user's command with {input} (a feature file) and {output} (HDF5 with a dataset for each modality); no shell.

    Attributes:
        command: the words of the command line.
        seconds: that one call may take.
    """

    command: str
    seconds: float = 600.0
    preparation: str = ""

    def embedder(self, splits: Splits, split: str) -> Embed:
        """Run the command on whatever is to be embedded."""
        return self._embed

    def reported_map(self, splits: Splits, split: str) -> None:
        """Make no number."""

    def _embed(self, clips: Clips) -> Embeddings:
        with tempfile.TemporaryDirectory() as folder:
            given, made = Path(folder) / "input.h5", Path(folder) / "output.h5"
            write_features(given, _content(clips))
            self._run([_filled(word, given, made) for word in self._words()])
            return _embeddings(clips, _read_output(made, clips))

    def _words(self) -> list[str]:
        try:
            words = shlex.split(self.command)
        except ValueError as error:
            raise InputError(f"--command {self.command}: cannot be read ({error})") from error
        if not words or not all(any(name in word for word in words) for name in ("{input}", "{output}")):
            raise InputError(f"--command {self.command}: write both {{input}} and {{output}} into it")
        return words

    def _run(self, words: Sequence[str]) -> None:
        try:
            done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=self.seconds)
        except subprocess.TimeoutExpired:
            raise InputError(f"the command took longer than {self.seconds:g} s; give more with --time-limit") from None
        except (OSError, ValueError) as error:
            raise InputError(f"the command {words[0]} cannot be started ({error})") from error
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise InputError(f"the command ended with {done.returncode}: {last}")


def _filled(word: str, given: Path, made: Path) -> str:
    return word.replace("{input}", str(given)).replace("{output}", str(made))


def _read_output(made: Path, clips: Clips) -> dict[Modality, NDArray[Any]]:
    if not made.is_file():
        raise InputError("the command wrote no {output}")
    try:
        with open_hdf5(made) as file:
            missing = [m for m in clips.modalities if m not in file]
            if missing:
                raise InputError(f"{made}: holds no {missing[0]}; it holds {', '.join(file) or 'nothing'}")
            other = [m for m in clips.modalities if not isinstance(file[m], h5py.Dataset)]
            if other:
                raise InputError(f"{made}: {other[0]} is not an array")
            return {m: np.asarray(file[m]) for m in clips.modalities}
    except InputError as error:
        raise InputError(f"the command's output {str(error).removeprefix(f'{made}: ')}") from error


def _content(clips: Clips) -> FeatureFile:
    features: dict[str, NDArray[Any]] = {m: clips.matrix(m).numpy() for m in clips.modalities}
    return FeatureFile(features, clips.labels.numpy(), clips.ids, ("test",) * len(clips), clips.class_names)


def _shown(made: object) -> str:
    return (
        f"a mapping with {', '.join(map(str, made)) or 'nothing'}" if isinstance(made, Mapping) else type(made).__name__
    )


def _embeddings(clips: Clips, made: Mapping[Modality, NDArray[Any]]) -> Embeddings:
    for modality, values in made.items():
        if values.ndim != 2 or values.dtype.kind not in "fiu":
            raise InputError(f"{modality}: {values.dtype} of shape {values.shape} returned; wanted numbers (n, e)")
    counts = {len(values) for values in made.values()}
    count = min(counts)
    if len(counts) != 1 or count > len(clips):
        raise InputError(f"{', '.join(map(str, sorted(counts)))} embeddings for {len(clips)} clips")
    vectors = {m: torch.from_numpy(np.array(values, dtype=np.float32)) for m, values in made.items()}
    # where some are missing, the audit says so; which ones cannot be known
    return clips.select(torch.arange(count)).embedded(vectors)
