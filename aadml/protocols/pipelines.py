"""Pipelines that can be audited: a run under a protocol, a user's function, a user's command."""

import shlex
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from aadml.comparison.clips import Clips, Splits
from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Modality
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
        """Preparation by the protocol before embedding, as a clause for the evidence; empty if there is none."""
        prepares = any(part.before is not None for part in protocols_of(self.protocol))
        return f"the protocol {self.protocol} was prepared again" if prepares else ""

    def embedder(self, splits: Splits, split: str) -> Embed:
        """Prepare the protocol on `splits`; return a function that embeds clips as if they were the scored split."""
        subject, parts = prepare_subject(replace(self.subject, splits=splits), self.protocol, split)

        def embed(clips: Clips) -> Embeddings:
            scored = subject.splits.having(split, clips)
            return embed_under(replace(subject, splits=scored), parts, split)

        return embed

    def reported_map(self, splits: Splits, split: str) -> float:
        """Return the MAP under the protocol."""
        return evaluate_under(replace(self.subject, splits=splits), self.protocol, split=split).map_mean


class _EncoderPipeline:
    """An external encoder, which depends on no data set and reports no score."""

    preparation: ClassVar[str] = ""

    def embedder(self, splits: Splits, split: str) -> Embed:
        """Return the encoder."""
        return self._embed

    def reported_map(self, splits: Splits, split: str) -> None:
        """Return None, because the encoder reports no score."""

    def _embed(self, clips: Clips) -> Embeddings:
        features: dict[Modality, NDArray[Any]] = {m: clips.matrix(m).numpy() for m in clips.modalities}
        return _embeddings(clips, self._encode(clips, features))

    def _encode(self, clips: Clips, features: Mapping[Modality, NDArray[Any]]) -> Mapping[Modality, NDArray[Any]]:
        raise NotImplementedError


@dataclass(frozen=True)
class FunctionPipeline(_EncoderPipeline):
    """A user's function `(features: modality -> (n, d) array, labels (n,)) -> modality -> (n, e) array`."""

    function: Function

    def _encode(self, clips: Clips, features: Mapping[Modality, NDArray[Any]]) -> Mapping[Modality, NDArray[Any]]:
        vectors = self.function({**features}, clips.labels.numpy())
        if not isinstance(vectors, Mapping) or any(m not in vectors for m in clips.modalities):
            expected = ", ".join(clips.modalities)
            raise InputError(f"the encoder returned {_described(vectors)}; return a mapping with {expected}")
        return {m: np.asarray(vectors[m]) for m in clips.modalities}


@dataclass(frozen=True)
class CommandPipeline(_EncoderPipeline):
    """A user's command with {input} (feature file) and {output} (HDF5, one dataset per modality), run without a shell.

    Attributes:
        command: the command line.
        seconds: time limit of one call.
    """

    command: str
    seconds: float = 600.0

    def _encode(self, clips: Clips, features: Mapping[Modality, NDArray[Any]]) -> Mapping[Modality, NDArray[Any]]:
        from aadml.feature_extraction.feature_file import FeatureFile, write_features

        with tempfile.TemporaryDirectory() as folder:
            source, output = Path(folder) / "input.h5", Path(folder) / "output.h5"
            content = FeatureFile(
                features, clips.labels.numpy(), clips.ids, ("test",) * len(clips), clips.class_names
            )  # fmt: skip
            write_features(source, content)
            words = self._words()
            self._run([word.replace("{input}", str(source)).replace("{output}", str(output)) for word in words])
            return _read_output(output, clips)

    def _words(self) -> list[str]:
        try:
            words = shlex.split(self.command)
        except ValueError as error:
            raise InputError(f"--command {self.command} cannot be parsed ({error}); check the quotes") from error
        if not words or not all(any(name in word for word in words) for name in ("{input}", "{output}")):
            raise InputError(f"--command {self.command} lacks {{input}} or {{output}}; write both into the command")
        return words

    def _run(self, words: Sequence[str]) -> None:
        try:
            process = subprocess.run(words, capture_output=True, text=True, check=False, timeout=self.seconds)
        except subprocess.TimeoutExpired:
            raise InputError(f"the command took longer than {self.seconds:g} s; raise --time-limit") from None
        except (OSError, ValueError) as error:
            raise InputError(
                f"the command {words[0]} cannot be started ({error}); check the path of the program"
            ) from error
        if process.returncode:
            last = (process.stderr.strip().splitlines() or ["no message"])[-1]
            raise InputError(
                f"the command ended with exit status {process.returncode} ({last}); test the command by itself"
            )


def _read_output(output: Path, clips: Clips) -> dict[Modality, NDArray[Any]]:
    import h5py

    from aadml.feature_extraction.foreign import open_hdf5

    if not output.is_file():
        raise InputError("the command did not write the file {output}; write the embeddings into that file")
    try:
        with open_hdf5(output) as file:
            for modality in clips.modalities:
                if modality not in file:
                    raise InputError(
                        f"{output}: has no {modality}, only {', '.join(file) or 'other content'}; write every modality"
                    )
                if not isinstance(file[modality], h5py.Dataset):
                    raise InputError(f"{output}: {modality} is not a dataset; write an HDF5 dataset of that name")
            return {m: np.asarray(file[m]) for m in clips.modalities}
    except InputError as error:
        raise type(error)(f"the command's output {str(error).removeprefix(f'{output}: ')}") from error


def _described(value: object) -> str:
    if isinstance(value, Mapping):
        return f"a mapping with {', '.join(map(str, value)) or 'nothing'}"
    return type(value).__name__


def _embeddings(clips: Clips, arrays: Mapping[Modality, NDArray[Any]]) -> Embeddings:
    for modality, values in arrays.items():
        if values.ndim != 2 or values.dtype.kind not in "fiu":
            raise InputError(
                f"{modality}: the encoder returned {values.dtype} of shape {values.shape}; return numbers (n, e)"
            )
    counts = {len(values) for values in arrays.values()}
    count = min(counts)
    if len(counts) != 1 or count > len(clips):
        raise InputError(
            f"the pipeline returned arrays of {', '.join(map(str, sorted(counts)))} rows for {len(clips)} clips; "
            "return one row per clip in every modality"
        )
    vectors = {m: torch.from_numpy(np.array(values, dtype=np.float32)) for m, values in arrays.items()}
    # the audit reports the number of missing rows; their positions are unknown
    return clips.select(torch.arange(count)).embedded(vectors)
