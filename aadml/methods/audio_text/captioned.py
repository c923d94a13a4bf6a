"""Base class of learners for clips of sound and captions."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import load
from torch import Tensor, nn

from aadml.comparison.clips import Clips
from aadml.comparison.features import Matrix, Modality
from aadml.data.sources.loading import Loading
from aadml.data.sources.texts import Captions
from aadml.feature_extraction.ground.checksummed_json import FileSum, unseal
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject, nested, read_as
from aadml.methods.audio_text.options import UNTRAINED
from aadml.methods.audio_text.text_input import BertInput, WordInput
from aadml.methods.audio_text.towers import prepared, with_sound
from aadml.methods.towers.hub_input import HubInput
from aadml.methods.training.learner import Learner

_WANTED = "pass an AudioCaps or Clotho folder, packed HDF5 files, or a manifest with captions"


class CaptionedLearner(Learner):
    """A learner for clips of sound and captions.

    Attributes:
        loading: caches of decoded sound.
        start: run folder with the initial weights; "" for new weights.
    """

    loading: Loading
    start: str = ""

    @abstractmethod
    def network_of(self, modality: Modality) -> nn.Module:
        """Return the network of a modality, without a head.

        Raises:
            InputError: there is no network for the modality.
        """

    def learn_words(self, captions: Captions) -> None:
        """Build the vocabulary of the text network from the training captions.

        A pretrained BERT or network of `transformers` keeps its vocabulary.

        Raises:
            InputError: the file of word vectors cannot be read, or has vectors of another dimension than the network.
        """
        network = self.network_of("text")
        if isinstance(network, BertInput | WordInput):
            network.learn_words(captions)

    def prepared(self, clips: Clips) -> Clips:
        """Return the clips with their sound and captions converted to inputs of the networks.

        Raises:
            InputError: see `aadml.methods.audio_text.towers.prepared`.
        """
        inputs = {m: prepared(f, self.network_of(m), self.loading) for m, f in clips.features.items()}
        return replace(clips, features=inputs)

    def settled(self, clips: Clips) -> Clips:
        """Return the clips with vectors in place of the inputs of frozen networks in evaluation mode.

        This class returns `clips` unchanged.
        """
        return clips

    def check_clips(self, train: Clips) -> None:
        """Raise InputError for clips without sound or captions."""
        _captions(train)

    def begun(self, train: Clips, valid: Clips) -> tuple[Clips, Clips]:
        """Build the vocabulary from the captions of `train`, load the initial weights, and prepare the clips.

        Raises:
            InputError: the clips lack sound or captions, or no sound can be decoded. The word vectors or the
                weights of the initial run do not fit the networks.
        """
        _captions(valid)
        self.learn_words(_captions(train))
        if self.start:
            _load_run(self, Path(self.start))
        return self.settled(self.prepared(train)), self.settled(self.decodable(valid))

    def decodable(self, clips: Clips) -> Clips:
        """Return the prepared clips with decodable sound; a warning names each undecodable file.

        Raises:
            InputError: no sound can be decoded, or the method is not fitted.
        """
        return with_sound(self.prepared(clips))


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


def _load_run(learner: CaptionedLearner, run: Path) -> None:
    """Load the weights, but not the batches of a curriculum, from a finished run of the same networks.

    The words and vectors of a Word2Vec file stay those of the new captions. An untrained table of words is loaded.

    Raises:
        InputError: the folder is not a trained run, is damaged, or has other networks, adapters or word vectors.
    """
    path, facts = run / "model.safetensors", run / "model.json"
    if not path.is_file() or not facts.is_file():
        raise InputError(
            f"method.start: {run} lacks {path.name} or {facts.name}; pass the folder of a trained run or model"
        )
    data = path.read_bytes()
    content = unseal(facts.read_bytes(), facts)
    read_as(FileSum, content["weights"], facts).check(data, path)
    _check_adapters(learner, run, nested(content, "facts"))
    weights = {key.removeprefix("method."): value for key, value in load(data).items() if key.startswith("method.")}
    inputs = {f"{name}.": part for name, part in learner.named_modules() if isinstance(part, WordInput)}
    omitted = ("curriculum.", *(name for name, part in inputs.items() if part.source != UNTRAINED))
    for key, value in learner.state_dict().items():
        first = int(not value.is_floating_point() or key.startswith(tuple(inputs)))  # the rows of words may be others
        fits = key in weights and weights[key].shape[first:] == value.shape[first:]
        if not key.startswith("curriculum.") and not fits:
            raise InputError(
                f"method.start: the tensor '{key}' in {run} is missing or has another size; pass a run of the same "
                "networks"
            )
    source = nested(content, "facts", "method", "arguments").get("text_weights", UNTRAINED)
    for name, part in inputs.items():
        _check_words(part, source, _known(weights[f"{name}words"], weights[f"{name}vectors"]), run)
    learner.load_state_dict({key: value for key, value in weights.items() if not key.startswith(omitted)}, False)


def _check_words(part: WordInput, source: object, before: Mapping[str, Tensor], run: Path) -> None:
    """Raise InputError unless the word vectors of a run and of `part` are untrained, or equal vectors of a file."""
    now = _known(part.words, part.vectors.cpu())
    is_file = part.source != UNTRAINED
    differ = any(not torch.equal(before[word], now[word]) for word in before.keys() & now.keys())
    if is_file != (source != UNTRAINED) or (is_file and differ):
        raise InputError(
            f"method.start: {run} has other word vectors than method.text_weights; pass a run of the same word vectors"
        )


def _known(words: Tensor, vectors: Tensor) -> dict[str, Tensor]:
    """Return the vector (d,) of each word of the buffers of a `WordInput`, without the vector of all other words."""
    return dict(zip(bytes(words.tolist()).decode().split("\n")[:-1], vectors, strict=False))


def _check_adapters(learner: CaptionedLearner, run: Path, facts: JsonObject) -> None:
    """Raise InputError if the adapters of a run belong to other layers, weights or another strength than those here."""
    alpha = nested(facts, "method", "arguments").get("lora_alpha")
    for modality in ("audio", "text"):
        network, saved = learner.network_of(modality), nested(facts, "architecture", modality)
        if not isinstance(network, HubInput) or not network.saved.adapted or not saved.get("adapted"):
            continue
        before = saved.get("weights"), saved.get("adapted"), alpha
        if before != (network.saved.weights, list(network.saved.adapted), network.tuning.lora_alpha):
            raise InputError(
                f"method.start: {run} has adapters of another {modality} network, of other layers, or of another "
                "strength; pass a run of the same weights, method.blocks and method.lora_alpha"
            )
