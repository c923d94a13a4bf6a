"""Progress bars and notes on stderr."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aadml.cli.terminal import echo
from aadml.feature_extraction.ground.progress_bar import Bar

STEP_SECONDS = 1.0


def note(message: str) -> None:
    """Print a note on stderr, above any progress bar."""
    from tqdm import tqdm

    with tqdm.external_write_mode(sys.stderr):
        echo(f"aadml: {message}", err=True)


def warn(message: str) -> None:
    """Print a warning on stderr."""
    note(f"warning: {message}")


def note_without_features(output: str) -> None:
    """Print a note that no feature file was written."""
    state = "keeps the features of an earlier call" if Path(output).exists() else "was not written"
    note(f"no features could be extracted; {output} {state}")


class Interrupted(KeyboardInterrupt):
    """Interruption of a command, with a message on how to continue."""


@contextmanager
def continues(advice: str = "run the same command again to continue") -> Iterator[None]:
    """Raise Interrupted with `advice` after Ctrl-C or SIGTERM."""
    try:
        yield
    except KeyboardInterrupt as stop:
        raise Interrupted(advice) from stop


class TrainingProgress:
    """Progress bar over the epochs of a training run.

    The bar shows the loss, the validation MAP, and the step of a slow epoch.
    """

    def __init__(self) -> None:
        self.folder: Path | None = None
        self._bar: Bar | None = None
        self._figures = ""
        self._steps = 0  # steps of the previous epoch
        self._shown_at = 0.0

    def began(self, folder: Path) -> None:
        """Store the run folder, for the message after an interruption."""
        self.folder = folder

    def close(self) -> None:
        """Close the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def plan(self, epochs: int, done: int) -> None:
        """Start the bar of a training run; `done` epochs are already trained."""
        self.close()  # the bar of a pretraining run
        self._steps, self._figures = 0, ""
        self._shown_at = time.monotonic()
        self._bar = Bar(epochs, "epoch", "training", done=done)

    def epoch(self, record: Any) -> None:
        """Show the loss of an epoch, and the validation MAP if the epoch was validated."""
        if self._bar is None:
            return
        directions = [value for key, value in record.items() if key.startswith("valid map ")]
        maps = [record["valid map_mean"]] if "valid map_mean" in record else directions
        self._figures = f"loss {record['loss']:.4g}"
        if maps:
            self._figures += f", MAP {sum(maps) / len(maps):.4f}"
        self._steps, self._shown_at = int(record.get("steps", 0)), time.monotonic()
        self._bar.show(self._bar.done + 1, self._figures)

    def step(self, number: int) -> None:
        """Show the step of a slow epoch, at most once a second."""
        now = time.monotonic()
        if self._bar is None or now - self._shown_at < STEP_SECONDS:
            return
        self._shown_at = now
        place = f"step {number}/{self._steps}" if self._steps >= number else f"step {number}"
        self._bar.show(self._bar.done, ", ".join(filter(None, (place, self._figures))))


class JobBar:
    """Progress bar over the clips, or other units, of a job with several parts, such as sound and pictures."""

    def __init__(self, unit: str = "clip") -> None:
        self._bar: Bar | None = None
        self._part, self._unit = "", unit

    def __enter__(self) -> "JobBar":
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def show(self, part: str, done: int, failed: int) -> None:
        """Show how many units of a part are done and failed. The part "audio of 20" has 20 units."""
        if self._bar is None or part != self._part:
            self.__exit__()
            name, _, total = part.rpartition(" of ")
            self._bar, self._part = Bar(int(total), self._unit, name), part
        self._bar.show(done, f"{failed} failed" if failed else "")
