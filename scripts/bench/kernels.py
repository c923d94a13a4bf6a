"""Losses compared with plain torch, compiled plain torch and a lower bound, in one run.

Usage: kernels.py [--batches 400 1000 4000] [--dimensions 10 128 1024] [--rounds 9] [--losses supcon ...] [--both]
                  [--pairs] [--no-compile] [--device cpu] [--page docs/lab/speed.md NAME]

Processor time of forward and backward from embeddings in one thread, with everything that a batch needs, or with
`--device cuda` the wall time until the GPU has finished: minimum and median of rounds in which all sides alternate,
each with several steps. "plain" is `plain_losses.py`, and "compiled" the same under `torch.compile`. "ours compiled"
compiles our loss and its reduction, with a comparison as input, and includes the eager construction of the comparison.
The last column is the time of its first call, which compiles it.
"bound" is the matrix products of scores and gradients, or for posterior-nca the class sums without gradient. Ratios are
the time of a peer divided by ours, by the minimum and by the median; a ratio below 1, where ours is slower, is bold.
`--both` computes both directions, and `--pairs` computes NT-Xent of pairs in both directions, which plain torch writes
as two cross-entropies of one score matrix. `--page` writes the table into a page, between the comments with that name.
The values of all sides are compared.
"""

import argparse
import inspect
import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch
from page import put
from plain_losses import CENTERS, OF_PROXIES, PLAIN, nt_xent_of_pairs
from torch import Tensor, nn

from aadml.comparison import Comparison, Terms
from aadml.comparison.masks import MaskCodes
from aadml.comparison.opposites import share_results
from aadml.losses import LOSSES
from aadml.objective.objective import compiled, reduce

CLASSES = 10
PROXIES = {loss.__name__.replace("_", "-") for loss in OF_PROXIES}
COLUMNS = (
    ("plain", "ours"),
    ("compiled", "ours"),
    ("bound", "ours"),
    ("compiled", "ours compiled"),
)
Step = Callable[[], Tensor]
Loss = Callable[[Comparison], Terms]
Cost = Callable[[Comparison], Tensor]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, nargs="+", default=[400, 1000, 4000])
    parser.add_argument("--dimensions", type=int, nargs="+", default=[10, 128, 1024])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--losses", nargs="+", default=list(PLAIN), choices=PLAIN)
    parser.add_argument("--both", action="store_true")
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--page", nargs=2, metavar=("PAGE", "NAME"))
    given = parser.parse_args()
    given.device = torch.device(given.device)
    if given.device.type == "cuda" and not torch.cuda.is_available():
        parser.error("this machine has no GPU that torch can use; leave out --device")
    torch.set_num_threads(1)
    torch.empty(7 << 20)  # when a large block is freed, the allocator keeps all later blocks, as in a training
    lines = [
        f"torch {torch.__version__}, {place_of(given.device)}, {given.rounds} rounds, load {os.getloadavg()[0]:.0f}:",
        "",
        "| loss | batch | d | ours, ms | ours compiled, ms | "
        + " | ".join(f"{peer} / {side}" for peer, side in COLUMNS)
        + " | compile, s |",
        "| --- |" + " ---: |" * (len(COLUMNS) + 5),
    ]
    print("\n".join(lines), flush=True)
    for name in ["nt-xent"] if given.pairs else given.losses:
        for batch in given.batches:
            for dimension in given.dimensions:
                sides = sides_of(name, batch, dimension, given)
                lines.append(row(name, batch, dimension, timed(sides, given, batch)))
                print(lines[-1], flush=True)
    if given.page:
        put(Path(given.page[0]), given.page[1], "\n".join(lines))


def sides_of(name: str, batch: int, dimension: int, given: argparse.Namespace) -> dict[str, Step]:
    """Return the timed steps of a loss by name; each step returns the value of the loss."""
    torch.manual_seed(0)
    x, r = (torch.randn(batch, dimension).to(given.device).requires_grad_() for _ in range(2))
    labels = (torch.arange(batch) % (batch if given.pairs else CLASSES)).to(given.device)
    loss, proxies = built(name, dimension, given.device)
    points = [x, r, *([] if proxies is None else [proxies])]
    table = x.new_zeros(CLASSES, 0) if proxies is None else proxies
    plain, both = PLAIN[name], (given.both or given.pairs) and proxies is None

    def peer(x: Tensor, r: Tensor, labels: Tensor, table: Tensor) -> Tensor:
        if given.pairs:
            return nt_xent_of_pairs(x, r)
        there = plain(x, r, labels, table)
        return (there + plain(r, x, labels, table)) / 2 if both else there

    def ours(comparison: Comparison) -> Tensor:
        return reduce(loss(comparison), "mean")

    costs = {"ours": with_labels(ours, name, both=both), "plain": peer}
    if not given.no_compile:
        torch._dynamo.reset()
        costs["compiled"] = torch.compile(peer, dynamic=False)
        costs["ours compiled"] = with_labels(compiled(ours), name, both=both, share=False)

    def step(cost: Callable[..., Tensor]) -> Tensor:
        value = cost(x, r, labels, table)
        torch.autograd.grad(value, points)
        return value.detach()

    def bound() -> Tensor:
        with torch.no_grad():
            return class_sums(x, r, labels) if name == "posterior-nca" else products(x, table if len(points) > 2 else r)

    return {side: lambda cost=cost: step(cost) for side, cost in costs.items()} | {"bound": bound}


def built(name: str, dimension: int, device: torch.device) -> tuple[Loss, Tensor | None]:
    """Return a loss by name, and its proxies."""
    loss = LOSSES[name]
    if not inspect.isclass(loss):
        return loss, None
    module: nn.Module = loss(dimension=dimension, classes=CLASSES).to(device)
    assert isinstance(module.proxies, Tensor)
    assert len(module.proxies) in (CLASSES, CLASSES * CENTERS)
    return module, module.proxies


def with_labels(cost: Cost, name: str, *, both: bool, share: bool = True) -> Callable[..., Tensor]:
    """Return a loss as a function of (x, r, labels, table), the mean over directions."""

    def value(x: Tensor, r: Tensor, labels: Tensor, _: Tensor) -> Tensor:
        if name in PROXIES:
            x, labels = torch.cat([x, r]), torch.cat([labels, labels])  # as in training
            r = x
        comparisons = [Comparison.of_labels(*sides, labels, labels) for sides in [(x, r), (r, x)][: 1 + both]]
        if share:
            share_results(comparisons)
        there, *back = (of(cost, comparison, name) for comparison in comparisons)
        return (there + back[0]) / 2 if back else there

    return value


def of(cost: Cost, comparison: Comparison, name: str) -> Tensor:
    if name == "cross-clr":
        labels, candidate_labels = comparison.need("anchor_class", name), comparison.need("candidate_class", name)
        sides = torch.zeros_like(labels), torch.arange(len(candidate_labels), device=labels.device) % 2
        codes = MaskCodes((labels, candidate_labels), sides=sides)  # masks by codes, as in training
        comparison = Comparison(
            comparison.anchors, comparison.candidates, codes.positives, codes.negatives, comparison.own,
            within=codes.within,
        )  # fmt: skip
    return cost(comparison)


def products(x: Tensor, r: Tensor) -> Tensor:
    scores = x @ r.T
    scores @ r
    return scores.T @ x


def class_sums(x: Tensor, r: Tensor, labels: Tensor) -> Tensor:
    left, right = x.softmax(1), r.softmax(1)
    sums = right.new_zeros(CLASSES, right.shape[1]).index_add(0, labels, right)
    return (left * sums[labels]).sum(1).log() - (left @ sums.sum(0)).log()


def place_of(device: torch.device) -> str:
    return "one thread" if device.type == "cpu" else f"{torch.cuda.get_device_name(device)} in float32"


def seconds_of(device: torch.device) -> float:
    """Return the processor time, or the wall time once the GPU has finished."""
    if device.type == "cpu":
        return time.process_time()
    torch.cuda.synchronize(device)
    return time.perf_counter()


def timed(sides: dict[str, Step], given: argparse.Namespace, batch: int) -> dict[str, list[float]]:
    """Time all sides alternately after a warm-up round: milliseconds of a step."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    values = {name: float(side()) for name, side in sides.items() if name not in ("bound", "ours compiled")}
    if "ours compiled" in sides:
        started = time.perf_counter()
        values["ours compiled"] = float(sides["ours compiled"]())
        seconds["compile"] = [time.perf_counter() - started]
    assert all(abs(value - values["ours"]) <= 2e-4 * abs(values["ours"]) + 1e-5 for value in values.values()), values
    steps = max(1, round(4 * (1000 / batch) ** 2)) if given.device.type == "cpu" else 20
    for number in range(given.rounds + 1):
        for name, side in sides.items():
            started = seconds_of(given.device)
            for _ in range(steps):
                side()
            if number:
                seconds[name].append(1e3 * (seconds_of(given.device) - started) / steps)
    return seconds


def row(name: str, batch: int, dimension: int, seconds: dict[str, list[float]]) -> str:
    """Return a row of the table."""

    def time_of(side: str) -> str:
        values = seconds.get(side)
        return f"{min(values):.3g}, {median(values):.3g}" if values else ""

    def ratio_of(peer: str, side: str) -> str:
        if peer not in seconds or side not in seconds:
            return ""
        ratios = (take(seconds[peer]) / take(seconds[side]) for take in (min, median))
        return ", ".join(f"**{ratio:.2f}**" if ratio < 1 and peer != "bound" else f"{ratio:.2f}" for ratio in ratios)

    ratios = (ratio_of(*pair) for pair in COLUMNS)
    compile_time = "".join(f"{value:.0f}" for value in seconds.get("compile", ()))
    times = time_of("ours"), time_of("ours compiled")
    cells = [name, f"{batch:,}", f"{dimension:,}", *times, *ratios, compile_time]
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
