"""Two towers under one objective (Mei et al., On Metric Learning for Audio-Text Cross-Modal Retrieval, 2022)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from aadml.comparison.clips import Clips
from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Features, Modality
from aadml.data.sources.loading import Loading
from aadml.data.sources.network_items import ItemBatch
from aadml.data.sources.padding import Padded
from aadml.data.sources.texts import Captions
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.methods.audio_text.curriculum import Curriculum
from aadml.methods.audio_text.scoring import recall_sums
from aadml.methods.audio_text.text_input import BertInput, WordInput, resize_buffers
from aadml.methods.audio_text.towers import Tower, describe, nothing_to_learn, prepared, refuse_absent
from aadml.methods.towers.hub_input import HubInput
from aadml.methods.training.learner import Batch, Epoch, Learner, Player, Stage, Validation
from aadml.objective import Embedded, Objective

SIDES: tuple[Modality, ...] = ("audio", "text")


class TwoTowers(Learner):
    """An audio and a text tower into one space, compared by cosine.

    Args:
        audio: the audio tower.
        text: the text tower.
        objective: what is minimised, on unit vectors, pairs by id.
        recall: the reading of the recall sum that chooses the epoch.
        loading: how sound is decoded and kept.
        curriculum: stages and batches, or None for one stage of shuffled batches.
    """

    criterion = "recall_sum"

    in_bfloat16 = "no"

    def __init__(
        self,
        audio: Tower,
        text: Tower,
        objective: Objective,
        recall: str,
        loading: Loading,
        curriculum: Curriculum | None,
    ) -> None:
        super().__init__()
        self.towers = nn.ModuleDict({"audio": audio, "text": text})
        self.objective = objective
        self.recall = recall
        self.loading = loading
        self.curriculum = curriculum
        self._still: dict[Modality, Tensor] = {}  # vectors of all training rows on the side that a stage leaves alone
        self._known: dict[int, tuple[Features, Tensor]] = {}  # what was embedded since the weights last changed

    def tower(self, modality: Modality) -> Tower:
        """Give the tower of a modality."""
        if modality not in self.towers:
            raise InputError(f"audio-text: has no tower for {modality}; there are audio, text")
        tower = self.towers[modality]
        assert isinstance(tower, Tower)
        return tower

    def learn_words(self, captions: Captions) -> None:
        """Learn the vocabulary from the training captions."""
        network = self.tower("text").network
        if isinstance(network, BertInput | WordInput):  # a pretrained one of `transformers` brings its own
            network.learn_words(captions)

    def architecture(self) -> JsonObject:
        """Describe the networks whose shape was read from a folder."""
        text = self.tower("text").network
        found = text.architecture() if isinstance(text, BertInput | WordInput) else {}
        networks = {m: tower.network for m, tower in self.towers.items()}
        return {**found, **{m: one.architecture() for m, one in networks.items() if isinstance(one, HubInput)}}

    def prepared(self, clips: Clips) -> Clips:
        """Lay the towers' inputs over sound and captions."""
        laid = {m: prepared(f, self.tower(m).network, self.loading) for m, f in clips.features.items()}
        return replace(clips, features=laid)

    def settled(self, clips: Clips) -> Clips:
        """Replace what passes through a settled network by its vectors; clips without sound are left out."""
        for modality in clips.modalities:
            tower = self.tower(modality)
            if tower.settled and not isinstance(clips[modality], Tensor):
                self.eval()
                vectors, present = describe(clips[modality], tower.network, self.device)
                clips = replace(clips, features=dict(clips.features) | {modality: vectors})
                clips = clips if bool(present.all()) else clips.select(present.nonzero()[:, 0])
        return clips

    @property
    def needs_same_texts(self) -> str:
        """Say why the texts of its training clips may not change from epoch to epoch; "" where they may."""
        return "" if self.curriculum is None else "makes its batches of all pairs"

    def check_clips(self, train: Clips) -> None:
        """Refuse training clips that a curriculum cannot divide into batches."""
        if self.curriculum is not None:
            self.curriculum.check_clips(train)

    def players(self) -> Mapping[str, Player]:
        """Train all that is not frozen; the stages of a curriculum train one side or both."""
        players = {"all": Player(self._trained("audio", "text"), self._loss)}
        if self.curriculum is None:
            return players
        scope = self.curriculum.options.freeze_scope
        sides: dict[str, list[nn.Parameter]] = {
            "audio": self._trained("audio") + (self._heads("text") if scope == "backbone" else []),
            "text": self._trained("text") + (self._heads("audio") if scope == "backbone" else []),
        }
        return players | {side: Player(parameters, self._loss) for side, parameters in sides.items()}

    def stages(self, epochs: int) -> Sequence[Stage]:
        """Divide training as the curriculum says."""
        return super().stages(epochs) if self.curriculum is None else self.curriculum.stages(epochs)

    def before_epoch(self, train: Clips, epoch: Epoch) -> None:
        """Build the batches of the stages, and keep the vectors of the side that this one leaves alone."""
        if self.curriculum is None:
            return
        if self.curriculum.is_due(epoch):
            audio, text, present = (self.curriculum.described or self.describe_pairs)(train)
            self.curriculum.build(self.curriculum.pair_vectors(audio, text), present, train, epoch)
            self.curriculum.described = None  # what is rebuilt later follows the network itself
        still = self.curriculum.still(epoch.stage)
        if epoch.number == 0 or set(self._still) != set(still):
            self._still = {side: self._vectors_left_alone(train[side], side) for side in still}

    def train(self, mode: bool = True) -> "TwoTowers":
        """Set the mode; a side that the stage leaves alone stays in evaluation mode."""
        super().train(mode)
        if mode:
            self._known = {}
            for side in self._still:
                self.towers[side].eval()
        return self

    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Embed a batch -> (b, dimension), unit vectors."""
        return F.normalize(self.tower(modality)(features), dim=1)

    def embed_clips(self, clips: Clips) -> Embeddings:
        """Embed sound and captions; a clip's sound stands in one row a caption and is ranked once."""
        return replace(super().embed_clips(clips), once=("audio",))

    def embed_all(self, features: Features, modality: Modality) -> Tensor:
        """Embed n items in evaluation mode, each sound once -> (n, dimension) on the CPU.

        Raises:
            InputError: a sound cannot be decoded; the message names it.
        """
        if id(features) in self._known and not self.training:
            return self._known[id(features)][1]
        with self.evaluated():
            if isinstance(features, Tensor):
                vectors = torch.cat([self.embed(part.to(self.device), modality).cpu() for part in features.split(1024)])
            else:
                laid = prepared(features, self.tower(modality).network, self.loading)
                vectors, present = self._described(laid, modality)
                refuse_absent(laid, present)
            self._known[id(features)] = (features, vectors)
        return vectors

    def validate(self, valid: Validation) -> dict[str, float]:
        """Score the validation pairs: recall sums and MAP both ways."""
        return recall_sums(valid.embeddings, self.recall)

    def load_state_dict(self, state_dict: Mapping[str, Tensor], strict: bool = True, assign: bool = False) -> Any:
        """Take over parameters and buffers, some of which are as large as the training captions made them."""
        self._known = {}
        for modality in SIDES:
            resize_buffers(self.tower(modality).network, dict(state_dict), f"towers.{modality}.network.")
        if self.curriculum is not None:
            self.curriculum.resize(state_dict, "curriculum.")
        return super().load_state_dict(state_dict, strict=strict, assign=assign)

    def _trained(self, *sides: Modality) -> list[nn.Parameter]:
        rest = [p for p in self.objective.parameters() if p.requires_grad]
        return [p for side in sides for p in self.tower(side).parameters() if p.requires_grad] + rest

    def _heads(self, side: Modality) -> list[nn.Parameter]:
        return list(self.tower(side).head.parameters())

    def _described(self, features: Features, modality: Modality) -> tuple[Tensor, Tensor]:
        tower = self.tower(modality)
        vectors, present = describe(features, tower, self.device)
        return F.normalize(vectors, dim=1), present

    def describe_pairs(self, train: Clips) -> tuple[Tensor, Tensor, Tensor]:
        """Give unit vectors of the sound and of the captions of all pairs (n, d), and which are present (n,)."""
        vectors, present = {}, torch.ones(len(train), dtype=torch.bool)
        for modality in train.modalities:
            features = train[modality]
            if isinstance(features, Tensor):
                vectors[modality] = self.embed_all(features, modality)
            else:
                vectors[modality], there = self._described(features, modality)
                present &= there
        return vectors["audio"], vectors["text"], present

    def _vectors_left_alone(self, features: Features, side: Modality) -> Tensor:
        """Give what a side that is left alone makes of all training rows: its embeddings, or its network's vectors."""
        assert self.curriculum is not None
        tower = self.tower(side)
        whole = self.curriculum.options.freeze_scope == "encoder"
        if isinstance(features, Tensor):
            return self.embed_all(features, side).to(self.device) if whole else features.to(self.device)
        found = self._described(features, side)[0] if whole else describe(features, tower.network, self.device)[0]
        return found.to(self.device)

    def _loss(self, batch: Batch) -> dict[str, Tensor]:
        present = torch.ones(len(batch.index), dtype=torch.bool, device=batch.index.device)
        for features in batch.features.values():  # of a side that is left alone too: it has zeros for what is absent
            if isinstance(features, Padded | ItemBatch):
                present &= features.present
        kept = present.nonzero()[:, 0]
        if not len(kept):
            return nothing_to_learn(batch.index)
        vectors = {side: self._embedded(side, batch, kept) for side in batch.features}
        embedded = Embedded(vectors, batch.labels[kept], batch.index[kept], relation="id")
        parts: dict[str, Tensor] = self.objective(embedded, batch.generator)
        return parts

    def _embedded(self, side: Modality, batch: Batch, kept: Tensor) -> Tensor:
        if side in self._still:
            rows = self._still[side][batch.index[kept]]
            assert self.curriculum is not None
            return (
                rows
                if self.curriculum.options.freeze_scope == "encoder"
                else F.normalize(self.tower(side).head(rows), dim=1)
            )
        features = batch.features[side]
        return self.embed(features[kept] if isinstance(features, Tensor) else features.select(kept), side)
