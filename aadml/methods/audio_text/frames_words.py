"""Frames of sound against words (Xie et al., ICASSP 2023).

Reference: Xie et al., On negative sampling for contrastive audio-text retrieval, ICASSP 2023, https://doi.org/10.1109/ICASSP49357.2023.10095319
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from aadml.comparison.clips import Clips
from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Features, Modality
from aadml.comparison.frame_word import relevance
from aadml.data.sources.loading import Loading
from aadml.data.sources.padding import Padded
from aadml.feature_extraction.backbones.crnn import Crnn, pooled_lengths
from aadml.feature_extraction.frontends.log_mel import CRNN, LogMelSettings
from aadml.methods.audio_text.captioned import CaptionedLearner
from aadml.methods.audio_text.options import RelevanceOptions
from aadml.methods.audio_text.scoring import recall_sums
from aadml.methods.audio_text.text_input import WordInput
from aadml.methods.audio_text.towers import check_present, distinct_items, input_batch, nothing_to_learn, prepared
from aadml.methods.training.learner import Batch, Epoch, Player, Validation, batch_of
from aadml.objective import Embedded, Objective
from aadml.retrieval.frame_word import FRAME_WORD, pack, pack_each

_AT_ONCE = 32
_FLAT = 1e-4


class CrnnInput(Crnn):
    """A CRNN with the settings of the spectrograms that it reads."""

    settings: LogMelSettings = CRNN


class FramesAgainstWords(CaptionedLearner):
    """Frames of a CRNN, compared with frozen word vectors by relevance; an item has no single vector.

    Args:
        audio: CRNN.
        text: word vectors.
        objective: objective to minimize; its scores are relevances of frames and words.
        options: options of the relevance.
        guides: modalities within which pairs are scored too, for selections by similarity within a modality.
        loading: caches of decoded sound.
        batch: pairs per batch, for the validation loss.
    """

    similarity = FRAME_WORD
    criterion = "score"
    in_bfloat16 = "no"

    def __init__(
        self,
        audio: CrnnInput,
        text: WordInput,
        objective: Objective,
        options: RelevanceOptions,
        *,
        guides: Sequence[Modality],
        loading: Loading,
        batch: int,
    ) -> None:
        super().__init__()
        self.audio, self.text, self.objective = audio, text, objective
        self.pooled = options.score_rate == "pooled"
        self.legacy_padding, self.choose = options.legacy_padding, options.choose
        self.guides, self.loading, self.batch = tuple(guides), loading, batch
        self._warnings: list[str] = []

    def network_of(self, modality: Modality) -> nn.Module:
        """Return the CRNN for audio, and the word vectors for any other modality."""
        return self.audio if modality == "audio" else self.text

    def warnings(self, valid: Validation) -> Iterable[str]:
        """Return a list with a warning if all validation pairs had nearly the same relevance, else an empty list."""
        return self._warnings

    def players(self) -> Mapping[str, Player]:
        """Return one player ("audio"): all trainable parameters."""
        return {"audio": Player([p for p in self.parameters() if p.requires_grad], self._loss)}

    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Embed a batch as packed sequences (b, 4 + t d) of up to t vectors (d,); see `retrieval.frame_word.pack`."""
        values, lengths = self._sequences(features, modality)
        return pack(values, lengths, side="frames" if modality == "audio" else "words")

    def embed_all(self, features: Features, modality: Modality) -> Tensor:
        """Embed n sounds or captions as packed sequences (n, 4 + t d) on the CPU.

        Each distinct sound is embedded once. A sequence has at most t vectors of dimension d. With the
        option `score_rate: pooled`, a sound has one vector for every four frames of the spectrogram.

        Raises:
            InputError: an undecodable sound (with its path in the message), vectors as features, or an unfitted
                method.
        """
        packed, inverse = self._each_once(features, modality)
        return packed[inverse]

    def embed_clips(self, clips: Clips) -> Embeddings:
        """Embed sound and captions; a clip's sound is stored and ranked once for any number of captions."""
        embedded = {modality: self._each_once(clips[modality], modality) for modality in clips.modalities}
        vectors = {modality: packed for modality, (packed, _) in embedded.items()}
        rows = {modality: inverse for modality, (packed, inverse) in embedded.items() if len(packed) < len(inverse)}
        return clips.embedded(vectors, self.similarity, once=("audio",), rows=rows)

    def _each_once(self, features: Features, modality: Modality) -> tuple[Tensor, Tensor]:
        """Return packed sequences (m, 4 + t d), and the row (n,) of each item's sequence.

        Items with the same sound share one sequence.
        """
        inputs = prepared(features, self.network_of(modality), self.loading)
        distinct, inverse = distinct_items(inputs)
        parts: list[Tensor] = []
        with self.evaluated():
            for rows in distinct.split(_AT_ONCE):
                batch = input_batch(inputs, rows, self.device)
                check_present(inputs, batch.present)
                values, lengths = self._sequences(batch, modality)
                parts += [v[:n].cpu().clone() for v, n in zip(values, lengths.tolist(), strict=True)]
        return pack_each(parts, side="frames" if modality == "audio" else "words"), inverse

    def validate(self, valid: Validation) -> dict[str, float]:
        """Score validation pairs; "score" is the negative loss with fixed draws, or the mean MAP with `choose: map`."""
        scores = self._validation_loss(valid.clips)
        if self.choose == "map":
            recalls = recall_sums(valid.embeddings, "both")
            scores |= recalls | {"score": sum(v for k, v in recalls.items() if k.startswith("map ")) / 2}
        return scores

    def _sequences(self, batch: Padded, modality: Modality) -> tuple[Tensor, Tensor]:
        if modality == "text":
            return self.text(batch), batch.lengths
        full = bool((batch.lengths == batch.values.shape[1]).all())
        values = self.audio(batch.values, None if full else batch.lengths, pooled=self.pooled)
        return values, pooled_lengths(batch.lengths) if self.pooled else batch.lengths

    def _loss(self, batch: Batch) -> dict[str, Tensor]:
        rows = batch.features["audio"].present.nonzero()[:, 0]
        if not len(rows):
            return nothing_to_learn(batch.index)
        sides = {side: self._sequences(batch.features[side].select(rows), side) for side in ("audio", "text")}
        score = self._relevance(*sides["audio"], *sides["text"])
        with torch.no_grad():
            guides = {side: self._relevance(*sides[side], *sides[side]) for side in self.guides}
        embedded = Embedded(
            {side: values.mean(1) for side, (values, _) in sides.items()},
            batch.labels[rows],
            batch.index[rows],
            relation="id",
            relevance=lambda anchors, candidates: score if (anchors, candidates) == ("audio", "text") else score.T,
            guides=guides,
        )
        parts: dict[str, Tensor] = self.objective(embedded, batch.generator)
        scores = score.detach()
        spread = {"relevance spread": scores.std()} if scores.numel() > 1 else {}
        return parts | {"own relevance": scores.diagonal().mean()} | spread

    def _relevance(self, left: Tensor, left_lengths: Tensor, right: Tensor, right_lengths: Tensor) -> Tensor:
        legacy = self.legacy_padding and self.training
        return relevance(left, left_lengths, right, right_lengths, legacy_padding=legacy)

    def _validation_loss(self, valid: Clips) -> dict[str, float]:
        """Compute the scalars of the loss on the validation pairs, with the same order and draws each time."""
        generator = torch.Generator().manual_seed(0)
        order = torch.randperm(len(valid), generator=generator)
        scalars: dict[str, list[Tensor]] = {}
        with torch.no_grad():
            for rows in order.split(self.batch):
                batch = batch_of(valid, rows, self.device, generator, Epoch("valid", 0, 1))
                for name, value in self._loss(batch).items():
                    scalars.setdefault(name, []).append(value.float().cpu())
        means = {name: float(torch.stack(values).nanmean()) for name, values in scalars.items()}
        spread = means.get("relevance spread", math.nan)  # undefined for a single pair
        collapse = (
            "the relevance of all pairs is equal, so the frames have collapsed; try a smaller training.learning_rate, "
            "or the method.strategy cross-modality-semi-hard if another strategy is set"
        )
        self._warnings = [collapse] if spread < _FLAT else []
        return means | {"score": -means["loss"]}
