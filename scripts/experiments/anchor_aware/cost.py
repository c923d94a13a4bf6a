"""What the runs of the plan that are known so far will cost at most, from some measured steps of every method."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from aadml.papers.cost import Forecast, Note, in_words, measured_kinds
from scripts.experiments.anchor_aware.experiment import Run

Kind = tuple[str, str]
"""Data set and method: options change what a step costs by little, seeds and lengths are multiplied."""


def cost_of(runs: Sequence[Run], folder: Path, workers: int, note: Note) -> Forecast:
    """Estimate how long runs take if none of them stops early.

    Args:
        runs: of any stages, at least one.
        folder: of the experiment.
        workers: how many run at a time.
        note: called with a line about what cannot be measured.
    """
    kinds: list[Kind] = [(run.key.data_set, run.key.method) for run in runs]
    rates = measured_kinds([(kind, run.config) for kind, run in zip(kinds, runs, strict=True)], workers, note)
    seconds = {str(number): rates[kinds[number]].seconds(run.job(folder)) for number, run in enumerate(runs)}
    return Forecast(seconds, 0, workers)


def cost_in_words(runs: Sequence[Run], expected: Forecast) -> str:
    """Say which runs are waiting, and how long they take."""
    counts = ", ".join(f"{stage} {count}" for stage, count in Counter(run.stage for run in runs).items())
    return (
        f"forecast: {len(runs)} runs are known to be needed ({counts}), at most about {in_words(expected.wall)} on "
        f"{expected.workers} worker{'s' if expected.workers != 1 else ''}; what builds on them comes on top"
    )
