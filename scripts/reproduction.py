"""Table 3 and Figures 4 and 5 of the AADML paper at full length on `synthetic:ave`, run by run.

    PYTHONPATH="$PWD" python scripts/reproduction.py --forecast          # writes docs/lab/reproduction/forecast.csv
    PYTHONPATH="$PWD" python scripts/reproduction.py --hours 12          # trains what is missing, then writes the page
    PYTHONPATH="$PWD" python scripts/reproduction.py --page              # only the page
    PYTHONPATH="$PWD" python scripts/reproduction.py --weights FILE      # hashes of the finished runs, by this code

Table 3 has three seeds, the figures have the first. Every finished run is a row of runs.csv, with its commit,
processor seconds, the hash of its config and of the code that trains it (without docstrings and comments), and the
hash of its weights after two epochs. A run is made again only if both hashes changed. Kinds of processors round
differently: rows of another kind need `--earlier FILE`, with the hashes that `--weights FILE` computed on this kind by
the code of the rows. Only runs of Figure 5 score the training and the test clips after each epoch. Hidden layers are
trained in bfloat16, which changes MAP by less than a seed does (docs/lab/speed.md). Training stops before the run that
would exceed the processor hours of all rows together. Run with OMP_NUM_THREADS=1, as each process trains one run.
"""

import argparse
import ast
import csv
import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory

from safetensors.torch import load_file

from aadml.configuration.config import DEFAULT_METHOD
from aadml.papers.fidelity import FIDELITY, READINGS
from aadml.papers.figures import SERIES
from aadml.papers.rows import PaperRuns, paper_runs
from aadml.reports.published import PAPER
from aadml.runs.environment import git_commit
from aadml.studies.comparison_rows import RowSettings
from aadml.studies.forecast import forecast
from aadml.studies.grid import Overrides
from aadml.studies.job import Job, work_off
from aadml.studies.results import read_run

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "lab" / "reproduction"
SEEDS = 3
TRAINING = ("comparison", "layers", "losses", "methods", "objective", "proxies", "selections")
"""Rooms whose code determines the bytes of a training."""
RUN = (
    "run",
    "seed",
    "audio-visual",
    "visual-audio",
    "mean",
    "epochs",
    "steps",
    "seconds",
    "commit",
    "kernels",
    "weights",
    "processor",
)
CURVE = ("run", "split", "figure", "epoch", "value")
Row = dict[str, str]


def jobs_of(runs: PaperRuns, folder: Path) -> list[Job]:
    """Return the runs in the order of training: those of the figures and the first seed, then further seeds."""
    first = runs.jobs(("table-3", "figure-5", "figure-4"), range(1), folder)
    return [_quickest(job) for job in first + runs.jobs(("table-3",), range(1, SEEDS), folder)]


def _quickest(job: Job) -> Job:
    """Return a job of equal weights, without the scores by epoch that only Figure 5 shows."""
    job = replace(job, protocols=())
    config = Overrides({"training.train_map": 0}).applied(job.config)
    return job if has_curves(job) else replace(job, diagnosis=0, config=config)


def has_curves(job: Job) -> bool:
    """Return whether a run is one of Figure 5, which has the first seed."""
    return job.diagnosis == 1 and job.config.common.seed == 0


def name_of(job: Job) -> str:
    """Return the name of a run without its seed; the run of aadml is that of aa-triplet."""
    return _run_of(job.folder.name.removesuffix(f"_seed{job.config.common.seed}"))


def kernels(job: Job) -> str:
    """Return the hash of the config of a run and of the code that trains it."""
    return hashlib.sha256((job.config.yaml() + _code()).encode()).hexdigest()[:16]


@cache
def _code() -> str:
    digest = hashlib.sha256()
    for room in TRAINING:
        for path in sorted((ROOT / "aadml" / room).rglob("*.py")):
            digest.update(code_of(path.read_text(encoding="utf-8")).encode())
    return digest.hexdigest()


def code_of(source: str) -> str:
    """Return the code of a module without its docstrings, comments and layout."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [part for part in body if not _is_docstring(part)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def weights(job: Job) -> str:
    """Train a run for two epochs, and return the hash of its weights; the hash depends on the kind of processor."""
    with TemporaryDirectory() as folder:
        short = replace(job, folder=Path(folder) / "run", config=Overrides({"training.epochs": 2}).applied(job.config))
        if reason := work_off(short):
            raise SystemExit(f"{job.folder.name}: {reason}")
        tensors = load_file(short.folder / "model.safetensors")
    return hashlib.sha256(b"".join(tensors[name].numpy().tobytes() for name in sorted(tensors))).hexdigest()[:16]


def processor() -> str:
    """Return a hash of the model and the instructions of this processor."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    kind = {line for line in lines if line.startswith(("vendor_id", "cpu family", "model", "flags"))}
    return hashlib.sha256("".join(sorted(kind)).encode()).hexdigest()[:8]


def missing(
    jobs: Iterable[Job],
    rows: Sequence[Row],
    weights: Callable[[Job], str] = weights,
    earlier: Mapping[str, str] | None = None,
) -> list[Job]:
    """Return the runs that have no row, or whose row has other code and other weights after two epochs.

    A row with equal weights receives the hashes of today's code on this processor.

    Args:
        jobs: runs in the order of training.
        rows: rows of finished runs; changed in place.
        weights: function that computes the hash of weights by today's code.
        earlier: names of runs -> hashes of weights by the code of the rows, computed on this processor.

    Raises:
        SystemExit: the weights of a row were computed on another kind of processor, and are not in `earlier`.
    """
    known, here, found = {(row["run"], row["seed"]): row for row in rows}, processor(), []
    for job in jobs:
        row = known.get((name_of(job), str(job.config.common.seed)))
        if row is not None and row["kernels"] != kernels(job):
            before = (earlier or {}).get(job.folder.name, row["weights"] if row["processor"] == here else None)
            if before is None:
                raise SystemExit(
                    f"{job.folder.name} was trained by other code on another kind of processor; run --weights FILE in "
                    f"a checkout of the code of the rows (commit {row['commit']} or later), then pass --earlier FILE"
                )
            made = weights(job)
            if made == before:
                row |= {"kernels": kernels(job), "weights": made, "processor": here}
            else:
                row = None
        if row is None:
            found.append(job)
    return found


def read(path: Path) -> list[Row]:
    """Read a table; an absent file has no rows."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Write a table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def affordable(jobs: Sequence[Job], expected: Mapping[str, float], seconds: float) -> list[Job]:
    """Return the first runs that are expected to take at most `seconds` of processor time together."""
    chosen: list[Job] = []
    for job in jobs:
        seconds -= expected[job.folder.name]
        if seconds < 0:
            break
        chosen.append(job)
    return chosen


def train_all(jobs: Sequence[Job], processes: int) -> Iterator[tuple[Job, dict[str, str], list[dict[str, str]]]]:
    """Train runs in several processes, and yield each run with its row and curves when it ends."""
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        futures = {pool.submit(train, job): job for job in jobs}
        for future in as_completed(futures):
            yield futures[future], *future.result()


def train(job: Job) -> tuple[dict[str, str], list[dict[str, str]]]:
    """Train and score a run; return its row, and its curves by epoch."""
    started = time.process_time()
    if reason := work_off(job):
        raise SystemExit(f"{job.folder.name}: {reason}")
    seconds, run = time.process_time() - started, read_run(job)
    maps = {name: f"{record.map:.6f}" for name, record in run.record.directions.items()}
    counts = {"epochs": str(run.record.epochs), "steps": str(run.record.steps), "seconds": f"{seconds:.0f}"}
    origin = {"commit": (git_commit() or "")[:10], "kernels": kernels(job), "weights": weights(job)}
    origin["processor"] = processor()
    row = {"run": name_of(job), "seed": str(job.config.common.seed), "mean": f"{run.map_mean:.6f}"}
    curves = [
        {"run": name_of(job), "split": split, "figure": title, "epoch": str(epoch), "value": f"{value:.6g}"}
        for split, keys in SERIES.items()
        for key, title in zip(keys, ("loss", "MAP"), strict=True)
        for epoch, value in run.by_epoch(key).items()
    ]
    return row | maps | counts | origin, curves


def page(rows: Sequence[Row], curves: Sequence[Row], planned: int) -> str:
    """Return the page of the finished runs in Markdown: table 3, figure 4 and figure 5 as tables."""
    maps: dict[str, list[float]] = {}
    for row in rows:
        maps.setdefault(row["run"], []).append(float(row["mean"]))
    printed = {name: values["AVE"].mean for name, values in PAPER.published["losses"].items() if name in maps}
    ours = sorted(printed, key=lambda name: -mean(maps[name]))
    theirs = sorted(printed, key=lambda name: -printed[name])
    hours = sum(float(row["seconds"]) for row in rows) / 3600
    parts = [
        "# Table 3 and Figures 4 and 5 at full length\n\n`scripts/reproduction.py` on `synthetic:ave`: random numbers "
        "of AVE's size, so that only the order of losses can be compared. Hidden layers are trained in bfloat16 "
        "([what it changes](../speed.md#bfloat16)). "
        f"{len(rows)} of {planned} runs are finished ({hours:.1f} processor hours).\n",
        "## Table 3\n",
        table(("loss", "MAP", "seeds", "rank", "published", "published rank"), [
            (name, spread(maps[name]), len(maps[name]), ours.index(name) + 1, f"{printed[name]:.3f}",
             theirs.index(name) + 1)
            for name in printed
        ]),
        order(ours, theirs),
        "## Readings of Equation 7\n",
        table(("row", "reading", "MAP", "seeds"), [
            (name, reading, spread(maps.get(_run_of(name), [])), len(maps.get(_run_of(name), [])))
            for name, reading in FIDELITY.readings.items()
        ]),
        "## Figure 4\n",
        table(("loss", *map(str, PAPER.neighbors)), [
            (loss, *(spread(maps.get(loss if k == best else f"{loss}-k{k}", [])[:1]) for k in PAPER.neighbors))
            for loss, best in {**PAPER.best_k, **dict.fromkeys(READINGS, PAPER.best_k["aa-triplet"])}.items()
        ]),
        "## Figure 5\n",
        table(("loss", "split", "figure", "first epoch", "last epoch", "epochs"), ends(curves)),
    ]  # fmt: skip
    return "\n".join(parts)


def _run_of(name: str) -> str:
    return "aa-triplet" if name == DEFAULT_METHOD else name


def order(ours: Sequence[str], theirs: Sequence[str]) -> str:
    """Return a sentence on the losses whose rank differs most from that in the paper; "" without losses."""
    if list(ours) == list(theirs):
        return "The order of the finished losses is that of the paper.\n" if ours else ""
    apart = sorted(ours, key=lambda name: -abs(ours.index(name) - theirs.index(name)))[:5]
    moved = [f"{name} ({ours.index(name) + 1} here, {theirs.index(name) + 1} there)" for name in apart]
    return f"The ranks differ most for {', '.join(moved)}.\n"


def ends(curves: Sequence[Row]) -> list[tuple[object, ...]]:
    """Return the first and the last value of every curve."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for row in curves:
        found.setdefault((row["run"], row["split"], row["figure"]), []).append(row["value"])
    return [(*key, values[0], values[-1], len(values)) for key, values in found.items()]


def spread(values: Sequence[float]) -> str:
    """Return mean and standard deviation."""
    if not values:
        return "–"
    return f"{mean(values):.3f}" + (f" ± {stdev(values):.3f}" if len(values) > 1 else "")


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in (head, ["---"] * len(head), *rows))


def main() -> None:
    """Forecast, compute hashes of weights, or train the missing runs and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=12.0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--forecast", action="store_true")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--earlier", type=Path)
    parser.add_argument("--folder", type=Path, default=Path("reproductions") / "full-length")
    options = parser.parse_args()
    changes = Overrides({"training.precision": "bfloat16"})
    shared = RowSettings("synthetic:ave", config=PAPER.data_sets["ave"].config, changes=changes, with_controls=False)
    place = options.folder / time.strftime("%Y%m%d-%H%M%S")  # a resumed run would count a part of its seconds
    jobs = jobs_of(paper_runs("ave", shared, shorten=lambda config: config, draws={}), place)
    rows, curves = read(RESULTS / "runs.csv"), read(RESULTS / "curves.csv")
    if options.forecast:
        seconds = forecast(jobs, 0, print, kept=options.folder / "measured.json").seconds
        write(RESULTS / "forecast.csv", ("run", "seconds"), [
            {"run": Path(folder).name, "seconds": f"{value:.0f}"} for folder, value in seconds.items()
        ])  # fmt: skip
        return
    if options.weights:
        finished = {(row["run"], row["seed"]) for row in rows}
        done = [job for job in jobs if (name_of(job), str(job.config.common.seed)) in finished]
        options.weights.write_text(json.dumps({job.folder.name: weights(job) for job in done}), encoding="utf-8")
        return
    earlier = json.loads(options.earlier.read_text(encoding="utf-8")) if options.earlier else None
    expected = {row["run"]: float(row["seconds"]) for row in read(RESULTS / "forecast.csv")}
    if not options.page and not expected:
        raise SystemExit("there is no forecast; run with --forecast first, and commit forecast.csv")
    spent = sum(float(old["seconds"]) for old in rows)
    wanted = [] if options.page else missing(jobs, rows, earlier=earlier)
    write(RESULTS / "runs.csv", RUN, rows)  # rows of equal weights have today's hashes
    left = affordable(wanted, expected, options.hours * 3600 - spent)
    for job, row, by_epoch in train_all(left, options.processes):
        rows = [*(old for old in rows if (old["run"], old["seed"]) != (row["run"], row["seed"])), row]
        write(RESULTS / "runs.csv", RUN, rows)
        if has_curves(job):
            curves = [*(old for old in curves if old["run"] != row["run"]), *by_epoch]
            write(RESULTS / "curves.csv", CURVE, curves)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "README.md").write_text(page(rows, curves, len(jobs)), encoding="utf-8")


if __name__ == "__main__":
    main()
