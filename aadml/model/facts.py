"""Facts of a model, as in `model.json`: its method, its training data and the features that it expects."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from aadml.comparison.features import Modality
from aadml.feature_extraction.ground.json_values import JsonObject, nested
from aadml.feature_extraction.ground.options import OptionValues
from aadml.methods.architecture import Architecture
from aadml.methods.inputs import Inputs
from aadml.methods.towers.options import PretrainedOptions
from aadml.methods.training.settings import Training


@dataclass(frozen=True)
class MethodFacts:
    """Class name and arguments from which the method of a model is built again.

    Attributes:
        name: a key of METHODS.
        arguments: resolved options and sections of the method; in a loaded model, sections are plain values as in
            `model.json`.
    """

    name: str
    arguments: OptionValues


@dataclass(frozen=True)
class TrainingData:
    """Training data of a model.

    Attributes:
        name: name of the file or folder, without its path.
        sha256: SHA-256 of all data read in training.
        clips: split -> number of clips.
        notes: sentences on changes and weaknesses of the data, from the splits and from `Model.rescaled`.
    """

    name: str = ""
    sha256: str = ""
    clips: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Metadata of a model, without its weights: for embedding items, comparing embeddings and assessing the model.

    Attributes:
        label: method and loss in one word ("aa-triplet").
        method: the method and its options.
        training: the `training` section.
        inputs: the `inputs` section, with the options of the scaling.
        dimensions: modality -> number of feature dimensions; 0 if the model reads media or words.
        class_names: classes of the training data, in the order of the labels.
        clips: number of training rows in an epoch: clips, or pairs of a clip and a text.
        seed: random seed of the training run.
        similarity: similarity function of the embeddings.
        protocol: protocol for the selection of the epoch and for scoring.
        features: modality -> fingerprint of its extractor; empty if the data did not name an extractor.
        architecture: networks that were read from files (see `Method.architecture`).
        towers: pretrained networks that compute the inputs of the method; None if the method reads features.
        data: the training data.
        selected_epoch: epoch of these weights; None if no epoch was selected.
        readout: settings for computing embeddings from the outputs of the network, such as the temperature.
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
    architecture: Architecture = field(default_factory=Architecture)
    towers: PretrainedOptions | None = None
    data: TrainingData = field(default_factory=TrainingData)
    selected_epoch: int | None = None
    readout: JsonObject = field(default_factory=dict)

    @property
    def modalities(self) -> tuple[Modality, ...]:
        """Modalities that the model embeds."""
        return tuple(self.dimensions)

    def to_json(self) -> JsonObject:
        """Return the facts as plain values. `towers` and networks of `architecture` are left out if absent."""
        method = {"name": self.method.name, "arguments": self.method.arguments.plain()}
        facts = asdict(self) | {"method": method}
        facts["architecture"] = {name: network for name, network in facts["architecture"].items() if network}
        return {key: value for key, value in facts.items() if key != "towers" or value is not None}


ABOUT = ("torch", "tensorflow", "tensorflow-hub", "weight_file", "pca_file")
"""Parameters that do not change the features. In newer feature files, these parameters are entries of `about`."""


def fingerprint(origin: JsonObject) -> JsonObject:
    """Return the part of a provenance that identifies the extraction of the features.

    Args:
        origin: provenance of a modality, from a feature file.

    Returns:
        A dict with `extractor`, `parameters` as plain JSON and, if known, `source`. `extractor` and `parameters`
        determine the values of the features. `difference` does not compare `source`. For an unknown extractor, the
        dict is empty.
    """
    name = origin.get("extractor")
    if name in (None, "", "unknown"):  # common layouts of feature files do not name their extractor
        return {}
    ignored = () if "about" in origin else ABOUT
    parameters = {key: value for key, value in nested(origin, "parameters").items() if key not in ignored}
    source = nested(nested(origin, "about"), "source")
    known = {"extractor": name, "parameters": json.loads(json.dumps(parameters))}
    return known | ({"source": source} if source else {})


def difference(expected: JsonObject, given: JsonObject) -> str:
    """Return the difference between two fingerprints as text; empty if extractor and parameters are equal."""
    extractor = given["extractor"]
    if expected["extractor"] != extractor:
        return f"{extractor} instead of {expected['extractor']}"
    before, after = nested(expected, "parameters"), nested(given, "parameters")
    changed = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    words = [f"{key} {_short(after.get(key))} instead of {_short(before.get(key))}" for key in changed[:3]]
    return f"{extractor} with {', '.join(words)}" if changed else ""


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
