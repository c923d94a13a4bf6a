"""AADML: anchor-aware deep metric learning (Zeng et al., ICMR 2024), and CCTL, its form without proxies (ISM 2022).

Reference: Zeng et al., Anchor-aware deep metric learning for audio-visual retrieval, ICMR 2024, https://arxiv.org/abs/2404.13789
Reference: Zeng et al., Complete cross-triplet loss in label space for audio-visual cross-modal retrieval, ISM 2022, https://arxiv.org/abs/2211.03434
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import torch
from torch import Tensor

from aadml.comparison.clips import Clips
from aadml.comparison.features import Modality
from aadml.comparison.options import Margin
from aadml.comparison.processes import group
from aadml.feature_extraction.ground.option_types import Tuning
from aadml.feature_extraction.ground.options import removing
from aadml.losses.kernels.generated_negatives import GenerativeLoss
from aadml.methods.label_space.readouts import COSINE, Readout, ReadoutSection, choose_readout
from aadml.methods.method import Context
from aadml.methods.networks import NETWORK, Network, label_space_encoders
from aadml.methods.training.learned_method import learned
from aadml.methods.training.learner import Batch, Epoch, Learner, Player, Stage, batch_of, on_device
from aadml.methods.training.train_scores import QUERIES
from aadml.methods.training.warnings import gradient_share
from aadml.objective import Embedded
from aadml.objective.composition import (
    ALL_PAIRS,
    IDENTITY,
    ROW_NORM,
    LabelLossSection,
    LossSection,
    ProxySection,
    SelectionSection,
    Space,
    Weighted,
    compose_objective,
)
from aadml.objective.objective import Directions
from aadml.proxies.contract import Proxy, TrainingSet

TRIPLET = LossSection.of("triplet")


class LabelSpaceLearner(Learner):
    """AADML: encoders into label space with a label loss and an anchor-aware metric loss (Zeng et al., ICMR 2024).

    Each modality has its own encoder into label space. A label loss moves every vector towards its one-hot label. A
    metric loss compares the modalities; in training, anchor-aware proxies replace the anchors. The sum of both
    losses is minimized (equation 10). At test, an item passes only through its encoder. Each argument except
    `context` is a section of the config. Other label losses, metric losses, selections and proxies define variants
    of AADML.

    Args:
        context: dimensions, classes, seed.
        network: see `NetworkOptions`.
        label_loss: `name` (a key of LABEL_LOSSES), `weight`, and options of the loss.
        loss: `name` (a key of LOSSES), `weight` (0 for no metric loss), `reduction`, `combine`, and loss options.
        selection: `name` (a key of SELECTIONS), and options of the selection.
        proxy: `name` (a key of PROXIES), and options of the proxy.
        directions: names "anchors-candidates", such as ["audio-visual", "visual-audio"]. By default, "all" stands
            for every ordered pair of modalities.
        readout: `name` ("cosine", "posterior" or "auto"), `temperature`.

    Raises:
        InputError: clips without exactly one class, features other than vectors, only one modality, or a section
            that does not fit the modalities of the clips.
    """

    in_bfloat16 = "shown"
    divides_batches = True
    _train: Clips

    def __init__(
        self,
        context: Context,
        *,
        network: Network = NETWORK,
        label_loss: LabelLossSection = ROW_NORM,
        loss: LossSection = TRIPLET,
        selection: SelectionSection = ALL_PAIRS,
        proxy: ProxySection = IDENTITY,
        directions: Directions = ("all",),
        readout: ReadoutSection = COSINE,
    ) -> None:
        super().__init__()
        classes = context.classes
        self.encoders = label_space_encoders(context, "a method in label space", network)
        self.label_loss, self.label_weight = label_loss.build(), label_loss.shared(Weighted).weight
        self.metric_weight = loss.shared(Weighted).weight
        self.objective = compose_objective(
            Space(context.modalities, classes, (0, *network.hidden)[-1], classes),
            loss=loss,
            selection=selection,
            proxy=proxy,
            directions=directions,
        )
        self.takes_missing = self.objective.proxy is None  # proxies need the neighbors of all modalities
        self.candidates = readout.candidates()
        first = self.candidates[0]
        # [0 for cosine or 1 for posterior, temperature]: a buffer, so that the choice is saved with the weights
        self.chosen: Tensor
        self.register_buffer("chosen", torch.tensor([float(first.name == "posterior"), first.temperature]))

    @property
    def read(self) -> Readout:
        """Chosen read-out."""
        posterior, temperature = self.chosen.tolist()
        return Readout("posterior" if posterior else "cosine", temperature)

    @property
    def similarity(self) -> str:
        """Similarity of the chosen read-out's embeddings, by name."""
        return self.read.similarity

    def readout(self) -> Mapping[str, str | float]:
        """Return the name and temperature of the chosen read-out."""
        return {"name": self.read.name, "temperature": self.read.temperature}

    def players(self) -> Mapping[str, Player]:
        """Return the player "encoders" and, for a generative loss, the player "generator" of the loss's parameters."""
        generator = [parameter for loss in self._generative() for parameter in loss.parameters()]
        generator_ids = set(map(id, generator))
        rest = [parameter for parameter in self.parameters() if id(parameter) not in generator_ids]
        anchored = self.objective.proxy is not None and self.metric_weight
        players = {"encoders": Player(rest, self._loss, probe=self._probe if anchored else None)}
        return players | ({"generator": Player(generator, self._generator_loss)} if generator else {})

    def stages(self, epochs: int) -> Sequence[Stage]:
        """Return a single stage, or the stages of a generative loss."""
        generative = self._generative()
        if not generative:
            return super().stages(epochs)
        stage = partial(Stage, keep_optimizer=True, start_from_best=False, keep_best=True)
        phases = [phase for phase in generative[0].phases(epochs) if phase.epochs]
        return [stage(p.name, p.epochs, p.players, validated="encoders" in p.players) for p in phases]

    def check_clips(self, train: Clips) -> None:
        """Raise InputError if no training clip can have the proxy's number of neighbors."""
        if self.metric_weight:
            self.objective.check_size(len(train), train.labels)

    def before_epoch(self, train: Clips, epoch: Epoch) -> None:
        """Begin the phase of a generative loss, and refresh a proxy with label-space vectors of the training clips."""
        self._train = train
        proxy = self.objective.proxy
        for loss in self._generative():
            loss.enter(epoch.stage)
        if proxy is not None and self.metric_weight:
            bank = {m: self.label_space(train, m) for m in train.modalities}
            generator = torch.Generator().manual_seed(torch.initial_seed() % 2**62)
            proxy.refresh(TrainingSet(bank, train.labels, train.matrices, generator))

    def calibrate(self, valid: Clips) -> None:
        """Choose read-out and temperature on the validation clips, if there are several candidates."""
        if len(self.candidates) == 1:
            return
        vectors = {m: self.label_space(valid, m).cpu() for m in valid.modalities}
        best = choose_readout(self.candidates, vectors, valid)
        self.chosen.copy_(torch.tensor([float(best.name == "posterior"), best.temperature]))

    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Compute the embeddings (b, C) of a batch (b, d): the read-out of its label-space vectors."""
        return self.read(self.encoders[modality](features))

    def label_space(self, clips: Clips, modality: Modality) -> Tensor:
        """Return the label-space vectors (n, C) of one modality of `clips`, in evaluation mode, without gradients."""
        features, rows = clips.vectors(modality), torch.arange(len(clips))[group.own(len(clips))]
        with self.evaluated():
            parts = [self.encoders[modality](batch) for batch in self.in_batches(features, rows)]
        return group.gathered(torch.cat(parts), len(clips))

    def encode(self, clips: Clips, modality: Modality) -> Tensor:
        """Return the label-space vectors (n, C) of one modality of `clips`, on the CPU."""
        return self.label_space(clips, modality).cpu()

    def read_off(self, outputs: Tensor) -> Tensor:
        """Compute embeddings from label-space vectors (n, C)."""
        return self.read(outputs)

    def held_out_loss(self, clips: Clips, batch: int) -> float | None:
        """Compute the loss of clips of any split, without dropout, and without proxies, which need training clips.

        Args:
            clips: n clips; if there are more than `QUERIES`, the same sample of that size is used each time.
            batch: clips per batch, as in training, since pairs and triplets are formed within a batch.

        Returns:
            The mean over the batches, weighted by their size; None if there are no clips.
        """
        generator = torch.Generator().manual_seed(0)
        order = torch.randperm(len(clips), generator=generator)[:QUERIES]
        total = 0.0
        with self.evaluated():
            for rows in order.split(batch):
                embedded = self._embedded(batch_of(clips, rows, self.device, generator, Epoch("held out", 0, 1)))
                loss = self.label_weight * self._label_loss(embedded)
                if self.metric_weight:
                    loss = loss + self.metric_weight * self.objective.without_proxy(embedded, generator)["loss"]
                total += len(rows) * float(loss)
        return total / len(order) if len(order) else None

    def proxy(self) -> Proxy | None:
        """Return the proxy of the metric loss; None if clips represent themselves."""
        return self.objective.proxy

    def _loss(self, batch: Batch) -> dict[str, Tensor]:
        """Compute equation 10 of AADML: the weighted sum of the label losses and the metric loss."""
        embedded = self._embedded(batch)
        label = group.portion(self._label_loss(embedded))
        parts = {"loss": self.label_weight * label, "label_loss": label}
        if self.metric_weight:
            metric = self.objective(embedded, batch.generator, self._encode)
            parts["loss"] = parts["loss"] + self.metric_weight * metric["loss"]
            parts |= {"metric_loss": metric["loss"], "active": metric["active"]}
        return parts

    def _label_loss(self, embedded: Embedded) -> Tensor:
        rows = {m: embedded.present.get(m, slice(None)) for m in embedded.vectors}
        losses = [self.label_loss(v[rows[m]], embedded.groups[rows[m]]) for m, v in embedded.vectors.items()]
        return torch.stack(losses).sum()

    def _probe(self, parts: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the share of the encoders in the gradient norm of the metric loss.

        The share is the norm at the encoders divided by the norm at the encoders and the proxy. The result is empty
        without a proxy, or if the metric loss has no gradient.
        """
        proxy, metric = self.objective.proxy, parts["metric_loss"]
        if proxy is None or not metric.requires_grad:
            return {}
        encoders, proxies = list(self.encoders.parameters()), list(proxy.parameters())
        return {"metric_gradient_share": gradient_share(metric, encoders, proxies)}

    def _generator_loss(self, batch: Batch) -> dict[str, Tensor]:
        """Compute the loss of the player "generator", without gradient to the encoders.

        The loss is the mean of `GenerativeLoss.generator_loss` over the comparisons of the objective.
        """
        with torch.no_grad():
            embedded = self._embedded(batch)
        comparisons = self.objective.comparisons(embedded)
        selected = [self.objective.selection(comparison, batch.generator) for comparison in comparisons]
        losses = [loss.generator_loss(chosen) for loss, chosen in zip(self._generative(), selected, strict=True)]
        return {"loss": group.portion(torch.stack(losses).mean())}

    def _generative(self) -> list[GenerativeLoss]:
        return [loss for loss in self.objective.losses if isinstance(loss, GenerativeLoss)]

    def _embedded(self, batch: Batch) -> Embedded:
        features = group.together(
            len(batch.labels), lambda: {m: self.encoders[m].features(values) for m, values in batch.features.items()}
        )
        heads = {m: self.encoders[m].predicted for m in batch.features}
        vectors = {m: heads[m](values) for m, values in features.items()}
        return Embedded(vectors, batch.labels, batch.index, features=features, heads=heads, present=batch.present)

    def _encode(self, modality: Modality, rows: Tensor) -> Tensor:
        """Encode rows of the training set with gradient, for proxies with live neighbors."""
        return self.encoders[modality](on_device(self._train[modality], rows, self.device))


aadml = learned(LabelSpaceLearner)


@learned
@removing(reduction="mean-of-active", metric_weight=1.0)
def cctl(
    context: Context,
    *,
    network: Network = NETWORK,
    label_loss: LabelLossSection = ROW_NORM,
    readout: ReadoutSection = COSINE,
    margin: Annotated[Margin, Tuning(0.5, 1.0, 1.5)] = 1.0,
) -> Learner:
    """Build CCTL: triplets in label space whose items may have any modality (Zeng et al., 2022).

    The loss is the label loss of every modality plus the triplet loss over all combinations of modalities (eight
    for two modalities). An item is never its own positive. The method is AADML without proxies. No code of CCTL was
    released, but the AADML paper describes CCTL. Network and label loss are therefore those of AADML.

    Args:
        context: dimensions and classes.
        network: see `NetworkOptions`.
        label_loss: a name of LABEL_LOSSES, `weight` and options.
        readout: see READOUTS.
        margin: margin in squared distance (about 1: papers of the AADML group; not published for CCTL alone).

    Raises:
        InputError: clips without exactly one class, features other than vectors, or only one modality.
    """
    return LabelSpaceLearner(
        context,
        network=network,
        label_loss=label_loss,
        loss=LossSection.of("triplet", margin=margin),
        directions=("both-both",),
        readout=readout,
    )
