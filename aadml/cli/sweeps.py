"""Options, progress bar and output shared by `ablate`, `compare` and `reproduce`."""

import shlex
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from aadml.cli.progress import continues, note
from aadml.cli.settings import flags_of, option_group
from aadml.cli.terminal import echo, echo_json
from aadml.feature_extraction.ground.consent import addresses_in
from aadml.feature_extraction.ground.progress_bar import Bar

if TYPE_CHECKING:
    from aadml.studies.execution import SweepResult
    from aadml.studies.job import Job
    from aadml.studies.sweep import SweepOutcome


_flag = flags_of("aadml.studies.comparison:compare")

MAX_EPOCHS = _flag("--max-epochs", type=click.IntRange(min=1))
"""`--max-epochs` of the commands that train many runs."""


machine_options = option_group(
    _flag("--workers", type=click.IntRange(min=0)),
    _flag("--shard", metavar="I/N"),
    _flag("--merge", is_flag=True),
)
"""`--workers`, `--shard` and `--merge`."""

sweep_options = option_group(
    _flag("--seeds", default=5, show_default=True, type=click.IntRange(min=1)),
    _flag("--metric", "metrics", multiple=True, metavar="NAME[@K]"),
    machine_options,
    click.option("--json", "as_json", is_flag=True, help="Print the results as JSON."),
)
"""`--seeds`, `--metric`, the options of `machine_options`, and `--json`."""


class SweepProgress:
    """Progress bar over runs.

    A run in progress counts as the trained share of its epochs. Each failure is printed immediately.
    """

    def __init__(self, total: int) -> None:
        self._bar = Bar(total, "run", "runs")
        self._finished = self._kept = 0
        self._parts: dict[Path, tuple[int, int]] = {}  # (epochs done, all epochs) of a running run

    def outcome(self, outcome: "SweepOutcome") -> None:
        """Count a finished or failed run, and print why a run failed."""
        self._parts.pop(outcome.job.folder, None)
        self._finished += 1
        if outcome.was_finished:
            self._kept += 1
            self._bar.start_from(self._kept)
        self._show()
        if outcome.reason:
            note(f"{outcome.job.folder.name} failed: {outcome.reason}")

    def epoch(self, job: "Job", done: int, total: int) -> None:
        """Show that `done` of the `total` epochs of a run are trained."""
        starts = not self._parts and self._finished == self._kept
        self._parts[job.folder] = done, total
        if starts:  # the start of the processes took time that later epochs do not take
            self._bar.start_from(self._done())
        self._show()

    def _show(self) -> None:
        epochs = ", ".join(f"{done}/{total}" for done, total in self._parts.values())
        self._bar.show(self._done(), f"epoch {epochs}" if len(self._parts) in range(1, 5) else "")

    def _done(self) -> float:
        done = self._finished + sum(done / total for done, total in self._parts.values())
        return int(100 * done) / 100

    def close(self) -> None:
        """Close the bar, and print how many runs were finished earlier."""
        self._bar.close()
        if self._kept:
            were = "runs were" if self._kept > 1 else "run was"
            note(f"{self._kept} {were} finished earlier and kept")


def work(jobs: Sequence["Job"], workers: int | None) -> list["SweepOutcome"]:
    """Run all jobs with a progress bar and return their outcomes. Raise Interrupted after Ctrl-C or SIGTERM."""
    from aadml.studies.sweep import sweep

    progress = SweepProgress(len(jobs))
    try:
        with continues():
            return sweep(jobs, workers=workers, on_outcome=progress.outcome, on_epoch=progress.epoch)
    finally:
        progress.close()


def show(result: "SweepResult", *, as_json: bool) -> None:
    """Print the tables as Markdown or JSON, and the path of the page.

    Without a page, the path of the folder is printed. Exit with status 1 if a run failed.
    """
    if as_json:
        echo_json(result.to_dict())
        echo(result.page or result.folder, err=True)
    else:
        echo(*repr(result).split("\n"))
    if result.page and not find_spec("matplotlib"):
        note("the page has no figures, because matplotlib is not installed; run pip install 'aadml[plot]'")
    if result.failed:
        total = len(result.outcomes)
        note(f"{result.failed} of {total} runs failed; run the command again to train only the failed runs")
        sys.exit(1)


def command_line() -> str:
    """Return the line of the current command, quoted for a shell; within `aadml demo`, the line that demo prints.

    Addresses lose user, query and fragment, because jobs and pages keep the line.
    """
    from aadml.feature_extraction.foreign.tables import shown_address

    words = []
    for word in click.get_current_context().find_root().obj:
        address = next(addresses_in(word), "")
        words.append(word.removesuffix(address) + shown_address(address))
    return shlex.join(["aadml", *words])
