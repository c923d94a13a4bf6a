"""Pretrained networks in front of any learner of vectors, trained with it or frozen."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from aadml.comparison.clips import Clips
from aadml.comparison.features import Features, Modality
from aadml.data.sources.network_items import ItemBatch, NetworkItems
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.methods.inputs import Inputs, fit_scaling, scaling_of
from aadml.methods.method import MetricLoss
from aadml.methods.towers.hub_input import HubInput
from aadml.methods.towers.options import PretrainedOptions
from aadml.methods.training.learner import Batch, Epoch, Learner, Player, Stage, Validation
from aadml.methods.training.settings import Training


class TowerLearner(Learner):
    """A learner that is given what pretrained networks make of media, where it would be given features.

    The vectors are scaled as features are, by statistics of the training clips as the networks describe them before
    they are trained. What the learner makes of all training clips at once (banks, neighbors, class means) is made of
    vectors as they are when an epoch begins.

    Args:
        inner: the learner of vectors.
        networks: by modality.
        options: the `towers` section.
        inputs: the `inputs` section.
    """

    def __init__(
        self, inner: Learner, networks: Mapping[Modality, HubInput], options: PretrainedOptions, inputs: Inputs
    ) -> None:
        super().__init__()
        self.inner = inner
        self.networks = nn.ModuleDict(dict(networks))
        self.criterion, self.takes_criterion = inner.criterion, inner.takes_criterion
        self.margin, self.in_bfloat16 = inner.margin, inner.in_bfloat16
        self._inputs, self._loading = inputs, options.loading
        for modality, network in networks.items():
            self.register_buffer(f"shift_{modality}", torch.zeros(network.dimension))
            self.register_buffer(f"scale_{modality}", torch.ones(network.dimension))
        self._known: dict[int, tuple[Features, Tensor]] = {}  # what was described since the weights last changed

    @property
    def similarity(self) -> str:
        """Name the similarity of the inner learner's embeddings."""
        return self.inner.similarity

    @property
    def needs_same_texts(self) -> str:
        """Say what the inner learner says."""
        return self.inner.needs_same_texts

    def check_clips(self, train: Clips) -> None:
        """Refuse training clips that the inner learner cannot be trained on."""
        self.inner.check_clips(train)

    @property
    def takes_missing(self) -> bool:
        """Tell whether the inner learner learns from clips that lack a modality."""
        return self.inner.takes_missing

    def network(self, modality: Modality) -> HubInput:
        """Give the network of a modality."""
        found = self.networks[modality]
        assert isinstance(found, HubInput)
        return found

    def architecture(self) -> JsonObject:
        """Describe the networks, so that they can be built without the files of their models."""
        return {modality: self.network(modality).architecture() for modality in self.networks}

    def begun(self, train: Clips, valid: Clips) -> tuple[Clips, Clips]:
        """Describe the clips by the networks as they are, and fit the scaling of their vectors on `train`.

        Returns:
            Both without the clips that cannot be decoded; vectors in the place of what passes through a frozen network.
        """
        self.eval()
        train, vectors = self._settled(train)
        fitted = fit_scaling(replace(train, features=vectors), self._inputs)
        for modality in fitted.shift:
            self.get_buffer(f"shift_{modality}").copy_(fitted.shift[modality])
            self.get_buffer(f"scale_{modality}").copy_(fitted.scale[modality])
        return train, self._settled(valid)[0]

    def decodable(self, clips: Clips) -> Clips:
        """Leave out the clips that cannot be decoded; each such file has been named in a warning."""
        present = torch.ones(len(clips), dtype=torch.bool)
        for modality in clips.modalities:
            features = clips[modality]
            if isinstance(features, Tensor) or not len(clips):
                continue
            source = self.prepared(features, modality)
            vectors, there = self.network(modality).describe(source, kept=self.network(modality).still)
            self._known[id(features)] = (features, vectors)
            present &= there
        return clips if bool(present.all()) else clips.select(present.nonzero()[:, 0])

    def prepared(self, features: Features, modality: Modality) -> NetworkItems:
        """Lay a network's preparation over media or texts."""
        network = self.network(modality)
        laid = network.prepared(features, self._loading)
        assert isinstance(laid, NetworkItems)
        return laid

    def players(self) -> Mapping[str, Player]:
        """Train the parts of the networks that are trained with the inner learner."""
        ((name, player),) = self.inner.players().items()
        own = [p for network in self.networks.values() for p in network.parameters() if p.requires_grad]
        return {
            name: replace(player, parameters=[*player.parameters, *own], loss=lambda b: player.loss(self._passed(b)))
        }

    def stages(self, epochs: int) -> Sequence[Stage]:
        """Divide training as the inner learner does."""
        return self.inner.stages(epochs)

    def before_epoch(self, train: Clips, epoch: Epoch) -> None:
        """Let the inner learner look at all training clips, where it does."""
        if type(self.inner).before_epoch is not Learner.before_epoch:
            self.inner.before_epoch(self.described(train), epoch)

    def calibrate(self, valid: Clips) -> None:
        """Let the inner learner choose on the validation clips."""
        self.inner.calibrate(self.described(valid))

    def finish(self, train: Clips, valid: Clips) -> None:
        """Let the inner learner do what remains."""
        if type(self.inner).finish is not Learner.finish:
            self.inner.finish(self.described(train), self.described(valid))

    def validate(self, valid: Validation) -> dict[str, float]:
        """Score the validation clips as the inner learner does."""
        return self.inner.validate(valid)

    def warnings(self, valid: Validation) -> Iterable[str]:
        """Say what the inner learner says."""
        return self.inner.warnings(valid)

    def held_out_loss(self, clips: Clips, batch: int) -> float | None:
        """Cost clips as the inner learner does."""
        return self.inner.held_out_loss(self.described(clips), batch)

    def readout(self) -> JsonObject:
        """Describe the read-out of the inner learner."""
        return self.inner.readout()

    def encode(self, clips: Clips, modality: Modality) -> Tensor:
        """Encode one modality of `clips` as the inner learner does."""
        return self.inner.encode(self.described(clips.keeping([modality])), modality)

    def read_off(self, outputs: Tensor) -> Tensor:
        """Read embeddings off outputs of the inner learner."""
        return self.inner.read_off(outputs)

    def proxy(self) -> nn.Module | None:
        """Give the proxy of the inner learner."""
        return self.inner.proxy()

    def metric_loss(self, settings: Training) -> MetricLoss | None:
        """Lay out the metric loss of the inner learner."""
        return self.inner.metric_loss(settings)

    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Embed a batch of items, or vectors of a network (b, d) -> (b, dimension)."""
        return self.inner.embed(self._scaled(features, modality), modality)

    def embed_all(self, features: Features, modality: Modality) -> Tensor:
        """Embed n items in evaluation mode -> (n, dimension) on the CPU.

        Raises:
            InputError: one cannot be decoded; the message names it.
        """
        return self.inner.embed_all(self._vectors(features, modality), modality)

    def described(self, clips: Clips) -> Clips:
        """Give clips with the scaled vectors of the networks as their features."""
        return replace(clips, features={m: self._vectors(f, m) for m, f in clips.features.items()})

    def train(self, mode: bool = True) -> "TowerLearner":
        """Set the mode; once the weights may change, nothing is known of any clip."""
        if mode:
            self._known = {}
        super().train(mode)
        return self

    def load_state_dict(self, state_dict: Mapping[str, Tensor], strict: bool = True, assign: bool = False) -> Any:
        """Take over parameters and buffers; a network without its files gets those that are in the state."""
        self._known = {}
        for modality in self.networks:
            network, kept = self.network(modality), state_dict[f"networks.{modality}.files"]
            if network.files.shape != kept.shape:
                network.files = torch.zeros_like(kept, device=network.files.device)
        return super().load_state_dict(state_dict, strict=strict, assign=assign)

    def _settled(self, clips: Clips) -> tuple[Clips, dict[Modality, Tensor]]:
        """Give the decodable clips, vectors in the place of what passes through a frozen network; and all vectors."""
        laid, vectors = {}, {}
        present = torch.ones(len(clips), dtype=torch.bool)
        for modality, features in clips.features.items():
            network, laid[modality] = self.network(modality), self.prepared(features, modality)
            vectors[modality], there = network.describe(laid[modality], kept=True)
            present &= there
        settled: dict[Modality, Features] = {m: vectors[m] if self.network(m).still else laid[m] for m in laid}
        rows = present.nonzero()[:, 0]
        return replace(clips, features=settled).select(rows), {m: own[rows] for m, own in vectors.items()}

    def _vectors(self, features: Features, modality: Modality) -> Tensor:
        """Describe n items in evaluation mode, and scale their vectors (n, d)."""
        if isinstance(features, Tensor):
            return self._scaled(features.to(self.device), modality)
        if id(features) not in self._known:
            source, network = self.prepared(features, modality), self.network(modality)
            with self.evaluated():
                vectors, present = network.describe(source, kept=network.still)
            if not bool(present.all()):
                raise InputError(f"{modality}: cannot be decoded: {', '.join(source.failures)}")
            self._known[id(features)] = (features, vectors)
        return self._scaled(self._known[id(features)][1].to(self.device), modality)

    def _passed(self, batch: Batch) -> Batch:
        return replace(batch, features={m: self._scaled(f, m) for m, f in batch.features.items()})

    def _scaled(self, features: Tensor | ItemBatch, modality: Modality) -> Tensor:
        """Scale the vectors of a network (b, d), which is run where items are given."""
        vectors = features if isinstance(features, Tensor) else self.networks[modality](features)
        shift, scale = self.get_buffer(f"shift_{modality}"), self.get_buffer(f"scale_{modality}")
        found = scaling_of({modality: shift}, {modality: scale}, self._inputs).features(vectors, modality)
        assert isinstance(found, Tensor)
        return found
