"""Progress of long work on stderr."""

from pathlib import Path
from typing import Any

import click
from tqdm import tqdm


def note(message: str) -> None:
    """Tell people something on stderr."""
    click.echo(f"aadml: {message}", err=True)


class TrainingProgress:
    """A bar over epochs with loss and validation MAP."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        self._bar: Any = None

    def callbacks(self) -> dict[str, Any]:
        """Give what a run session calls."""
        return {"on_plan": self._plan, "on_epoch": self._epoch, "on_warning": self._warning, "on_note": note}

    def began(self, folder: Path) -> None:
        """Remember the run folder, for the message after an interruption."""
        self.folder = folder

    def close(self) -> None:
        """Leave the bar as it stands."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _plan(self, epochs: int, done: int) -> None:
        self._bar = tqdm(total=epochs, initial=done, unit="epoch", desc="training", dynamic_ncols=True)

    def _epoch(self, record: dict[str, Any]) -> None:
        if self._bar is None:
            return
        shown = {"loss": f"{record['loss']:.4g}"}
        if "valid map_mean" in record:
            shown["MAP"] = f"{record['valid map_mean']:.4f}"
        self._bar.set_postfix_str(", ".join(f"{key} {value}" for key, value in shown.items()), refresh=False)
        self._bar.update()

    def _warning(self, message: str) -> None:
        if self._bar is not None:
            self._bar.clear()
        click.echo(f"aadml: warning: {message}", err=True)
