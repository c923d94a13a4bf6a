"""Plan of a reproduction: schedule and settings of all rows, and an estimate of the time before the work."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from aadml.configuration.config import Config
from aadml.reports.page import text
from aadml.reports.tables import Table
from aadml.studies.execution import Execution, with_needed
from aadml.studies.forecast import Forecast, forecast
from aadml.studies.grid import Overrides, at_most
from aadml.studies.job import Job
from aadml.studies.sweep import SweepOutcome, worker_count

STEPS = 60
"""Steps of a shortened training run, rounded up to whole epochs."""
LEAST_EPOCHS = {"3cmlf": 3}
"""Method -> number of its stages; every stage needs at least one epoch."""
NOTE = (
    f"SHORTENED (--quick): every training run stops after {STEPS} steps, or after one epoch if an epoch has more "
    "steps, which is a fraction of the paper's schedule. The results show only that all parts run."
)
Confirm = Callable[[Forecast], None]
"""Function that is called with the forecast before training; it may raise InputError."""


@dataclass(frozen=True, kw_only=True)
class ReproductionPlan(Execution):
    """Plan of a reproduction.

    Attributes:
        seeds: seeds of every row.
        confirm: called with the forecast.
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
        """Sentence on shortened schedules, for every table and section; empty if schedules are not shortened."""
        return [NOTE] if self.quick else []

    def warning(self) -> str:
        """Return the sentence on shortened schedules as HTML; "" if schedules are not shortened."""
        return "".join(f'<p class="warning">{text(sentence)}</p>' for sentence in self.warnings)

    def marked(self, table: Table) -> Table:
        """Return a table with the sentence on shortened schedules in its caption."""
        return replace(table, caption=" ".join([*self.warnings, table.caption]))

    def reproduce(self, jobs: Sequence[Job]) -> list[SweepOutcome]:
        """Train the missing runs, or the missing runs of a shard, after a forecast; a merge trains no runs."""
        return self.train(jobs, self._longest_first)

    def _longest_first(self, jobs: list[Job]) -> list[Job]:
        expected = forecast(with_needed(jobs), worker_count(self.workers, jobs), self.note)
        if expected.seconds:
            self.note(f"forecast: {expected.sentence()}")
            self.confirm(expected)
        return expected.longest_first(jobs)


def shortened(config: Config, clips: int) -> Config:
    """Return a config that trains fewer epochs and logs the training MAP after each epoch.

    Args:
        config: complete config.
        clips: number of training clips.
    """
    epochs = max(math.ceil(STEPS * config.training.batch / max(clips, 1)), LEAST_EPOCHS.get(config.method, 1))
    shorter = at_most(config, epochs)
    if shorter is config:
        return config
    return Overrides({"training.train_map": min(config.training.train_map, 1)}).applied(shorter)
