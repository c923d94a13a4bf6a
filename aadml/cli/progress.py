"""Progress of long work on stderr."""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import click

from aadml.feature_extraction.ground.progress_bar import Bar

if TYPE_CHECKING:
    from aadml.methods.training.session import Record

STEP_SECONDS = 1.0


def note(message: str) -> None:
    """Tell people something on stderr."""
    click.echo(f"aadml: {message}", err=True)


class Interrupted(KeyboardInterrupt):
    """A command was interrupted; the message says how to go on with it."""


@contextmanager
def goes_on() -> Iterator[None]:
    """Say of an interruption that the same command goes on."""
    try:
        yield
    except KeyboardInterrupt as stop:
        raise Interrupted("run the same command again to continue") from stop


class Called(TypedDict):
    """What a training calls; see `aadml.fit`."""

    on_plan: Callable[[int, int], None]
    on_epoch: "Callable[[Record], None]"
    on_step: Callable[[int], None]
    on_warning: Callable[[str], None]
    on_note: Callable[[str], None]


class TrainingProgress:
    """A bar over epochs with loss and validation MAP, and the steps of an epoch that takes long."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        self._bar: Bar | None = None
        self._figures = ""
        self._steps = 0  # of the epoch before
        self._shown_at = 0.0
        self._showing = warnings.showwarning

    def callbacks(self) -> Called:
        """Give what a run session calls."""
        return {
            "on_plan": self._plan, "on_epoch": self._epoch, "on_step": self._step, "on_warning": self._warning,
            "on_note": note,
        }  # fmt: skip

    def began(self, folder: Path) -> None:
        """Remember the run folder, for the message after an interruption."""
        self.folder = folder

    def close(self) -> None:
        """Leave the bar as it stands."""
        warnings.showwarning = self._showing
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _plan(self, epochs: int, done: int) -> None:
        self.close()  # of a model that was trained before this one
        self._steps, self._figures = 0, ""
        warnings.showwarning = lambda message, *_: self._warning(str(message))  # without source lines across the bar
        self._shown_at = time.monotonic()
        self._bar = Bar(epochs, "epoch", "training", done=done)

    def _epoch(self, record: "Record") -> None:
        if self._bar is None:
            return
        figures = {key: value for key, value in record.items() if not isinstance(value, str)}
        shown = {"loss": f"{figures['loss']:.4g}"}
        maps = [figures["valid map_mean"]] if "valid map_mean" in figures else _maps(figures)
        if maps:
            shown["MAP"] = f"{sum(maps) / len(maps):.4f}"
        self._figures = ", ".join(f"{key} {value}" for key, value in shown.items())
        self._steps, self._shown_at = int(figures.get("steps", 0)), time.monotonic()
        self._bar.show(self._bar.done + 1, self._figures)

    def _step(self, number: int) -> None:
        """Show where a slow epoch stands, once a second."""
        now = time.monotonic()
        if self._bar is None or now - self._shown_at < STEP_SECONDS:
            return
        self._shown_at = now
        place = f"step {number}/{self._steps}" if self._steps >= number else f"step {number}"
        self._bar.show(self._bar.done, ", ".join(filter(None, (place, self._figures))))

    def _warning(self, message: str) -> None:
        if self._bar is not None:
            self._bar.clear()
        click.echo(f"aadml: warning: {message}", err=True)


class JobBar:
    """A bar over the clips of a job that goes through several parts, such as the sound and the pictures of clips."""

    def __init__(self) -> None:
        self._bar: Bar | None = None
        self._part = ""

    def __enter__(self) -> "JobBar":
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def show(self, part: str, done: int, failed: int) -> None:
        """Show how far a part is; its name ends with the number of its clips ("audio of 20")."""
        if self._bar is None or part != self._part:
            self.__exit__()
            name, _, total = part.rpartition(" of ")
            self._bar, self._part = Bar(int(total), "clip", name), part
        self._bar.show(done, failures(failed))


def failures(count: int) -> str:
    """Say on a bar how many failed, if any did."""
    return f"{count} failed" if count else ""


def _maps(figures: Mapping[str, float]) -> list[float]:
    """List the MAP of each direction, of a method that chooses its epoch by another score."""
    return [value for key, value in figures.items() if key.startswith("valid map ")]
