"""Paths of runs on the command line."""

from pathlib import Path
from typing import Any

import click


class RunPath(click.Path):
    """Path of a run or a model folder; a folder of runs stands for its newest finished run, with a note."""

    name = "path"

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        """Return the path, or that of the newest finished run in it."""
        from aadml.runs.manifest import EVALUATION, is_finished, is_run

        folder: Any = super().convert(value, parameter, context)
        if is_run(folder) or not folder.is_dir():
            return folder
        runs = sorted(filter(is_finished, folder.iterdir()), key=lambda run: (run / EVALUATION).stat().st_mtime)
        if not runs:
            return folder
        if len(runs) > 1:
            click.echo(f"aadml: {folder} holds {len(runs)} finished runs; the newest is used: {runs[-1]}", err=True)
        return runs[-1]
