"""Names of the shards of one job: `s.h5` in three parts is `s.0-of-3.h5`, `s.1-of-3.h5`, `s.2-of-3.h5`."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from aadml.feature_extraction.ground.errors import InputError

_PART = re.compile(r"(?P<stem>.+)\.(?P<index>\d+)-of-(?P<count>\d+)")


def read_shard(text: str) -> tuple[int, int]:
    """Read "i/n" of `--shard`.

    Raises:
        InputError: written otherwise, or no shard of so many.
    """
    index, slash, count = text.partition("/")
    if not slash or not index.isdecimal() or not count.isdecimal() or not int(index) < int(count):
        raise InputError(f"--shard {text}: write I/N with I from 0 to N-1, for example 0/4 for the first of four")
    return int(index), int(count)


def shard_path(output: str | os.PathLike[str], shard: tuple[int, int]) -> Path:
    """Name the file of one shard, so that no shard overwrites another.

    Args:
        output: the feature file of the whole job, or the name of this shard.
        shard: (i, n).

    Returns:
        `<stem>.<i>-of-<n><suffix>`; `output` as it is where it has that name already, or where n is 1.

    Raises:
        InputError: `output` has the name of another shard.
    """
    place, (index, count) = Path(output), shard
    named = _PART.fullmatch(place.stem)
    if count == 1:
        return place
    if named is None:
        return place.with_name(f"{place.stem}.{index}-of-{count}{place.suffix}")
    if (int(named["index"]), int(named["count"])) != shard:
        raise InputError(
            f"{place}: is the name of shard {named['index']}/{named['count']}, but the job is shard {index}/{count}; "
            f"name it {named['stem']}{place.suffix}, and the shard is added"
        )
    return place


def shard_paths(names: Sequence[str | os.PathLike[str]], output: str | os.PathLike[str]) -> list[Path]:
    """Find the shards that are to be merged.

    Args:
        names: files of shards, or names of whole jobs, of which all shards are taken; none: the shards of `output`.
        output: the feature file that will be made.

    Returns:
        The files, in the order of `names`, shards of one job in the order of their numbers.

    Raises:
        InputError: a name that is not a file and has no shards.
    """
    return [path for name in names or (output,) for path in _files(Path(name), whole=not names)]


def named_shards(name: Path, ending: str = "") -> list[Path]:
    """Find what is named after the shards of a job: `<stem>.<i>-of-<n><suffix><ending>`, in order."""
    found: list[tuple[int, int, Path]] = []
    for path in name.parent.iterdir() if name.parent.is_dir() else ():
        file = Path(path.name.removesuffix(ending))
        part = _PART.fullmatch(file.stem)
        if part and path.name.endswith(ending) and (part["stem"], file.suffix) == (name.stem, name.suffix):
            found.append((int(part["count"]), int(part["index"]), path))
    return [path for *_, path in sorted(found)]


def _files(name: Path, *, whole: bool) -> list[Path]:
    if name.exists() and not whole:
        return [name]
    found = named_shards(name)
    if not found:
        raise InputError(f"{name}: no such file, and no shards {name.stem}.0-of-N{name.suffix} beside it")
    return found
