"""Time and peak memory of every loss compared with pytorch-metric-learning, forward and backward, in one run.

Usage: python scripts/bench/losses.py OUT [--quick] [--batches 100 400 1000] [--losses triplet supcon] [--limit 120]
       [--gibibytes 16]

Every case (loss, implementation, batch size, device) runs in a child process with a limit of --gibibytes of address
space (on a GPU: of device memory) and --limit seconds. Both implementations start from embeddings that require
gradients (10 classes, 10 dimensions, as in the label space of VEGAS) and end with gradients. Time includes masks,
selections and mined tuples of a batch. It is the minimum of up to 30 steps (on the CPU: processor time, with
OMP_NUM_THREADS threads). Memory is the growth of the peak of the process from just before the first step. After a
failure at a batch size, larger sizes are skipped. OUT receives losses.md, losses.json and losses.png.
"""

import argparse
import inspect
import json
import os
import platform
import resource
import subprocess
import sys
import time
from dataclasses import replace
from itertools import product
from pathlib import Path

import torch
from memory import forget_peak, peak_bytes
from torch import nn

from aadml.comparison import Comparison
from aadml.feature_extraction.ground.options import OptionValues
from aadml.feature_extraction.ground.validation import checked_options
from aadml.losses import LOSSES
from aadml.objective import reduce
from aadml.objective.recipes import RECIPES
from aadml.selections import SELECTIONS

CLASSES, DIMENSION, FEATURES = 10, 10, 64
BATCHES = (100, 200, 400, 1000, 2000, 4000, 8000)
MEMORY = 16
SETTINGS = ("name", "weight", "reduction", "combine")
BY_ID = ("triplet-sum", "triplet-max", "triplet-weighted", "ranking")
MODULES = {name for name, loss in LOSSES.items() if inspect.isclass(loss) and issubclass(loss, nn.Module)}
CASES = (
    *(name for name in LOSSES if name not in RECIPES and name not in MODULES),
    *(name for name in RECIPES if not name.startswith("dsml")),
)


def lay_out(name, x, r, labels):
    """Return the comparison that the loss requires, and the reduction that its name implies."""
    together = name in RECIPES and RECIPES[name].directions is not None
    size = len(x)
    if together:
        both, twice, row = torch.cat([x, r]), labels.repeat(2), torch.arange(2 * size, device=x.device)
        comparison = Comparison.of_labels(both, both, twice, twice, own=(row + size) % (2 * size), itself=row)
        if name == "cross-clr":
            side = row >= size
            comparison = replace(comparison, within=side[:, None] == side[None, :])
        return comparison
    if name in BY_ID:
        clips = torch.arange(size, device=x.device)
        return Comparison.of_ids(x, r, clips, clips)
    return Comparison.of_labels(x, r, labels, labels)


def ours(name, device):
    """Return a step of our loss: (embeddings, labels) -> scalar."""
    recipe = RECIPES.get(name)
    section = dict(recipe.loss) if recipe else {"name": name}
    chosen = dict(recipe.selection or {"name": "all"}) if recipe else {"name": "all"}
    select = SELECTIONS[chosen.pop("name")]
    entry = LOSSES[section["name"]]
    options = {key: value for key, value in section.items() if key not in SETTINGS}
    if section["name"] in MODULES:
        context = {"dimension": DIMENSION, "features": FEATURES, "classes": CLASSES}
        takes = inspect.signature(entry).parameters
        made = entry(**options, **{key: value for key, value in context.items() if key in takes}).to(device)
        head = nn.Linear(FEATURES, DIMENSION).to(device)
    else:
        checked_options(entry, OptionValues(**options), "loss")

    def step(x, r, labels):
        comparison = select(lay_out(name, x, r, labels), torch.Generator().manual_seed(0), **chosen)
        if section["name"] not in MODULES:
            return reduce(entry(comparison, **options), section.get("reduction", "mean-of-active"))
        reduction = section.get("reduction", "mean-of-active")
        if not hasattr(made, "generator_loss"):
            return reduce(made(comparison), reduction)
        features = torch.ones(len(x), FEATURES, device=device)
        equipped = replace(
            comparison, anchor_features=features, candidate_features=features, candidate_head=head, anchor_class=labels
        )
        return reduce(made(equipped), reduction) + made.generator_loss(equipped)

    return step


def peer(name):
    """Return a step of pytorch-metric-learning's loss, and whether its value should equal ours; None without a loss."""
    from pytorch_metric_learning import distances, losses, miners, reducers

    squared = distances.LpDistance(power=2, normalize_embeddings=False)
    cosine = distances.CosineSimilarity()

    def triplets(margin, distance, reducer=None):
        return losses.TripletMarginLoss(margin=margin, distance=distance, triplets_per_anchor="all", reducer=reducer)

    def crossed(loss, miner=None, by_id=False):
        def step(x, r, labels):
            first = torch.arange(len(x), device=x.device) if by_id else labels
            mined = None if miner is None else miner(x, first, r, first.clone())
            return loss(x, first, mined, ref_emb=r, ref_labels=first.clone())  # a clone keeps the diagonal

        return step

    def joined(loss):
        return lambda x, r, labels: loss(torch.cat([x, r]), labels.repeat(2))

    plain = distances.LpDistance(power=1, normalize_embeddings=False)
    inner = distances.DotProductSimilarity(normalize_embeddings=False)
    peers = {
        "triplet": (crossed(triplets(1.2, squared)), True),
        "complete-triplet": (joined(triplets(1.2, squared)), True),
        "batch-hard-triplet": (crossed(triplets(1.2, squared), miners.BatchHardMiner(distance=squared)), True),
        "triplet-sum": (crossed(triplets(0.2, cosine, reducers.SumReducer()), by_id=True), False),
        "triplet-max": (crossed(triplets(0.2, cosine), miners.BatchHardMiner(distance=cosine), by_id=True), False),
        "contrastive": (crossed(losses.ContrastiveLoss(0, 1, distance=plain)), False),
        "n-pair": (joined(losses.NPairsLoss(distance=inner)), False),
        "angular": (crossed(losses.AngularLoss(alpha=40)), False),
        "supcon": (joined(losses.SupConLoss(temperature=0.07)), True),
        "nt-xent": (crossed(losses.NTXentLoss(temperature=0.07)), True),
        "multi-similarity": (crossed(losses.MultiSimilarityLoss(), miners.MultiSimilarityMiner()), False),
        "proxy-nca": (joined(losses.ProxyNCALoss(CLASSES, DIMENSION)), False),
        "proxy-anchor": (joined(losses.ProxyAnchorLoss(CLASSES, DIMENSION)), False),
        "soft-triple": (joined(losses.SoftTripleLoss(CLASSES, DIMENSION)), False),
        "arcface": (joined(losses.ArcFaceLoss(CLASSES, DIMENSION)), False),
    }
    return peers.get(name, (None, False))


def child(name, side, size, device, gibibytes):
    """Run one case and print its time and memory as JSON."""
    if device == "cpu":
        resource.setrlimit(resource.RLIMIT_AS, (gibibytes << 30, gibibytes << 30))
    random = torch.Generator().manual_seed(0)
    x, r = (torch.randn(size, DIMENSION, generator=random).to(device).requires_grad_() for _ in range(2))
    labels = (torch.arange(size) % CLASSES).to(device)
    torch.manual_seed(0)
    step = ours(name, device) if side == "ours" else peer(name)[0]
    warm = step(x[:20], r[:20], labels[:20])
    warm.backward()
    forget_peak()
    before = peak_bytes()
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        torch.cuda.set_per_process_memory_fraction(min(1.0, (gibibytes << 30) / torch.cuda.mem_get_info()[1]))
    clock = time.perf_counter if device == "cuda" else time.process_time
    seconds = []
    while not seconds or (sum(seconds) < 1 and len(seconds) < 30):
        x.grad = r.grad = None
        if device == "cuda":
            torch.cuda.synchronize()
        start = clock()
        loss = step(x, r, labels)
        loss.backward()
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append(clock() - start)
    memory = torch.cuda.max_memory_allocated() if device == "cuda" else peak_bytes() - before
    print(json.dumps({"seconds": min(seconds), "bytes": memory, "loss": loss.item()}))


def measured(name, side, size, device, limits):
    """Run one case in a child process with limits on time and memory; return its result, or the reason of failure."""
    limit, gibibytes = limits
    command = [sys.executable, __file__, "--case", name, side, str(size), device, "-", "--gibibytes", str(gibibytes)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": f"over {limit:g} s"}
    if done.returncode == 0:
        return json.loads(done.stdout)
    memory = done.returncode < 0 or any(word in done.stderr for word in ("memory", "MemoryError", "INT_MAX"))
    return {"failed": f"over {gibibytes} GiB" if memory else done.stderr.strip().splitlines()[-1][:80]}


def all_measured(names, batches, device, limits):
    rows, given_up = [], {}
    for name in names:
        for size in batches:
            row = {"loss": name, "batch": size, "device": device}
            for side in ("ours", "peer"):
                if side == "peer" and peer(name)[0] is None:
                    continue
                row[side] = given_up.get((name, side)) or measured(name, side, size, device, limits)
                if "failed" in row[side]:
                    given_up[name, side] = row[side]
            rows.append(row)
            print(line(row), flush=True)
    return rows


def figure_of(result, key, scale, form):
    if result is None:
        return "no such loss"
    return result["failed"] if "failed" in result else form.format(result[key] * scale)


def ratio(row, key):
    ours_, peer_ = row["ours"], row.get("peer")
    if peer_ is None or "failed" in ours_ or "failed" in peer_:
        return ""
    least = 1 << 20 if key == "bytes" else 0  # below a MiB the peak is the allocator's, not the loss's
    return f"{max(peer_[key], least) / max(ours_[key], least):.1f}"


def same(row):
    if not ratio(row, "seconds") or not peer(row["loss"])[1]:
        return ""
    first, second = row["ours"]["loss"], row["peer"]["loss"]
    return "yes" if abs(first - second) <= 1e-3 * max(abs(first), abs(second)) else f"no: {first:.4g}, {second:.4g}"


def line(row):
    cells = [row["device"], row["loss"], str(row["batch"])]
    for key, scale in (("seconds", 1e3), ("bytes", 2**-20)):
        cells += [figure_of(row.get(side), key, scale, "{:.1f}") for side in ("ours", "peer")] + [ratio(row, key)]
    return "| " + " | ".join([*cells, same(row)]) + " |"


def table(rows):
    head = "| device | loss | batch | ms | peer ms | times faster | MiB | peer MiB | times smaller | same value |"
    return "\n".join([head, "|---|---|---|---|---|---|---|---|---|---|", *map(line, rows)])


def draw(rows, path):
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    devices = sorted({row["device"] for row in rows})
    figure, axes = plt.subplots(len(devices), 2, figsize=(15, 7 * len(devices)), squeeze=False)
    names = list(dict.fromkeys(row["loss"] for row in rows))
    colors = dict(zip((name for name in names if peer(name)[0]), plt.get_cmap("tab20").colors, strict=False))
    for row_of_axes, device in zip(axes, devices, strict=True):
        panels = (("seconds", 1, "seconds a step"), ("bytes", 2**-20, "MiB at the peak"))
        for axis, (key, scale, label) in zip(row_of_axes, panels, strict=True):
            for name, (side, style) in product(names, (("ours", "-o"), ("peer", "--x"))):
                points = [
                    (row["batch"], max(row[side][key] * scale, 0.1 if key == "bytes" else 0))
                    for row in rows
                    if row["loss"] == name and row["device"] == device and key in row.get(side, {})
                ]
                if points:
                    look = {"color": colors[name]} if name in colors else {"color": "0.8", "zorder": 1}
                    caption = name if side == "ours" and name in colors else None
                    axis.loglog(*zip(*points, strict=True), style, label=caption, markersize=4, **look)
            axis.set(xlabel="batch", ylabel=label, title=f"{device}: ours solid, pytorch-metric-learning dashed")
            axis.grid(visible=True, which="both", alpha=0.2)
    axes[0][1].legend(fontsize=8, title="gray: no such loss there", loc="center left", bbox_to_anchor=(1, 0.5))
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="folder for losses.md, losses.json and losses.png")
    parser.add_argument("--quick", action="store_true", help="batches 100 and 400, 20 seconds a case")
    parser.add_argument("--batches", type=int, nargs="+")
    parser.add_argument("--losses", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--limit", type=float, help="seconds a case may take (120)")
    parser.add_argument("--gibibytes", type=int, default=MEMORY, help="memory a case may take")
    parser.add_argument("--case", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case:
        name, side, size, device = given.case
        child(name, side, int(size), device, given.gibibytes)
        return
    batches = given.batches or (BATCHES[:3:2] if given.quick else BATCHES)
    limit = given.limit or (20 if given.quick else 120)
    rows = []
    for device in ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",):
        rows += all_measured(given.losses, batches, device, (limit, given.gibibytes))
    given.out.mkdir(parents=True, exist_ok=True)
    load = os.getloadavg()[0]
    note = (
        f"torch {torch.__version__}, {torch.get_num_threads()} threads, {platform.machine()}, load average {load:.1f}"
    )
    (given.out / "losses.json").write_text(json.dumps({"note": note, "rows": rows}, indent=1), encoding="utf-8")
    (given.out / "losses.md").write_text(f"{note}\n\n{table(rows)}\n", encoding="utf-8")
    draw(rows, given.out / "losses.png")


if __name__ == "__main__":
    main()
