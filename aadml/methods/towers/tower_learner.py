"""Learners on the vectors of pretrained networks; the networks are trained with the learner, or frozen."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from aadml.comparison.clips import Clips
from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Features, Modality
from aadml.comparison.processes import group
from aadml.data.sources.network_items import ItemBatch, NetworkItems
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.architecture import Architecture
from aadml.methods.inputs import Inputs, Scaling, fit_scaling
from aadml.methods.method import Context, Method
from aadml.methods.networks import PerModality
from aadml.methods.towers.hub_input import HubInput
from aadml.methods.towers.options import PretrainedOptions
from aadml.methods.training.learned_method import LearnedMethod
from aadml.methods.training.learner import Batch, CachingLearner, Epoch, Learner, Player
from aadml.methods.training.settings import Training

_OF_INNER = (
    "criterion", "takes_criterion", "takes_missing", "needs_same_texts", "in_bfloat16", "check_clips", "stages",
    "validate", "warnings", "readout", "read_off", "proxy", "divides_batches", "normalizes_batches",
)  # fmt: skip
"""Attributes and methods of the inner learner that also apply to the learner with networks."""


class TowerLearner(CachingLearner):
    """A learner on vectors that pretrained networks compute from media.

    The vectors are scaled like features, by statistics of the training clips' vectors before training. State that
    depends on all training clips, such as a bank, neighbors or class means, is computed from the vectors at the
    beginning of each epoch.

    Args:
        inner: learner that is trained on the vectors.
        networks: pretrained networks by modality.
        options: the `towers` section.
        inputs: the `inputs` section.
    """

    def __init__(
        self, inner: Learner, networks: Mapping[Modality, HubInput], options: PretrainedOptions, inputs: Inputs
    ) -> None:
        super().__init__()
        self.inner = inner
        self.networks = PerModality[HubInput](networks)
        for name in _OF_INNER:
            setattr(self, name, getattr(inner, name))
        self._inputs, self._loading = inputs, options.loading
        for modality, network in networks.items():
            self.register_buffer(f"shift_{modality}", torch.zeros(network.dimension))
            self.register_buffer(f"scale_{modality}", torch.ones(network.dimension))

    @property
    def similarity(self) -> str:
        """Similarity of the inner learner's embeddings, by name."""
        return self.inner.similarity

    def architecture(self) -> Architecture:
        """Return the description of the pretrained networks, for a saved model."""
        return Architecture(**{m: self.networks[m].saved for m in self.networks}, bert=None)

    def begun(self, train: Clips, valid: Clips) -> tuple[Clips, Clips]:
        """Prepare clips for training, and fit the scaling of their vectors on `train`.

        Returns:
            Both sets without clips that cannot be used (see `_decoded`), and with vectors instead of the media of
            frozen networks.

        Raises:
            InputError: no training clip can be decoded.
        """
        self.eval()
        train, items = self._decoded(train, training=True)
        fitted = fit_scaling(train, self._inputs)
        for modality in fitted.shift:
            self.get_buffer(f"shift_{modality}").copy_(fitted.shift[modality])
            self.get_buffer(f"scale_{modality}").copy_(fitted.scale[modality])
        valid, valid_items = self._decoded(valid, training=True)
        return self._with_items(train, items), self._with_items(valid, valid_items)

    def decodable(self, clips: Clips) -> Clips:
        """Return the decodable clips with vectors as features; each file that cannot be decoded causes a warning.

        A clip without sound or pictures lacks only this modality. A clip that lacks all modalities is returned too.
        """
        return self._decoded(clips, training=False)[0]

    def prepared(self, features: Features, modality: Modality) -> NetworkItems:
        """Return media or texts of a modality as items of its network."""
        items = self.networks[modality].prepared(features, self._loading)
        assert isinstance(items, NetworkItems)
        return items

    def players(self) -> Mapping[str, Player]:
        """Return the player of the inner learner, extended by the trained parameters of the networks."""
        ((name, player),) = self.inner.players().items()
        parameters = [p for network in self.networks.values() for p in network.parameters() if p.requires_grad]
        return {
            name: replace(
                player,
                parameters=[*player.parameters, *parameters],
                rates={p: rate for m in self.networks for p, rate in self.networks[m].rates.items()},
                loss=lambda batch: player.loss(self._batch_of_vectors(batch)),
            )
        }

    def before_epoch(self, train: Clips, epoch: Epoch) -> None:
        """Call `before_epoch` of the inner learner on the vectors of the clips, unless `before_epoch` does nothing."""
        if type(self.inner).before_epoch is not Learner.before_epoch:
            self.inner.before_epoch(self.described(train), epoch)

    def calibrate(self, valid: Clips) -> None:
        """Call `calibrate` of the inner learner on the vectors of the validation clips."""
        self.inner.calibrate(self.described(valid))

    def finish(self, train: Clips, valid: Clips) -> None:
        """Call `finish` of the inner learner on the vectors of the clips, unless `finish` does nothing."""
        if type(self.inner).finish is not Learner.finish:
            self.inner.finish(self.described(train), self.described(valid))

    def held_out_loss(self, clips: Clips, batch: int) -> float | None:
        """Return `held_out_loss` of the inner learner on the vectors of clips."""
        return self.inner.held_out_loss(self.described(clips), batch)

    def encode(self, clips: Clips, modality: Modality) -> Tensor:
        """Encode one modality of n clips with the inner learner into outputs (n, o)."""
        return self.inner.encode(self.described(clips.keeping([modality])), modality)

    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Compute the embeddings (b, dimension) of a batch of b items, or of b vectors (b, d) of a network."""
        return self.inner.embed(self._scaled(features, modality), modality)

    def embed_clips(self, clips: Clips) -> Embeddings:
        """Embed every modality of `clips`, one at a time; errors are those of `described`."""
        return self.inner.embed_clips(self.described(clips))

    def embed_all(self, features: Features, modality: Modality) -> Tensor:
        """Embed n items in evaluation mode, and return the embeddings (n, dimension) on the CPU.

        Raises:
            InputError: an item cannot be decoded; the message contains its path.
        """
        return self.inner.embed_all(self._vectors(features, modality), modality)

    def described(self, clips: Clips) -> Clips:
        """Return clips with the scaled vectors of the networks as features.

        Raises:
            InputError: an item cannot be decoded; the message contains its path.
        """
        return replace(
            clips, features={m: self._vectors(f, m, clips.present.get(m)) for m, f in clips.features.items()}
        )

    def _decoded(self, clips: Clips, *, training: bool) -> tuple[Clips, dict[Modality, NetworkItems]]:
        """Return clips with vectors as features, and the items of the networks.

        As in `aadml extract`, a clip lacks a modality if there is no sound, no frame or no path. Clips that cannot be
        decoded are omitted.

        Args:
            clips: clips with media, or with vectors, which are not changed.
            training: whether the clips are prepared for training. Vectors are then read from the cache on disk and
                added to it. Clips that lack all modalities are then omitted. If the method needs all modalities,
                clips without sound or frames are omitted too, with a warning.
        """
        features, present, sources = dict(clips.features), dict(clips.present), {}
        usable, lacking = torch.ones(len(clips), dtype=torch.bool), torch.zeros(len(clips), dtype=torch.bool)
        for modality, media in clips.features.items():
            if not isinstance(media, Tensor):
                items = sources[modality] = self.prepared(media, modality)
                features[modality], decoded = self.networks[modality].describe(items, stored=training)
                if (absent := items.absent()).any():
                    present[modality] = present.get(modality, ~absent) & ~absent
                usable, lacking = usable & (decoded | absent), lacking | absent
        if training and not self.takes_missing and lacking.any():
            warnings.warn(
                f"{int(lacking.sum())} of {len(clips)} clips lack sound or pictures and are left out, because this "
                "method needs all modalities",
                stacklevel=2,
            )
            usable &= ~lacking
        if training and all(modality in present for modality in features):
            usable &= torch.stack([present[modality] for modality in features]).any(0)
        rows = usable.nonzero()[:, 0]
        clips = replace(clips, features=features, present=present).select(rows)
        return clips, {modality: items.select(rows) for modality, items in sources.items()}

    def _with_items(self, clips: Clips, items: Mapping[Modality, NetworkItems]) -> Clips:
        trained = {m: source for m, source in items.items() if not self.networks[m].frozen}
        return replace(clips, features={**clips.features, **trained})

    def _vectors(self, features: Features, modality: Modality, has: Tensor | None = None) -> Tensor:
        """Compute the scaled vectors (n, d) of n items in evaluation mode.

        Args:
            features: the items.
            modality: modality of the items.
            has: (n,) bool, False for an item that may be missing; None if all items are needed.
        """
        if isinstance(features, Tensor):
            return self._scaled(features.to(self.device), modality)
        vectors = self._stored(features)
        if vectors is None:
            items, network = self.prepared(features, modality), self.networks[modality]
            with self.evaluated():
                vectors, present = network.describe(items, stored=False)
            missing = ~present if has is None else ~present & has
            if missing.any():
                files = ", ".join(items.names(missing))
                raise InputError(f"{modality}: {files} cannot be decoded; omit or restore these files")
            self._store(features, vectors)
        return self._scaled(vectors.to(self.device), modality)

    def _batch_of_vectors(self, batch: Batch) -> Batch:
        rows = torch.arange(len(batch.index))[group.own(len(batch.index))]
        return replace(batch, features={m: self._scaled(f, m, rows) for m, f in batch.features.items()})

    def _scaled(self, features: Tensor | ItemBatch, modality: Modality, rows: Tensor | None = None) -> Tensor:
        """Scale the vectors (b, d) of a network; for items, the vectors are computed first.

        Args:
            features: vectors or items of the clips of this worker.
            modality: modality of the network.
            rows: positions (b,) of the clips in the batch of all workers.
        """
        vectors = features if isinstance(features, Tensor) else self.networks[modality](features, rows)
        shift, scale = self.get_buffer(f"shift_{modality}"), self.get_buffer(f"scale_{modality}")
        return Scaling({modality: shift}, {modality: scale}, self._inputs).scaled(vectors, modality)


def towered(
    name: str,
    build: Callable[[Context], Method],
    context: Context,
    settings: Training,
    *,
    towers: PretrainedOptions,
    inputs: Inputs,
) -> Method:
    """Build a method that is trained on the vectors of pretrained networks.

    Args:
        name: name of the method, for messages.
        build: function that builds the method for features with the dimensions of a context.
        context: context of the media.
        settings: the `training` section.
        towers: the `towers` section.
        inputs: the `inputs` section.

    Raises:
        InputError: a network cannot be read, or the method cannot be built or trained on the networks' vectors.
        MissingExtraError: a package that a network or its adapters need is not installed.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(context.seed)
        networks = {m: _network(m, towers, context) for m in context.modalities}
    widths = {modality: network.dimension for modality, network in networks.items()}
    method = build(replace(context, dimensions=widths, architecture=None))
    if type(method) is not LearnedMethod or type(method.learner).begun is not Learner.begun:
        raise InputError(
            f"towers: {name} is not trained by gradient steps on features; extract features (`aadml extract`), or "
            "choose another method, such as aadml, pairs, clip or dscmr"
        )
    players = method.learner.players()
    if len(players) > 1:
        raise InputError(
            f"towers: {name} trains {' and '.join(players)} with separate optimizers, which towers do not support; "
            "choose another method or loss"
        )
    if method.learner.learns_beside_batches and not all(network.frozen for network in networks.values()):
        raise InputError(
            f"towers: {name} also learns from clips outside its batch, so the networks cannot be trained; freeze the "
            "networks (--set towers.train=[])"
        )
    return LearnedMethod(TowerLearner(method.learner, networks, towers, inputs), context, settings)


def _network(modality: Modality, towers: PretrainedOptions, context: Context) -> HubInput:
    kind, source = next((kind, source) for kind, source in towers.networks.items() if kind == modality)
    saved = context.architecture.tower(modality) if context.architecture else None
    network = HubInput(source, kind, towers, saved)
    network.train_blocks(frozen=kind not in towers.train)
    return network
