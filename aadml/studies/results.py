"""The scores of finished runs, by cell and seed, and which differences between cells are more than luck."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from aadml.methods.training.session import Record
from aadml.retrieval.record import EvaluationRecord
from aadml.retrieval.significance import (
    NEGLIGIBLE,
    Difference,
    Pair,
    Spread,
    Values,
    corrected,
    paired_t,
    seeds_and_queries,
    spread,
)
from aadml.runs.session import read_records
from aadml.studies.grid import Cell
from aadml.studies.job import Job, scored


@dataclass(frozen=True)
class RunScores:
    """What one run scored.

    Attributes:
        record: its `evaluation.json`, with the figures that were added later.
        epochs: its `metrics.jsonl`.
        ids: of what its average precisions belong to.
        average_precision: (q,) whose mean is the mean MAP: of a clip, over both directions, where they ask the same
            clips; else of every query, weighted so that each direction counts the same.
    """

    record: EvaluationRecord
    epochs: Sequence[Record]
    ids: tuple[str, ...]
    average_precision: Values

    @property
    def map_mean(self) -> float:
        """Mean of the MAP of all directions."""
        return self.record.map_mean


@dataclass(frozen=True)
class CellScores:
    """What the runs of one cell scored.

    Attributes:
        cell: whose.
        runs: seed -> scores.
        failed: seed -> reason.
    """

    cell: Cell
    runs: Mapping[int, RunScores]
    failed: Mapping[int, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name the cell."""
        return self.cell.name

    @property
    def directions(self) -> list[str]:
        """Name the directions, "audio-visual" first where there is one."""
        return list(next(iter(self.runs.values())).record.directions) if self.runs else []

    def over_seeds(self, metric: str, direction: str | None = None) -> Spread | None:
        """Spread the figure of a metric in a direction, or its mean over all, over the seeds; None without any."""
        return _spread(run.record.figure(metric, direction) for run in self.runs.values())

    @property
    def seconds(self) -> Spread | None:
        """Spread the seconds that fitting took."""
        return _spread(run.record.seconds for run in self.runs.values())

    @property
    def parameters(self) -> Spread | None:
        """Spread the number of fitted parameters."""
        return _spread(run.record.parameters for run in self.runs.values())

    @property
    def train_map(self) -> Spread | None:
        """Spread the MAP of the training clips under the weights that were kept."""
        return _spread(run.record.train_map for run in self.runs.values())

    @property
    def epochs(self) -> int | None:
        """Give the mean number of epochs, rounded; None without any."""
        return _rounded(run.record.epochs for run in self.runs.values())

    @property
    def steps(self) -> int | None:
        """Give the mean number of training steps, rounded; None without any."""
        return _rounded(run.record.steps for run in self.runs.values())


def _rounded(values: Iterable[float | None]) -> int | None:
    found = _spread(values)
    return None if found is None else round(found.mean)


def _spread(values: Iterable[float | None]) -> Spread | None:
    known = [float(value) for value in values if value is not None]
    return spread(known) if known else None


def mean_map(cells: Iterable[CellScores]) -> str:
    """Name the mean MAP of cells: over both directions, or over all where there are more."""
    count = max((len(one.directions) for one in cells), default=2)
    return f"MAP, mean of {'both' if count == 2 else f'all {count}'} directions"


def read_run(job: Job) -> RunScores:
    """Read the scores of a finished run.

    Raises:
        InputError: not finished, or damaged.
    """
    record = scored(job)
    asked = [one.per_query for one in record.directions.values() if one.per_query is not None]
    columns = [np.asarray(one.average_precision, dtype=np.float64) for one in asked]
    if all(one.id == asked[0].id for one in asked):
        ids, values = tuple(asked[0].id), np.mean(columns, axis=0)
    else:
        total = sum(len(column) for column in columns)
        ids = tuple(f"{name} {i}" for name, one in zip(record.directions, asked, strict=True) for i in one.id)
        values = np.concatenate([column * (total / (len(columns) * len(column))) for column in columns])
    return RunScores(record, read_records(job.folder), ids, values)


def difference(first: CellScores, second: CellScores) -> Difference | None:
    """Compare two cells on the seeds that both have, over seeds and queries, or over seeds alone.

    Returns:
        First minus second; None where there is too little to compare. Where the seeds ask other queries (classes drawn
        by seed), only the seeds' means are compared.
    """
    seeds = [seed for seed in first.runs if seed in second.runs]
    if not seeds:
        return None
    pairs = [(first.runs[seed], second.runs[seed]) for seed in seeds]
    ids = pairs[0][0].ids
    if all(one.ids == ids and other.ids == ids for one, other in pairs) and len(ids) > 1:
        return seeds_and_queries(
            np.stack([one.average_precision for one, _ in pairs]),
            np.stack([other.average_precision for _, other in pairs]),
        )
    if len(seeds) < 2:
        nothing = float("nan")
        return Difference(pairs[0][0].map_mean - pairs[0][1].map_mean, nothing, nothing, "one seed")
    return paired_t([one.map_mean for one, _ in pairs], [other.map_mean for _, other in pairs])


def differences(scores: Mapping[str, CellScores], pairs: Sequence[Pair]) -> dict[Pair, Difference]:
    """Compare pairs of cells; the probabilities are corrected for the number of pairs (Holm).

    Args:
        scores: by name of the cell.
        pairs: (first, second) names; the difference is first minus second.

    Returns:
        Pair -> difference, without the pairs that cannot be compared.
    """
    found = {pair: difference(scores[pair[0]], scores[pair[1]]) for pair in dict.fromkeys(pairs)}
    return corrected({pair: one for pair, one in found.items() if one is not None})


def in_words(one: Difference | None, digits: int = 3) -> str:
    """Write a difference: mean, 95 % interval, p; a star where it is significant, ≈ where it is none beyond doubt."""
    if one is None:
        return ""
    mean = signed(one.mean, digits)
    if math.isnan(one.p):
        return f"{mean} ({one.over}: not tested)"
    p = "p < 0.001" if one.p < 0.001 else f"p = {one.p:.3f}"
    interval = ", ".join(signed(end, digits) for end in (one.low, one.high))
    return f"{mean} [{interval}] ({p}){mark(one)}"


def mark(one: Difference) -> str:
    """Mark a difference that is significant (*), and one that is none beyond doubt (≈)."""
    return "*" * one.significant + "≈" * one.equivalent


def how_tested(found: Sequence[Difference]) -> list[str]:
    """Say in words what differences are and how they were tested; nothing where there are none."""
    if not found:
        return []
    words = {"both": "seeds and queries", "seeds": "seeds (they ask other queries)"}
    over = " and ".join(words[one] for one in sorted({one.over for one in found if one.over in words}))
    tested = sum(not math.isnan(one.p) for one in found)
    if not tested:
        return ["Differences are those of the mean MAP. One seed says nothing of others: none is tested."]
    corrected_for = f"; p is corrected for {tested} comparisons (Holm)" if tested > 1 else ""
    return [
        f"Differences of the mean MAP [95 % interval], paired over {over}{corrected_for}; * is significant at 5 %; "
        f"≈ is within ±{NEGLIGIBLE:g} (equivalence test at 5 %); what has neither mark is undecided."
    ]


def signed(value: float, digits: int = 3) -> str:
    """Write a number with its sign; what is rounded to zero has a plus."""
    return f"{round(value, digits) + 0.0:+.{digits}f}"
