"""Dividing the runs of a sweep over machines, and joining them: shards write into one folder, or into copies of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.jobs.shard_names import read_shard
from aadml.studies.job import Job, is_done
from aadml.studies.sweep import SweepOutcome

_SHOWN = 5


@dataclass(frozen=True)
class Division:
    """Which runs of a sweep a call trains: all, those of one shard, or none, where the shards are merged.

    Attributes:
        shard: (i, n): every n-th run from the i-th on, so that each shard has its part of the long ones.
        merge: whether all runs must be there.
    """

    shard: tuple[int, int] | None = None
    merge: bool = False

    @classmethod
    def of(cls, shard: str | None, *, merge: bool) -> "Division":
        """Read "i/n" of `--shard`.

        Raises:
            InputError: written otherwise, no shard of so many, or a shard and a merge at once.
        """
        if shard and merge:
            raise InputError("--shard and --merge: a shard trains its runs, merge trains none; give one of them")
        return cls(read_shard(shard) if shard else None, merge)

    def owned(self, folder: Path) -> Path:
        """Give the folder that no other process may work in meanwhile: each shard has one of its own."""
        return folder / f"shard-{self.shard[0]}-of-{self.shard[1]}" if self.shard else folder

    def own(self, jobs: Sequence[Job]) -> list[Job]:
        """Give the runs of this call."""
        return list(jobs[self.shard[0] :: self.shard[1]]) if self.shard else list(jobs)

    def worked_off(
        self,
        jobs: Sequence[Job],
        work: Callable[[list[Job]], list[SweepOutcome]],
        note: Callable[[str], None],
        needed: Callable[[Sequence[Job]], Sequence[Job]] = lambda jobs: jobs,
    ) -> list[SweepOutcome]:
        """Train the runs of this call; a merge trains nothing, and nothing may be missing.

        Args:
            jobs: of the whole sweep.
            work: trains some of them.
            note: called with what is left to do after a shard.
            needed: adds the runs that others need trained first.

        Raises:
            InputError: a merge lacks runs.
        """
        if self.merge:
            whole = needed(jobs)
            check_complete(whole)
            return [SweepOutcome(job, kept=True) for job in whole]
        outcomes = work(self.own(jobs))
        if self.shard:
            done = sum(not outcome.reason for outcome in outcomes)
            note(
                f"shard {self.shard[0]}/{self.shard[1]}: {done} of its {len(outcomes)} runs are finished; once all "
                "shards are, copy their folders into one and run the same command with --merge instead of --shard"
            )
        return outcomes


WHOLE = Division()
"""All runs in one call."""


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
