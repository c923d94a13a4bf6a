"""An epoch of training at the size of VEGAS, in this checkout and in earlier ones: refresh, steps, and the remainder.

Usage: vegas_epoch.py FEATURES [--edition FOLDER]... [--loss aa-triplet] [--batch 200] [--rounds 4] [--threads 1]

FEATURES is written by `aadml convert synthetic:vegas FEATURES`; FOLDER is a checkout of another commit. Every checkout
trains the network of the paper by `aadml train`, and they alternate by epoch, after one warm-up epoch. The table has
processor seconds, minimum, median and maximum over the rounds. "rest" is the part after the steps: validation, log,
checkpoint. The bound is the matrix products of the steps alone.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import torch
from step import batch_of, products
from turns import PARTS, ROOT, Parts, Training

from aadml.configuration.from_arguments import assemble
from aadml.runs.prepare import prepare, untrained_model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", type=Path)
    parser.add_argument("--edition", type=Path, action="append", default=[])
    parser.add_argument("--loss", default="aa-triplet")
    parser.add_argument("--batch", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    words = ["--data", str(given.features.resolve()), "--config", "aadml_vegas", "--loss", given.loss]
    words += ["--epochs", str(given.rounds + 2), "--set", f"training.batch={given.batch}"]
    ours = [*words, "--set", "training.train_map=0", "--set"]
    with tempfile.TemporaryDirectory() as runs, ExitStack() as stack:
        sides = {p: (ROOT, [*ours, f"training.precision={p}"]) for p in ("float32", "bfloat16")}
        sides |= {folder.name: (folder.resolve(), words) for folder in given.edition}
        trainings = {
            name: Training(stack, [*words, "--runs", runs], checkout=checkout, threads=given.threads)
            for name, (checkout, words) in sides.items()
        }
        epochs = {name: lambda one=one: one.epoch()[0] for name, one in trainings.items()}
        took = measured(epochs | products_of(given), given.rounds)
    report(took, given)


def measured(epochs: Mapping[str, Callable[[], Parts]], rounds: int) -> dict[str, list[Parts]]:
    """Train an epoch of each side alternately; the first round is a warm-up."""
    took: dict[str, list[Parts]] = {name: [] for name in epochs}
    for number in range(rounds + 1):
        for name, epoch in epochs.items():
            parts = epoch()
            if number:
                took[name].append(parts)
    return took


def products_of(given: argparse.Namespace) -> dict[str, Callable[[], Parts]]:
    """Return functions that compute the matrix products of an epoch's steps, by precision."""
    torch.set_num_threads(given.threads)
    prepared = prepare(assemble(config="aadml_vegas", data=str(given.features), loss=given.loss))
    model = untrained_model(prepared.config, prepared.splits, torch.device("cpu"))
    train, draws = model.scaling.clips(prepared.splits.train), torch.Generator().manual_seed(0)

    def epoch(kind: torch.dtype) -> Parts:
        seconds = 0.0
        for _ in range(-(-len(train) // given.batch)):
            batch = batch_of(train, draws, given.batch)
            started = time.process_time()
            products(model.method.learner, batch, kind)
            seconds += time.process_time() - started
        return {"steps": seconds}

    kinds = {"float32": torch.float32, "bfloat16": torch.bfloat16}
    return {f"products, {name}": lambda kind=kind: epoch(kind) for name, kind in kinds.items()}


def report(took: Mapping[str, list[Parts]], given: argparse.Namespace) -> None:
    """Print a row per side, and the shares of our refresh and products."""
    print(f"{given.loss}, batch {given.batch}, {given.rounds} rounds, {given.threads} thread(s), "
          f"load {os.getloadavg()[0]:.0f}; processor seconds\n")  # fmt: skip
    print("| side | epoch | " + " | ".join(PARTS) + " | epoch / float32 |\n| --- |" + " ---: |" * (len(PARTS) + 2))
    whole = {name: [sum(one.get(part, 0) for part in PARTS) for one in rounds] for name, rounds in took.items()}
    for name, rounds in took.items():
        of_parts = [[one[part] for one in rounds if part in one] for part in PARTS]
        cells = [spread(values) for values in (whole[name], *of_parts)]
        print(f"| {name} | " + " | ".join(cells) + f" | {min(whole[name]) / min(whole['float32']):.2f} |")
    for name in ("float32", "bfloat16"):
        refresh = median(one["refresh"] / total for one, total in zip(took[name], whole[name], strict=True))
        share = min(whole[f"products, {name}"]) / min(whole[name])
        print(f"\n{name}: refresh {refresh:.1%} of an epoch, products of the steps {share:.0%}")


def spread(values: list[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in (min(values), median(values), max(values))) if values else ""


if __name__ == "__main__":
    main()
