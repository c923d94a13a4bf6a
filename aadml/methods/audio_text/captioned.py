"""A method of sound and captions: it learns its words from the training captions, then trains its learner."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from safetensors.torch import load
from torch import Tensor

from aadml.comparison.clips import Clips
from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Features, Modality
from aadml.data.sources.texts import Captions
from aadml.feature_extraction.ground.checksummed_json import FileSum, unseal
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject, read_as
from aadml.methods.audio_text.towers import with_sound
from aadml.methods.method import Context, Method, Prior
from aadml.methods.training.learned_method import LearnedMethod
from aadml.methods.training.learner import Learner
from aadml.methods.training.session import Session
from aadml.methods.training.settings import Training


@runtime_checkable
class CaptionedLearner(Protocol):
    """What a learner of sound and captions offers beside `Learner`."""

    def learn_words(self, captions: Captions) -> None:
        """Learn the vocabulary from the training captions."""

    def prepared(self, clips: Clips) -> Clips:
        """Lay the networks' inputs over sound and captions."""

    def settled(self, clips: Clips) -> Clips:
        """Replace what passes through a frozen network by its vectors."""

    def architecture(self) -> JsonObject:
        """Describe networks whose shape was read from files."""


@dataclass(frozen=True)
class Ancillary:
    """A model that is trained before, for what it makes of the training pairs.

    Attributes:
        prior: what it is.
        build: builds it, not trained.
        take: takes it, trained.
    """

    prior: Prior
    build: Callable[[], Method]
    take: Callable[[Method], None]


class AudioText(Method):
    """Wrap a learner of sound and captions as a method.

    Args:
        learner: see `CaptionedLearner`.
        context: seed and device.
        settings: the `training` section.
        start: a run folder whose weights training begins with, or "".
        ancillary: a model that is trained before, or None.
    """

    fits_validation = False

    def __init__(
        self, learner: Learner, context: Context, settings: Training, start: str = "",
        ancillary: Ancillary | None = None,
    ) -> None:  # fmt: skip
        assert isinstance(learner, CaptionedLearner)
        self.learner: Learner = learner
        self._captioned: CaptionedLearner = learner
        self.start = start
        self.inner = LearnedMethod(learner, context, settings)
        self._ancillary, self._taken = ancillary, False

    @property
    def similarity(self) -> str:
        """Name the similarity of the learner's embeddings."""
        return self.learner.similarity

    def fit(self, train: Clips, valid: Clips, session: Session | None = None) -> None:
        """Learn the words of `train`, then train; see `aadml.methods.training.loop.train`."""
        for modality in ("audio", "text"):
            if modality not in train.modalities:
                raise InputError(
                    f"audio-text: the data have no {modality}; give an AudioCaps or Clotho folder, packed HDF5 files, "
                    "or a manifest with captions"
                )
        if self._ancillary and not self._taken:
            trained = self._ancillary.build()
            trained.fit(train, valid)
            self.take_prior(trained)
        self._taken = False  # it serves one training
        learner, captions = self._captioned, train["text"]
        assert isinstance(captions, Captions)
        learner.learn_words(captions)
        if self.start:
            _take_over(self.learner, Path(self.start))
        self.inner.fit(
            learner.settled(learner.prepared(train)),
            learner.settled(with_sound(learner.prepared(valid))),
            session,
        )

    @property
    def needs_same_texts(self) -> str:
        """Say why the texts of its training clips may not change from epoch to epoch; "" where they may."""
        return self.inner.needs_same_texts

    def check_clips(self, train: Clips) -> None:
        """Refuse training clips that the learner cannot be trained on."""
        self.inner.check_clips(train)

    def prior(self) -> Prior | None:
        """Say which model is trained first."""
        return self._ancillary.prior if self._ancillary else None

    def take_prior(self, trained: Method) -> None:
        """Take the trained model that `prior` names."""
        assert self._ancillary is not None
        self._ancillary.take(trained)
        self._taken = True

    def embed(self, features: Features, modality: Modality) -> Tensor:
        """Embed n items of one modality (n, dimension), each alone."""
        return self.inner.embed(features, modality)

    def embed_clips(self, clips: Clips) -> Embeddings:
        """Embed sound and captions; clips whose sound cannot be decoded are left out, and named in a warning."""
        return self.learner.embed_clips(with_sound(self._captioned.prepared(clips)))

    def state(self) -> dict[str, Tensor]:
        """Return parameters and buffers, the vocabulary among them."""
        return self.inner.state()

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Take over parameters and buffers."""
        self.inner.load(state)

    def architecture(self) -> JsonObject:
        """Describe networks whose shape was read from files."""
        return self._captioned.architecture()

    def parameters_count(self) -> int:
        """Count the parameters."""
        return self.inner.parameters_count()


def _take_over(learner: Learner, run: Path) -> None:
    """Load the weights of a finished run of the same networks; its batches of a curriculum are not taken over.

    Raises:
        InputError: no trained run, or one of other networks.
    """
    path, facts = run / "model.safetensors", run / "model.json"
    if not path.is_file() or not facts.is_file():
        raise InputError(f"method.start: {run} is not a trained run or model (no {path.name} and {facts.name} in it)")
    data = path.read_bytes()
    read_as(FileSum, unseal(facts.read_bytes(), facts)["weights"], facts).check(data, path)
    found = {key.removeprefix("method."): value for key, value in load(data).items() if key.startswith("method.")}
    own = learner.state_dict()
    for key, value in own.items():
        fits = key in found and (found[key].shape == value.shape or not value.is_floating_point())
        if not key.startswith("curriculum.") and not fits:
            raise InputError(f"method.start: {run} holds other networks ('{key}' is missing or of another size)")
    learner.load_state_dict({key: value for key, value in found.items() if not key.startswith("curriculum.")}, False)
