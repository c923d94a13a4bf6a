"""Writing models: `model.safetensors`, `model.json` and a card, without local paths and without pickle."""

import json
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from aadml.feature_extraction.ground.checksummed_json import FileSum, seal
from aadml.feature_extraction.ground.errors import DamagedFileError
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.methods.inputs import Scaling
from aadml.methods.method import Method
from aadml.model.facts import Facts

WEIGHTS = "model.safetensors"
FACTS = "model.json"
CARD = "README.md"
FORMAT = "aadml-model"
VERSION = 1


def pack_tensors(tensors: Mapping[str, Tensor], facts: JsonObject) -> bytes:
    """Return tensors and JSON facts in the safetensors format; equal content has equal bytes."""
    ready = {key: value.detach().cpu().contiguous().clone() for key, value in sorted(tensors.items())}
    return save_tensors(ready, {"facts": json.dumps(dict(facts), sort_keys=True)})


def unpack_tensors(data: bytes, place: Path) -> tuple[dict[str, Tensor], JsonObject]:
    """Read tensors and facts written by `pack_tensors`; `place` is the path of the file, for messages.

    Raises:
        DamagedFileError: the data are incomplete.
    """
    try:
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        return load_tensors(data), json.loads(header.get("__metadata__", {}).get("facts", "{}"))
    except (SafetensorError, ValueError, AttributeError) as error:
        raise DamagedFileError(
            f"{place}: is not a complete safetensors file ({error}); restore the file from a copy, or create it again"
        ) from error


def pack_model(
    method: Method, scaling: Scaling, facts: Facts, about: JsonObject, facts_of_weights: JsonObject
) -> dict[str, bytes]:
    """Return the two files that define a model: name -> content.

    Args:
        method: fitted method.
        scaling: fitted scaling of its inputs.
        facts: facts of the model.
        about: `audit` and `evaluation` of the model, if the folder has no files with these.
        facts_of_weights: facts of the checkpoint, for the header of the weights.
    """
    tensors = {f"method.{key}": value for key, value in method.state().items()}
    tensors |= {f"inputs.{key}": value for key, value in scaling.state().items()}
    weights = pack_tensors(tensors, facts_of_weights)
    content: JsonObject = {"format": FORMAT, "version": VERSION, "facts": facts.to_json()}
    return {WEIGHTS: weights, FACTS: seal({**content, "weights": vars(FileSum.of(weights)), **about})}
