"""Offline loading of models from model folders and finished runs, and checks of the loaded files."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from shlex import quote
from threading import get_ident

import torch
from torch import Tensor
from torch.nn.modules.module import register_module_parameter_registration_hook

from aadml.feature_extraction.ground.consent import named_in
from aadml.feature_extraction.ground.contracts import require_result
from aadml.feature_extraction.ground.errors import DamagedFileError, InputError, cause
from aadml.feature_extraction.ground.file_content import read_bytes
from aadml.feature_extraction.ground.options import OptionValues, keywords, schema, sections, without_removed
from aadml.feature_extraction.ground.registry import lookup
from aadml.feature_extraction.ground.validation import checked
from aadml.methods import METHODS
from aadml.methods.inputs import STANDARD, Inputs, Scaling, load_scaling
from aadml.methods.method import Context, Method, MethodFactory
from aadml.methods.towers.hub_input import HubInput
from aadml.methods.towers.options import PretrainedOptions
from aadml.methods.towers.tower_learner import towered
from aadml.methods.training.learned_method import LearnedMethod
from aadml.methods.training.learner import mismatch
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
        InputError: a folder without a model, or a model that is damaged, was saved by another version, or has a method
            that cannot be built.
    """
    record, data = _read_checked(folder)
    tensors = unpack_tensors(data, folder / WEIGHTS).tensors
    with named_in(folder / FACTS), _mismatch_in(folder):
        model = rebuild_model(record.facts, tensors, device)
    return replace(model, folder=folder, record=record.evaluation, audit=record.audit)


def rebuild_model(facts: Facts, tensors: Mapping[str, Tensor], device: torch.device) -> Model:
    """Build a model from its facts and the tensors of its weight file, with only the parts that embedding needs.

    A method of aadml is first built in a trial without memory, since the facts may come from a stranger. The trial
    compares the sizes in the facts with the sizes of the tensors (see `_checked_build`).

    Raises:
        InputError: the method is unknown, or cannot be built from the stored arguments.
        ValueError, TypeError, KeyError, RuntimeError: the tensors are not those of the model that the facts
            describe.
    """
    state, scaling = _under("method.", tensors), load_scaling(_under("inputs.", tensors), facts.inputs)
    _check_scaling(scaling, facts)
    is_own = METHODS.is_own(facts.method.name)
    with rebuilding():
        method = _checked_build(facts, state, device) if is_own else _build(facts, device)
    method.load(state)
    model = Model(method, scaling, facts)
    if is_own:
        _check_embedding(model)
    return model


def _check_embedding(model: Model) -> None:
    for modality, dimension in model.facts.dimensions.items():
        try:
            if dimension:
                model.embed_features(torch.zeros(1, dimension), modality)
        except InputError as error:  # its remedy, to fit the method, is not one for a file
            raise RuntimeError(f"{modality} cannot be embedded: {cause(error)}") from error


def _build(facts: Facts, device: torch.device) -> Method:
    context = Context(
        facts.dimensions, len(facts.class_names), facts.seed, device, facts.clips, facts.features,
        architecture=facts.architecture,
    )  # fmt: skip
    arguments = _typed_arguments(facts.method)
    return build_method(facts.method.name, arguments, facts.training, context, towers=facts.towers, inputs=facts.inputs)


def _checked_build(facts: Facts, state: Mapping[str, Tensor], device: torch.device) -> Method:
    """Build a method after a trial on the meta device, which allocates no memory.

    For a `LearnedMethod`, the trial compares names and shapes with the tensors of `state`. Of a network with adapters,
    the trial compares only the adapters, because the weights of this network are in another file.
    """
    meta, saved = torch.device("meta"), facts.architecture
    audio, visual, text = (tower and replace(tower, adapted=()) for tower in (saved.audio, saved.visual, saved.text))
    blank = replace(saved, audio=audio, visual=visual, text=text)
    with meta, _few_parameters(4 * len(state) + 10_000), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trial = _build(replace(facts, architecture=blank), meta)
        if isinstance(trial, LearnedMethod):
            for part in (part for part in trial.learner.modules() if isinstance(part, HubInput)):
                tower = saved.tower(part.modality)
                if tower is not None and tower.adapted:
                    part.saved = tower
                    part.add_adapters()
            trial.load({name: value.to(meta) for name, value in state.items()})
    return _build(facts, device)


@contextmanager
def _few_parameters(most: int) -> Iterator[None]:
    """Raise ValueError if more than `most` parameters are created, as in a loop over a billion layers."""
    created, thread = iter(range(most)), get_ident()

    def count(*_: object) -> None:  # torch calls it in every thread
        if get_ident() == thread and next(created, None) is None:
            raise ValueError(f"it describes more than {most:,} parameters")

    hook = register_module_parameter_registration_hook(count)
    try:
        yield
    finally:
        hook.remove()


def _check_scaling(scaling: Scaling, facts: Facts) -> None:
    for modality, dimension in facts.dimensions.items():
        for part in (scaling.shift, scaling.scale) if dimension else ():
            if modality not in part or part[modality].shape != (dimension,):
                raise ValueError(f"the scaling of {modality} is not one of {dimension} dimensions")


@contextmanager
def _mismatch_in(folder: Path) -> Iterator[None]:
    """Raise DamagedFileError for any error from a mismatch of facts and weights; torch has no class for such errors."""
    try:
        yield
    except InputError:
        raise
    except (ValueError, TypeError, LookupError, RuntimeError, AttributeError, ArithmeticError, MemoryError) as error:
        raise DamagedFileError(
            f"{folder / FACTS} describes another model than {WEIGHTS} contains ({mismatch(error)}); restore both "
            "files from a copy"
        ) from error


def _typed_arguments(method: MethodFacts) -> OptionValues:
    """Return the arguments of a method, with the plain values of sections replaced by objects."""
    entry = lookup(METHODS, method.name, "method")
    kinds = {key: section.kind for key, section in sections(entry).items()}
    options = schema(entry)

    def typed(key: str, value: object) -> object:
        if key in kinds:
            return stored_section(key, kinds[key], value)
        return checked(options[key].kind, value, f"{FACTS}: method.{key}") if key in options else value

    arguments = vars(without_removed(entry, method.arguments, "method", name=method.name))
    return OptionValues(**{key: typed(key, value) for key, value in arguments.items()})


def verify_model(folder: Path) -> list[str]:
    """Return a list with a sentence on the first problem of a model folder.

    The list is empty if `model.json` and the weights are intact.
    """
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
        data = read_bytes(path)
    except OSError as error:
        raise DamagedFileError(
            f"{path} cannot be read ({error.strerror}), so the model is incomplete; restore the file from a copy"
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
