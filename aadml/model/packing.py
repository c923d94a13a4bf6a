"""Content of a model folder: `model.safetensors`, `model.json` and a card, without local paths and without pickle."""

import json
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from aadml.feature_extraction.ground.checksummed_json import FileSum, read_sealed, seal
from aadml.feature_extraction.ground.errors import DamagedFileError
from aadml.feature_extraction.ground.json_values import nested, read_as
from aadml.feature_extraction.ground.options import OptionValues, without_removed
from aadml.methods.towers.options import PretrainedOptions
from aadml.methods.training.session import Checkpoint
from aadml.methods.training.settings import Training
from aadml.model.facts import Facts
from aadml.retrieval.record import EvaluationRecord

WEIGHTS = "model.safetensors"
FACTS = "model.json"
CARD = "README.md"
FORMAT = "aadml-model"
VERSION = 1


def pack_tensors(checkpoint: Checkpoint) -> bytes:
    """Return tensors and their facts in the safetensors format; equal content has equal bytes."""
    ready = {key: value.detach().cpu().contiguous().clone() for key, value in sorted(checkpoint.tensors.items())}
    return save_tensors(ready, {"facts": json.dumps(dict(checkpoint.facts), sort_keys=True)})


def unpack_tensors(data: bytes, place: Path) -> Checkpoint:
    """Read the result of `pack_tensors`; `place` is the path of the file, for messages.

    Raises:
        DamagedFileError: the data are not a complete safetensors file.
    """
    try:
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        return Checkpoint(load_tensors(data), json.loads(header.get("__metadata__", {}).get("facts", "{}")))
    except (SafetensorError, ValueError, AttributeError, RecursionError) as error:
        raise DamagedFileError(
            f"{place} is not a complete safetensors file ({error}); restore the file from a copy, or create a new file"
        ) from error


@dataclass(frozen=True)
class ModelRecord:
    """Content of `model.json`.

    Attributes:
        facts: facts of the model.
        weights: size and SHA-256 of `model.safetensors`.
        audit: verdict of the audit; empty without an audit, or if the folder has a file with the audit.
        evaluation: evaluation of the model; None without an evaluation, or if the folder has a file with the
            evaluation.
    """

    facts: Facts
    weights: FileSum
    audit: str = ""
    evaluation: EvaluationRecord | None = None

    def to_bytes(self) -> bytes:
        """Return the content of `model.json` as bytes, with a checksum."""
        model = {"facts": self.facts.to_json(), "weights": vars(self.weights)}
        results = {"audit": self.audit, "evaluation": self.evaluation and self.evaluation.to_json()}
        known = {key: value for key, value in results.items() if value}
        return seal({"format": FORMAT, "version": VERSION, **model, **known})


def read_model_record(folder: Path) -> ModelRecord:
    """Read `model.json`, checked against its checksum.

    Raises:
        FileNotFoundError: the folder has no such file.
        NotADirectoryError: `folder` is a file.
        InputError: the file is damaged, or of another version.
    """
    place = folder / FACTS
    content = read_sealed(place, FORMAT, VERSION)
    facts, evaluation = dict(nested(content, "facts")), nested(content, "evaluation")
    for key, kind in (("training", Training), ("towers", PretrainedOptions)):
        if key in facts:
            facts[key] = vars(without_removed(kind, OptionValues(**nested(facts, key)), key))
    return ModelRecord(
        read_as(Facts, facts, place),
        read_as(FileSum, content["weights"], place),
        str(content.get("audit", "")),
        EvaluationRecord.from_json(evaluation, place) if evaluation else None,
    )
