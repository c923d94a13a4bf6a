"""Measure the classes of the clips that an anchor-aware proxy mixes: the share of its influence from other classes.

Usage: python -m scripts.experiments.anchor_aware.influence corsmal.h5 [SEED...] trains the AA of stage 2 with the
options that docs/lab/experiments chose for the set with this name. Every 70 steps, the influence of clip j on the proxy
of clip i is the norm of the Jacobian of proxy i with respect to embedding j. The share of other classes is over all j
except i.
"""

import sys
from pathlib import Path

import torch
from torch.autograd.functional import jacobian

import aadml
from aadml.proxies.anchor_aware import AnchorAware
from scripts.experiments.anchor_aware.contenders import ANCHOR_AWARE, NARROW
from scripts.experiments.anchor_aware.experiment import PATIENCE, STEPS
from scripts.experiments.anchor_aware.ledger import Ledger
from scripts.experiments.anchor_aware.search import MAIN, chosen_options

ROWS = Path(__file__).parents[3] / "docs" / "lab" / "experiments"
EVERY, BATCH = 70, 50


def measured(data, options, seed):
    """Train one seed; return the model, and per measurement the share of other classes in influence and in number."""
    labels = torch.as_tensor(aadml.read(data).train.labels)
    steps = -(-len(labels) // BATCH)
    forward, calls, shares = AnchorAware.forward, 0, []

    def watched(self, embeddings, index, encode=None):
        nonlocal calls
        if self.training and torch.is_grad_enabled():
            if calls % EVERY == 0:
                fixed = {modality: vectors.detach() for modality, vectors in embeddings.items()}
                other = labels[index][:, None] != labels[index]
                beside = ~torch.eye(len(index), dtype=torch.bool)
                for modality in fixed:
                    gradients = jacobian(
                        lambda x, m=modality: forward(self, {**fixed, m: x}, index, encode)[m], fixed[modality]
                    )
                    influence = gradients.norm(dim=(1, 3)) * beside
                    shares.append((float(influence[other].sum() / influence.sum()), float(other.sum() / beside.sum())))
            calls += 1
        return forward(self, embeddings, index, encode)

    AnchorAware.forward = watched
    try:
        schedule = {"training.epochs": -(-STEPS // steps), "training.patience": -(-PATIENCE // steps)}
        return aadml.fit(data, loss=ANCHOR_AWARE, settings={**NARROW, **options, **schedule}, seed=seed), shares
    finally:
        AnchorAware.forward = forward


if __name__ == "__main__":
    chosen = chosen_options(MAIN, Path(sys.argv[1]).stem, ANCHOR_AWARE, Ledger((ROWS,)))
    for number in [int(text) for text in sys.argv[2:]] or [100, 101, 102]:
        model, found = measured(sys.argv[1], chosen, number)
        influence, count = torch.tensor(found).mean(0).tolist()
        score, reading = model.evaluation["map_mean"], chosen["proxy.reading"]
        print(
            f"{reading}, seed {number}: test MAP {score:.3f}, {influence:.2f} of the influence of other clips is of"
            f" other classes, as are {count:.2f} of these clips ({len(found)} measurements)"
        )
