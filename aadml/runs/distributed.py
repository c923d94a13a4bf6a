"""A run that several processes train: one of them writes it, all were given the same."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from aadml.comparison.processes import group
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.training.session import SILENT, Callbacks, Session
from aadml.model.model import Model
from aadml.runs.prepare import Prepared
from aadml.runs.train import fit_model


def check_together(prepared: Prepared) -> None:
    """Refuse what several processes cannot train; one process alone trains anything.

    Raises:
        InputError: the method needs every clip in one process, or the processes were given different things.
    """
    if group.count() == 1:
        return
    if not prepared.model.method.divides_batches:
        raise InputError(
            f"{prepared.model.facts.label}: trains in one process; several train aadml and cctl (with any loss), clip "
            "and pairs: leave torchrun out"
        )
    given = {"data": prepared.sha256, "config": hashlib.sha256(prepared.config.yaml().encode()).hexdigest()}
    for name, value in group.by_first(lambda: given).items():
        if given[name] != value:
            raise InputError(f"{prepared.splits.name}: this process has other {name} than the first one of the job")


def folder_of_all(make: Callable[[], Path]) -> Path:
    """Let the first process make a folder, and tell the others its name."""
    return Path(group.by_first(lambda: {"folder": str(make())})["folder"])


def callbacks_of_one(callbacks: Callbacks) -> Callbacks:
    """Leave it to the first process to tell of the training."""
    return callbacks if group.is_first() else SILENT


def follow(prepared: Prepared, folder: Path) -> Model:
    """Train along with the process that writes the run; nothing is read or written here.

    Returns:
        The model, without the evaluation, which the first process makes.
    """
    return replace(fit_model(prepared, Session()), folder=folder)
