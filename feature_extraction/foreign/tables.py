"""Reader of tables: Parquet, JSON Lines, TSV, data sets of the library `datasets`, and WebDataset tars.

Files of object stores and data sets on the Hugging Face Hub are copied to a temporary folder first. No code of a data
set is run.
"""

import atexit
import bz2
import gzip
import json
import lzma
import os
import re
import shutil
import tarfile
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from struct import unpack_from
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.foreign.numpy_files import read_npy
from aadml.feature_extraction.ground.archives import damage_as
from aadml.feature_extraction.ground.consent import require_address_consent
from aadml.feature_extraction.ground.errors import InputError, cause
from aadml.feature_extraction.ground.file_content import file_kind
from aadml.feature_extraction.ground.import_paths import optional

if TYPE_CHECKING:
    import pyarrow as pa

HUB = "hf:"
"""Prefix of the name of a data set on the Hugging Face Hub."""

_PROTOCOLS = ("s3", "gs", "gcs", "az", "abfs", "http", "https", "hf", "memory")
"""Supported protocols of addresses.

Other protocols of fsspec follow references to further files, or run templates of a file.
"""
_HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")
_PLAIN_NAME = re.compile(r"(?!\.)[^/\\:\0]+")
_ADDRESS = re.compile(
    r"(?:(?P<protocol>[^:/?#]+://)(?:(?P<user>[^/?#]*)@)?)?(?P<place>[^?#]*)(?:\?(?P<query>[^#]*))?(?:#(?P<fragment>.*))?",
    re.DOTALL,
)
_SAVED = ("dataset_dict.json", "state.json")
_READ = (".parquet", ".jsonl", ".tsv", ".json", ".arrow")
"""Suffixes of the files that are read in a folder."""
_SUFFIXES = (".parquet", ".tar", ".tgz", ".tar.gz")
_LABELS = ("label", "labels")
_IDS = ("query-id", "corpus-id", "id", "_id")
_FREE, _RATIO = 1 << 26, 200  # bytes to which a file may always expand, or per stored byte
_MEMBERS, _MEMBER_BYTES = 10_000, 32  # members of a tar that are always allowed, or stored bytes of a further one
_ROWS = 1024  # rows of a Parquet file per check of the limit
_DICTIONARY = 2  # type of a message of Arrow whose batch is inside
_BLOCK, _RESERVE = 1 << 20, 1 << 28  # bytes of a remote source per write, and bytes of the disk that stay free


def local_path(source: str | os.PathLike[str]) -> Path:
    """Return the path of a source; a remote source is copied to a temporary folder once per process.

    Args:
        source: a path, an address of `fsspec` ("s3://bucket/clips.h5", "memory://clips.parquet"), or "hf:NAME", a data
            set on the Hugging Face Hub.

    Raises:
        InputError: a remote source is not supported, lacks the consent of the user, cannot be read, or is larger than
            the free space.
        MissingExtraError: the packages of `aadml[datasets]` are not installed.
    """
    if not is_remote(source):
        return Path(source)
    address = str(source)
    _check_address(address)
    require_address_consent(address, shown_address(address))
    return _copied(address)


def is_remote(source: str | os.PathLike[str]) -> bool:
    """Return whether a source is an address of `fsspec`, or a data set on the Hugging Face Hub."""
    return "://" in str(source) or str(source).startswith(HUB)


def _check_address(source: str) -> None:
    """Raise InputError for an address with "::", an unknown protocol, or an invalid name of a data set on the hub."""
    if source.startswith(HUB) and "://" not in source:
        name = source.removeprefix(HUB)
        if not _HUB_NAME.fullmatch(name) or Path(name).exists():
            raise InputError(
                f"{source} is not the name of a data set on the hub; pass hf:ORGANIZATION/NAME, or a path without hf:"
            )
    elif "::" in source or source.partition("://")[0] not in _PROTOCOLS:
        raise InputError(
            f"{shown_address(source)} is not a supported address; pass an address of {', '.join(_PROTOCOLS)}, "
            "without '::'"
        )


def temporary_folder() -> "TemporaryDirectory[str]":
    """Return a new folder that exists until the end of the process."""
    folder = TemporaryDirectory(prefix="aadml-")
    atexit.register(folder.cleanup)
    return folder


@cache
def _copied(source: str) -> Path:
    folder = temporary_folder()
    try:
        with _failures_of(source):
            if source.startswith(HUB) and "://" not in source:
                place = Path(folder.name) / "data"
                datasets = optional("datasets", source, "aadml[datasets]")
                cache_dir = str(Path(folder.name) / "cache")
                datasets.load_dataset(source.removeprefix(HUB), cache_dir=cache_dir).save_to_disk(place)
            else:
                parts = urlsplit(source)
                place = Path(folder.name) / (parts.path.rpartition("/")[2] or parts.netloc)
                _download(source, place)
    except BaseException:
        folder.cleanup()
        raise
    return place


@contextmanager
def _failures_of(source: str) -> Iterator[None]:
    """Raise InputError for any error of a file system; file systems have no common class of errors."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        reason = f"{shown_address(source)} cannot be read ({_without_secrets(cause(error), source)})"
        raise InputError(f"{reason}; check the address and your access") from error


def fetch_beside(source: str, copy: Path, files: Iterable[str]) -> None:
    """Copy wanted files from the folder of a remote file to the same relative paths beside the local copy.

    Args:
        source: address of the remote file, copied by `local_path`. For a data set of the hub, no files are copied.
        copy: path of the local copy of `source`.
        files: local paths of the wanted files. Paths of existing local files, paths outside the folder of `copy`,
            and files that are missing beside `source` are left out.

    Raises:
        InputError: a file cannot be read, or is larger than the free space.
    """
    base = f"{copy.parent}/"
    for file in dict.fromkeys(files):
        name = file.removeprefix(base)
        if "://" not in source or name == file or ".." in Path(name).parts or Path(file).exists():
            continue
        address = f"{source.rpartition('/')[0]}/{name}"
        _check_address(address)
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        with _failures_of(address), suppress(FileNotFoundError):
            _download(address, Path(file))


def _download(address: str, place: Path) -> None:
    with optional("fsspec", shown_address(address), "aadml[datasets]").open(address, "rb") as content:
        copy_of(content, place, shown_address(address))


def shown_address(source: str | os.PathLike[str]) -> str:
    """Return a source for messages and files: an address without user, query and fragment, which may contain secrets.

    A path and the name of synthetic features stay unchanged.
    """
    if not is_remote(source):
        return str(source)
    parts = _parts_of(str(source))
    return f"{parts['protocol'] or ''}{parts['place']}"


def _without_secrets(text: str, source: str) -> str:
    """Return a text in which user, query and fragment of an address are replaced."""
    text = text.replace(source, shown_address(source))
    for secret in filter(None, _parts_of(source).group("user", "query", "fragment")):
        text = text.replace(secret, "...")
    return text


def _parts_of(source: str) -> re.Match[str]:
    match = _ADDRESS.fullmatch(source)
    assert match is not None  # every text matches
    return match


def copy_of(file: IO[bytes], place: Path, shown: str) -> None:
    """Write the content of `file` to `place`.

    Args:
        file: open file.
        place: path of the copy.
        shown: name of the source, for the message.

    Raises:
        InputError: the disk has too little space.
    """
    size, free = int(getattr(file, "size", None) or 0), shutil.disk_usage(place.parent).free
    if size > free:
        raise InputError(
            f"{shown} has {size:,} bytes, but {place.parent} has only {free:,} bytes free; set TMPDIR to a larger disk"
        )
    with place.open("wb") as copy:
        while block := file.read(_BLOCK):
            if shutil.disk_usage(place.parent).free < _RESERVE:  # the size may be unknown
                raise InputError(
                    f"{shown} is too large for {place.parent}, which has less than {_RESERVE:,} bytes left; set "
                    "TMPDIR to a larger disk"
                )
            copy.write(block)


def is_table(path: Path) -> bool:
    """Return whether a path is a Parquet file, a tar, a folder of Parquet files, or a data set saved to disk."""
    if path.is_file():
        return path.name.lower().endswith(_SUFFIXES)
    return path.is_dir() and (any((path / name).is_file() for name in _SAVED) or any(path.glob("*.parquet")))


def table_files(path: Path) -> tuple[Path, ...]:
    """Return the files of a table: the table itself, or all files below a table that is a folder."""
    return (path,) if path.is_file() else tuple(sorted(file for file in path.rglob("*") if file.is_file()))


def table_keys(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the names of all arrays that `table_arrays` can read from a table.

    Args:
        path: see `table_arrays`.

    Raises:
        InputError: the table cannot be read, or parts or clips have different columns.
        MissingExtraError: pyarrow or datasets is not installed.
    """
    place = Path(path)
    with damage_in(place):
        if is_tar(place):
            return tuple(_tar_columns(place, ()))
        parts = _equal_parts(place)
        beside = ("class_names",) if class_names(parts[0].schema) else ()
        return tuple(dict.fromkeys((*parts[0].schema.names, *_split_key(parts), *beside)))


def table_arrays(path: str | os.PathLike[str], wanted: Collection[str]) -> dict[str, NDArray[Any]]:
    """Read columns of a table of clips: lists of d numbers as (n, d), single values as (n,).

    Args:
        path: see `is_table`. In a tar, the files `KEY.audio.npy`, `KEY.split.txt` and `KEY.cls` are the values of
            clip KEY in the columns `audio`, `split` and `label`. A data set with named splits has the column
            `split`. The class names that `datasets` stores are the array `class_names`. A missing label is -1, or
            empty text.
        wanted: columns to read. Missing columns are left out.

    Raises:
        InputError: the table cannot be read, or a column does not form an array because of missing values or
            lists of different lengths.
        MissingExtraError: pyarrow or datasets is not installed.
    """
    place = Path(path)
    with damage_in(place):
        if is_tar(place):
            columns = _tar_columns(place, wanted)
            return {name: _stacked(columns[name], f"{place}: {name}") for name in columns if name in wanted}
        return {name: array for name, array in _columns(place, wanted).items() if name in wanted}


def open_tables(path: Path) -> "list[TablePart]":
    """Return the parts of a table that is not a tar.

    Args:
        path: a file that ends in .parquet, .jsonl or .tsv, a folder of such files, or a data set saved to disk.

    Raises:
        InputError: the table cannot be read.
        MissingExtraError: pyarrow or datasets is not installed.
    """
    with damage_in(path):
        return list(_parts(path))


def damage_in(path: Path) -> AbstractContextManager[None]:
    """Raise DamagedFileError for any error of a reader; pyarrow and datasets have no common class of errors."""
    kind = "WebDataset tar" if is_tar(path) else "table"
    return damage_as(f"{path} cannot be read as a {kind}", "pass a readable, intact copy", (Exception,))


@dataclass(frozen=True)
class TablePart:
    """Part of a table: one file or one split.

    Attributes:
        split: name of the split; empty if the part has no name.
        schema: pyarrow's schema of the columns.
        read: function from the wanted columns (None for all) to a pyarrow table, which may have other columns as well.
        stream: function from a number of rows to batches of at most that many rows; None if `read` needs little memory.
    """

    split: str
    schema: Any
    read: "Callable[[Collection[str] | None], pa.Table]"
    stream: "Callable[[int], Iterator[pa.RecordBatch]] | None" = None

    def batches(self, rows: int) -> "Iterator[pa.RecordBatch]":
        """Yield all columns of the part in batches of at most `rows` rows."""
        return self.stream(rows) if self.stream else iter(self.read(None).to_batches(max_chunksize=rows))


def _parts(path: Path) -> Iterator[TablePart]:
    optional("pyarrow", str(path), "aadml[parquet]")
    for file in path.rglob("*") if path.is_dir() else ():
        is_read = file.suffix.lower() in _READ
        if is_read and file.exists() and not (file.is_file() or file.is_dir()):  # readers would wait for its end
            raise ValueError(f"{file.name} is a {file_kind(file.stat())}")
    if any((path / name).is_file() for name in _SAVED):
        _refuse_compressed(_saved_files(path), str(path))
        saved = optional("datasets", str(path), "aadml[datasets]").load_from_disk(path)
        for split, part in (saved if isinstance(saved, dict) else {"": saved}).items():
            yield TablePart(split, part.features.arrow_schema, partial(_saved_rows, part))
        return
    for file in sorted(path.iterdir()) if path.is_dir() else (path,):
        split = file.stem.partition("-")[0] if path.is_dir() else ""
        if file.suffix.lower() == ".parquet":
            schema = optional("pyarrow.parquet", str(path), "aadml[parquet]").read_schema(file)
            yield TablePart(
                split, schema, partial(_parquet, file, schema), partial(_parquet_batches, file, schema.names)
            )
        elif reader := _READERS.get(file.suffix.lower()):
            table = reader(file)
            yield TablePart(split, table.schema, partial(_all_columns, table))


def _saved_files(path: Path) -> list[Path]:
    """Return the data files of a data set of `datasets`, as listed in its JSON files.

    Raises:
        ValueError: a name of a split or file is a path, which could be outside the folder, or occurs twice.
    """
    divided, single = (path / name for name in _SAVED)
    states = [single] if single.is_file() else []
    if divided.is_file():
        splits = _plain_names(json.loads(divided.read_bytes())["splits"], divided)
        states += [path / split / single.name for split in splits]
    files = []
    for state in states:
        names = [file["filename"] for file in json.loads(state.read_bytes())["_data_files"]]
        files += [state.with_name(name) for name in _plain_names(names, state, ".arrow")]
    return files


def _plain_names(names: Iterable[object], place: Path, suffix: str = "") -> list[str]:
    plain: dict[str, None] = {}
    for name in names:
        if not isinstance(name, str) or not _PLAIN_NAME.fullmatch(name) or not name.endswith(suffix):
            raise ValueError(f"{place.name} has '{name}' instead of the plain name of a file or split")
        if name in plain:
            raise ValueError(f"{place.name} has '{name}' twice")
        plain[name] = None
    return list(plain)


def _refuse_compressed(files: Iterable[Path], source: str) -> None:
    """Raise ValueError for a data set file with compressed values, which `datasets` never writes."""
    arrow = optional("pyarrow", source, "aadml[parquet]")
    for file in files:
        with arrow.memory_map(str(file)) as content:
            for message in arrow.ipc.MessageReader.open_stream(content):
                if message.type != "schema" and _is_compressed(message.metadata.to_pybytes()):
                    raise ValueError(f"{file.name} is compressed")


def _is_compressed(message: bytes) -> bool:
    """Return whether a message of Arrow (a FlatBuffer, see format/Message.fbs) has a batch with compressed values."""

    def field(table: int, number: int) -> int:
        """Return the position of a field; 0 if the table lacks the field."""
        entries = table - unpack_from("<i", message, table)[0]
        (size,), place = unpack_from("<H", message, entries), 4 + 2 * number
        return table + offset if place < size and (offset := unpack_from("<H", message, entries + place)[0]) else 0

    def target(place: int) -> int:
        return place + int(unpack_from("<I", message, place)[0])

    root = target(0)
    batch = target(field(root, 2))
    if message[field(root, 1)] == _DICTIONARY:
        batch = target(field(batch, 1))
    return bool(field(batch, 3))


def _equal_parts(path: Path) -> list[TablePart]:
    """Return the parts of a table; all parts have the same columns.

    Raises:
        InputError: the table has no part, or the parts have different columns.
    """
    parts = list(_parts(path))
    if not parts:
        raise InputError(f"{path} has neither a split nor a file with rows; pass a complete copy")
    names = parts[0].schema.names
    for part in parts:
        if part.schema.names != names:
            split = part.split or "a file"
            columns = f"the columns {', '.join(part.schema.names)}, but another part has {', '.join(names)}"
            raise InputError(f"{path}: {split} has {columns}; store the same columns in all parts")
    return parts


def _split_key(parts: Sequence[TablePart]) -> tuple[str, ...]:
    """Return ("split",) if all parts of a table without a column `split` are named splits; () otherwise."""
    is_divided = all(part.split for part in parts) and "split" not in parts[0].schema.names
    return ("split",) if is_divided else ()


def _saved_rows(part: Any, wanted: Collection[str] | None) -> Any:
    names = [name for name in part.column_names if wanted is None or name in wanted]
    return part.select_columns(names or part.column_names[:1]).with_format("arrow")[:]


def _all_columns(table: Any, _: Collection[str] | None) -> Any:
    return table


def _parquet(file: Path, schema: Any, wanted: Collection[str] | None) -> Any:
    """Read columns of a Parquet file. If no column is wanted, the first column is read for the number of rows."""
    arrow = optional("pyarrow", str(file), "aadml[parquet]")
    names = [name for name in schema.names if wanted is None or name in wanted] or schema.names[:1]
    batches = list(_parquet_batches(file, names, _ROWS))
    return arrow.Table.from_batches(batches, arrow.schema([schema.field(name) for name in names], schema.metadata))


def _parquet_batches(file: Path, names: Sequence[str], rows: int) -> Iterator[Any]:
    """Yield columns of a Parquet file, at most `rows` rows at a time; one row group is in memory.

    Raises:
        DamagedFileError: the file is damaged, or the columns expand beyond the limit of the file.
    """
    parquet, limit, size = optional("pyarrow.parquet", str(file), "aadml[parquet]"), _limit(file), 0
    with damage_in(file), parquet.ParquetFile(file, pre_buffer=False) as opened:
        groups = [opened.metadata.row_group(number) for number in range(opened.metadata.num_row_groups)]
        leaves = [group.column(number) for group in groups for number in range(group.num_columns)]
        leaves = [leaf for leaf in leaves if leaf.path_in_schema.startswith(tuple(names))]
        values = sum(leaf.num_values for leaf in leaves)
        if 8 * values > limit:
            raise ValueError(f"it declares {values:,} values, but stores {file.stat().st_size:,} bytes")
        longest = max((leaf.total_uncompressed_size for leaf in leaves), default=1)  # bytes of a value, at most
        rows = max(1, min(rows, limit // max(longest, 1)))
        for batch in opened.iter_batches(rows, columns=names, use_threads=False):  # threads read ahead
            size += batch.nbytes
            if size > limit:  # a dictionary stores a long value that many rows repeat
                raise ValueError(f"it expands beyond {limit:,} bytes")
            yield batch


def _limit(path: Path) -> int:
    """Return the number of bytes to which a file or folder may expand."""
    return max(_FREE, _RATIO * sum(file.stat().st_size for file in table_files(path)))


def _lines(path: Path) -> Any:
    """Read JSON Lines. A text id such as "2020-01-01" is not read as a date, and numbers remain numbers."""
    arrow, reader = (optional(name, str(path), "aadml[parquet]") for name in ("pyarrow", "pyarrow.json"))
    schema = arrow.schema([(name, arrow.string()) for name in _IDS])
    options = reader.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer")
    try:
        table = reader.read_json(path, parse_options=options)
    except arrow.ArrowInvalid:  # ids are numbers
        return reader.read_json(path)
    return table.drop_columns([name for name in _IDS if table[name].null_count == len(table)])


def _tsv(path: Path) -> Any:
    arrow, csv = (optional(name, str(path), "aadml[parquet]") for name in ("pyarrow", "pyarrow.csv"))
    options = csv.ConvertOptions(column_types=dict.fromkeys(_IDS, arrow.string()))  # 010 is not a number
    return csv.read_csv(path, parse_options=csv.ParseOptions(delimiter="\t"), convert_options=options)


_READERS: dict[str, Callable[[Path], Any]] = {".jsonl": _lines, ".tsv": _tsv}


def _columns(path: Path, wanted: Collection[str]) -> dict[str, NDArray[Any]]:
    """Return the wanted columns, the splits and the class names of a table other than a tar."""
    parts = _equal_parts(path)
    tables = [part.read(wanted) for part in parts]
    for table in tables:
        table.validate()
    joined = optional("pyarrow", str(path), "aadml[parquet]").concat_tables(tables)
    limit = _limit(path)
    names = [name for name in joined.column_names if name in wanted]
    columns = {name: _with_marked_nulls(joined[name]) if name in _LABELS else joined[name] for name in names}
    arrays = {name: _array(column, f"{path}: {name}", limit) for name, column in columns.items()}
    splits = [part.split for part, table in zip(parts, tables, strict=True) for _ in range(table.num_rows)]
    arrays |= {key: np.array(splits) for key in _split_key(parts)}
    if classes := class_names(parts[0].schema):
        arrays["class_names"] = np.array(classes)
    return arrays


def class_names(schema: Any) -> list[str]:
    """Return the class names that the library `datasets` stores in a schema for the column `label`.

    The result is [] for a schema without class names.
    """
    stored = (schema.metadata or {}).get(b"huggingface")
    features = json.loads(stored).get("info", {}).get("features", {}) if stored else {}
    return list(features.get("label", {}).get("names") or [])


def _with_marked_nulls(labels: Any) -> Any:
    """Return labels with the label -1 or "" of a clip without a class in place of nulls.

    Labels that are neither numbers nor text are returned unchanged.
    """
    kind = str(labels.type)
    if labels.null_count and kind.startswith(("string", "large_string", "dictionary<values=string")):
        return labels.fill_null("")
    if labels.null_count and kind.startswith(("int", "uint", "float", "double")):
        return (labels.cast("int64") if "int" in kind else labels).fill_null(-1)
    return labels


def _array(column: Any, place: str, limit: int) -> NDArray[Any]:
    values = column.combine_chunks()
    values = getattr(values, "storage", values)
    shape = [len(values)]
    while hasattr(values.type, "value_type") and not hasattr(values.type, "index_type"):
        lengths = values.value_lengths().to_numpy(zero_copy_only=False) if hasattr(values, "value_lengths") else None
        if values.null_count or (lengths is not None and len(set(lengths.tolist())) > 1):
            raise InputError(
                f"{place} has missing values or lists of different lengths; store one list per clip, all of the same "
                "length"
            )
        values = values.flatten()
        shape.append(len(values) // max(np.prod(shape, dtype=int), 1))
    if values.null_count:
        raise InputError(f"{place} has {values.null_count} missing values; fill them in, or leave the rows out")
    array: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    if array.dtype == object:
        longest = max((len(str(value)) for value in array), default=0)
        if 4 * len(array) * longest > limit:
            raise InputError(
                f"{place} has {len(array):,} texts of up to {longest:,} characters, which need more than {limit:,} "
                "bytes; shorten the longest texts"
            )
        array = array.astype(np.str_)
    return array.reshape(shape)


def is_tar(path: Path) -> bool:
    """Return whether a table (see `is_table`) is a tar."""
    return path.is_file() and path.suffix.lower() not in (".parquet", *_READERS)


class _LimitedStream:
    """Stream that raises ValueError after a number of bytes, and thus does not read oversized headers."""

    def __init__(self, file: IO[bytes], limit: int) -> None:
        self._file, self._limit, self._left = file, limit, limit

    def read(self, size: int = -1) -> bytes:
        """Read at most `size` bytes, or all bytes for a negative `size`. Raise ValueError beyond the limit."""
        data = self._file.read(min(size, self._left + 1) if size >= 0 else self._left + 1)
        self._left -= len(data)
        if self._left < 0:
            raise ValueError(f"it expands beyond {self._limit:,} bytes")
        return data


def _decompressed(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        start = file.read(6)
    openers: dict[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
    opener = next((opener for magic, opener in openers.items() if start.startswith(magic)), None)
    return cast(IO[bytes], opener(path, "rb") if opener else path.open("rb"))


@dataclass(frozen=True)
class TarFile:
    """File of a WebDataset tar: KEY.COLUMN.KIND, or KEY.KIND for the column of that kind.

    Attributes:
        clip: folder and key.
        column: COLUMN; in KEY.KIND, "label" for cls, "text" for txt, otherwise the kind.
        kind: ending without the dot.
        size: bytes.
        content: stream of the content, which is valid until the next file.
    """

    clip: str
    column: str
    kind: str
    size: int
    content: IO[bytes]


def tar_files(path: Path) -> Iterator[TarFile]:
    """Yield the files of a WebDataset tar, which may be compressed.

    Raises:
        ValueError: the tar has too many members or bytes; a damaged tar raises other exceptions, see `damage_in`.
    """
    with (
        _decompressed(path) as file,
        tarfile.open(fileobj=cast(IO[bytes], _LimitedStream(file, _limit(path))), mode="r|") as tar,
    ):
        for member in _members(tar, path):
            key, _, field = member.name.rpartition("/")[2].partition(".")
            name, _, kind = field.rpartition(".")
            column, content = name or {"cls": "label", "txt": "text"}.get(kind, kind), tar.extractfile(member)
            if key and kind and content is not None:
                yield TarFile(member.name.removesuffix(f".{field}"), column, kind, member.size, content)


def _tar_columns(path: Path, wanted: Collection[str]) -> dict[str, list[Any]]:
    """Return the values of each column, in the order of the clips; None for each value of an unwanted column."""
    columns: defaultdict[str, dict[str, NDArray[Any] | str | None]] = defaultdict(dict)
    clips: dict[str, None] = {}
    for file in tar_files(path):
        if file.kind not in ("npy", "cls", "txt"):
            continue
        clips[file.clip] = columns[file.column][file.clip] = None
        if file.column in wanted and file.kind == "npy":
            subject = f"{path}: {file.column}.npy of clip '{file.clip:.80}'"
            columns[file.column][file.clip] = read_npy(file.content, file.size, subject)
        elif file.column in wanted:
            columns[file.column][file.clip] = file.content.read().decode().strip()
    for name, values in columns.items():
        if len(values) < len(clips):
            absent = next(clip for clip in clips if clip not in values)
            raise InputError(f"{path}: clip '{absent:.80}' has no {name}; store the same files for each clip")
    return {"id": [*clips], **{name: [values[clip] for clip in clips] for name, values in columns.items()}}


def _stacked(values: list[Any], place: str) -> NDArray[Any]:
    try:
        return np.array(values)
    except ValueError as error:
        first, second, *_ = dict.fromkeys(np.shape(value) for value in values)
        raise InputError(
            f"{place} has arrays of different shapes, {first} and {second}; store one shape for all clips"
        ) from error


def _members(tar: tarfile.TarFile, path: Path) -> Iterator[tarfile.TarInfo]:
    """Yield the files of a tar; links and devices are left out.

    Raises:
        ValueError: the members declare too many bytes, or are too many.
    """
    declared, limit = 0, _limit(path)
    most = max(_MEMBERS, path.stat().st_size // _MEMBER_BYTES)
    for number, member in enumerate(tar, 1):
        declared += member.size
        if declared > limit:
            raise ValueError(f"it declares more than {limit:,} bytes")
        if number > most:
            raise ValueError(f"it has more than {most:,} members")
        if member.isfile():
            yield member
