"""One training step of every loss, and a refresh of the graph, by one process or divided over several.

As a program, `python steps.py FILE [CASE ...]`, it is one process of a job, whose first one writes what it found into
the file.
"""

import sys
from functools import partial
from pathlib import Path

import torch
from safetensors.torch import save_file

from aadml.comparison.clips import Clips
from aadml.comparison.processes import gradients, group
from aadml.losses import LOSSES
from aadml.methods.label_space.aadml import LabelSpaceLearner
from aadml.methods.method import Context
from aadml.methods.networks import NetworkOptions
from aadml.methods.pairwise.clip import ContrastiveLearner
from aadml.methods.pairwise.pairs import EmbeddingOptions, PairLearner
from aadml.methods.training.learner import Batch, Epoch
from aadml.objective.composition import LossSection, ProxySection, SelectionSection
from aadml.proxies.graph import neighbors

WIDTHS = {"audio": 6, "visual": 9}
NETWORK = NetworkOptions(hidden=(16, 12), dropout=0.3, input_noise=0.1)
BATCH = 23  # no even share for two processes
LIVE = {"name": "anchor-aware", "k": 2, "live": True}
AA = {"name": "anchor-aware", "k": 2}
CASES = {
    **{name: {"loss": name} for name in LOSSES},
    **{f"aa-{name}": {"loss": name, "proxy": AA} for name in LOSSES if name not in ("daml", "hdml")},
    "aa-triplet, live": {"loss": "triplet", "proxy": LIVE},
    "aa-triplet, mixed batch": {"loss": "triplet", "proxy": AA | {"reading": "R5"}},
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


CONTEXT = Context(WIDTHS, 4)


def in_label_space(sections):
    chosen = {"directions": ("audio-visual", "visual-audio")} | sections
    for kind in (LossSection, ProxySection, SelectionSection):
        if (value := chosen.get(kind.key)) is not None:
            chosen[kind.key] = kind.of(value) if isinstance(value, str) else kind.of(**value)
    return LabelSpaceLearner(CONTEXT, network=NETWORK, **chosen)


LEARNERS = {
    **{name: partial(in_label_space, sections) for name, sections in CASES.items()},
    "pairs": partial(PairLearner, CONTEXT, network=NETWORK, embedding=EmbeddingOptions(dimension=8)),
    "clip": partial(ContrastiveLearner, CONTEXT, dimension=8, hidden=(12,)),
}
GRAPHS = ("graph label-free", "graph of a class")


def learner(name):
    """Give what is trained, in float64, so that only the order of sums differs."""
    torch.manual_seed(0)
    return LEARNERS[name]().double()


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
        with gradients.summed_gradients(player.parameters):
            parts["loss"].backward()
        figures = dict(zip(parts, group.summed(list(parts.values())), strict=True)) | share
        found |= {f"{name}: {key}": value.detach().double() for key, value in figures.items()}
        per_parameter = [torch.zeros_like(p) if p.grad is None else p.grad for p in player.parameters]
        found[f"{name}: gradient"] = torch.cat([gradient.flatten() for gradient in per_parameter]).double()
        found[f"{name}: present"] = torch.tensor([p.grad is not None for p in player.parameters])
    found["next draw"] = torch.rand(1)
    return found


def steps(*names) -> dict[str, torch.Tensor]:
    """Give all figures and gradients of some cases, or of all, and the lists of a graph, by name."""
    train, found = clips(), {}
    double = {m: train.matrix(m).double() for m in train.modalities}
    own = Clips(double, train.labels, train.ids, train.class_names)
    with group.divided():
        for name in names or (*LEARNERS, *GRAPHS):
            if name in LEARNERS:
                made = step(learner(name), own)
            else:
                lists = neighbors(train.matrix("visual"), k=3, labels=train.labels if "class" in name else None)
                made = {"index": lists.index, "similarity": lists.similarity}
            found |= {f"{name} | {key}": value for key, value in made.items()}
    return found


if __name__ == "__main__":
    torch.set_num_threads(1)
    gradients.BUCKET = 1000  # several buckets for these small networks
    with group.joined():
        assert group.count() > 1
        result = steps(*sys.argv[2:])
        if group.is_first():
            save_file({key: value.contiguous() for key, value in result.items()}, Path(sys.argv[1]))
