"""Paths of runs on the command line."""

from pathlib import Path
from typing import Any

import click


class RunPath(click.Path):
    """Path of a run or a model folder; a folder of runs is replaced by its newest finished run, with a note."""

    name = "path"

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        """Return the path, or the newest finished run in a folder of runs."""
        from aadml.cli.progress import note
        from aadml.runs.manifest import newest_run

        folder: Any = super().convert(value, parameter, context)
        return newest_run(folder, note)
