"""Names of shards: the three shards of `s.h5` are `s.0-of-3.h5`, `s.1-of-3.h5` and `s.2-of-3.h5`."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from aadml.feature_extraction.ground.errors import InputError

_PART = re.compile(r"(?P<stem>.+)\.(?P<index>\d+)-of-(?P<count>\d+)")


def read_shard(text: str) -> tuple[int, int]:
    """Parse "i/n" of `--shard` to (i, n).

    Raises:
        InputError: the text has another form, or i is not below n.
    """
    index, slash, count = text.partition("/")
    if not slash or not index.isdecimal() or not count.isdecimal() or not int(index) < int(count):
        raise InputError(
            f"--shard {text} is not a shard; pass I/N with I from 0 to N-1, "
            "for example 0/4 for the first of four shards"
        )
    return int(index), int(count)


def shard_path(output: str | os.PathLike[str], shard: tuple[int, int]) -> Path:
    """Return the path of the feature file of a shard.

    Args:
        output: the feature file of the whole job, or of this shard.
        shard: (i, n).

    Returns:
        `<stem>.<i>-of-<n><suffix>`; `output` unchanged if it has that name already, or if n is 1.

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
            f"{place} is the name of shard {named['index']}/{named['count']}, but the job is shard {index}/{count}; "
            f"pass {place.with_name(named['stem'] + place.suffix)}, the name without the shard"
        )
    return place


def shard_paths(names: Sequence[str | os.PathLike[str]], output: str | os.PathLike[str]) -> list[Path]:
    """Return the paths of the shards to merge.

    Args:
        names: files of shards, or names that were passed to `extract`. A name without a file stands for all its
            shards (see `named_shards`). Empty for the shards of `output`.
        output: the feature file to create.

    Returns:
        The paths in the order of `names`; the shards of one name are in the order of their numbers.

    Raises:
        InputError: no file or shard is found for a name.
    """
    paths: list[Path] = []
    for name in map(Path, names or (output,)):
        shards = [name] if names and name.exists() else named_shards(name)
        if not shards:
            absent = "" if name.exists() else "the file does not exist, and "
            raise InputError(
                f"{name}: {absent}there are no shards {name.stem}.0-of-N{name.suffix} beside it; "
                "pass the paths of the shards, or the output of `aadml extract`"
            )
        paths += shards
    return paths


def named_shards(name: Path, ending: str = "") -> list[Path]:
    """Return the existing paths `<stem>.<i>-of-<n><suffix><ending>`, ordered by n, then by i."""
    return [path for *_, path in _numbered(name, ending)]


def absent_shards(name: Path, endings: Sequence[str]) -> Iterator[str]:
    """Yield the shards, such as "1/4", of which no path `<stem>.<i>-of-<n><suffix><ending>` exists.

    Args:
        name: the feature file of the whole job.
        endings: endings of the paths. The numbers n are those of existing paths.
    """
    shards = {(count, index) for ending in endings for count, index, _ in _numbered(name, ending)}
    for number in sorted({count for count, _ in shards}):
        yield from (f"{index}/{number}" for index in range(number) if (number, index) not in shards)


def _numbered(name: Path, ending: str) -> list[tuple[int, int, Path]]:
    shards: list[tuple[int, int, Path]] = []
    for path in name.parent.iterdir() if name.parent.is_dir() else ():
        file = Path(path.name.removesuffix(ending))
        part = _PART.fullmatch(file.stem)
        if part and path.name.endswith(ending) and (part["stem"], file.suffix) == (name.stem, name.suffix):
            shards.append((int(part["count"]), int(part["index"]), path))
    return sorted(shards)
