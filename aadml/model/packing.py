"""Writing models: `model.safetensors`, `model.json` and a card, without paths and without pickle."""

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
    """Read the tensors and facts that `pack_tensors` wrote; `place` is their file, for the message.

    Raises:
        DamagedFileError: the bytes are not complete.
    """
    try:
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        return load_tensors(data), json.loads(header.get("__metadata__", {}).get("facts", "{}"))
    except (SafetensorError, ValueError, AttributeError) as error:
        raise DamagedFileError(f"{place}: is not a complete safetensors file ({error})") from error


def pack_model(
    method: Method, scaling: Scaling, facts: Facts, about: JsonObject, facts_of_weights: JsonObject
) -> dict[str, bytes]:
    """Return the two files that make a folder loadable: name -> content.

    Args:
        method: fitted method.
        scaling: fitted scaling of its inputs.
        facts: facts of the model.
        about: `audit` and `evaluation` of the model, where the folder has no files of them.
        facts_of_weights: facts of the checkpoint, for the header of the weights.
    """
    tensors = {f"method.{key}": value for key, value in method.state().items()}
    tensors |= {f"inputs.{key}": value for key, value in scaling.state().items()}
    weights = pack_tensors(tensors, facts_of_weights)
    content: JsonObject = {"format": FORMAT, "version": VERSION, "facts": facts.to_json()}
    return {WEIGHTS: weights, FACTS: seal({**content, "weights": vars(FileSum.of(weights)), **about})}
