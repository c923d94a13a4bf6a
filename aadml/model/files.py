"""Reading models: a model folder, or a run that was trained to the end, loads offline and checks what it reads."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from shlex import quote

import torch
from torch import Tensor

from aadml.feature_extraction.ground.checksummed_json import FileSum, read_sealed
from aadml.feature_extraction.ground.consent import named_in, remember
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject, nested, read_as
from aadml.feature_extraction.ground.options import keywords
from aadml.feature_extraction.ground.registry import lookup
from aadml.methods import METHODS
from aadml.methods.inputs import STANDARD, Inputs, load_scaling
from aadml.methods.method import Context, Method
from aadml.methods.towers.options import PretrainedOptions
from aadml.methods.towers.tower_method import towered
from aadml.methods.training.settings import Training
from aadml.model.facts import Facts
from aadml.model.model import Model
from aadml.model.packing import FACTS, FORMAT, VERSION, WEIGHTS, unpack_tensors
from aadml.objective.left_out import rebuilding

FIRST_EDITION = "is a run of the first edition, which this aadml does not read; train again on its config.yaml"


def build_method(
    name: str,
    arguments: JsonObject,
    training: Training,
    context: Context,
    *,
    towers: PretrainedOptions | None = None,
    inputs: Inputs = STANDARD,
) -> Method:
    """Build a method with its resolved options; nothing is trained yet. The seed of `context` decides its weights.

    Args:
        name: a key of METHODS.
        arguments: its resolved options and sections.
        training: the `training` section.
        context: of its features.
        towers: pretrained networks in front of it, whose vectors are its features.
        inputs: the `inputs` section; the method itself gets features that are scaled already.
    """
    entry = lookup(METHODS, name, "method")

    def build(context: Context) -> Method:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(context.seed)
            return entry(context, training, **keywords(entry, arguments))

    return towered(name, build, context, training, towers=towers, inputs=inputs) if towers else build(context)


def is_model(folder: Path) -> bool:
    """Tell whether a folder holds a model."""
    return (folder / FACTS).is_file()


def load_model(folder: Path, device: torch.device) -> Model:
    """Load the model of a model folder, or of a run that was trained to the end.

    Raises:
        InputError: not a model, a damaged one, or one of another version.
    """
    content = _read_facts(folder)
    wanted = read_as(FileSum, content["weights"], folder / FACTS)
    path = folder / WEIGHTS
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); the model is incomplete") from error
    wanted.check(data, path)
    tensors, _ = unpack_tensors(data, path)
    facts = read_as(Facts, content["facts"], folder / FACTS)
    remember(origin.get("extractor") for origin in facts.features.values())
    with named_in(folder / FACTS):
        model = rebuilt(facts, tensors, device)
    evaluation = nested(content, "evaluation") or None
    return replace(model, folder=folder, evaluation=evaluation, audit=str(content.get("audit", "")))


def rebuilt(facts: Facts, tensors: Mapping[str, Tensor], device: torch.device) -> Model:
    """Build a model from its facts and the tensors of its weights file; it embeds, and what that needs is built."""
    context = Context(
        facts.dimensions,
        len(facts.class_names),
        facts.seed,
        device,
        facts.clips,
        facts.features,
        architecture=facts.architecture,
    )
    with rebuilding():
        method = build_method(
            facts.method.name, facts.method.arguments, facts.training, context, towers=facts.towers, inputs=facts.inputs
        )
    method.load(_under("method.", tensors))
    return Model(method, load_scaling(_under("inputs.", tensors), facts.inputs), facts)


def verify_model(folder: Path) -> list[str]:
    """Name what is damaged in a model folder, a sentence each; nothing where all is whole."""
    found = []
    try:
        content = _read_facts(folder)
        read_as(FileSum, content["weights"], folder / FACTS).check((folder / WEIGHTS).read_bytes(), folder / WEIGHTS)
    except InputError as error:
        found.append(str(error))
    except OSError as error:
        found.append(f"{folder / WEIGHTS}: cannot be read ({error.strerror})")
    return found


def _read_facts(folder: Path) -> JsonObject:
    path = folder / FACTS
    try:
        return read_sealed(path, FORMAT, VERSION)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{folder}: {_why_not_a_model(folder)}") from None


def _why_not_a_model(folder: Path) -> str:
    if not folder.exists():
        return "no such folder; give a run of `aadml train`, or a saved model"
    if not folder.is_dir():
        return "is a file; a run and a model are folders"
    if (folder / "manifest.json").is_file():
        return f"is a run that was not trained to the end; continue it with `aadml train --resume {quote(str(folder))}`"
    if (folder / "checkpoint.safetensors").is_file():
        return FIRST_EDITION
    return f"neither a run nor a model (no {FACTS} in it)"


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
