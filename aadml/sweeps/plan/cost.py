"""What the runs of the plan that are known so far will cost at most, from some measured steps of every method."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from aadml.runs.data import load_splits
from aadml.sweeps.plan.experiment import Run
from aadml.sweeps.reproduce.cost import Forecast, Note, Rate, in_words, measured_or_nothing

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
    return Forecast(dict(zip(map(str, range(len(runs))), _seconds(runs, folder, note), strict=True)), 0, workers)


def cost_in_words(runs: Sequence[Run], expected: Forecast) -> str:
    """Say which runs are waiting, and how long they take."""
    counts = ", ".join(f"{stage} {count}" for stage, count in Counter(run.stage for run in runs).items())
    return (
        f"forecast: {len(runs)} runs are known to be needed ({counts}), at most about {in_words(expected.wall)} on "
        f"{expected.workers} worker{'s' if expected.workers != 1 else ''}; what builds on them comes on top"
    )


def _seconds(runs: Sequence[Run], folder: Path, note: Note) -> list[float]:
    """Estimate each run on one worker, data set by data set, so that one is in memory at a time."""
    found, rates = [], dict[Kind, Rate]()
    for data_set in dict.fromkeys(run.key.data_set for run in runs):
        own = [run for run in runs if run.key.data_set == data_set]
        splits = load_splits(own[0].config)
        for run in own:
            kind = (data_set, run.key.method)
            if kind not in rates:
                rates[kind] = measured_or_nothing(run.config, splits, note)
            found.append(rates[kind].seconds(run.job(folder), splits.train.per_epoch))
    return found
