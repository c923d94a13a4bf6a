"""Losses beside plain torch, the best library, and their bound, in one run.

Usage: kernels.py [--batch 1000] [--dimensions 10 128 1024] [--rounds 15] [--threads 1] [--losses supcon ...]
                  [--page docs/lab/speed.md NAME]

Processor milliseconds of forward and backward from embeddings, everything a batch needs included: minimum, median and
maximum over rounds in which all sides take turns. "plain" is the few lines that one writes in torch for the formula,
over all pairs at once; "library" is pytorch-metric-learning (its triplets are sampled, 100 an anchor); "bound" are the
three matrix products of the scores and their gradients. `--losses all` is every loss of pairs or triplets of vectors;
`--page` writes the table into a page, between the comments of that name.
"""

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median

import torch
from page import put
from torch import Tensor
from torch.nn import functional as F

from aadml.comparison import Comparison
from aadml.losses import LOSSES

CLASSES = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[10, 128, 1024])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--losses", nargs="+", default=TABLE, choices=("all", *EVERY))
    parser.add_argument("--page", nargs=2, metavar=("PAGE", "NAME"))
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    names = EVERY if "all" in given.losses else given.losses
    load = f"Batch {given.batch:,}, {given.threads} thread(s), {given.rounds} rounds, load {os.getloadavg()[0]:.0f}:"
    lines = [
        load,
        "",
        "| loss | d | ours | plain torch | pytorch-metric-learning | bound | ours / plain | ours / bound |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    print("\n".join(lines), flush=True)
    for dimension in given.dimensions:
        random = torch.Generator().manual_seed(0)
        x, r = (torch.randn(given.batch, dimension, generator=random).requires_grad_() for _ in range(2))
        labels = torch.arange(given.batch) % CLASSES
        for name in names:
            lines.append(row(name, dimension, timed(sides_of(name, x, r, labels), given.rounds)))
            print(lines[-1], flush=True)
    if given.page:
        put(Path(given.page[0]), given.page[1], "\n".join(lines))


def sides_of(name: str, x: Tensor, r: Tensor, labels: Tensor) -> dict[str, Callable[[], object]]:
    """Name what is timed of a loss."""
    sides: dict[str, Callable[[], object]] = {
        "ours": lambda: ours(name, x, r, labels),
        "bound": lambda: products(x, r),
    }
    others = {"plain": PLAIN.get(name), "library": libraries().get(name)}
    return sides | {
        side: lambda cost=cost: cost(x, r, labels).backward() for side, cost in others.items() if cost is not None
    }


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


def row(name: str, dimension: int, found: dict[str, list[float]]) -> str:
    """Write a line of the table."""

    def figure(value: float) -> str:
        return f"{value:.1f}" if value < 10 else f"{value:,.0f}"

    def cell(side: str) -> str:
        values = found.get(side)
        sampled = " (sampled)" if (name, side) == ("triplet", "library") else ""
        return ", ".join(map(figure, (min(values), median(values), max(values)))) + sampled if values else ""

    least = {side: min(values) for side, values in found.items()}
    ratios = [f"{least['ours'] / least[side]:.2g}" if side in least else "" for side in ("plain", "bound")]
    cells = [name, f"{dimension:,}", *(cell(side) for side in ("ours", "plain", "library", "bound")), *ratios]
    return "| " + " | ".join(cells) + " |"


def ours(name: str, x: Tensor, r: Tensor, labels: Tensor) -> None:
    comparison = Comparison.of_labels(x, r, labels, labels)
    if name == "cross-clr":
        comparison = replace(comparison, within=torch.arange(len(r)) % 2 == 0)
    terms = LOSSES[name](comparison)
    loss = terms.total.sum() / terms.possible.sum().clamp_min(1)
    (loss if terms.penalty is None else loss + terms.penalty).backward()


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


def plain_hinge(x: Tensor, r: Tensor, labels: Tensor) -> Tensor:
    same, distance = (labels[:, None] == labels), torch.cdist(x, r)
    return torch.where(same, (distance - 0.3).relu(), (1.3 - distance).relu()).mean()


def plain_n_pair(x: Tensor, r: Tensor, labels: Tensor) -> Tensor:
    same, scores = labels[:, None] == labels, x @ r.T
    rivals = scores.masked_fill(same, -torch.inf).logsumexp(1, keepdim=True)
    lengths = x.square().sum(1).mean() + r.square().sum(1).mean()
    return F.softplus(rivals - scores)[same].mean() + 0.25 * 3e-3 * lengths


def plain_multi_similarity(x: Tensor, r: Tensor, labels: Tensor) -> Tensor:
    same, above = labels[:, None] == labels, F.normalize(x) @ F.normalize(r).T - 0.5
    pulled = torch.where(same, (-2 * above).exp(), 0).sum(1).log1p() / 2
    return (pulled + torch.where(same, 0, (50 * above).exp()).sum(1).log1p() / 50).mean()


def plain_dsl(x: Tensor, r: Tensor, labels: Tensor) -> Tensor:
    same = (labels[:, None] == labels).float()
    scores = F.normalize(x) @ F.normalize(r).T / 0.05
    weighed = F.log_softmax(scores * F.softmax(scores / 1000, 0) * len(scores), 1)
    return -((weighed * same).sum(1) / same.sum(1)).mean()


def plain_posterior_nca(x: Tensor, r: Tensor, labels: Tensor) -> Tensor:
    same, alike = (labels[:, None] == labels).float(), F.softmax(x, 1) @ F.softmax(r, 1).T
    return -((alike * same).sum(1) / alike.sum(1)).log().mean()


TABLE = ("supcon", "nt-xent", "contrastive", "triplet")
EVERY = (
    *TABLE, "hinge", "n-pair", "cross-clr", "dsl", "posterior-nca", "multi-similarity", "ranking", "triplet-weighted",
    "angular",
)  # fmt: skip
PLAIN = {
    "supcon": plain_supcon,
    "nt-xent": plain_nt_xent,
    "contrastive": plain_contrastive,
    "triplet": plain_triplet,
    "hinge": plain_hinge,
    "n-pair": plain_n_pair,
    "dsl": plain_dsl,
    "posterior-nca": plain_posterior_nca,
    "multi-similarity": plain_multi_similarity,
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
