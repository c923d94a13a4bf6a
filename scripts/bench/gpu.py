"""Training steps and neighbor lists on a GPU, with plain torch beside them, in one run.

Usage: gpu.py [--rounds 9] [--steps 30] [--page docs/lab/speed.md]

Steps: wall milliseconds of a step of AADML (3 x 1,024, batch 1,000, the sizes of VEGAS), minimum and median over
rounds, and the peak of the memory of all networks of a row. "plain torch" is the same network and label loss as an
expert writes them (nn.Sequential, nn.Dropout, fused Adam, autocast for bfloat16) with the plain loss of
`plain_losses.py` in both directions. Neighbor lists: as in `graph.py`, with the peer `mm + topk` class by class; "same"
is the share of equal neighbors. `--page` writes the tables between the comments "gpu steps" and "gpu lists" of a page.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch
from graph import CASES, data
from page import put
from plain_losses import PLAIN
from torch import Tensor, nn
from torch.nn import functional as F

from aadml.configuration.from_arguments import assemble
from aadml.data.splitting.splits import to_splits
from aadml.data.synthetic import SHAPES
from aadml.methods.training import loop
from aadml.methods.training.learner import Epoch, batch_of
from aadml.methods.training.optimization import Optimization
from aadml.methods.training.precision import computed_in
from aadml.proxies.graph import neighbors
from aadml.runs.prepare import untrained_model

GPU = torch.device("cuda")
BATCH = 1000
LOSSES = ("triplet", "aa-triplet", "supcon", "aa-contrastive")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("this machine has no GPU that torch can use; run the script on one that has")
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name(GPU)}, {options.rounds} rounds", flush=True)
    tables = {"gpu steps": steps(options), "gpu lists": lists(options)}
    for name, lines in tables.items() if options.page else ():
        put(options.page, name, "\n".join(lines))


def steps(options: argparse.Namespace) -> list[str]:
    splits = to_splits(SHAPES["vegas"]())
    lines = [
        "| loss | precision | ours, ms | plain torch, ms | plain / ours | memory, MiB |",
        "| --- | --- |" + " ---: |" * 4,
    ]
    print("\n".join(lines), flush=True)
    for loss in LOSSES:
        for precision in ("float32", "tf32", "bfloat16"):
            sides = {"ours": our_step(loss, precision, splits)}
            if not loss.startswith("aa-"):
                sides["plain"] = plain_step(loss, precision, splits)
            torch.cuda.reset_peak_memory_stats()
            times = timed(sides, options)
            peak = torch.cuda.max_memory_allocated() / 2**20
            plain = f"{shown(times['plain'])} | {ratio(times)}" if "plain" in times else " | "
            lines.append(f"| {loss} | {precision} | {shown(times['ours'])} | {plain} | {peak:,.0f} |")
            print(lines[-1], flush=True)
    return lines


def our_step(loss: str, precision: str, splits) -> Callable[[], object]:
    model = untrained_model(assemble(config="aadml_vegas", loss=loss), splits, GPU)
    learner, train = model.method.learner, loop._to_device(model.scaling.clips(splits.train), GPU)
    epoch, generator = Epoch("joint", 0, 1), torch.Generator().manual_seed(0)
    optimization, player = Optimization(learner.players(), model.method.settings), learner.players()["encoders"]
    with computed_in(precision, learner):
        learner.eval().before_epoch(train, epoch)
    learner.train()

    def step() -> object:
        rows = torch.randperm(len(train), generator=generator)[:BATCH]
        with computed_in(precision, learner):
            return optimization.step("encoders", player, batch_of(train, rows, GPU, generator, epoch))

    return step


def plain_step(loss: str, precision: str, splits) -> Callable[[], object]:
    train, cost = splits.train, PLAIN[loss]
    features = {m: train.matrix(m).to(GPU) for m in train.modalities}
    labels, classes = train.labels.to(GPU), len(train.class_names)

    def encoder(width: int) -> nn.Sequential:
        layers: list[nn.Module] = []
        for _ in range(3):
            layers += [nn.Linear(width, 1024), nn.Tanh(), nn.Dropout(0.5)]
            width = 1024
        return nn.Sequential(*layers, nn.Linear(width, classes))

    encoders = nn.ModuleDict({m: encoder(values.shape[1]) for m, values in features.items()}).to(GPU).train()
    optimizer, proxies = (
        torch.optim.Adam(encoders.parameters(), lr=1e-4, fused=True),
        torch.zeros(classes, 0, device=GPU),
    )

    def step() -> Tensor:
        rows = torch.randperm(len(labels))[:BATCH].pin_memory().to(GPU, non_blocking=True)
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
        with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bfloat16"):
            x, r = (encoders[m](values[rows]) for m, values in features.items())
        x, r, targets = x.float(), r.float(), labels[rows]
        value = F.cross_entropy(x, targets) + F.cross_entropy(r, targets)
        value = value + (cost(x, r, targets, proxies) + cost(r, x, targets, proxies)) / 2
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        torch.set_float32_matmul_precision("highest")
        return value

    return step


def lists(options: argparse.Namespace) -> list[str]:
    lines = ["| lists | ours, ms | mm + topk, ms | plain / ours | same |", "| --- |" + " ---: |" * 4]
    print("\n".join(lines), flush=True)
    for name, (count, dimension, classes, spread, _) in CASES.items():
        if count < 1_000_000:
            vectors, labels = data(count, dimension, classes, spread)
            labels = torch.zeros(count, dtype=torch.int64) if labels is None else labels
            lines.append(row_of_lists(name, vectors.to(GPU), labels.to(GPU)))
            print(lines[-1], flush=True)
    return lines


def row_of_lists(name: str, vectors: Tensor, labels: Tensor) -> str:
    sides = {
        "ours": lambda: neighbors(vectors, k=3, labels=labels).index,
        "plain": lambda: plain_lists(vectors, labels, 3),
    }
    same = float((sides["ours"]() == sides["plain"]()).float().mean())
    times = timed(sides, argparse.Namespace(rounds=3, steps=1))
    return f"| {name} | {shown(times['ours'])} | {shown(times['plain'])} | {ratio(times)} | {same:.4f} |"


def plain_lists(vectors: Tensor, labels: Tensor, k: int) -> Tensor:
    """Return the lists of `graph.plain_search` on a device, in blocks of 8,192 rows."""
    unit = F.normalize(vectors, dim=1)
    nearest = torch.full((len(unit), k), -1, device=unit.device)
    for label in labels.unique():
        rows = (labels == label).nonzero()[:, 0]
        for start in range(0, len(rows), 8192):
            some = rows[start : start + 8192]
            scores = unit[some] @ unit[rows].T
            scores[torch.arange(len(some)), torch.arange(start, start + len(some))] = -2
            nearest[some] = rows[scores.topk(k, 1).indices]
    return nearest


def timed(sides: dict[str, Callable[[], object]], options: argparse.Namespace) -> dict[str, list[float]]:
    """Return wall milliseconds of a call of every side, of rounds in which the sides alternate."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(options.rounds + 1):
        for name, side in sides.items():
            torch.cuda.synchronize()
            started = time.perf_counter()
            for _ in range(options.steps):
                side()
            torch.cuda.synchronize()
            if number:
                times[name].append(1e3 * (time.perf_counter() - started) / options.steps)
    return times


def shown(values: list[float]) -> str:
    return f"{min(values):.3g}, {median(values):.3g}"


def ratio(times: dict[str, list[float]]) -> str:
    return ", ".join(f"{take(times['plain']) / take(times['ours']):.2f}" for take in (min, median))


if __name__ == "__main__":
    main()
