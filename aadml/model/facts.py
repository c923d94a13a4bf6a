"""What a model knows of itself: what it is, what it was trained on, what it expects (`model.json`)."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from aadml.comparison.types import Modality, Splits
from feature_extraction.ground.errors import InputError

Json = Mapping[str, Any]
"""Plain values, as they stand in JSON."""


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
        method: name, and under "arguments" the resolved options that it was built with.
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
        data: that it was trained on.
        selected_epoch: whose weights these are; None where there are no epochs.
        readout: further settings of how embeddings are read (temperature).
    """

    label: str
    method: Json
    training: Json
    inputs: Json
    dimensions: Mapping[Modality, int]
    class_names: tuple[str, ...]
    clips: int
    seed: int
    similarity: str = "cosine"
    protocol: str = "inductive"
    features: Mapping[Modality, Json] = field(default_factory=dict)
    architecture: Json = field(default_factory=dict)
    data: TrainingData = field(default_factory=TrainingData)
    selected_epoch: int | None = None
    readout: Json = field(default_factory=dict)

    @property
    def modalities(self) -> tuple[Modality, ...]:
        """Name the modalities that the model embeds."""
        return tuple(self.dimensions)

    def to_json(self) -> dict[str, Any]:
        """Give the plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Json, place: Path) -> "Facts":
        """Read what `to_json` gave.

        Raises:
            InputError: fields are missing or unknown: the file is of another version.
        """
        try:
            data = TrainingData(**content["data"])
            return cls(
                **{**content, "class_names": tuple(content["class_names"])}
                | {"data": TrainingData(data.name, data.sha256, data.clips, tuple(data.notes))}
            )
        except (TypeError, KeyError) as error:
            raise InputError(f"{place}: not the facts of a model of this version ({error})") from error


def training_data(splits: Splits, sha256: str) -> TrainingData:
    """Describe the data of a training."""
    counts = {part: len(splits[part]) for part in ("train", "valid", "test")}
    return TrainingData(Path(splits.name).name, sha256, counts, splits.notes)


ABOUT = ("torch", "tensorflow", "tensorflow-hub", "weight_file", "pca_file")
"""What feature files without `about` say among the parameters, though it makes no other features."""


def fingerprint(origin: Json) -> dict[str, Any]:
    """Keep of a provenance what decides the values of features: which that is, the extractor says (`Extractor`).

    Args:
        origin: what a feature file says of a modality.

    Returns:
        The extractor and its parameters, as JSON gives them back; empty where nothing is said.
    """
    given = origin.get("parameters")
    parameters = json.loads(json.dumps(given)) if isinstance(given, Mapping) else {}
    beside = () if "about" in origin else ABOUT
    kept = {key: value for key, value in parameters.items() if key not in beside}
    known = origin.get("extractor") not in (None, "", "unknown")  # layouts of the field do not say what made them
    return {"extractor": origin["extractor"], "parameters": kept} if known else {}


def difference(expected: Json, given: Json) -> str:
    """Say in words how two fingerprints differ; empty where they agree."""
    if expected["extractor"] != given["extractor"]:
        return f"{given['extractor']} instead of {expected['extractor']}"
    one, other = expected["parameters"], given["parameters"]
    changed = [key for key in {**one, **other} if one.get(key) != other.get(key)]
    differences = [f"{key} {_short(other.get(key))} instead of {_short(one.get(key))}" for key in changed[:3]]
    return f"{given['extractor']} with {', '.join(differences)}" if changed else ""


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
