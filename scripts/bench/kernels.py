"""Losses beside plain torch, the best library, and their bound, in one run.

Usage: kernels.py [--batch 1000] [--dimensions 10 128 1024] [--rounds 5] [--threads 1]

Processor milliseconds of forward and backward from embeddings, everything a batch needs included: minimum, median and
maximum over rounds in which all sides take turns. "plain" is the few lines that one writes in torch for the formula,
over all pairs at once; "library" is pytorch-metric-learning (its triplets are sampled, 100 an anchor); "bound" are the
three matrix products of the scores and their gradients.
"""

import argparse
import os
import time
from collections.abc import Callable
from statistics import median

import torch
from torch import Tensor
from torch.nn import functional as F

from aadml.comparison import Comparison
from aadml.losses import LOSSES

CLASSES = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[10, 128, 1024])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    print(f"batch {given.batch}, {given.threads} thread(s), load {os.getloadavg()[0]:.1f}\n")
    print("| loss | d | ours | plain | library | bound | ours / plain | ours / bound |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for dimension in given.dimensions:
        random = torch.Generator().manual_seed(0)
        x, r = (torch.randn(given.batch, dimension, generator=random).requires_grad_() for _ in range(2))
        labels = torch.arange(given.batch) % CLASSES
        for name in PLAIN:
            row(name, dimension, timed(sides_of(name, x, r, labels), given.rounds))


def sides_of(name: str, x: Tensor, r: Tensor, labels: Tensor) -> dict[str, Callable[[], object]]:
    """Name what is timed of a loss."""
    sides: dict[str, Callable[[], object]] = {
        "ours": lambda: ours(name, x, r, labels),
        "plain": lambda: PLAIN[name](x, r, labels).backward(),
        "bound": lambda: products(x, r),
    }
    library = libraries().get(name)
    return sides | ({"library": lambda: library(x, r, labels).backward()} if library else {})


def timed(sides: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Time all sides in turn, after one round that does not count: processor milliseconds."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds + 1):
        for name, side in sides.items():
            started = time.process_time()
            side()
            if number:
                found[name].append(1e3 * (time.process_time() - started))
    return found


def row(name: str, dimension: int, found: dict[str, list[float]]) -> None:
    def cell(side: str) -> str:
        values = found.get(side)
        return f"{min(values):.1f}, {median(values):.1f}, {max(values):.1f}" if values else "none"

    least = {side: min(values) for side, values in found.items()}
    ratios = [f"{least['ours'] / least[side]:.2f}" for side in ("plain", "bound")]
    cells = [name, str(dimension), *(cell(side) for side in ("ours", "plain", "library", "bound")), *ratios]
    print("| " + " | ".join(cells) + " |", flush=True)


def ours(name: str, x: Tensor, r: Tensor, labels: Tensor) -> None:
    terms = LOSSES[name](Comparison.of_labels(x, r, labels, labels))
    (terms.total.sum() / terms.possible.sum().clamp_min(1)).backward()


def products(x: Tensor, r: Tensor) -> None:
    with torch.no_grad():
        scores = x @ r.T
        scores @ r
        scores.T @ x


def plain_supcon(x: Tensor, r: Tensor, labels: Tensor) -> Tensor:
    same = (labels[:, None] == labels).float()
    scores = F.log_softmax(F.normalize(x) @ F.normalize(r).T / 0.07, 1)
    return -((scores * same).sum(1) / same.sum(1)).mean()


def plain_nt_xent(x: Tensor, r: Tensor, labels: Tensor) -> Tensor:
    same = labels[:, None] == labels
    scores = F.normalize(x) @ F.normalize(r).T / 0.07
    rivals = scores.masked_fill(same, -torch.inf).logsumexp(1, keepdim=True)
    return F.softplus(rivals - scores)[same].mean()


def plain_contrastive(x: Tensor, r: Tensor, labels: Tensor) -> Tensor:
    same, distance = (labels[:, None] == labels), torch.cdist(x, r)
    return 0.5 * torch.where(same, distance, (1 - distance).relu()).square().mean()


def plain_triplet(x: Tensor, r: Tensor, labels: Tensor) -> Tensor:
    same, far, total = labels[:, None] == labels, torch.cdist(x, r).square(), x.new_zeros(())
    for row_far, row_same in zip(far, same, strict=True):  # all triplets at once are cubic in memory
        total = total + (row_far[row_same][:, None] - row_far[~row_same] + 1.2).relu().sum()
    return total


PLAIN = {
    "supcon": plain_supcon,
    "nt-xent": plain_nt_xent,
    "contrastive": plain_contrastive,
    "triplet": plain_triplet,
}


def libraries() -> dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]]:
    """Give the losses of pytorch-metric-learning, where it is installed."""
    try:
        from pytorch_metric_learning import distances, losses
    except ImportError:
        return {}
    squared = distances.LpDistance(power=2, normalize_embeddings=False)
    plain = distances.LpDistance(normalize_embeddings=False)
    made = {
        "supcon": losses.SupConLoss(0.07),
        "contrastive": losses.ContrastiveLoss(0, 1, distance=plain),
        "triplet": losses.TripletMarginLoss(1.2, distance=squared, triplets_per_anchor=100),
    }
    return {n: lambda x, r, y, loss=one: loss(x, y, ref_emb=r, ref_labels=y.clone()) for n, one in made.items()}


if __name__ == "__main__":
    main()
