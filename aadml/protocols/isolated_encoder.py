"""Isolated encoder: in each pass, a new interpreter imports or starts an encoder and answers requests over pipes.

A message consists of 8 bytes with the length of a safetensors file, followed by the file. The interpreter starts
without environment variables, descriptors or arguments of the audit, in an empty folder that also serves as HOME
and TMPDIR.
"""

import importlib.abc
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from aadml.feature_extraction.ground.errors import InputError
from aadml.protocols.isolation import isolate, libraries

Arrays = Mapping[str, NDArray[Any]]
Function = Callable[[Arrays, NDArray[np.int64]], Arrays]
"""(features: modality -> (n, d) array, labels (n,)) -> modality -> (n, e) array."""

_START = "import sys; sys.path.insert(0, {root!r}); from aadml.protocols.isolated_encoder import answer; answer()"
_SHOWN = 5


@dataclass(frozen=True)
class Order:
    """Encoder of a pass: a function by name, or a command.

    Attributes:
        place: "module:function"; empty for a command.
        command: words of the command line, with {output}, and with {input} or {train}; empty for a function.
        readable: files and folders that the encoder can read, besides libraries.
        by_kernel: whether the kernel isolates the process.
    """

    place: str = ""
    command: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    by_kernel: bool = True


class IsolatedEncoder:
    """Process that runs the encoder of one pass, and ends with its parent process.

    Args:
        order: the encoder.

    Attributes:
        channels: descriptions of at most 5 channels, besides the input, through which the encoder could have received
            data.
    """

    def __init__(self, order: Order) -> None:
        self.channels: tuple[str, ...] = ()
        scratch = tempfile.mkdtemp()
        environment = {"HOME": scratch, "TMPDIR": scratch, "PATH": os.defpath, "USER": "audit", "LANG": "C.UTF-8"}
        root = str(Path(__file__).resolve().parents[2])
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-B", "-c", _START.format(root=root)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, cwd=scratch,
        )  # fmt: skip
        self._send(
            {"order": _packed(asdict(order)), "environment": _packed(sorted(os.environ.keys() - environment.keys()))}
        )

    def __call__(self, request: Arrays) -> Arrays:
        """Return the arrays that the encoder returns for a request.

        Raises:
            InputError: the encoder failed, or its process ended.
        """
        self._send(request)
        assert self._process.stdout is not None
        reply = _receive(self._process.stdout)
        if reply is None:
            raise InputError(
                "the process of the encoder ended without a result; check the encoder for a crash or a lack of memory"
            )
        state = _unpacked(reply["state"])
        self.channels = tuple(state["channels"])
        if state["error"]:
            raise InputError(state["error"])
        return {name.removeprefix("of "): values for name, values in reply.items() if name != "state"}

    def _send(self, message: Arrays) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # the missing reply is reported
            _write(self._process.stdin, message)


def answer() -> None:
    """Isolate this process, then answer requests until the input ends."""
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    for descriptor in (0, 1):
        os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
    message = _receive(source)
    assert message is not None
    order = Order(**_unpacked(message["order"]))
    scratch = Path.cwd()
    watch = _Channels((*libraries(), *order.readable, str(scratch), "/dev"), _unpacked(message["environment"]))
    try:
        if not order.by_kernel:
            raise OSError("isolation by the kernel is off")
        isolate(scratch, [*libraries(), *order.readable])
    except (OSError, AttributeError) as error:
        watch.channels.append(f"files, network and processes (the kernel did not isolate the encoder: {error})")
    os.chdir(scratch)
    for place in order.readable:
        with suppress(OSError):
            Path(Path(place).name).symlink_to(place)
    encode: Callable[[Arrays], Arrays] | None = None
    while (request := _receive(source)) is not None:
        failure, arrays = "", dict[str, NDArray[Any]]()
        try:
            if encode is None:
                watch.start()
                encode = _encoder(order)
            arrays = {f"of {name}": values for name, values in encode(request).items()}
        except InputError as problem:
            failure = str(problem)
        except BaseException as problem:  # the user's encoder may raise anything
            failure = " ".join(f"{type(problem).__name__}: {problem}".split())
            if isinstance(problem, OSError | ImportError):
                failure += "; pass the files and modules that the encoder reads to --allow"
        state = _packed({"error": failure, "channels": watch.channels[:_SHOWN]})
        _write(sink, {**({} if failure else arrays), "state": state})


@dataclass(frozen=True)
class _Channels:
    """Audit hook (PEP 578) that records sockets, changed file attributes, and files outside the readable folders.

    Reads of environment variables that the encoder does not inherit from the audit are recorded too.
    """

    readable: Sequence[str]
    environment: Sequence[str]
    channels: list[str] = field(default_factory=list)
    searched: Sequence[str] = field(default_factory=lambda: [os.path.realpath(folder) for folder in sys.path])

    def start(self) -> None:
        """Record channels from now on, until the process ends."""

        def value(variables: os._Environ[str], name: str) -> str:
            if name in self.environment:
                self._record(f"environment variable {name}")
            return read(variables, name)

        read = os._Environ.__getitem__
        setattr(os._Environ, "__getitem__", value)  # noqa: B010 (typed for bytes too)
        sys.addaudithook(self)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
            path = os.path.realpath(os.fsdecode(arguments[0]))
            is_readable = any(path == place or path.startswith(f"{place}/") for place in self.readable)
            if not is_readable and path not in self.searched and Path(path).exists():
                self._record(f"file {path}")
        elif event in ("socket.connect", "socket.bind", "os.utime", "os.setxattr", "os.chmod"):
            self._record(f"{event} {arguments[1] if event.startswith('socket') else arguments[0]}")

    def _record(self, channel: str) -> None:
        if channel not in self.channels:
            self.channels.append(channel)


def _encoder(order: Order) -> Callable[[Arrays], Arrays]:
    if order.command:
        return lambda request: (
            _trained(order.command, request["train"])
            if "train" in request
            else {"output": _output_of(order.command, request["input"])}
        )
    sys.meta_path.insert(0, _Named(order.readable))
    name, _, attribute = order.place.partition(":")
    function: Any = importlib.import_module(name)
    for part in attribute.split("."):
        function = getattr(function, part, None)
    if not callable(function):
        raise InputError(f"{order.place}: the module has no function '{attribute}'; pass module:function")
    return lambda request: embeddings_of(
        function, {m: values for m, values in request.items() if m != "labels"}, request["labels"]
    )


def embeddings_of(function: Function, features: Arrays, labels: NDArray[np.int64]) -> Arrays:
    """Call a function and return its arrays, by the modalities of `features`.

    Raises:
        InputError: the function did not return numbers (n, e) for every modality.
    """
    vectors = function({**features}, labels)
    if not isinstance(vectors, Mapping) or any(m not in vectors for m in features):
        returned = f"a value of type {type(vectors).__name__}"
        if isinstance(vectors, Mapping):
            returned = f"a mapping with {', '.join(map(str, vectors)) or 'nothing'}"
        raise InputError(f"the encoder returned {returned}; return a mapping with {', '.join(features)}")
    arrays = {m: np.asarray(vectors[m]) for m in features}
    for modality, values in arrays.items():
        if values.ndim != 2 or values.dtype.kind not in "fiu":
            raise InputError(
                f"{modality}: the encoder returned values of type {values.dtype} and shape {values.shape}; "
                "return numbers (n, e)"
            )
    return arrays


def _output_of(command: Sequence[str], content: NDArray[np.uint8]) -> NDArray[np.uint8]:
    source, output = Path("input.h5").absolute(), Path("output.h5").absolute()
    source.write_bytes(content.tobytes())
    output.unlink(missing_ok=True)
    _run(command, {"{input}": source, "{output}": output})
    if not output.is_file():
        raise InputError("the command did not write the file {output}; write the embeddings into that file")
    return np.frombuffer(output.read_bytes(), np.uint8)


def _trained(command: Sequence[str], content: NDArray[np.uint8]) -> Arrays:
    """Run a training command, and return the bytes of the files in its output folder, by relative path."""
    source, output = Path("train.h5").absolute(), Path("trained").absolute()
    source.write_bytes(content.tobytes())
    output.mkdir()
    _run(command, {"{train}": source, "{output}": output})
    files = [path for path in sorted(output.rglob("*")) if path.is_file() and not path.is_symlink()]
    if not files:
        raise InputError(
            "the training command wrote no file into the folder {output}; write the encoder into that folder"
        )
    return {path.relative_to(output).as_posix(): np.frombuffer(path.read_bytes(), np.uint8) for path in files}


def _run(command: Sequence[str], places: Mapping[str, Path]) -> None:
    words = list(command)
    for name, place in places.items():
        words = [word.replace(name, str(place)) for word in words]
    try:
        process = subprocess.run(words, capture_output=True, text=True, check=False)
    except (OSError, ValueError) as error:
        raise InputError(
            f"the command {words[0]} cannot be started ({error}); check the path of the program"
        ) from error
    if process.returncode:
        last = (process.stderr.strip().splitlines() or ["no message"])[-1]
        raise InputError(
            f"the command ended with exit status {process.returncode} ({last}); test the command by itself, and if it "
            "works there, pass the path of the interpreter itself, and --allow for the files that the program reads"
        )


class _Source(SourceFileLoader):
    """Loader that compiles the source, because compiled files beside the source are not readable."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


class _Named(importlib.abc.MetaPathFinder):
    """Finder of the modules among the readable files, whose folders cannot be listed."""

    def __init__(self, files: Sequence[str]) -> None:
        self._files = {
            Path(file).stem: Path(file) for file in files if file.endswith(".py") or Path(file, "__init__.py").is_file()
        }

    def find_spec(self, fullname: str, path: object = None, target: ModuleType | None = None) -> ModuleSpec | None:
        file = self._files.get(fullname)
        if file is None:
            return None
        folder = None if file.suffix == ".py" else [str(file)]
        source = file if folder is None else file / "__init__.py"
        loader = _Source(fullname, str(source))
        return importlib.util.spec_from_file_location(
            fullname, source, loader=loader, submodule_search_locations=folder
        )


def _packed(value: object) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(value).encode(), np.uint8)


def _unpacked(values: NDArray[np.uint8]) -> Any:
    return json.loads(values.tobytes())


def _write(sink: IO[bytes], message: Arrays) -> None:
    content = save({name: np.ascontiguousarray(values) for name, values in message.items()})
    sink.write(len(content).to_bytes(8, "little") + content)
    sink.flush()


def _receive(source: IO[bytes]) -> dict[str, NDArray[Any]] | None:
    size = source.read(8)
    content = source.read(int.from_bytes(size, "little")) if len(size) == 8 else b""
    return dict(sorted(load(content).items())) if content else None  # safetensors loads arrays in random order
