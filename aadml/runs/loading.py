"""Opening what a training left: a run, with its config and data where they are at hand, or a model folder alone."""

from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote

import torch

from aadml.comparison.clips import Splits
from aadml.configuration.config import Config, resolve
from aadml.configuration.files import parse_yaml
from aadml.feature_extraction.frontends.inference import chosen_device
from aadml.feature_extraction.ground.consent import named_in, with_consent
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject, parse_object
from aadml.model.files import load_model
from aadml.model.model import Model
from aadml.model.packing import FACTS
from aadml.retrieval.record import EvaluationRecord
from aadml.runs.data import load_splits
from aadml.runs.environment import data_hash, read_environment
from aadml.runs.manifest import CONFIG, EVALUATION, RunManifest, is_finished, is_run, read_file, read_manifest

AUDIT = "audit.json"
"""The last audit of a run under its own protocol."""


@dataclass(frozen=True)
class Run:
    """A run that was trained to the end, with the data it was trained on.

    Attributes:
        folder: where it lies.
        config: that it was trained by.
        splits: its data, unscaled.
        model: trained.
    """

    folder: Path
    config: Config
    splits: Splits
    model: Model


@with_consent("path")
def load(path: str | Path, *, device: str = "auto", trust_code: bool = False) -> Model:
    """Load a model from a run or a model folder; neither its data nor its config's paths are needed.

    A loss, selection or proxy from outside aadml is not built, as embedding needs none; a method or an extractor from
    outside is, with consent.

    Args:
        path: a run folder of `aadml train`, or a folder of `Model.save`.
        device: "auto", "cpu" or "cuda".
        trust_code: import the code that the model names as `module:name`.

    Raises:
        UntrustedCodeError: the model names a method from outside aadml, and nobody consented to its code.
        InputError: neither a trained run nor a model, or damaged.

    Example:
        >>> folder = aadml.fit("synthetic:ave", method="cca").save("my model")
        >>> aadml.load(folder)
        <Model cca: audio 128-d, visual 1024-d, 15 classes, cosine, test MAP 0.110>
    """
    folder, target = Path(path), chosen_device(device, "load")
    if not is_run(folder):
        return load_model(folder, target)
    manifest = read_manifest(folder)
    if FACTS not in manifest.files:
        again = f"aadml train --resume {quote(str(folder))}"
        raise InputError(f"{folder}: was not trained to the end; continue it with `{again}`")
    model = _checked_model(folder, manifest, target)
    if not is_finished(folder):
        return model
    audit = _read(folder, AUDIT, manifest)["verdict"] if AUDIT in manifest.files else ""
    return replace(model, evaluation=read_evaluation(folder, manifest).to_json(), audit=str(audit))


def load_run(folder: Path, *, device: str | None = None) -> Run:
    """Load a trained run with its config and the data it was trained on.

    Args:
        folder: of the run.
        device: instead of the config's.

    Raises:
        InputError: not a trained run, damaged, or its data changed or are gone.
    """
    if not is_run(folder) and (folder / FACTS).is_file():
        raise InputError(f"{folder}: is a model without its run; give --data F.h5, or the run folder")
    config = read_config(folder)
    model = load(folder, device=device or config.common.device)
    try:
        splits = load_splits(config)
    except InputError as error:
        raise InputError(f"{error}; the data of {folder} are needed here, or give --data F.h5") from error
    if read_environment(folder).data.sha256 != data_hash(splits):
        raise InputError(f"{splits.name}: the data changed since {folder} was trained; give --data to use other data")
    return Run(folder, config, splits, model)


def read_config(folder: Path) -> Config:
    """Read the config of a run, as it was written.

    Raises:
        InputError: not a run, or a config that was damaged or changed.
    """
    with named_in(folder / CONFIG):
        return resolve(parse_yaml(read_file(folder, CONFIG).decode(), folder / CONFIG), stored=True)


def read_evaluation(folder: Path, manifest: RunManifest | None = None, *, name: str = EVALUATION) -> EvaluationRecord:
    """Read the evaluation of a finished run, or a later one of another name.

    Raises:
        InputError: not finished, not there, or damaged.
    """
    return EvaluationRecord.from_json(_read(folder, name, manifest), folder / name)


def _read(folder: Path, name: str, manifest: RunManifest | None = None) -> JsonObject:
    return parse_object(read_file(folder, name, manifest), folder / name)


def _checked_model(folder: Path, manifest: RunManifest, device: torch.device) -> Model:
    """Load the model of a run, whose manifest must agree with the model's own checksums."""
    read_file(folder, FACTS, manifest)
    return load_model(folder, device)
