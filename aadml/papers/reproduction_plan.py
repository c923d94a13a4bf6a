"""Plan of a reproduction: schedule and settings of all rows, and an estimate of the training time.

The time is estimated before training.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from aadml.configuration.config import Config
from aadml.feature_extraction.ground.atomic import write_text
from aadml.reports.page import text
from aadml.reports.tables import Table
from aadml.studies.execution import Execution, with_needed
from aadml.studies.forecast import Forecast, forecast
from aadml.studies.grid import Overrides, at_most
from aadml.studies.job import FAILURE, Job, recorded_failure
from aadml.studies.sweep import NOT_POSSIBLE, SweepOutcome, worker_count

STEPS = 15
"""Steps of a shortened training run on `FULL_SIZE` clips or more, rounded up to whole epochs."""
FULL_SIZE = 1577
"""Number of training clips of AVE. A smaller data set has as many epochs as AVE, and fewer steps in proportion."""
MEASURED = "measured.json"
"""File in the folder of a reproduction that stores the measured step time of every kind of run."""
LEAST_EPOCHS = {"3cmlf": 3}
"""Method -> number of its stages; every stage needs at least one epoch."""
NOTE = (
    f"SHORTENED (--quick): every training run has at most {STEPS} steps, rounded up to whole epochs, and at least one "
    "epoch for each of its stages. This is a fraction of the paper's schedule. The results show only that all parts "
    "run."
)
Confirm = Callable[[Forecast], None]
"""Function that is called with the forecast before training. The function may raise InputError."""


@dataclass(frozen=True, kw_only=True)
class ReproductionPlan(Execution):
    """Plan of a reproduction.

    Attributes:
        seeds: seeds of every row.
        confirm: called with the time estimate.
        quick: whether schedules are shortened.
        settings: config keys and values, as "key=value".
        max_epochs: upper limit on the training epochs.
    """

    seeds: range
    confirm: Confirm
    quick: bool = False
    settings: Sequence[str] = ()
    max_epochs: int | None = None

    @property
    def warnings(self) -> list[str]:
        """List with the warning about shortened schedules; empty if schedules are not shortened."""
        return [NOTE] if self.quick else []

    def warning(self) -> str:
        """Return the warning about shortened schedules as HTML; "" if schedules are not shortened."""
        return "".join(f'<p class="warning">{text(sentence)}</p>' for sentence in self.warnings)

    def marked(self, table: Table) -> Table:
        """Return a table with the warnings about shortened schedules, if there are any, in its caption."""
        return replace(table, caption=" ".join([*self.warnings, table.caption]))

    def reproduce(self, jobs: Sequence[Job]) -> list[SweepOutcome]:
        """Train the missing runs, and return the outcome of every run.

        The training time is estimated before training. A shard trains only a part of the runs, and returns the
        outcomes of this part. A merge trains no runs. Runs that cannot be trained on their data are reported before
        the start. The outcome of such a run contains the reason, which is also written to its `failure.txt`.

        Raises:
            InputError: unreadable data, an unreadable file of measured times, or an error raised by `confirm` or
                `train`.
        """

        def possible(part: list[Job]) -> list[Job]:
            expected = forecast(
                with_needed(part), worker_count(self.workers, part), self.note, kept=self.locked / MEASURED
            )
            for folder, reason in expected.impossible.items():
                write_text(Path(folder) / FAILURE, f"{NOT_POSSIBLE}{reason}\n")
            for job in part:
                if str(job.folder) not in expected.impossible and _impossible(job):
                    (job.folder / FAILURE).unlink()  # the reason of an earlier call
            if expected.seconds:
                self.note(f"forecast: {expected.sentence()}")
                self.confirm(expected)
            return [job for job in expected.longest_first(part) if str(job.folder) not in expected.impossible]

        outcomes = self.train([job for job in jobs if not (self.merge and _impossible(job))], possible)
        return outcomes + [SweepOutcome(job, reason) for job in self.part(jobs) if (reason := _impossible(job))]


def _impossible(job: Job) -> str:
    reason = recorded_failure(job)
    return reason if reason.startswith(NOT_POSSIBLE) else ""


def shortened(config: Config, clips: int) -> Config:
    """Return a config with a shortened schedule.

    The training MAP is logged after each epoch, unless the option `training.train_map` is 0. A config without more
    epochs than the shortened schedule is returned unchanged.

    Args:
        config: complete config.
        clips: number of training clips.
    """
    epochs = max(math.ceil(STEPS * config.training.batch / max(clips, FULL_SIZE)), LEAST_EPOCHS.get(config.method, 1))
    shorter = at_most(config, epochs)
    if shorter is config:
        return config
    return Overrides({"training.train_map": min(config.training.train_map, 1)}).applied(shorter)
