"""A small training for tests of the one loop: clips, a linear learner, and a session that records or is killed."""

import copy

import torch
from torch import nn

from aadml.comparison.clips import Clips
from aadml.methods.training.learner import Learner, Player
from aadml.methods.training.loop import train
from aadml.methods.training.session import Checkpoint, Session
from aadml.methods.training.settings import Training


def clips(n=30, classes=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % classes
    centers = 3 * torch.randn(classes, 5, generator=torch.Generator().manual_seed(99))
    features = {m: centers[labels] + torch.randn(n, 5, generator=generator) for m in ("audio", "visual")}
    return Clips(features, labels, tuple(f"clip {i}" for i in range(n)), tuple("abc"[:classes]))


class Linear(Learner):
    """Cross-entropy on one linear layer a modality, with dropout, so that draws matter."""

    def __init__(self, scale=1.0, stages=None):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleDict({m: nn.Sequential(nn.Dropout(0.3), nn.Linear(5, 3)) for m in ("audio", "visual")})
        self.scale = scale
        self.wanted = stages
        self.seen = []
        self.refreshed = []
        self.finished = 0

    def players(self):
        return {"all": Player(list(self.parameters()), self._loss)}

    def stages(self, epochs):
        return self.wanted or super().stages(epochs)

    def before_epoch(self, train, epoch):
        assert not self.training
        self.refreshed.append(epoch)

    def embed(self, features, modality):
        assert not self.training
        return self.layers[modality](features)

    def finish(self, train, valid):
        assert not self.training
        self.finished += 1

    def _loss(self, batch):
        self.seen.append(batch.index.tolist())
        losses = [nn.functional.cross_entropy(self.layers[m](x), batch.labels) for m, x in batch.features.items()]
        return {"loss": self.scale * torch.stack(losses).sum()}


class KilledError(Exception):
    pass


class Recorder(Session):
    """Keeps every state; dies when told to, as a killed process would."""

    def __init__(self, die_after=None, state=None, best=None):
        super().__init__()
        self.state, self.die_after = state, die_after
        self._best = best

    def save(self, checkpoint):
        self.state = Checkpoint(copy.deepcopy(dict(checkpoint.tensors)), dict(checkpoint.facts))
        if self.die_after is not None and checkpoint.facts["epochs_done"] == self.die_after:
            raise KilledError

    def resume(self):
        return self.state


def run(settings=None, session=None, learner=None, seed=0, valid=None, train_clips=None):
    learner = learner or Linear()
    session = session or Session()
    valid = clips(12, seed=1) if valid is None else valid
    given = clips() if train_clips is None else train_clips
    train(learner, given, valid, settings or Training(epochs=6, batch=8), session, seed=seed)
    return learner, session


class Watched(Linear):
    """Keeps what each epoch gave it: in the hook before it, and in its batches."""

    def before_epoch(self, train, epoch):
        super().before_epoch(train, epoch)
        self.given = [*getattr(self, "given", []), train["visual"].clone()]
        self.batches = [*getattr(self, "batches", []), torch.zeros_like(train["visual"])]

    def _loss(self, batch):
        self.batches[-1][batch.index] = batch.features["visual"]
        return super()._loss(batch)


class Two(Linear):
    """Has a player for each modality."""

    def players(self):
        return {m: Player(list(self.layers[m].parameters()), self._loss) for m in self.layers}


class Scripted(Linear):
    """Scores as told."""

    def __init__(self, scores, stages=None):
        super().__init__(stages=stages)
        self.scores = iter(scores)

    def validate(self, valid):
        return {"map_mean": next(self.scores)}
