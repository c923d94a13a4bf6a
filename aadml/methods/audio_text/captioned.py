"""Base classes of methods and learners for clips of sound and captions."""

from abc import abstractmethod
from pathlib import Path

from safetensors.torch import load

from aadml.comparison.clips import Clips
from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Matrix
from aadml.data.sources.texts import Captions
from aadml.feature_extraction.ground.checksummed_json import FileSum, unseal
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import read_as
from aadml.methods.audio_text.towers import with_sound
from aadml.methods.method import Context
from aadml.methods.training.learned_method import LearnedMethod
from aadml.methods.training.learner import Learner
from aadml.methods.training.session import Session
from aadml.methods.training.settings import Training

_WANTED = "pass an AudioCaps or Clotho folder, packed HDF5 files, or a manifest with captions"


class CaptionedLearner(Learner):
    """A learner for clips of sound and captions."""

    @abstractmethod
    def learn_words(self, captions: Captions) -> None:
        """Build the vocabulary of the text network from the training captions.

        Raises:
            InputError: the file of word vectors cannot be read, or has vectors of another dimension than the network.
        """

    @abstractmethod
    def prepared(self, clips: Clips) -> Clips:
        """Return the clips with their sound and captions converted to inputs of the networks."""

    def settled(self, clips: Clips) -> Clips:
        """Return the clips with vectors in place of the inputs of frozen networks in evaluation mode.

        This class returns `clips` unchanged.
        """
        return clips


class AudioText(LearnedMethod):
    """Method that trains a learner for clips of sound and captions.

    Args:
        learner: learner to train.
        context: seed and device.
        settings: the `training` section.
        start: run folder with the initial weights; "" for new weights.

    Raises:
        InputError: the learner cannot be trained with `training.precision` or `training.compile`.
    """

    learner: CaptionedLearner

    def __init__(self, learner: CaptionedLearner, context: Context, settings: Training, start: str = "") -> None:
        super().__init__(learner, context, settings)
        self.start = start

    def check_clips(self, train: Clips) -> None:
        """Check the training clips and the device.

        Raises:
            InputError: clips without sound or captions, clips that the learner rejects, or a device without the
                training precision.
        """
        _captions(train)
        super().check_clips(train)

    def fit(self, train: Clips, valid: Clips, session: Session | None = None) -> None:
        """Build the vocabulary from the captions of `train`, then train the learner.

        Raises:
            InputError: the clips lack sound or captions, or no sound can be decoded. The word vectors or the
                weights of the initial run (`start` of the method) do not fit the networks. The training fails (see
                `aadml.methods.training.loop.train`).
        """
        _captions(valid)
        self.learner.learn_words(_captions(train))
        if self.start:
            _load_run(self.learner, Path(self.start))
        prepare, settled = self.learner.prepared, self.learner.settled
        super().fit(settled(prepare(train)), settled(with_sound(prepare(valid))), session)

    def embed_clips(self, clips: Clips) -> Embeddings:
        """Embed sound and captions; clips with undecodable sound are omitted, with a warning.

        Raises:
            InputError: no sound can be decoded, or the method is not fitted.
        """
        return self.learner.embed_clips(with_sound(self.learner.prepared(clips)))


def _captions(clips: Clips) -> Captions:
    """Return the captions of clips with sound.

    Raises:
        InputError: the clips lack sound or captions, or have vectors in place of sound or captions.
    """
    for modality in ("audio", "text"):
        if modality not in clips.modalities:
            raise InputError(f"the data have no {modality}; {_WANTED}")
    captions = clips["text"]
    if isinstance(clips["audio"], Matrix) or not isinstance(captions, Captions):
        raise InputError(
            f"the data contain features, but this method trains on sound and captions; {_WANTED}, or train on the "
            "features (--config pairs)"
        )
    return captions


def _load_run(learner: Learner, run: Path) -> None:
    """Load the weights, but not the batches of a curriculum, from a finished run of the same networks.

    Raises:
        InputError: the folder is not a trained run, is damaged, or has other networks.
    """
    path, facts = run / "model.safetensors", run / "model.json"
    if not path.is_file() or not facts.is_file():
        raise InputError(
            f"method.start: {run} lacks {path.name} or {facts.name}; pass the folder of a trained run or model"
        )
    data = path.read_bytes()
    read_as(FileSum, unseal(facts.read_bytes(), facts)["weights"], facts).check(data, path)
    weights = {key.removeprefix("method."): value for key, value in load(data).items() if key.startswith("method.")}
    for key, value in learner.state_dict().items():
        fits = key in weights and (weights[key].shape == value.shape or not value.is_floating_point())
        if not key.startswith("curriculum.") and not fits:
            raise InputError(
                f"method.start: the tensor '{key}' in {run} is missing or has another size; pass a run of the same "
                "networks"
            )
    learner.load_state_dict({key: value for key, value in weights.items() if not key.startswith("curriculum.")}, False)
