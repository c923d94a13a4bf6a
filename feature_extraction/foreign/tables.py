"""The opener of tables: Parquet, JSON Lines, TSV, data sets of the library `datasets`, and WebDataset tars.

Addresses of object stores and names of data sets on the Hugging Face Hub are copied to a temporary folder first. No
code of a data set is run.
"""

import atexit
import json
import os
import re
import shutil
import tarfile
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.foreign.numpy_files import read_npy
from aadml.feature_extraction.ground.archives import DAMAGED
from aadml.feature_extraction.ground.consent import require_address_consent
from aadml.feature_extraction.ground.errors import DamagedFileError, InputError, MissingExtraError, cause
from aadml.feature_extraction.ground.import_paths import optional

if TYPE_CHECKING:
    import pyarrow as pa

HUB = "hf:"
"""Prefix of the name of a data set on the Hugging Face Hub."""

_PROTOCOLS = ("s3", "gs", "gcs", "az", "abfs", "http", "https", "hf", "memory")
"""Protocols of addresses; others of fsspec read files that refer to further files, or run templates of a file."""
_HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")
_SAVED = ("dataset_dict.json", "state.json")
_SUFFIXES = (".parquet", ".tar", ".tgz", ".tar.gz")
_FREE, _RATIO = 1 << 26, 200  # declared bytes of a tar that are always allowed, or per stored byte
_BLOCK, _RESERVE = 1 << 20, 1 << 28  # bytes of a remote source per write, and bytes of the disk that stay free


def local_path(source: str | os.PathLike[str]) -> Path:
    """Return the path of a source; a remote source is copied once per process, until the process ends.

    Args:
        source: a path, an address of `fsspec` ("s3://bucket/clips.h5", "memory://clips.parquet"), or "hf:NAME", a data
            set on the Hugging Face Hub.

    Raises:
        InputError: a remote source was not typed by the user, cannot be read, or is larger than the free space.
        MissingExtraError: the packages of `aadml[datasets]` are not installed.
    """
    if not is_remote(source):
        return Path(source)
    address = str(source)
    _check_address(address)
    require_address_consent(address, _shown(address))
    return _copied(address)


def is_remote(source: str | os.PathLike[str]) -> bool:
    """Return whether a source is an address of `fsspec`, or a data set on the Hugging Face Hub."""
    return "://" in str(source) or str(source).startswith(HUB)


def _check_address(source: str) -> None:
    """Raise InputError for a chained address, a protocol that is not in `_PROTOCOLS`, or a wrong name of the hub."""
    if source.startswith(HUB) and "://" not in source:
        name = source.removeprefix(HUB)
        if not _HUB_NAME.fullmatch(name) or Path(name).exists():
            raise InputError(f"{source}: is not the name of a data set on the hub; pass hf:ORGANIZATION/NAME")
    elif "::" in source or source.partition("://")[0] not in _PROTOCOLS:
        raise InputError(
            f"{_shown(source)}: is not an address that is read; pass one of {', '.join(_PROTOCOLS)}, without '::'"
        )


@cache
def _copied(source: str) -> Path:
    folder = TemporaryDirectory(prefix="aadml-")
    atexit.register(folder.cleanup)
    try:
        if source.startswith(HUB) and "://" not in source:
            place = Path(folder.name) / "data"
            datasets = optional("datasets", source, "aadml[datasets]")
            downloaded = datasets.load_dataset(source.removeprefix(HUB), cache_dir=str(Path(folder.name) / "cache"))
            downloaded.save_to_disk(place)
        else:
            parts = urlsplit(source)
            place = Path(folder.name) / (parts.path.rpartition("/")[2] or parts.netloc)
            with optional("fsspec", _shown(source), "aadml[datasets]").open(source, "rb") as file:
                _copy(file, place, _shown(source))
    except BaseException as error:  # file systems have no common class of errors
        folder.cleanup()
        if isinstance(error, InputError) or not isinstance(error, Exception):
            raise
        reason = _without_secrets(cause(error), source)
        raise InputError(f"{_shown(source)}: cannot be read ({reason}); check the address and your access") from error
    return place


def _shown(source: str) -> str:
    """Return an address without user, query and fragment, which may hold secrets."""
    parts = urlsplit(source)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _without_secrets(text: str, source: str) -> str:
    """Return a text in which an address, its user and its query are replaced."""
    parts = urlsplit(source)
    text = text.replace(source, _shown(source))
    for secret in (parts.netloc.rpartition("@")[0], parts.query, parts.fragment):
        text = text.replace(secret, "...") if secret else text
    return text


def _copy(file: IO[bytes], place: Path, shown: str) -> None:
    size, free = int(getattr(file, "size", None) or 0), shutil.disk_usage(place.parent).free
    if size > free:
        raise InputError(
            f"{shown}: has {size:,} bytes, but {place.parent} has {free:,} free; set TMPDIR to a larger disk"
        )
    with place.open("wb") as copy:
        while block := file.read(_BLOCK):
            if shutil.disk_usage(place.parent).free < _RESERVE:  # the size may be unknown
                raise InputError(
                    f"{shown}: is too large for {place.parent}, which has less than {_RESERVE:,} bytes left; set "
                    "TMPDIR to a larger disk"
                )
            copy.write(block)


def is_table(path: Path) -> bool:
    """Return whether a path is a Parquet file, a tar, a folder of Parquet files, or a data set saved to disk."""
    if path.is_file():
        return path.name.lower().endswith(_SUFFIXES)
    return path.is_dir() and (any((path / name).is_file() for name in _SAVED) or any(path.glob("*.parquet")))


def table_files(path: Path) -> tuple[Path, ...]:
    """Return the files of a table."""
    return (path,) if path.is_file() else tuple(sorted(file for file in path.rglob("*") if file.is_file()))


def table_keys(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the names of the columns of a table; see `table_arrays`."""
    return tuple(_read(Path(path), ()))


def table_arrays(path: str | os.PathLike[str], wanted: Collection[str]) -> dict[str, NDArray[Any]]:
    """Read columns of a table of clips: lists of numbers as (n, d), everything else as (n,).

    Args:
        path: see `is_table`. In a tar, `KEY.audio.npy` is the value of clip KEY in the column `audio`, `KEY.split.txt`
            of the column `split`, and `KEY.cls` of the column `label`. A data set with named splits has `split`.
        wanted: columns to read; columns that the table lacks are left out.

    Raises:
        InputError: the table cannot be read, or a column has gaps or lists of different lengths.
        MissingExtraError: pyarrow or datasets is not installed.
    """
    return {name: read() for name, read in _read(Path(path), wanted).items() if name in wanted}


def open_tables(path: Path) -> "Iterator[tuple[str, pa.Table]]":
    """Yield the split, which may be empty, and the rows of each part of a table that is not a tar.

    Args:
        path: a file that ends in .parquet, .jsonl or .tsv, a folder of such files, or a data set saved to disk.

    Raises:
        InputError: the table cannot be read.
    """
    arrow = optional("pyarrow", str(path), "aadml[parquet]")
    try:
        if any((path / name).is_file() for name in _SAVED):
            saved = optional("datasets", str(path), "aadml[datasets]").load_from_disk(path)
            for split, part in (saved if isinstance(saved, dict) else {"": saved}).items():
                yield split, part.with_format("arrow")[:]
            return
        for file in sorted(path.iterdir()) if path.is_dir() else (path,):
            if reader := _READERS.get(file.suffix):
                yield (file.stem.partition("-")[0] if path.is_dir() else ""), reader(file)
    except (MissingExtraError, DamagedFileError):
        raise
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise DamagedFileError(f"{path}: cannot be read as a table ({cause(error)}); pass an intact copy") from error


def _parquet(path: Path) -> Any:
    return optional("pyarrow.parquet", str(path), "aadml[parquet]").read_table(path)


def _lines(path: Path) -> Any:
    return optional("pyarrow.json", str(path), "aadml[parquet]").read_json(path)


def _tsv(path: Path) -> Any:
    arrow, csv = (optional(name, str(path), "aadml[parquet]") for name in ("pyarrow", "pyarrow.csv"))
    texts = dict.fromkeys(("query-id", "corpus-id", "id", "_id"), arrow.string())  # 010 is no number
    options = csv.ConvertOptions(column_types=texts)
    return csv.read_csv(path, parse_options=csv.ParseOptions(delimiter="\t"), convert_options=options)


_READERS: dict[str, Callable[[Path], Any]] = {".parquet": _parquet, ".jsonl": _lines, ".tsv": _tsv}

Reads = dict[str, Callable[[], NDArray[Any]]]


def _read(path: Path, wanted: Collection[str]) -> Reads:
    """Return a function that builds the array of each column."""
    if path.is_file() and path.suffix != ".parquet":
        return _tar_columns(path, wanted)
    parts = list(open_tables(path))
    names = parts[0][1].column_names
    for split, part in parts:
        if part.column_names != names:
            raise InputError(f"{path}: the columns of {split or 'a file'} are not {', '.join(names)}; pass equal ones")
    arrow = optional("pyarrow", str(path), "aadml[parquet]")
    try:
        for _, part in parts:
            part.validate()
        joined = arrow.concat_tables([part for _, part in parts])
    except arrow.ArrowException as error:
        raise DamagedFileError(f"{path}: cannot be read as a table ({cause(error)}); pass an intact copy") from error
    reads: Reads = {name: partial(_array, joined[name], f"{path}: {name}") for name in names}
    splits = [split for split, part in parts for _ in range(part.num_rows)]
    if all(splits) and "split" not in names:
        reads["split"] = lambda: np.array(splits)
    if classes := _class_names(joined.schema):
        reads["class_names"] = lambda: np.array(classes)
    return reads


def _class_names(schema: Any) -> list[str]:
    """Return the class names of the column `label`, as the library `datasets` stores them in the schema."""
    stored = (schema.metadata or {}).get(b"huggingface")
    features = json.loads(stored).get("info", {}).get("features", {}) if stored else {}
    return list(features.get("label", {}).get("names") or [])


def _array(column: Any, place: str) -> NDArray[Any]:
    values = column.combine_chunks()
    values = getattr(values, "storage", values)
    shape = [len(values)]
    while hasattr(values.type, "value_type") and not hasattr(values.type, "index_type"):
        lengths = values.value_lengths().to_numpy(zero_copy_only=False) if hasattr(values, "value_lengths") else None
        if values.null_count or (lengths is not None and len(set(lengths.tolist())) > 1):
            raise InputError(f"{place} has gaps or lists of different lengths; store one list of equal length per clip")
        values = values.flatten()
        shape.append(len(values) // max(np.prod(shape, dtype=int), 1))
    if values.null_count:
        raise InputError(f"{place} has {values.null_count} gaps; fill them, or leave the rows out")
    array: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return (array.astype(np.str_) if array.dtype == object else array).reshape(shape)


def _tar_columns(path: Path, wanted: Collection[str]) -> Reads:
    columns: defaultdict[str, dict[str, NDArray[Any] | str | None]] = defaultdict(dict)
    clips: dict[str, None] = {}
    largest = max(_FREE, _RATIO * path.stat().st_size)
    try:
        with tarfile.open(path, "r|*") as tar:
            for member, declared in _members(tar):
                key, _, field = member.name.rpartition("/")[2].partition(".")
                if declared > largest:
                    raise ValueError(f"it declares more than {largest:,} bytes")
                name, _, kind = field.rpartition(".")
                name = name or {"cls": "label", "txt": "text"}.get(kind, kind)
                clip, file = member.name.removesuffix(f".{field}"), tar.extractfile(member)
                if kind not in ("npy", "cls", "txt") or not key or file is None:
                    continue
                clips[clip] = None
                if name in wanted:
                    columns[name][clip] = read_npy(file, member.size) if kind == "npy" else file.read().decode().strip()
                else:
                    columns[name][clip] = None
    except DAMAGED as error:
        raise DamagedFileError(f"{path}: cannot be read as a WebDataset tar ({cause(error)}); pass a tar") from error
    for name, values in columns.items():
        if len(values) < len(clips):
            absent = next(clip for clip in clips if clip not in values)
            raise InputError(f"{path}: clip '{absent:.80}' has no {name}; give each clip the same files")
    reads: Reads = {
        name: partial(_stacked, [values[clip] for clip in clips], f"{path}: {name}") for name, values in columns.items()
    }
    return {"id": lambda: np.array([*clips]), **reads}


def _stacked(values: list[Any], place: str) -> NDArray[Any]:
    try:
        return np.stack(values)
    except ValueError as error:
        raise InputError(f"{place} has arrays of different shapes; store one shape for all clips") from error


def _members(tar: tarfile.TarFile) -> "Iterator[tuple[tarfile.TarInfo, int]]":
    declared = 0
    for member in tar:
        declared += member.size
        if member.isfile():  # links and devices are left out
            yield member, declared
