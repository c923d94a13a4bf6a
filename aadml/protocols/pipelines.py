"""Pipelines that can be audited: a run under a protocol, a user's function, a user's command."""

import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from aadml.comparison.clips import Clips, Splits
from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Modality
from aadml.feature_extraction.ground.consent import consent_to, is_place
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.file_content import sha256
from aadml.feature_extraction.ground.import_paths import source_with_consent
from aadml.protocols.audit import Embed
from aadml.protocols.evaluation import embed_under, evaluate_under, prepare_subject, protocols_of
from aadml.protocols.isolated_encoder import Arrays, Function, IsolatedEncoder, Order, embeddings_of
from aadml.protocols.protocol import Subject


@dataclass(frozen=True)
class ProtocolPipeline:
    """A trained subject under a named protocol."""

    subject: Subject
    protocol: str

    @property
    def preparation(self) -> str:
        """Training by the protocol before embedding, as a clause for the evidence; empty without training."""
        trains = any(part.trains for part in protocols_of(self.protocol))
        return f"the protocol {self.protocol} trained again" if trains else ""

    surroundings: ClassVar[str] = "only code of aadml ran, in a new fork of one state for each pass"

    @property
    def channels(self) -> Sequence[str]:
        """Code from outside aadml that is part of the method, as phrases."""
        method = self.subject.encoder.facts.method
        words = json.dumps({method.name: method.arguments.plain()}, default=str).split('"')
        return [f"{name}, code from outside aadml, ran in forks of the audit" for name in words if is_place(name)]

    def embedder(self, splits: Splits, split: str) -> Embed:
        """Prepare the protocol on `splits`, and return a function that embeds clips in place of the scored split."""
        subject, parts = prepare_subject(replace(self.subject, splits=splits), self.protocol, split)

        def embed(clips: Clips) -> Embeddings:
            scored = subject.splits.having(split, clips)
            return embed_under(replace(subject, splits=scored), parts, split)

        return embed

    def reported_map(self, splits: Splits, split: str) -> float:
        """Return the MAP under the protocol."""
        return evaluate_under(replace(self.subject, splits=splits), self.protocol, split=split).map_mean


class _EncoderPipeline:
    """An external encoder, independent of the data set and without a reported score."""

    preparation: ClassVar[str] = ""

    def embedder(self, splits: Splits, split: str) -> Embed:
        return self._embed

    def reported_map(self, splits: Splits, split: str) -> None:
        """Return None, because the encoder reports no score."""

    def _embed(self, clips: Clips) -> Embeddings:
        return _embeddings(clips, self._encode(clips))

    def _encode(self, clips: Clips) -> Arrays:
        raise NotImplementedError


@dataclass(frozen=True)
class FunctionPipeline(_EncoderPipeline):
    """A user's function object, which is called in forks with the memory, files and network of this process."""

    function: Function
    surroundings: ClassVar[str] = ""
    channels: ClassVar[Sequence[str]] = (
        "memory and files of the audit (the function has no importable name, so it ran in forks)",
    )

    def _encode(self, clips: Clips) -> Arrays:
        return embeddings_of(self.function, _arrays_of(clips), clips.labels.numpy())


@dataclass(frozen=True)
class IsolatedPipeline(_EncoderPipeline):
    """An encoder that starts in a new, isolated interpreter in every pass.

    Attributes:
        order: the encoder.
    """

    order: Order
    _running: list[IsolatedEncoder] = field(default_factory=list, compare=False, repr=False)

    @property
    def surroundings(self) -> str:
        """Isolation, and readable files with their checksums, as a clause for the evidence."""
        files = ", ".join(f"{place} (SHA-256 {sha256(Path(place))[:12]})" for place in self.order.readable)
        return (
            "each pass ran in a new interpreter, which the kernel isolated from network, processes and files; "
            f"readable beside the libraries: {files or 'no file'}"
        )

    @property
    def channels(self) -> Sequence[str]:
        """Channels of the encoders that this process started."""
        return tuple(dict.fromkeys(channel for encoder in self._running for channel in encoder.channels))

    def embedder(self, splits: Splits, split: str) -> Embed:
        """Start the encoder, and return its embedding function."""
        self._running.append(IsolatedEncoder(self.order))
        return self._embed

    def _encode(self, clips: Clips) -> Arrays:
        encode = self._running[-1]
        if not self.order.command:
            return encode({**_arrays_of(clips), "labels": clips.labels.numpy()})
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder) / "output.h5"
            output.write_bytes(encode({"input": exported(clips, "test")})["output"].tobytes())
            return _read_output(output, clips)


def of_function(function: str | Function, allow: Sequence[Path] = ()) -> IsolatedPipeline | FunctionPipeline:
    """Return the pipeline of an encoder function. A function that can be imported by a name runs in isolation.

    Args:
        function: the function, or "module:function".
        allow: files and folders that the function reads, besides its own module and libraries.

    Raises:
        InputError: the module or a path of `allow` does not exist, or the import of the module was not allowed.
    """
    if not isinstance(function, str):
        named = _name_of(function)
        if named is None:
            return FunctionPipeline(function)
        consent_to(named)
        function = named
    place, source = source_with_consent(function, "encoder")
    return IsolatedPipeline(Order(place, readable=_existing(([] if source is None else [source]) + list(allow))))


def of_command(command: str, allow: Sequence[Path] = ()) -> IsolatedPipeline:
    """Return the pipeline of a command, which runs without a shell.

    Args:
        command: the command line, with {input} for the path of a feature file that the command reads, and {output} for
            the path of an HDF5 file that the command writes. The files among the words can be read too.
        allow: files and folders that the command reads, besides libraries and the files among its words.

    Raises:
        InputError: the command cannot be parsed, lacks {input} or {output}, or a path of `allow` does not exist.
    """
    return IsolatedPipeline(order_of(command, allow, "--command", ("{input}", "{output}")))


def order_of(command: str, allow: Sequence[Path], flag: str, places: Sequence[str]) -> Order:
    """Return the encoder that a command line runs. The encoder can read the files among the words of the command line.

    Args:
        command: the command line.
        allow: other files and folders that the encoder can read.
        flag: name of the aadml option that contains the command line, for messages.
        places: placeholders that the command line must contain, such as {input}.

    Raises:
        InputError: the command cannot be parsed or lacks a placeholder, or a path of `allow` does not exist.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError(f"{flag} {command[:80]!r} cannot be parsed ({error}); check quotes and backslashes") from error
    if not words or not all(any(name in word for word in words) for name in places):
        raise InputError(f"{flag} {command[:80]!r} lacks {' or '.join(places)}; write both into the command")
    words[0] = shutil.which(words[0]) or words[0]  # the isolated environment has another PATH
    is_file = [os.path.isfile(word) for word in words]  # noqa: PTH113 - a word may be too long for a path
    words = [str(Path(word).absolute()) if known else word for word, known in zip(words, is_file, strict=True)]
    files = [Path(word) for word, known in zip(words, is_file, strict=True) if known]
    return Order(command=tuple(words), readable=_existing([*files, *allow]))


def _arrays_of(clips: Clips) -> dict[Modality, NDArray[Any]]:
    """Return the features (n, d) of each modality, with zeros for clips without the modality."""
    matrices = {m: clips.matrix(m) for m in clips.modalities}
    for modality, flags in clips.present.items():
        matrices[modality] = torch.where(flags[:, None], matrices[modality], 0.0)
    return {m: values.numpy() for m, values in matrices.items()}


def exported(clips: Clips, split: str) -> NDArray[np.uint8]:
    """Return the bytes of a feature file with these clips alone, in one split.

    The file has no masks if a clip lacks all modalities, and only the first class of each clip if the first class is
    not among all classes of a clip. Feature files cannot have such clips.
    """
    from aadml.feature_extraction.feature_file.checks import agreeing
    from aadml.feature_extraction.feature_file.content import FeatureFile
    from aadml.feature_extraction.feature_file.writing import write_features

    labels, marks = clips.labels.numpy(), None if clips.all_labels is None else clips.all_labels.numpy()
    content = FeatureFile(
        _arrays_of(clips),
        labels,
        clips.ids,
        (split,) * len(clips),
        clips.class_names,
        all_labels=marks.astype(np.uint8) if marks is not None and agreeing(labels, marks).all() else None,
        present={m: flags.numpy() for m, flags in clips.present.items()},
    )
    if not np.any([content.has(m) for m in clips.modalities], axis=0).all():
        content = replace(content, present={})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "input.h5"
        write_features(path, content)
        return np.frombuffer(path.read_bytes(), np.uint8)


def _existing(paths: Sequence[Path]) -> tuple[str, ...]:
    for path in paths:
        if not path.exists():
            raise InputError(f"--allow {path} does not exist; pass files or folders that the encoder reads")
    return tuple(str(path.absolute()) for path in paths)


def _name_of(function: Function) -> str | None:
    """Return "module:function" if an imported module besides `__main__` contains the function, else None."""
    module, name = getattr(function, "__module__", "__main__"), getattr(function, "__name__", "")
    is_same = getattr(sys.modules.get(module), name, None) is function
    return f"{module}:{name}" if is_same and module != "__main__" else None


def _read_output(output: Path, clips: Clips) -> dict[Modality, NDArray[Any]]:
    from aadml.feature_extraction.foreign.hdf5 import hdf5_arrays

    try:
        return hdf5_arrays(output, clips.modalities)
    except InputError as error:
        raise type(error)(f"the command's output {str(error).removeprefix(f'{output}: ')}") from error


def _embeddings(clips: Clips, arrays: Arrays) -> Embeddings:
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
