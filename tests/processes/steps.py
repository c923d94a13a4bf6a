"""One training step of every loss, and a refresh of the graph, by one process or divided over several.

As a program, `python steps.py FILE`, it is one process of a job, whose first one writes what it found into the file.
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

from aadml.comparison.clips import Clips
from aadml.losses import LOSSES
from aadml.methods.label_space_learner import LabelSpaceLearner
from aadml.methods.learner import Batch, Epoch
from aadml.methods.method import Context
from aadml.methods.networks import NetworkOptions
from aadml.methods.pairwise.clip import ContrastiveLearner
from aadml.methods.pairwise.pairs import PairLearner
from aadml.processes import group
from aadml.proxies.graph import neighbors

WIDTHS = {"audio": 6, "visual": 9}
NETWORK = NetworkOptions(hidden=(16, 12), dropout=0.3, input_noise=0.1)
BATCH = 23  # no even share for two processes
LIVE = {"name": "anchor-aware", "k": 2, "live": True}
AA = {"name": "anchor-aware", "k": 2, "attention_dropout": 0.2}
CASES = {
    **{name: {"loss": name} for name in LOSSES},
    **{f"aa-{name}": {"loss": name, "proxy": AA} for name in LOSSES if name not in ("daml", "hdml")},
    "aa-triplet, live": {"loss": "triplet", "proxy": LIVE},
    "aa-triplet, mixed batch": {"loss": "triplet", "proxy": AA | {"reading": "R5"}},
    "aa-triplet, batch scope": {"loss": "triplet", "proxy": AA | {"scope": "batch"}},
    "aa-triplet, random": {"loss": "triplet", "proxy": AA | {"neighbors": "random"}},
    "xbm-triplet": {"loss": "triplet", "proxy": "memory"},
    "xbm-supcon, queue": {"loss": "supcon", "proxy": {"name": "memory", "size": 40}, "directions": ("both-both",)},
    "ee-triplet": {"loss": "triplet", "proxy": "expansion"},
    "class-mean-triplet": {"loss": "triplet", "proxy": "class-mean"},
    "supcon, both": {"loss": "supcon", "directions": ("both-both",)},
    "cross-clr, both": {"loss": "cross-clr", "directions": ("both-both",)},
    "n-pair, one pair a class": {"loss": {"name": "n-pair", "l2": 0.01}, "selection": "one-pair-a-class"},
    "triplet, semi-hard": {"loss": "triplet", "selection": "semi-hard"},
    "triplet, random": {"loss": {"name": "triplet", "reduction": "per-anchor"}, "selection": "random"},
    "triplet, sum": {"loss": {"name": "triplet", "reduction": "sum"}},
    "triplet, mean": {"loss": {"name": "triplet", "reduction": "mean", "weight": 0.3}},
}


def clips() -> Clips:
    """Sixty clips of four classes."""
    random = torch.Generator().manual_seed(3)
    features = {m: torch.randn(60, width, generator=random) for m, width in WIDTHS.items()}
    return Clips.of(torch.arange(60) % 4, **features)


def learners():
    """Every case by its name: what is trained, in float64, so that only the order of sums differs."""
    context = Context(WIDTHS, 4)
    for name, sections in CASES.items():
        torch.manual_seed(0)
        chosen = {"selection": "all", "proxy": "identity", "directions": ("audio-visual", "visual-audio")} | sections
        yield name, LabelSpaceLearner(context, network=NETWORK, label_loss="row-norm", readout="cosine", **chosen)
    torch.manual_seed(0)
    yield "pairs", PairLearner(context, network=NETWORK, dimension=8)
    yield "clip", ContrastiveLearner(context, dimension=8, hidden=(12,))


def step(learner, train) -> dict[str, torch.Tensor]:
    """Take every player's figures and gradients on one batch, as the training loop does."""
    epoch = Epoch("joint", 0, 1)
    torch.manual_seed(7)
    learner.eval().before_epoch(train, epoch)
    learner.train()
    rows = torch.randperm(len(train), generator=torch.Generator().manual_seed(1))[:BATCH]
    own = rows[group.own(BATCH)]
    found = {}
    for name, player in learner.players().items():
        batch = Batch({m: train.matrix(m)[own] for m in train.modalities}, train.labels[rows], rows,
                      torch.Generator().manual_seed(2), epoch)  # fmt: skip
        learner.zero_grad()
        parts = player.loss(batch)
        share = player.probe(parts) if player.probe else {}
        parts["loss"].backward()
        group.sum_gradients(player.parameters)
        figures = dict(zip(parts, group.summed(list(parts.values())), strict=True)) | share
        found |= {f"{name}: {key}": value.detach().double() for key, value in figures.items()}
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in player.parameters]
        found[f"{name}: gradient"] = torch.cat([gradient.flatten() for gradient in gradients]).double()
        found[f"{name}: present"] = torch.tensor([p.grad is not None for p in player.parameters])
    found["next draw"] = torch.rand(1)
    return found


def steps() -> dict[str, torch.Tensor]:
    """Give all figures and gradients, and the lists of a graph, by name."""
    train, found = clips(), {}
    with group.divided():
        for name, learner in learners():
            learner = learner.double()
            double = {m: train.matrix(m).double() for m in train.modalities}
            own = Clips(double, train.labels, train.ids, train.class_names)
            found |= {f"{name} | {key}": value for key, value in step(learner, own).items()}
        for kind, labels in (("label-free", None), ("of a class", train.labels)):
            lists = neighbors(train.matrix("visual"), k=3, labels=labels)
            found |= {f"graph {kind} | index": lists.index, f"graph {kind} | similarity": lists.similarity}
    return found


if __name__ == "__main__":
    torch.set_num_threads(1)
    with group.joined():
        assert group.count() > 1
        result = steps()
        if group.is_first():
            save_file({key: value.contiguous() for key, value in result.items()}, Path(sys.argv[1]))
