"""Execution of the runs of a study in processes or in shards on several machines, and merges of the shards."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.figures import panels
from aadml.feature_extraction.ground.json_values import Json
from aadml.feature_extraction.ground.strings import Note
from aadml.feature_extraction.jobs.shard_names import read_shard
from aadml.reports.tables import Table, as_json, markdown
from aadml.runs.data import takes_captions, with_folders_of
from aadml.runs.environment import read_environment
from aadml.runs.loading import read_config
from aadml.runs.manifest import read_manifest
from aadml.runs.prepare import check_towers
from aadml.runs.train import continued_config
from aadml.studies.job import Job, is_done
from aadml.studies.results import CellScores
from aadml.studies.sweep import SweepOutcome, sweep
from aadml.studies.sweep_figures import draw_dots

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHOWN = 5
log = logging.getLogger("aadml").info
"""Default of `on_note`."""
RunJobs = Callable[[Sequence[Job], int | None], list[SweepOutcome]]
"""(jobs, worker processes) -> one outcome per job; the command line adds a progress bar."""


@dataclass(frozen=True, repr=False)
class SweepResult:
    """Result of a study.

    Attributes:
        outcomes: one outcome per run.
        folder: folder of runs, tables and figures.
        tables: tables of the results; empty for a shard.
        page: the HTML page, without figures if matplotlib is not installed; None for a shard.
        scores: scores of each row; empty for a shard and for a reproduction.
    """

    outcomes: Sequence[SweepOutcome]
    folder: Path
    tables: Sequence[Table] = ()
    page: Path | None = None
    scores: Mapping[str, CellScores] = field(default_factory=dict)

    @property
    def failed(self) -> int:
        """Number of failed runs, which a repeated call retries. Runs that are not possible on the data do not count."""
        return sum(outcome.failed for outcome in self.outcomes)

    def __repr__(self) -> str:
        return "\n".join([*map(markdown, self.tables), str(self.page or self.folder)])

    def to_dict(self) -> Json:
        """Return the tables as JSON: a single table as an object, any other number of tables as a list."""
        tables = [as_json(table) for table in self.tables]
        return tables[0] if len(tables) == 1 else tables

    def plot(self) -> "Figure":
        """Draw the mean MAP of every row with finished runs as a matplotlib figure.

        The figure shows a dot per seed, the mean and standard deviation of each row, and the chance level.

        Raises:
            InputError: no run finished, the study is a reproduction, or matplotlib is not installed.
        """
        if self.page and not self.scores:
            raise InputError(f"plot: a reproduction has no figure of all rows; open its page {self.page}")
        if not any(cell.runs for cell in self.scores.values()):
            raise InputError(f"plot: no run of {self.folder} finished; train the study, or merge its shards")
        return panels([partial(draw_dots, scores=self.scores)])


@dataclass(frozen=True, kw_only=True)
class Execution:
    """Options of the execution of a study.

    Attributes:
        folder: folder of the study.
        workers: number of worker processes; see `sweep`.
        shard: (i, n) to train every n-th run, starting with run i. This order spreads long runs over the shards.
        merge: whether the runs of other shards are collected without training.
        work: function that runs jobs.
        note: called with notes for the user.
        command: command that repeats the study, shown on its page.
    """

    folder: Path
    workers: int | None = None
    shard: tuple[int, int] | None = None
    merge: bool = False
    work: RunJobs = sweep
    note: Note = log
    command: str = ""

    @property
    def locked(self) -> Path:
        """Folder to lock during the study. Each shard has a separate folder."""
        return self.folder / f"shard-{self.shard[0]}-of-{self.shard[1]}" if self.shard else self.folder

    def part(self, jobs: Sequence[Job]) -> list[Job]:
        """Return the runs of this shard; all runs if there are no shards."""
        return list(jobs[self.shard[0] :: self.shard[1]]) if self.shard else list(jobs)

    def train(self, jobs: Sequence[Job], order: Callable[[list[Job]], list[Job]] = list) -> list[SweepOutcome]:
        """Train the runs of this shard; without shards, train all runs. A merge trains no runs.

        Args:
            jobs: all runs of the study.
            order: function that sorts the runs to train.

        Returns:
            One outcome per run, including the runs of needed pretrained models.

        Raises:
            InputError: a merge with unfinished runs or runs on different data, a folder with a damaged run or a run of
                a different config, or a config with an unusable pretrained network.
        """
        if self.merge:
            complete = with_needed(jobs)
            check_complete(complete)
            check_same_study(complete)
            return [SweepOutcome(job, was_finished=True) for job in complete]
        for config in {job.config.seeded(0).yaml(): job.config for job in self.part(jobs)}.values():
            check_towers(config)
        outcomes = work_off_needed(order(self.part(jobs)), self.workers, self.work)
        if self.shard:
            done = sum(not outcome.reason for outcome in outcomes)
            self.note(
                f"shard {self.shard[0]}/{self.shard[1]}: {done} of its {len(outcomes)} runs are finished; after the "
                "last shard, copy the folders of all shards into one folder, and run the command with --merge instead "
                "of --shard"
            )
        return outcomes


def shard_of(shard: str | None, *, merge: bool) -> tuple[int, int] | None:
    """Parse "i/n" of `--shard`; None without a shard.

    Raises:
        InputError: the text is not a shard, or a shard is combined with a merge.
    """
    if shard and merge:
        raise InputError(
            f"--shard {shard} and --merge cannot be combined, because --merge trains no runs; pass only one option"
        )
    return read_shard(shard) if shard else None


def check_complete(jobs: Sequence[Job]) -> None:
    """Raise InputError if runs are not finished.

    The message has the number of unfinished runs, the number of all runs, and the folders of the first five
    unfinished runs.
    """
    missing = [job.folder for job in jobs if not is_done(job)]
    if missing:
        some = ", ".join(f"{folder.parent.parent.name}/{folder.name}" for folder in missing[:_SHOWN])
        more = " ..." if len(missing) > _SHOWN else ""
        raise InputError(
            f"--merge: {len(missing)} of {len(jobs)} runs are not finished ({some}{more}); copy the folders of the "
            "other shards into the folder of the study, or leave out --merge to train the missing runs"
        )


def check_same_study(jobs: Sequence[Job]) -> None:
    """Check that finished runs have the configs of their jobs, and that runs with the same data keys had equal data.

    The path of the data and the folders of other paths may differ, because shards may be trained on several machines.
    The data of different seeds may differ if the seed draws clips or classes. Only runs of an earlier version do not
    record whether the seed draws any, so that their data are compared only within a seed.

    Raises:
        InputError: a run has a different config, or other data than another run, or is damaged.
    """
    first: dict[object, tuple[str, Path]] = {}
    for job in jobs:
        manifest, config = read_manifest(job.folder), job.config
        advice = "repeat the options of the shards, or choose another folder"
        continued_config(manifest, with_folders_of(read_config(manifest), config), advice)
        data, common = read_environment(manifest).data, config.common
        of_method = repr(config.options) if takes_captions(config.options) else ""
        of_all_seeds = {} if data.drawn is None else {None: "" if data.drawn else data.sha256}
        judged = {} if data.judgments is None else {"judgments": data.judgments}
        for part, value in ({common.seed: data.sha256} | of_all_seeds | judged).items():
            key = (part, replace(common, seed=0), repr(config.towers), of_method)
            known, other = first.setdefault(key, (value, job.folder))
            if known != value:
                kind = "judgments" if part == "judgments" else "data"
                raise InputError(
                    f"--merge: {other} and {job.folder} are runs on different {kind}; remove the runs on other {kind}, "
                    "and train these runs again"
                )


def with_needed(jobs: Sequence[Job]) -> list[Job]:
    """Return jobs and their needed jobs, without duplicates."""
    return list({str(job.folder): job for wanted in jobs for job in (wanted, wanted.needs) if job}.values())


def work_off_needed(jobs: Sequence[Job], workers: int | None, work: RunJobs) -> list[SweepOutcome]:
    """Run the needed jobs, then the other jobs. A job is not run if its needed job failed.

    Args:
        jobs: the jobs; a job may need another job.
        workers: number of worker processes.
        work: function that runs jobs.

    Returns:
        One outcome per job, including needed jobs and jobs that were not run.
    """
    first = {job.needs.folder: job.needs for job in jobs if job.needs}
    outcomes = work(list(first.values()), workers) if first else []
    reasons = {outcome.job.folder: outcome.reason for outcome in outcomes}
    rest = [job for job in with_needed(jobs) if job.folder not in first]
    lost = {
        job.folder: SweepOutcome(job, f"the needed run {job.needs.folder.name} failed: {reasons[job.needs.folder]}")
        for job in rest
        if job.needs and reasons[job.needs.folder]
    }
    return [*outcomes, *work([job for job in rest if job.folder not in lost], workers), *lost.values()]
