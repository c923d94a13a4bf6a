"""Simulate retrieval by two equal methods; count stars, and intervals that miss the true value.

An embedding of a clip is the sum of the center of its class, an effect of the clip on both methods, an effect of the
clip on one method (in units of the seed noise), and noise of the seed. With clusters, ten clips share each effect. Both
methods have the same distribution, so that the true difference of MAP is 0 over test sets. Deterministic methods have
one noise for all seeds. Stars and intervals are those of `aadml compare` and `aadml evaluate`.

Usage: PYTHONPATH=. OMP_NUM_THREADS=1 nice python scripts/soak/intervals.py [--seed 0] [-o docs/lab/soak/intervals.md]
"""

import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields
from functools import partial
from itertools import combinations, product
from pathlib import Path

import click
import numpy as np
import torch
from numpy.typing import NDArray

from aadml.comparison.relevance import Grouped
from aadml.feature_extraction.ground.atomic import write_text
from aadml.retrieval.directions import CUTOFFS, Queries, Units, score_direction
from aadml.retrieval.scores import MatrixScores
from aadml.retrieval.significance import corrected, mean_interval, seeds_and_clips

Values = NDArray[np.float64]
CLIPS, CLASSES, DIMENSIONS, CLUSTER = 100, 5, 8, 10
BETWEEN, SHARED, NOISE = 2.0, 0.5, 0.7
"""Standard deviations of the centers of classes, of effects on both methods, and of the seed noise."""


@dataclass(frozen=True)
class Cell:
    """Parameters of a simulation; `item` is the sd of the clips' effects on one method over that of the seed noise."""

    seeds: int
    item: float
    clustered: bool
    deterministic: bool


@dataclass(frozen=True)
class Outcome:
    """Outcomes of one simulation: a star, a miss of the difference, misses and means of the MAP of one run."""

    star: bool
    missed: bool
    low: float
    high: float
    map: float


def cells() -> Iterator[Cell]:
    """Yield the cells of the table."""
    for seeds, item, clustered in product((3, 5, 10), (0.0, 0.4, 0.8, 1.2), (False, True)):
        yield Cell(seeds, item, clustered, False)
    for item, clustered in product((0.4, 1.2), (False, True)):
        yield Cell(5, item, clustered, True)


def simulated(cell: Cell, seed: int, number: int) -> Outcome:
    """Draw one test set and the embeddings of two methods, and compare them."""
    generator = np.random.default_rng([seed, number])
    labels = np.repeat(np.arange(CLASSES), CLIPS // CLASSES)
    cluster = np.arange(CLIPS) // CLUSTER if cell.clustered else np.arange(CLIPS)
    centers = np.random.default_rng(seed).normal(0, BETWEEN / np.sqrt(2), (CLASSES, DIMENSIONS))[labels]

    def effects(sd: float) -> Values:
        return generator.normal(0, sd, (2, cluster.max() + 1, DIMENSIONS))[:, cluster]

    both, values = centers + effects(SHARED), []
    for _ in range(2):
        alone, fixed = effects(cell.item * NOISE), generator.normal(0, NOISE, (2, CLIPS, DIMENSIONS))
        runs = []
        for _ in range(cell.seeds):
            noise = fixed if cell.deterministic else generator.normal(0, NOISE, (2, CLIPS, DIMENSIONS))
            runs.append(unit_values(both + alone + noise, labels, cluster))
        values.append(np.stack(runs))
    test = seeds_and_clips(*values)
    return Outcome(test.significant, not test.low <= 0 <= test.high, *mean_interval(values[0][0]), values[0][0].mean())


def unit_values(vectors: Values, labels: NDArray[np.int64], cluster: NDArray[np.int64]) -> Values:
    """Return the pseudo-values of the mean MAP of both directions; `vectors` are (2, n, d)."""
    units = vectors / np.linalg.norm(vectors, axis=2, keepdims=True)
    scores = units[0] @ units[1].T
    names = tuple(map(str, range(cluster.max() + 1)))
    queries = Queries(units=Units(names, cluster, cluster, (np.arange(len(labels)),) * 2))
    both = [
        score_direction(MatrixScores(matrix), Grouped(labels, labels), queries, cutoffs=CUTOFFS[:1]).unit_values
        for matrix in (scores, np.ascontiguousarray(scores.T))
    ]
    return np.asarray(np.mean(both, axis=0))


def row(cell: Cell, outcomes: list[Outcome]) -> str:
    """Return the row of a cell."""
    star, missed, low, high, mean = (np.array([getattr(o, f.name) for o in outcomes]) for f in fields(Outcome))
    truth = mean.mean()
    covered = ((low <= truth) & (truth <= high)).mean()
    return (
        f"| {cell.seeds} | {cell.item:g} | {'ten clips' if cell.clustered else 'none'} | "
        f"{'yes' if cell.deterministic else 'no'} | {star.mean():.3f} | {1 - missed.mean():.3f} | {covered:.3f} |"
    )


def cost(seed: int, *, rows: int = 20, seeds: int = 5, clips: int = 1000) -> str:
    """Time the pseudo-values and intervals of a table: every run, and the differences of all pairs of rows."""
    generator = np.random.default_rng(seed)
    labels, cluster = np.arange(clips) % CLASSES, np.arange(clips)
    centers = generator.normal(0, BETWEEN, (CLASSES, DIMENSIONS))[labels]
    vectors = [[centers + generator.normal(0, 1, (2, clips, DIMENSIONS)) for _ in range(seeds)] for _ in range(rows)]
    start = time.process_time()
    values = [np.stack([unit_values(run, labels, cluster) for run in row]) for row in vectors]
    units = time.process_time() - start
    intervals = [mean_interval(run) for row in values for run in row]
    pairs = combinations(range(rows), 2)
    tested = corrected({(str(i), str(j)): seeds_and_clips(values[i], values[j]) for i, j in pairs})
    return (
        f"{rows} rows x {seeds} seeds, {clips:,} clips: {len(intervals)} intervals of runs and {len(tested)} of "
        f"differences in {time.process_time() - start:.2f} s of processor time, "
        f"of which rankings and pseudo-values {units:.2f} s"
    )


@click.command(help=__doc__)
@click.option("--seed", default=0, show_default=True)
@click.option("--cost", "only_cost", is_flag=True, help="Only time the intervals of a table of 20 rows.")
@click.option("--count", default=1000, show_default=True, help="Simulations of a cell.")
@click.option("--processes", default=1, show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="The table, as Markdown.")
def main(seed: int, only_cost: bool, count: int, processes: int, output: Path | None) -> None:
    start = time.monotonic()
    git = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    if only_cost:
        print(f"{cost(seed)} (seed {seed}, commit {commit})")
        return
    lines = []
    with ProcessPoolExecutor(processes, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        for cell in cells():
            outcomes = list(pool.map(partial(simulated, cell, seed), range(count), chunksize=50))
            lines.append(row(cell, outcomes))
            print(lines[-1], flush=True)
    text = [
        "# Stars and intervals under the null",
        "",
        f"Written by `scripts/soak/intervals.py --seed {seed} --count {count}` at commit {commit}, "
        f"{(time.monotonic() - start) / 60:.0f} minutes. {CLIPS} test clips, {CLASSES} classes, both directions.",
        "",
        "A star rate is the share of equal methods that are called different at 5 % (limit 0.07). A coverage is",
        "the share of 95 % intervals that contain the true value (limit 0.93): of the difference, and of the MAP of",
        "one run over test sets. Effects of clips on one method are in units of the seed noise.",
        "",
        "| seeds | effects of clips | clusters | deterministic | stars | coverage of the difference | of one run |",
        "|---|---|---|---|---|---|---|",
        *lines,
    ]
    if output:
        write_text(output, "\n".join(text) + "\n")


if __name__ == "__main__":
    main()
