"""Offline loading of models from model folders and finished runs, and checks of their files."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from shlex import quote

import torch
from torch import Tensor

from aadml.feature_extraction.ground.consent import named_in
from aadml.feature_extraction.ground.contracts import require_result
from aadml.feature_extraction.ground.errors import DamagedFileError, InputError
from aadml.feature_extraction.ground.options import OptionValues, keywords, sections, without_removed
from aadml.feature_extraction.ground.registry import lookup
from aadml.methods import METHODS
from aadml.methods.inputs import STANDARD, Inputs, load_scaling
from aadml.methods.method import Context, Method, MethodFactory
from aadml.methods.towers.options import PretrainedOptions
from aadml.methods.towers.tower_method import towered
from aadml.methods.training.settings import Training
from aadml.model.facts import Facts, MethodFacts
from aadml.model.model import Model
from aadml.model.packing import FACTS, WEIGHTS, ModelRecord, read_model_record, unpack_tensors
from aadml.objective.left_out import rebuilding
from aadml.objective.sections import stored_section


def build_method(
    name: str,
    arguments: OptionValues,
    training: Training,
    context: Context,
    *,
    towers: PretrainedOptions | None = None,
    inputs: Inputs = STANDARD,
) -> Method:
    """Build an untrained method from its resolved options, with weights drawn with the seed of `context`.

    Args:
        name: a key of METHODS.
        arguments: resolved options and sections of the method.
        training: the `training` section.
        context: dimensions, classes, seed and device.
        towers: pretrained networks that compute the features of the method; None if there are no such networks.
        inputs: the `inputs` section, for towers; a method without towers receives scaled features.

    Raises:
        InputError: the method is unknown, or cannot be built from the arguments.
    """
    entry = lookup(METHODS, name, "method")

    def build(context: Context) -> Method:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(context.seed)
            method = entry(context, training, **keywords(entry, arguments))
            return require_result(method, MethodFactory, "method", name)

    return towered(name, build, context, training, towers=towers, inputs=inputs) if towers else build(context)


def is_model(folder: Path) -> bool:
    """Return whether a folder contains a model."""
    return (folder / FACTS).is_file()


def load_model(folder: Path, device: torch.device) -> Model:
    """Load the model of a model folder, or of a run whose training finished.

    Raises:
        InputError: the folder contains no model, or the model is damaged, was saved by another version, or has a method
            that cannot be built.
    """
    record, data = _read_checked(folder)
    tensors = unpack_tensors(data, folder / WEIGHTS).tensors
    with named_in(folder / FACTS):
        model = rebuild_model(record.facts, tensors, device)
    return replace(model, folder=folder, record=record.evaluation, audit=record.audit)


def rebuild_model(facts: Facts, tensors: Mapping[str, Tensor], device: torch.device) -> Model:
    """Build a model from its facts and the tensors of its weight file, with only the parts that embedding needs.

    Raises:
        InputError: the method is unknown, or cannot be built from the stored arguments.
    """
    context = Context(
        facts.dimensions, len(facts.class_names), facts.seed, device, facts.clips, facts.features,
        architecture=facts.architecture,
    )  # fmt: skip
    name, training = facts.method.name, facts.training
    with rebuilding():
        arguments = _typed_arguments(facts.method)
        method = build_method(name, arguments, training, context, towers=facts.towers, inputs=facts.inputs)
    method.load(_under("method.", tensors))
    return Model(method, load_scaling(_under("inputs.", tensors), facts.inputs), facts)


def _typed_arguments(method: MethodFacts) -> OptionValues:
    """Return the arguments of a method, with the plain values of sections replaced by objects."""
    entry = lookup(METHODS, method.name, "method")
    kinds = {key: section.kind for key, section in sections(entry).items()}
    arguments = vars(without_removed(entry, method.arguments, "method", name=method.name)).items()
    return OptionValues(**{k: stored_section(k, kinds[k], value) if k in kinds else value for k, value in arguments})


def verify_model(folder: Path) -> list[str]:
    """Return a list with a sentence on the first problem of a model folder; empty if all files are intact."""
    try:
        _read_checked(folder)
    except InputError as error:
        return [str(error)]
    return []


def _read_checked(folder: Path) -> tuple[ModelRecord, bytes]:
    """Read `model.json` and the bytes of the weights, both checked against their checksums."""
    try:
        record = read_model_record(folder)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{folder} {_why_not_a_model(folder)}") from None
    path = folder / WEIGHTS
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DamagedFileError(
            f"{path}: cannot be read ({error.strerror}), so the model is incomplete; restore the file from a copy"
        ) from error
    record.weights.check(data, path)
    return record, data


def _why_not_a_model(folder: Path) -> str:
    if not folder.exists():
        return "does not exist; pass a run of `aadml train`, or a saved model"
    if not folder.is_dir():
        return "is a file, not a folder; pass the folder of a run or a model"
    if (folder / "manifest.json").is_file():
        return (
            "is a run whose training was not finished; continue the training with `aadml train --resume "
            f"{quote(str(folder))}`"
        )
    return f"is neither a run nor a model (the folder has no {FACTS}); pass the folder of a run or a model"


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
