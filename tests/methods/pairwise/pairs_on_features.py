"""Clips, batches and learners of pairs, and their loss by definition."""

import torch
from torch.nn import functional as F

from aadml.comparison.clips import Clips
from aadml.methods import METHODS
from aadml.methods.method import Context
from aadml.methods.networks import NetworkOptions
from aadml.methods.pairwise.pairs import EmbeddingOptions
from aadml.methods.training.learner import Batch, Epoch
from aadml.methods.training.settings import Training
from aadml.objective.composition import LossSection
from tests.sections import typed

CONTEXT = Context({"audio": 5, "visual": 7}, 0)


NETWORK = NetworkOptions(hidden=(6,), dropout=0.0)


LOSS = LossSection.of("nt-xent", temperature=0.1, reduction="mean")


EMBEDDING = EmbeddingOptions(dimension=4)


def learner(**options):
    torch.manual_seed(0)
    return METHODS["pairs"](
        CONTEXT, Training(), **typed(**{"network": NETWORK, "embedding": EMBEDDING, "loss": LOSS} | options)
    ).learner


def clips(count=9):
    generator = torch.Generator().manual_seed(1)
    return Clips.of(None, **{m: torch.randn(count, d, generator=generator) for m, d in CONTEXT.dimensions.items()})


def batch(given):
    generator = torch.Generator().manual_seed(2)
    rows = torch.arange(len(given))
    return Batch(given.features, given.labels, rows, generator, Epoch("train", 0, 1))


def loss_of(one, given):
    one.before_epoch(given, Epoch("train", 0, 1))
    return one.players()["all"].loss(batch(given))["loss"]


def cost(one, given):
    return float(loss_of(one, given).detach())


def expected(one, given, masked):
    audio, visual = (one.embed(given[m], m) for m in CONTEXT.modalities)
    logits = (one.matching.log_scale.exp() * audio @ visual.T).masked_fill(masked, -torch.inf)
    own = torch.arange(len(given))
    return float((F.cross_entropy(logits, own) + F.cross_entropy(logits.T, own)).detach()) / 2


def soft_targets(one, given, targets):
    """Cross-entropy of both directions against rows of targets, by loops."""
    audio, visual = (one.embed(given[m], m).detach() for m in CONTEXT.modalities)
    logits, total = one.matching.log_scale.detach().exp() * audio @ visual.T, 0.0
    for scores, wanted in ((logits, targets["audio"]), (logits.T, targets["visual"])):
        for i in range(len(given)):
            total -= sum(float(wanted[i, j] * scores[i].log_softmax(0)[j]) for j in range(len(given)))
    return total / 2 / len(given)
