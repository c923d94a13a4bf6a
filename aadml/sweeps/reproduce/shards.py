"""Dividing runs over machines, and joining them: shards write into folders that are copied into one."""

from collections.abc import Sequence

from aadml.sweeps.job import Job, is_done
from feature_extraction.ground.errors import InputError

_SHOWN = 5


def read_shard(text: str) -> tuple[int, int]:
    """Read "i/n" of `--shard`.

    Raises:
        InputError: written otherwise, or no shard of so many.
    """
    index, slash, count = text.partition("/")
    if not slash or not index.isdecimal() or not count.isdecimal() or not int(index) < int(count):
        raise InputError(f"--shard {text}: write I/N with I from 0 to N-1, for example 0/4 for the first of four")
    return int(index), int(count)


def of_shard(jobs: Sequence[Job], shard: tuple[int, int]) -> list[Job]:
    """Give the runs of a shard: every n-th, so that each shard has its part of the long ones."""
    return list(jobs[shard[0] :: shard[1]])


def check_complete(jobs: Sequence[Job]) -> None:
    """Refuse to lay out a page from which runs are missing.

    Raises:
        InputError: some are not finished; says how many, and which.
    """
    missing = [job.folder for job in jobs if not is_done(job)]
    if missing:
        some = ", ".join(f"{folder.parent.parent.name}/{folder.name}" for folder in missing[:_SHOWN])
        more = " ..." if len(missing) > _SHOWN else ""
        raise InputError(
            f"--merge: {len(missing)} of {len(jobs)} runs are not finished ({some}{more}); copy the folders of the "
            "other shards into this one, or leave --merge out to train what is missing"
        )
