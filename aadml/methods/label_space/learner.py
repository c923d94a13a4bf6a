"""The learner of AADML and of all that keep its form: encoders into label space, a label loss and a metric loss."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from aadml.comparison.clips import Clips
from aadml.comparison.features import Modality
from aadml.comparison.processes import group
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.losses.kernels.generated_negatives import GenerativeLoss
from aadml.losses.triplet import triplet
from aadml.methods.label_space.readouts import Readout, choose_readout, readout_candidates
from aadml.methods.label_space.regression import bound_label_loss, label_space_encoders
from aadml.methods.method import Context, MetricLoss
from aadml.methods.networks import LabelSpaceEncoder, Network
from aadml.methods.training.learner import Batch, Epoch, Learner, Player, Stage, on_device
from aadml.methods.training.settings import Training
from aadml.methods.training.train_scores import QUERIES
from aadml.methods.training.warnings import gradient_share
from aadml.objective import Embedded, Objective
from aadml.objective.composition import Space, Weighted, compose_objective
from aadml.objective.objective import Directions
from aadml.objective.sections import Section, named


class LabelSpaceLearner(Learner):
    """Two encoders into label space under a label loss and a metric loss.

    Args:
        context: dimensions, classes, seed.
        network: the section of that name, as all that follow; see `aadml`.
        label_loss: of every modality.
        loss: of the metric loss.
        selection: of the metric loss.
        proxy: of the metric loss.
        directions: of the metric loss.
        readout: of the vectors.
    """

    in_bfloat16 = "shown"
    divides_batches = True

    def __init__(
        self,
        context: Context,
        *,
        network: Network,
        label_loss: Section,
        loss: Section,
        selection: Section,
        proxy: Section,
        directions: Directions,
        readout: Section,
    ) -> None:
        super().__init__()
        classes = context.classes
        self.encoders = label_space_encoders(context, "a method in label space", network)
        self.label_loss, self.label_weight = bound_label_loss(label_loss)
        self.metric_weight = named(loss).shared(Weighted).weight
        self.objective = compose_objective(
            Space(context.modalities, classes, (0, *network.hidden)[-1], classes),
            loss=loss,
            selection=selection,
            proxy=proxy,
            directions=directions,
        )
        self.margin = _margin_of_a_mean(self.objective)
        self.candidates = readout_candidates(readout)
        first = self.candidates[0]
        # [0 cosine | 1 posterior, temperature]: a buffer, so that the choice is kept with the weights
        self.register_buffer("chosen", torch.tensor([float(first.name == "posterior"), first.temperature]))
        self._train: Clips | None = None

    @property
    def read(self) -> Readout:
        """Give the read-out in force."""
        assert isinstance(self.chosen, Tensor)
        posterior, temperature = self.chosen.tolist()
        return Readout("posterior" if posterior else "cosine", temperature)

    @property
    def takes_missing(self) -> bool:
        """Tell whether clips may lack a modality: not where proxies of neighbors stand for them."""
        return self.objective.proxy is None

    @property
    def similarity(self) -> str:
        """Name the similarity of the read-out in force."""
        return self.read.similarity

    def readout(self) -> JsonObject:
        """Name the read-out in force and its temperature."""
        return {"name": self.read.name, "temperature": self.read.temperature}

    def players(self) -> Mapping[str, Player]:
        """Train encoders and proxies together; a loss with a generator of its own adds a second player."""
        generator = [parameter for loss in self._generative() for parameter in loss.parameters()]
        own = {id(parameter) for parameter in generator}
        rest = [parameter for parameter in self.parameters() if id(parameter) not in own]
        anchored = self.objective.proxy is not None and self.metric_weight
        players = {"encoders": Player(rest, self._loss, probe=self._probe if anchored else None)}
        return players | ({"generator": Player(generator, self._generator_loss)} if generator else {})

    def stages(self, epochs: int) -> Sequence[Stage]:
        """Train in one stage, or in those of a loss with a generator of its own."""
        generative = self._generative()
        if not generative:
            return super().stages(epochs)
        phases = [phase for phase in generative[0].phases(epochs) if phase.epochs]
        return [
            Stage(p.name, p.epochs, p.players, keep_optimizer=True, start_from_best=False, keep_best=True)
            for p in phases
        ]

    def check_clips(self, train: Clips) -> None:
        """Refuse training clips of which none has as many neighbors as the proxy takes."""
        if self.metric_weight:
            self.objective.check_size(len(train), train.labels)

    def before_epoch(self, train: Clips, epoch: Epoch) -> None:
        """Embed the training clips anew and hand them to the proxies as their bank (spec of the correlation graph)."""
        self._train = train
        proxy = self.objective.proxy
        for loss in self._generative():
            loss.enter(epoch.stage)
        if proxy is not None and self.metric_weight:
            bank = {m: self.label_space(train, m) for m in train.modalities}
            generator = torch.Generator().manual_seed(torch.initial_seed() % 2**62)
            refresh: Any = proxy.refresh
            refresh(bank, train.labels, train.matrices, generator)

    def calibrate(self, valid: Clips) -> None:
        """Choose read-out and temperature on the validation clips, where there is a choice."""
        if len(self.candidates) == 1:
            return
        vectors = {m: self.label_space(valid, m).cpu() for m in valid.modalities}
        best = choose_readout(self.candidates, vectors, valid)
        assert isinstance(self.chosen, Tensor)
        self.chosen.copy_(torch.tensor([float(best.name == "posterior"), best.temperature]))

    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Read the label-space vectors of a batch (b, d) -> (b, C)."""
        return self.read(self.encoders[modality](features))

    def label_space(self, clips: Clips, modality: Modality) -> Tensor:
        """Encode all of a modality (n, d) -> (n, C), in evaluation mode, without gradients."""
        features, own = clips.vectors(modality), torch.arange(len(clips))[group.own(len(clips))]
        with self.evaluated():
            parts = [self.encoders[modality](batch) for batch in self.in_batches(features, own)]
        return group.gathered(torch.cat(parts), len(clips))

    def encode(self, clips: Clips, modality: Modality) -> Tensor:
        """Encode one modality of `clips` into label space (n, C), on the CPU."""
        return self.label_space(clips, modality).cpu()

    def read_off(self, outputs: Tensor) -> Tensor:
        """Read label-space vectors (n, C) as embeddings."""
        return self.read(outputs)

    def held_out_loss(self, clips: Clips, batch: int) -> float | None:
        """Cost clips of any split without dropout and without proxies, whose bank holds training clips alone.

        Args:
            clips: n of them; of more than `QUERIES` the same ones are taken each time.
            batch: the size of a training's batches: pairs and triplets are those of a batch.

        Returns:
            The mean over the batches, weighted by their clips; None without clips.
        """
        generator = torch.Generator().manual_seed(0)
        order = torch.randperm(len(clips), generator=generator)[:QUERIES]
        total = 0.0
        with self.evaluated():
            for rows in order.split(batch):
                features = {m: on_device(clips[m], rows, self.device) for m in clips.modalities}
                labels = clips.labels[rows.to(clips.labels.device)].to(self.device)
                present = {m: own[rows].to(self.device) for m, own in clips.present.items()}
                given = Batch(features, labels, rows.to(self.device), generator, Epoch("held out", 0, 1), present)
                embedded = self._embedded(given)
                cost = self.label_weight * self._label_loss(embedded)
                if self.metric_weight:
                    cost = cost + self.metric_weight * self.objective.without_proxy(embedded, generator)["loss"]
                total += len(rows) * float(cost)
        return total / len(order) if len(order) else None

    def proxy(self) -> nn.Module | None:
        """Give the proxy of the metric loss."""
        return self.objective.proxy

    def metric_loss(self, settings: Training) -> MetricLoss | None:
        """Lay out the metric loss, where it has a weight."""
        if not self.metric_weight:
            return None
        first: Any = next(iter(self.encoders.values()))
        features = int(first.predicted.in_features)
        return MetricLoss(
            self.objective.losses[0], self.objective.directions, features, settings.batch, settings.epochs
        )

    def _loss(self, batch: Batch) -> dict[str, Tensor]:
        """Equation 10: label loss of every modality plus the metric loss."""
        embedded = self._embedded(batch)
        label = group.portion(self._label_loss(embedded))
        parts = {"loss": self.label_weight * label, "label_loss": label}
        if self.metric_weight:
            metric = self.objective(embedded, batch.generator, self._encode)
            parts["loss"] = parts["loss"] + self.metric_weight * metric["loss"]
            parts |= {"metric_loss": metric["loss"], "active": metric["active"]}
        return parts

    def _label_loss(self, embedded: Embedded) -> Tensor:
        own = {m: embedded.present.get(m, slice(None)) for m in embedded.vectors}
        costs = [self.label_loss(v[own[m]], embedded.groups[own[m]]) for m, v in embedded.vectors.items()]
        return torch.stack(costs).sum()

    def _probe(self, parts: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Say how much of the metric loss's gradient reaches the encoders, past the proxies' own parameters."""
        proxy, metric = self.objective.proxy, parts["metric_loss"]
        if proxy is None or not metric.requires_grad:
            return {}
        encoders, proxies = list(self.encoders.parameters()), list(proxy.parameters())
        return {"metric_gradient_share": gradient_share(metric, encoders, proxies)}

    def _generator_loss(self, batch: Batch) -> dict[str, Tensor]:
        """Train the loss's own generator on vectors that carry no gradient into the encoders."""
        with torch.no_grad():
            embedded = self._embedded(batch)
        comparisons = self.objective.comparisons(embedded)
        chosen = [self.objective.selection(comparison, batch.generator) for comparison in comparisons]
        costs = [loss.generator_loss(one) for loss, one in zip(self._generative(), chosen, strict=True)]
        return {"loss": group.portion(torch.stack(costs).mean())}

    def _generative(self) -> list[GenerativeLoss]:
        """List the losses with a generator of their own, one a direction; none where the loss has none."""
        return [loss for loss in self.objective.losses if isinstance(loss, GenerativeLoss)]

    def _embedded(self, batch: Batch) -> Embedded:
        features = group.together(
            len(batch.labels), lambda: {m: self._encoder(m).features(values) for m, values in batch.features.items()}
        )
        heads = {m: self._encoder(m).predicted for m in batch.features}
        vectors = {m: heads[m](values) for m, values in features.items()}
        return Embedded(vectors, batch.labels, batch.index, features=features, heads=heads, present=batch.present)

    def _encoder(self, modality: Modality) -> LabelSpaceEncoder:
        encoder = self.encoders[modality]
        assert isinstance(encoder, LabelSpaceEncoder)
        return encoder

    def _encode(self, modality: Modality, rows: Tensor) -> Tensor:
        """Encode rows of the training set with gradient, for proxies with live neighbors."""
        assert self._train is not None
        vectors = self.encoders[modality](on_device(self._train[modality], rows, self.device))
        assert isinstance(vectors, Tensor)
        return vectors


def _margin_of_a_mean(objective: Objective) -> float | None:
    """Return the margin where the objective is a mean of triplets' hinges; None where it is anything else."""
    loss = objective.losses[0]
    if isinstance(loss, partial) and loss.func is triplet and objective.reduction in ("mean", "mean-of-active"):
        return float(loss.keywords["margin"])
    return None
