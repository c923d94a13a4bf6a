"""Model folders: `model.safetensors`, `model.json` and a card. They hold no path and no pickle, and load offline."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from aadml.methods import METHODS
from aadml.methods.inputs import load_scaling
from aadml.methods.method import Context, Method
from aadml.methods.settings import Training
from aadml.model.card import card
from aadml.model.facts import Facts, Json
from aadml.model.model import Model
from feature_extraction.ground.atomic import write_bytes
from feature_extraction.ground.errors import InputError
from feature_extraction.ground.options import keywords
from feature_extraction.ground.sealed import FileSum, seal, unseal
from feature_extraction.ground.tables import lookup

WEIGHTS = "model.safetensors"
FACTS = "model.json"
CARD = "README.md"
FORMAT = "aadml-model"
VERSION = 1


def build_method(name: str, arguments: Json, training: Json, context: Context) -> Method:
    """Build a method with its resolved options; nothing is trained yet. The seed of `context` decides its weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(context.seed)
        build = lookup(METHODS, name, "method")
        return build(context, Training(**training), **keywords(build, arguments))


def pack_tensors(tensors: Mapping[str, Tensor], facts: Json) -> bytes:
    """Write tensors and JSON facts as safetensors; equal content gives equal bytes."""
    ready = {key: value.detach().cpu().contiguous().clone() for key, value in sorted(tensors.items())}
    return save_tensors(ready, {"facts": json.dumps(dict(facts), sort_keys=True)})


def unpack_tensors(data: bytes, place: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `pack_tensors` wrote: tensors and facts.

    Raises:
        InputError: it is not whole.
    """
    try:
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        return load_tensors(data), json.loads(header.get("__metadata__", {}).get("facts", "{}"))
    except (SafetensorError, ValueError, AttributeError) as error:
        raise InputError(f"{place}: is not a whole safetensors file ({error})") from error


def pack_model(model: Model, facts_of_weights: Json) -> dict[str, bytes]:
    """Give the two files that make a folder loadable: name -> content."""
    tensors = {f"method.{key}": value for key, value in model.method.state().items()}
    tensors |= {f"inputs.{key}": value for key, value in model.scaling.state().items()}
    weights = pack_tensors(tensors, facts_of_weights)
    return {WEIGHTS: weights, FACTS: _facts_file(model.facts, FileSum.of(weights))}


def save_model(model: Model, folder: Path) -> Path:
    """Save a model into a folder of its own; see `Model.save`."""
    for name in (WEIGHTS, FACTS, CARD):
        if (folder / name).exists():
            raise InputError(f"{folder}: holds a {name} already; choose another folder")
    packed = pack_model(model, {})
    packed[FACTS] = _facts_file(model.facts, FileSum.of(packed[WEIGHTS]), model.evaluation, model.audit)
    write_bytes(folder / WEIGHTS, packed[WEIGHTS])
    write_bytes(folder / CARD, card(model).encode())
    write_bytes(folder / FACTS, packed[FACTS])  # last: a folder without it is no model
    return folder


def is_model(folder: Path) -> bool:
    """Tell whether a folder holds a model."""
    return (folder / FACTS).is_file()


def load_model(folder: Path, device: torch.device) -> Model:
    """Load the model of a model folder, or of a run that was trained to the end.

    Raises:
        InputError: not a model, a damaged one, or one of another version.
    """
    content = _read_facts(folder)
    wanted = FileSum(**content["weights"])
    path = folder / WEIGHTS
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); the model is not whole") from error
    wanted.check(data, path)
    tensors, _ = unpack_tensors(data, path)
    model = rebuilt(Facts.from_json(content["facts"], folder / FACTS), tensors, device)
    return replace(model, folder=folder, evaluation=content.get("evaluation"), audit=content.get("audit", ""))


def rebuilt(facts: Facts, tensors: Mapping[str, Tensor], device: torch.device) -> Model:
    """Build a model from its facts and the tensors of its weights file."""
    context = Context(
        facts.dimensions, len(facts.class_names), facts.seed, device, facts.clips, architecture=facts.architecture
    )
    method = build_method(facts.method["name"], facts.method["arguments"], facts.training, context)
    method.load(_under("method.", tensors))
    return Model(method, load_scaling(_under("inputs.", tensors), **facts.inputs), facts)


def verify_model(folder: Path) -> list[str]:
    """Name what is damaged in a model folder, a sentence each; nothing where all is whole."""
    found = []
    try:
        content = _read_facts(folder)
        FileSum(**content["weights"]).check((folder / WEIGHTS).read_bytes(), folder / WEIGHTS)
    except InputError as error:
        found.append(str(error))
    except OSError as error:
        found.append(f"{folder / WEIGHTS}: cannot be read ({error.strerror})")
    return found


def _facts_file(facts: Facts, weights: FileSum, evaluation: Json | None = None, audit: str = "") -> bytes:
    content: dict[str, Any] = {"format": FORMAT, "version": VERSION, "facts": facts.to_json()}
    content["weights"] = weights.to_json()
    content |= {"audit": audit} if audit else {}
    return seal(content | ({"evaluation": dict(evaluation)} if evaluation else {}))


def _read_facts(folder: Path) -> dict[str, Any]:
    path = folder / FACTS
    try:
        content = unseal(path.read_bytes(), path)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{folder}: {_why_not_a_model(folder)}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    if content.get("format") != FORMAT or content.get("version") != VERSION:
        found = f"{content.get('format')} version {content.get('version')}"
        raise InputError(f"{path}: is of {found}; this aadml reads {FORMAT} version {VERSION}")
    return content


def _why_not_a_model(folder: Path) -> str:
    if not folder.exists():
        return "no such folder; give a run of `aadml train`, or a saved model"
    if not folder.is_dir():
        return "is a file; a run and a model are folders"
    if (folder / "manifest.json").is_file():
        return f"is a run that was not trained to the end; continue it with `aadml train --resume {folder}`"
    if (folder / "checkpoint.safetensors").is_file():
        return "is a run of the first edition, which this aadml does not read; train again on its config.yaml"
    return f"neither a run nor a model (no {FACTS} in it)"


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
