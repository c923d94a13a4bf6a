"""The three stages of 3CMLF: trained modalities, batches, and choices that the paper leaves open."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from aadml.comparison.clips import Clips
from aadml.comparison.features import Modality
from aadml.data.captions.curriculum import check_partition, partition
from aadml.data.sources.network_items import NetworkItems
from aadml.data.sources.texts import Captions, Tokens
from aadml.methods.audio_text.options import CurriculumOptions
from aadml.methods.method import Prior
from aadml.methods.training.learner import Epoch, ResizedBuffers, Stage
from aadml.methods.training.settings import Training

STAGES = {"easy": "audio", "median": "text", "hard": "all"}
"""Stage -> trained modality, or "all"; a modality that is not trained is frozen."""

Described = Callable[[Clips], tuple[Tensor, Tensor, Tensor]]
"""Training clips -> unit vectors of sound and of captions (n, d), and flags (n,) of present pairs."""


class Curriculum(ResizedBuffers):
    """Stages easy, median and hard; with `mining`, easy and hard batches are built from vectors of the pairs.

    The vectors come from an ancillary model that is trained first (see `ancillary`). Without an ancillary model, the
    vectors come from the network at the beginning of the easy stage.

    Attributes:
        batch: pairs per batch.
        options: see `CurriculumOptions`.
        seed: seed of the batches.
        described: function of the trained ancillary model that computes vectors of pairs; None without this model.
    """

    resized = ("easy", "hard")

    def __init__(self, options: CurriculumOptions, *, batch: int, seed: int) -> None:
        super().__init__()
        self.batch, self.options = batch, options
        self.seed = seed
        self.described: Described | None = None
        self.register_buffer("easy", torch.zeros(0, 0, dtype=torch.int64))
        self.register_buffer("hard", torch.zeros(0, 0, dtype=torch.int64))

    def stages(self, epochs: int) -> Sequence[Stage]:
        """Return the stages up to `options.until`; `options.shares` divides `epochs` among all three stages.

        Each stage starts from the best weights of the stage before, with a new optimizer.
        """
        names = list(STAGES)[: list(STAGES).index(self.options.until) + 1]
        counts = dict(zip(STAGES, divided(epochs, self.options.shares), strict=True))
        mined = self.batches if self.options.mining else None
        return [
            Stage(
                name, counts[name], (STAGES[name],), mined if name != "median" else None,
                scored=self.options.score_stages and name != names[-1],
            )
            for name in names
        ]  # fmt: skip

    def frozen(self, stage: str) -> tuple[Modality, ...]:
        """Return the modalities of the frozen towers of a stage; () if the stage trains both towers."""
        return tuple(side for side in ("audio", "text") if STAGES.get(stage, "all") not in (side, "all"))

    def is_due(self, epoch: Epoch) -> bool:
        """Return whether batches must be built before this epoch."""
        return self.options.mining and epoch.stage == "easy" and epoch.number == 0

    def build(self, audio: Tensor, text: Tensor, present: Tensor, train: Clips) -> None:
        """Build the easy and hard batches of pairs.

        Args:
            audio: (n, d) unit vectors of the sounds.
            text: (n, d) unit vectors of the captions.
            present: (n,) bool, false for pairs that the batches omit.
            train: the training clips.

        Raises:
            InputError: the batch size is below 2 or above the number of pairs, or pairs with the same clip or caption
                cannot be separated.
        """
        rows = present.nonzero()[:, 0]
        vectors = F.normalize(audio + text, dim=1)[rows]
        codes = [code[rows] for code in self._codes(train)]
        for name in ("easy", "hard"):
            batches = partition(vectors, self.batch, hard=name == "hard", codes=codes, seed=self.seed)
            setattr(self, name, rows[batches].to(self.get_buffer(name).device))

    def check_clips(self, train: Clips) -> None:
        """Check, before training of the ancillary model, that batches can be built from the training clips.

        Raises:
            InputError: the batch size is below 2 or above the number of pairs, or too many pairs have the same clip or
                caption.
        """
        if self.options.mining:
            check_partition(len(train), self.batch, self._codes(train), seed=self.seed)

    def _codes(self, train: Clips) -> list[Tensor]:
        """Return a list of codes (n,) of clips and of captions, for hard batches without equal codes.

        Without `dedupe`, the list is empty.
        """
        return [train.labels.cpu(), _codes_of_captions(train)] if self.options.dedupe else []

    def batches(self, train: Clips, epoch: Epoch, generator: torch.Generator) -> Iterable[Tensor]:
        """Yield the rows (b,) of each batch of a stage; the batches are in random order."""
        plan = self.get_buffer(epoch.stage).cpu()
        return (plan[i] for i in torch.randperm(len(plan), generator=generator))


def divided(epochs: int, shares: Sequence[float]) -> list[int]:
    """Return whole numbers of epochs in proportion to `shares`, by largest remainders; each number is at least 1.

    The sum of the numbers is `epochs`, or the number of shares if `epochs` is smaller.
    """
    exact = [epochs * share / sum(shares) for share in shares]
    counts = [max(1, int(part)) for part in exact]

    def remainder(number: int) -> float:
        return exact[number] - counts[number]

    while sum(counts) < epochs:
        counts[max(range(len(counts)), key=remainder)] += 1
    while sum(counts) > max(epochs, len(counts)):
        counts[min((number for number, count in enumerate(counts) if count > 1), key=remainder)] -= 1
    return counts


def ancillary(options: CurriculumOptions, training: Training) -> Prior | None:
    """Return the description of the model to train first; None if the batches need no such model.

    Args:
        options: options of the curriculum.
        training: the `training` section of the curriculum.
    """
    if not options.mining or not options.ancillary_epochs:
        return None
    batch = options.ancillary_batch or training.batch
    return Prior("ancillary", "audio-text", replace(training, epochs=options.ancillary_epochs, batch=batch))


def _codes_of_captions(train: Clips) -> Tensor:
    """Return codes (n,) of captions, the same for equal captions unless the captions are already vectors."""
    text: Any = train["text"]
    if isinstance(text, NetworkItems):
        return text.items  # equal captions have the same item
    if isinstance(text, Captions):
        return _numbered(text.texts)
    if isinstance(text, Tokens):
        return _numbered(ids.tobytes() for ids in text.ids)
    return torch.arange(len(train))


def _numbered(keys: Iterable[Hashable]) -> Tensor:
    numbers: dict[Hashable, int] = {}
    return torch.tensor([numbers.setdefault(key, len(numbers)) for key in keys])
