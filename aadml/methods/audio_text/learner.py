"""Two towers under one objective (Mei et al., Interspeech 2022).

Reference: Mei et al., On metric learning for audio-text cross-modal retrieval, Interspeech 2022, https://arxiv.org/abs/2203.15537
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from aadml.comparison.clips import Clips
from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Features, Modality
from aadml.comparison.processes import group
from aadml.data.sources.loading import Loading
from aadml.data.sources.network_items import ItemBatch
from aadml.data.sources.padding import Padded
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.architecture import Architecture
from aadml.methods.audio_text.captioned import CaptionedLearner
from aadml.methods.audio_text.curriculum import Curriculum
from aadml.methods.audio_text.scoring import recall_sums
from aadml.methods.audio_text.text_input import BertInput
from aadml.methods.audio_text.towers import CaptionTower, check_present, describe, nothing_to_learn, prepared
from aadml.methods.networks import PerModality
from aadml.methods.towers.hub_input import HubInput
from aadml.methods.training.learner import Batch, CachingLearner, Epoch, Player, Stage, Validation
from aadml.objective import Embedded, Objective


class TwoTowers(CachingLearner, CaptionedLearner):
    """Audio tower and text tower that embed into one space, where vectors are compared by cosine.

    Args:
        audio: the audio tower.
        text: the text tower.
        objective: objective to minimize, on unit vectors; only a clip's own partner is positive.
        recall: directions of the recall sum that chooses the epoch.
        loading: caches of decoded sound.
        curriculum: stages and batches; None for one stage of shuffled batches.
        start: run folder with the initial weights; "" for new weights.
    """

    criterion = "recall_sum"
    in_bfloat16 = "no"

    def __init__(
        self,
        audio: CaptionTower,
        text: CaptionTower,
        objective: Objective,
        recall: Literal["text-audio", "both"],
        loading: Loading,
        curriculum: Curriculum | None,
        start: str = "",
    ) -> None:
        super().__init__()
        self.start = start
        self.towers: PerModality[CaptionTower] = PerModality({"audio": audio, "text": text})
        self.objective, self.recall, self.loading, self.curriculum = objective, recall, loading, curriculum
        self.needs_same_texts = "" if curriculum is None else "builds its batches from all pairs"
        hubs = all(isinstance(tower.network, HubInput) for tower in (audio, text))
        self.divides_batches = hubs and curriculum is None  # other networks normalize over the batch
        self._frozen: dict[Modality, Tensor] = {}  # vectors of all training rows on the frozen side of a stage

    def tower(self, modality: Modality) -> CaptionTower:
        """Return the tower of a modality.

        Raises:
            InputError: there is no tower for the modality.
        """
        if modality not in self.towers:
            raise InputError(f"there is no tower for {modality}; choose from audio, text")
        return self.towers[modality]

    def network_of(self, modality: Modality) -> nn.Module:
        """Return the network of a modality, without its head; errors are those of `tower`."""
        return self.tower(modality).network

    def architecture(self) -> Architecture:
        """Return the description of the pretrained networks, for a saved model."""
        networks = {m: self.towers[m].network for m in self.towers}
        saved = {m: network.saved for m, network in networks.items() if isinstance(network, HubInput)}
        text = networks["text"]
        return Architecture(**saved, bert=text.configuration() if isinstance(text, BertInput) else None)

    def settled(self, clips: Clips) -> Clips:
        """Replace the inputs of settled networks by vectors (see `CaptionTower.settled`), and return the clips.

        Clips with undecodable sound are omitted if the audio network is settled. Without settled networks, or
        without clips, the clips are returned unchanged.

        Raises:
            InputError: the audio network is settled, and no sound can be decoded (except for networks of
                `transformers`).
        """
        for modality in clips.modalities:
            tower = self.tower(modality)
            if len(clips) and tower.settled and not isinstance(clips[modality], Tensor):
                self.eval()
                vectors, present = describe(clips[modality], tower.network, self.device)
                clips = replace(clips, features=dict(clips.features) | {modality: vectors})
                clips = clips if bool(present.all()) else clips.select(present.nonzero()[:, 0])
        return clips

    def check_clips(self, train: Clips) -> None:
        """Check that clips have sound and captions, and that a curriculum can divide the clips into batches.

        Raises:
            InputError: clips lack sound or captions, the batch size is below 2 or above the number of pairs, or too
                many pairs have the same clip or caption.
        """
        super().check_clips(train)
        if self.curriculum is not None:
            self.curriculum.check_clips(train)

    def players(self) -> Mapping[str, Player]:
        """Return the player "all" and, with a curriculum, the players "audio" and "text" (one tower each)."""
        players = {"all": self._player("audio", "text")}
        if self.curriculum is not None:
            players |= {side: self._player(side) for side in ("audio", "text")}
        return players

    def stages(self, epochs: int) -> Sequence[Stage]:
        """Return the stages of the curriculum, or a single stage without a curriculum."""
        return super().stages(epochs) if self.curriculum is None else self.curriculum.stages(epochs)

    def before_epoch(self, train: Clips, epoch: Epoch) -> None:
        """Build the batches of the curriculum if they are due, and cache the vectors of frozen towers.

        Without a curriculum, this method has no effect.
        """
        if self.curriculum is None:
            return
        if self.curriculum.is_due(epoch):
            self.curriculum.build(*(self.curriculum.described or self.describe_pairs)(train), train)
        frozen = self.curriculum.frozen(epoch.stage)
        if epoch.number == 0 or set(self._frozen) != set(frozen):
            self._frozen = {side: self._vectors(train[side], side)[0].to(self.device) for side in frozen}

    def train(self, mode: bool = True) -> "TwoTowers":
        """Set the mode; a tower frozen in the stage stays in evaluation mode."""
        super().train(mode)
        if mode:
            for side in self._frozen:
                self.towers[side].eval()
        return self

    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Compute the unit vectors (b, dimension) of a batch of b items of one modality."""
        return F.normalize(self.tower(modality)(features), dim=1)

    def embed_clips(self, clips: Clips) -> Embeddings:
        """Embed sound and captions; the sound of a clip has a row for each caption and is ranked once."""
        return replace(super().embed_clips(clips), once=("audio",))

    def embed_all(self, features: Features, modality: Modality) -> Tensor:
        """Return the unit vectors (n, dimension) of n items on the CPU, computed in evaluation mode.

        Each distinct sound is embedded once.

        Raises:
            InputError: an undecodable sound, whose path is in the message, or an unfitted method.
        """
        if (stored := self._stored(features)) is not None and not self.training:
            return stored
        with self.evaluated():
            if isinstance(features, Tensor):
                vectors = torch.cat([self.embed(part.to(self.device), modality).cpu() for part in features.split(1024)])
            else:
                inputs = prepared(features, self.network_of(modality), self.loading)
                vectors, present = self._described(inputs, modality)
                check_present(inputs, present)
            self._store(features, vectors)
        return vectors

    def validate(self, valid: Validation) -> dict[str, float]:
        """Score the validation pairs: recall sums and MAP in both directions."""
        return recall_sums(valid.embeddings, self.recall)

    def _player(self, *sides: Modality) -> Player:
        networks = list(map(self.network_of, sides))
        rates = {p: rate for network in networks if isinstance(network, HubInput) for p, rate in network.rates.items()}
        parts = [*map(self.tower, sides), self.objective]
        return Player([p for part in parts for p in part.parameters() if p.requires_grad], self._loss, rates=rates)

    def _described(self, features: Features, modality: Modality) -> tuple[Tensor, Tensor]:
        vectors, present = describe(features, self.tower(modality), self.device)
        return F.normalize(vectors, dim=1), present

    def describe_pairs(self, train: Clips) -> tuple[Tensor, Tensor, Tensor]:
        """Compute the unit vectors of n pairs.

        Returns:
            Vectors (n, d) of the sounds, vectors (n, d) of the captions, and (n,) bool, True for a decoded pair.
        """
        (audio, heard), (text, read) = (self._vectors(train[side], side) for side in ("audio", "text"))
        return audio, text, heard & read

    def _vectors(self, features: Features, modality: Modality) -> tuple[Tensor, Tensor]:
        """Compute the unit vectors (n, d) of n items, and flags (n,) that are True for decoded items."""
        if isinstance(features, Tensor):
            return self.embed_all(features, modality), torch.ones(len(features), dtype=torch.bool)
        return self._described(features, modality)

    def _loss(self, batch: Batch) -> dict[str, Tensor]:
        local = torch.arange(len(batch.index))[group.own(len(batch.index))]
        present = torch.ones(len(local), dtype=torch.bool, device=batch.index.device)
        for features in batch.features.values():  # including a frozen side, whose vectors of absent items are zero
            if isinstance(features, Padded | ItemBatch):
                present &= features.present
        rows = group.gathered(present.long(), len(batch.index)).nonzero()[:, 0]
        if not len(rows):
            return nothing_to_learn(batch.index)
        vectors = group.together(
            len(batch.index), lambda: {side: self._embedded(side, batch, local, present) for side in batch.features}
        )
        vectors = {side: values[rows] for side, values in vectors.items()}
        embedded = Embedded(vectors, batch.labels[rows], batch.index[rows], relation="id")
        parts: dict[str, Tensor] = self.objective(embedded, batch.generator)
        return parts

    def _embedded(self, side: Modality, batch: Batch, local: Tensor, present: Tensor) -> Tensor:
        """Return the unit vectors (r, dimension) of the rows `local` (r,) of a batch.

        A vector is valid only if its flag in `present` (r,) is True.
        """
        if side in self._frozen:
            return self._frozen[side][batch.index[local.to(batch.index.device)]]
        features, rows = batch.features[side], present.nonzero()[:, 0]
        chosen = features[rows] if isinstance(features, Tensor) else features.select(rows)
        vectors = F.normalize(self.tower(side)(chosen, local[rows.cpu()]), dim=1)
        return vectors.new_zeros(len(local), vectors.shape[1]).index_copy(0, rows, vectors)
