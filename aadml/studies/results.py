"""Scores of finished runs by cell and seed, and paired tests of their differences."""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.training.session import Record
from aadml.reports.tables import Cell as TableCell
from aadml.retrieval import significance
from aadml.retrieval.record import EvaluationRecord
from aadml.retrieval.significance import NEGLIGIBLE, Difference, Pair, Spread, Values
from aadml.runs.data import takes_captions
from aadml.runs.protocol_scores import add_unit_values
from aadml.runs.session import read_records
from aadml.studies.grid import Cell
from aadml.studies.job import Job, scored

TWO_SEEDS = "Two seeds are too few to estimate the variation between seeds; train more seeds (--seeds 5)."


@dataclass(frozen=True)
class RunScores:
    """Scores of one run.

    Attributes:
        record: content of `evaluation.json`, with the metrics that were added later.
        epochs: content of `metrics.jsonl`.
        units: names of the n units, which are the test clips or their clusters.
        values: pseudo-values (n,) of the mean MAP, one per unit. The mean of these values is the mean MAP.
    """

    record: EvaluationRecord
    epochs: Sequence[Record]
    units: tuple[str, ...]
    values: Values

    @property
    def map_mean(self) -> float:
        """Mean of the MAP of all directions."""
        return self.record.map_mean

    def by_epoch(self, key: str) -> dict[int, float]:
        """Return the values of a key of the log, by epoch; epochs without the key are omitted."""
        return {int(record["epoch"]): float(record[key]) for record in self.epochs if key in record}


@dataclass(frozen=True)
class CellScores:
    """Scores of the runs of one cell.

    Attributes:
        cell: cell of the runs.
        runs: seed -> scores.
        failed: seed -> reason of the failure.
    """

    cell: Cell
    runs: Mapping[int, RunScores]
    failed: Mapping[int, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Unique name of the cell."""
        return self.cell.name

    @property
    def directions(self) -> list[str]:
        """Directions, "audio-visual" first if it exists; empty if there are no runs."""
        return list(next(iter(self.runs.values())).record.directions) if self.runs else []

    def over_seeds(self, metric: str, direction: str | None = None) -> Spread | None:
        """Return the mean and standard deviation of a metric over the seeds; None if there are no values.

        Without `direction`, the metric of each run is averaged over all directions.
        """
        records = [run.record for run in self.runs.values()]
        return spread_of(r.figure(metric, direction) for r in records if direction is None or direction in r.directions)

    def maps(self) -> Values:
        """Return the mean MAP of every run, (seeds,)."""
        return np.array([run.map_mean for run in self.runs.values()])

    def cost(self, column: str) -> TableCell:
        """Return one kind of cost of the cell as the mean over its runs; None if there are no values.

        Args:
            column: "train MAP" (returned with its standard deviation), "epochs", "steps", "seconds" (of fitting) or
                "parameters". "seeds" is the number of runs instead of a mean.
        """
        if column == "seeds":
            return len(self.runs)
        values = spread_of(getattr(run.record, column.lower().replace(" ", "_")) for run in self.runs.values())
        if column == "train MAP" or values is None:
            return values
        return f"{values.mean:.1f}" if column == "seconds" else round(values.mean)


def spread_of(values: Iterable[float | None]) -> Spread | None:
    """Return the mean and standard deviation of the values without None; None if no value is left."""
    known = [float(value) for value in values if value is not None]
    return significance.spread(known) if known else None


def mean_count(counts: Iterable[float | None]) -> int | None:
    """Return the rounded mean of the counts without None; None if no count is left."""
    counted = spread_of(counts)
    return None if counted is None else round(counted.mean)


def directions_of(scores: Mapping[str, CellScores]) -> list[str]:
    """Return the directions of all cells without duplicates, in the order of the cells."""
    return list(dict.fromkeys(direction for cell in scores.values() for direction in cell.directions))


def mean_chance(cells: Iterable[CellScores]) -> float:
    """Return the chance level of MAP, averaged over all runs."""
    return float(np.mean([run.record.chance for cell in cells for run in cell.runs.values()]))


def mean_map(cells: Iterable[CellScores]) -> str:
    """Return the label of the mean MAP of cells, such as "MAP, mean of both directions"."""
    count = max(len(cell.directions) for cell in cells)
    return f"MAP, mean of {'both' if count == 2 else f'all {count}'} directions"


def read_run(job: Job) -> RunScores:
    """Read the scores of a finished run.

    A run of an earlier version of aadml lacks the values per clip or cluster, or has values per caption of captioned
    sound instead of values per clip. The missing values are computed and added to the run; values per caption stay if
    the data or the weights are missing.

    Raises:
        InputError: the run is not finished or is damaged, or the data for missing values cannot be read.
    """
    record = scored(job)
    per_unit, clips = record.per_unit, min(direction.gallery for direction in record.directions.values())
    if per_unit is None:
        per_unit = add_unit_values(job.folder, job.config)
    elif takes_captions(job.config.options) and len(per_unit.id) > clips:
        with suppress(InputError):  # without the data or the weights, the values per caption stay
            per_unit = add_unit_values(job.folder, job.config)
    values = np.asarray(per_unit.map, dtype=np.float64)
    return RunScores(record, read_records(job.folder), tuple(per_unit.id), values)


def difference(first: CellScores, second: CellScores) -> Difference | None:
    """Compare the mean MAP of two cells on their common seeds.

    The test is over seeds and test clips. For runs with different test clips, or with only one clip or cluster, the
    test is over the means of the seeds only. Test clips differ, for example, if classes are drawn by seed.

    Returns:
        First minus second; None if there are no common seeds. With a single common seed, p is NaN.
    """
    pairs = [(first.runs[seed], second.runs[seed]) for seed in first.runs if seed in second.runs]
    if not pairs:
        return None
    units = pairs[0][0].units
    if len(units) > 1 and all(run.units == units for pair in pairs for run in pair):
        return significance.seeds_and_clips(
            *(np.stack([run.values for run in side]) for side in zip(*pairs, strict=True))
        )
    if len(pairs) < 2:
        nothing = float("nan")
        return Difference(pairs[0][0].map_mean - pairs[0][1].map_mean, nothing, nothing, "one seed")
    return significance.paired_t([run.map_mean for run, _ in pairs], [other.map_mean for _, other in pairs])


def differences(scores: Mapping[str, CellScores], pairs: Iterable[Pair]) -> dict[Pair, Difference]:
    """Compare pairs of cells, with p values corrected for the number of pairs (Holm).

    Args:
        scores: scores by name of the cell.
        pairs: (first, second) names; the difference is first minus second.

    Returns:
        Pair -> difference, without the pairs that cannot be compared, and without pairs of a cell with itself.
    """
    different = [pair for pair in dict.fromkeys(pairs) if pair[0] != pair[1]]
    compared = {pair: difference(scores[pair[0]], scores[pair[1]]) for pair in different}
    return significance.corrected({pair: tested for pair, tested in compared.items() if tested is not None})


def in_words(tested: Difference | None) -> str:
    """Return a difference as text; "" for None.

    The text has the mean, the 95 % interval, the p value and the marks: "*" if significant, "≈" if equivalent. If
    the difference is not tested, the text has the mean and the words "not tested".
    """
    if tested is None:
        return ""
    mean = signed(tested.mean)
    if math.isnan(tested.p):
        return f"{mean} ({tested.over}: not tested)"
    p = "p < 0.001" if tested.p < 0.001 else f"p = {tested.p:.3f}"
    low, high = max(tested.low, -1.0), min(tested.high, 1.0)  # no difference of MAP is larger
    return f"{mean} [{signed(low)}, {signed(high)}] ({p}){'*' * tested.significant}{'≈' * tested.equivalent}"


def how_tested(tested: Iterable[Difference]) -> list[str]:
    """Return notes on the tests of the differences; empty without differences."""
    known = list(tested)
    if not known:
        return []
    words = {"both": "seeds and test clips", "seeds": "seeds (their test clips differ)"}
    over = " and ".join(words[kind] for kind in sorted({minus.over for minus in known}) if kind in words)
    count = sum(not math.isnan(minus.p) for minus in known)
    if not count:
        return ["Differences of the mean MAP are not tested, as no pair has two common finished seeds."]
    corrected_for = f" Intervals and p are corrected for {count} comparisons (Holm)." if count > 1 else ""
    few = [TWO_SEEDS] if any(minus.seeds == 2 for minus in known) else []
    return [
        f"Differences of the mean MAP [95 % interval] are paired over {over}.{corrected_for} The mark * is "
        f"significance at 5 %, and ≈ is equivalence within ±{NEGLIGIBLE:g} (test at 5 %). A difference without a mark "
        "is undecided.",
        *few,
    ]


def signed(value: float) -> str:
    """Return a number with its sign and three decimal places; a rounded value of zero has a plus."""
    return f"{round(value, 3) + 0.0:+.3f}"
