"""What a model knows of itself: what it is, what it was trained on, what it expects (`model.json`)."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from aadml.comparison.clips import Splits
from aadml.comparison.features import Modality
from aadml.feature_extraction.ground.json_values import JsonObject, nested
from aadml.methods.inputs import Inputs
from aadml.methods.towers.options import PretrainedOptions
from aadml.methods.training.settings import Training


@dataclass(frozen=True)
class MethodFacts:
    """How a method is built again.

    Attributes:
        name: a key of METHODS.
        arguments: its resolved options and sections.
    """

    name: str
    arguments: JsonObject


@dataclass(frozen=True)
class TrainingData:
    """What a model was trained on.

    Attributes:
        name: of the file or folder, without its path.
        sha256: of everything in it that training saw.
        clips: split -> how many.
        notes: what was done on the way to the splits.
    """

    name: str = ""
    sha256: str = ""
    clips: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Everything but the weights that is needed to embed, compare and judge.

    Attributes:
        label: what was trained, in one word ("aa-triplet").
        method: how it is built.
        training: the `training` section.
        inputs: the `inputs` section, by which the scaling was fitted.
        dimensions: modality -> number of feature dimensions; 0 where the features are sound or words.
        class_names: of the training data, in the order of the labels.
        clips: number of training clips.
        seed: of weights, order and draws.
        similarity: how the embeddings are compared.
        protocol: under which the model was selected and scored.
        features: modality -> what made the features; empty where the data did not say.
        architecture: of networks that were read from files (see `Method.architecture`).
        towers: pretrained networks in front of the method; None where it takes features.
        data: that it was trained on.
        selected_epoch: whose weights these are; None where there are no epochs.
        readout: further settings of how embeddings are read (temperature).
    """

    label: str
    method: MethodFacts
    training: Training
    inputs: Inputs
    dimensions: Mapping[Modality, int]
    class_names: tuple[str, ...]
    clips: int
    seed: int
    similarity: str = "cosine"
    protocol: str = "inductive"
    features: Mapping[Modality, JsonObject] = field(default_factory=dict)
    architecture: JsonObject = field(default_factory=dict)
    towers: PretrainedOptions | None = None
    data: TrainingData = field(default_factory=TrainingData)
    selected_epoch: int | None = None
    readout: JsonObject = field(default_factory=dict)

    @property
    def modalities(self) -> tuple[Modality, ...]:
        """Name the modalities that the model embeds."""
        return tuple(self.dimensions)

    def to_json(self) -> JsonObject:
        """Give the plain values."""
        return {key: value for key, value in asdict(self).items() if key != "towers" or value is not None}


def training_data(splits: Splits, sha256: str) -> TrainingData:
    """Describe the data of a training."""
    counts = {part: len(splits[part]) for part in ("train", "valid", "test")}
    return TrainingData(Path(splits.name).name, sha256, counts, splits.notes)


ABOUT = ("torch", "tensorflow", "tensorflow-hub", "weight_file", "pca_file")
"""What feature files without `about` say among the parameters, though it makes no other features."""


def fingerprint(origin: JsonObject) -> JsonObject:
    """Keep of a provenance what decides the values of features: which that is, the extractor says (`Extractor`).

    Args:
        origin: what a feature file says of a modality.

    Returns:
        The extractor and its parameters, as JSON gives them back, and where it comes from, which decides nothing; empty
        where nothing is said.
    """
    name = origin.get("extractor")
    if name in (None, "", "unknown"):  # layouts of the field do not say what made them
        return {}
    beside = () if "about" in origin else ABOUT
    kept = {key: value for key, value in nested(origin, "parameters").items() if key not in beside}
    found: JsonObject = {"extractor": name, "parameters": json.loads(json.dumps(kept))}
    source = nested(nested(origin, "about"), "source")
    return {**found, "source": source} if source else found


def difference(expected: JsonObject, given: JsonObject) -> str:
    """Say in words how two fingerprints differ; empty where they agree."""
    if expected["extractor"] != given["extractor"]:
        return f"{given['extractor']} instead of {expected['extractor']}"
    one, other = nested(expected, "parameters"), nested(given, "parameters")
    changed = [key for key in {**one, **other} if one.get(key) != other.get(key)]
    differences = [f"{key} {_short(other.get(key))} instead of {_short(one.get(key))}" for key in changed[:3]]
    return f"{given['extractor']} with {', '.join(differences)}" if changed else ""


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
