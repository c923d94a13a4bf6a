"""From a config to a run folder: data, method, training, the one look at the test split."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from aadml.comparison.types import Features, Splits
from aadml.configuration.config import Config, resolve
from aadml.configuration.files import read_yaml
from aadml.methods import METHODS
from aadml.methods.inputs import fit_scaling, load_scaling
from aadml.methods.learned import LearnedMethod
from aadml.methods.method import Context
from aadml.model.encoder import Encoder
from aadml.proxies.anchor_aware import degeneracy
from aadml.retrieval import evaluate
from aadml.runs.data import load_splits, protocol_of
from aadml.runs.environment import data_hash, environment
from aadml.runs.folder import (
    CHECKPOINT,
    CONFIG,
    ENVIRONMENT,
    EVALUATION,
    TRAINING_STATE,
    RunSession,
    device_of,
    is_run,
    read_json,
    read_metrics,
    read_tensors,
    write_tensors,
)
from aadml.runs.forecast import forecast
from feature_extraction.ground.atomic import write_text
from feature_extraction.ground.errors import InputError
from feature_extraction.ground.options import lookup


@dataclass(frozen=True)
class Scoring:
    """What is scored once training is over.

    Attributes:
        split: "test", or "valid" for a trial of a search, which must not look at test. A method without epochs to
            choose, which would else be fitted on the validation clips too, is then kept from them.
        queries: whether the average precision of each query is written too.
    """

    split: str = "test"
    queries: bool = False


TEST = Scoring()


def train_run(
    config: Config,
    folder: Path,
    scoring: Scoring = TEST,
    /,
    on_note: Callable[[str], None] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Train what `config` says into `folder`, continuing where an earlier process was stopped, and evaluate it once.

    Args:
        config: complete.
        folder: an empty folder, or one whose training was interrupted.
        scoring: what is scored, and in what detail.
        on_note: told what people should know before training: what was done to the data, how long it will take.
        options: of `RunSession` (`on_epoch`, `on_plan`, `on_warning`, `saving_share`).

    Returns:
        The evaluation of the split, every item embedded alone, as written to `evaluation.json`, with the seconds that
        fitting took and the number of parameters fitted.

    Raises:
        InputError: data or config do not fit, or the data changed since the run began.
    """
    splits = load_splits(config)
    device = device_of(config["device"])
    encoder = build_encoder(config, splits, device)
    _check_same_data(folder, splits)
    write_text(folder / CONFIG, config.yaml())
    write_text(folder / ENVIRONMENT, json.dumps(environment(splits, device), indent=2) + "\n")
    session = RunSession(folder, encoder.scaling.state(), **options)
    if on_note:
        expected = forecast(encoder.method, len(splits.train), len(splits.train.class_names))
        for note in [*splits.notes, *([expected] if expected else [])]:
            on_note(note)
    train, valid = encoder.scaling.clips(splits.train), encoder.scaling.clips(splits.valid)
    before, started = _seconds_before(folder), time.perf_counter()
    if (scoring.split == "valid" or config["unseen_classes"] is not None) and not isinstance(
        encoder.method, LearnedMethod
    ):
        valid = valid.select(torch.arange(0))  # else it would be fitted on them too, or on classes numbered otherwise
    encoder.method.fit(train, valid, session)
    seconds = before + time.perf_counter() - started
    _write_checkpoint(folder, encoder, session)
    evaluation = evaluate(encoder.embed_clips(splits[scoring.split]), protocol=protocol_of(config), split=scoring.split)
    if config["unseen_classes"] is not None:
        evaluation = replace(evaluation, label_space={})  # no dimension stands for a class that is tested
    result = evaluation.to_json(queries=scoring.queries)
    result |= {"label": config.label(), "seed": config["seed"], "selected_epoch": _selected_epoch(session)}
    result |= {"seconds": round(seconds, 3), "parameters": encoder.method.parameters_count()}
    write_text(folder / EVALUATION, json.dumps(result, indent=2) + "\n")
    return result


def build_encoder(config: Config, splits: Splits, device: torch.device) -> Encoder:
    """Build the method of a config for the data, its scaling fitted on the training clips; nothing is trained yet."""
    dimensions = {m: _dimension(splits.train[m]) for m in splits.train.modalities}
    context = Context(dimensions, len(splits.train.class_names), config["seed"], device, len(splits.train))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config["seed"])
        method = lookup(METHODS, config.method, "method")(context, config.training(), **config.arguments())
    return Encoder(method, fit_scaling(splits.train, **config["inputs"]), splits.train.class_names)


def read_config(folder: Path) -> Config:
    """Read the config of a run folder.

    Raises:
        InputError: not a run folder.
    """
    if not is_run(folder):
        raise InputError(f"{folder}: not a run folder (no {CONFIG} in it); `aadml train` makes one")
    return resolve(read_yaml(folder / CONFIG))


def load_run(folder: Path) -> tuple[Config, Splits, Encoder]:
    """Load the config, the data and the trained encoder of a run.

    Raises:
        InputError: not a run folder, not trained, or its data changed or are gone.
    """
    config = read_config(folder)
    checkpoint = read_tensors(folder / CHECKPOINT)
    splits = load_splits(config)
    _check_same_data(folder, splits)
    return config, splits, load_encoder(config, splits, checkpoint.tensors)


def load_encoder(config: Config, splits: Splits, tensors: Mapping[str, Tensor]) -> Encoder:
    """Rebuild a trained encoder from the tensors of a checkpoint."""
    built = build_encoder(config, splits, device_of(config["device"]))
    built.method.load({k.removeprefix("method."): v for k, v in tensors.items() if k.startswith("method.")})
    inputs = {k.removeprefix("inputs."): v for k, v in tensors.items() if k.startswith("inputs.")}
    return Encoder(built.method, load_scaling(inputs, **config["inputs"]), built.class_names)


def remarks(config: Config) -> list[str]:
    """Say what people should know of a config before it trains: readings that degenerate, networks without training."""
    method = config.values["method"]
    weights = {key: value for key, value in method.items() if key.endswith("_weights")}
    untrained = [key.removesuffix("_weights") for key, value in weights.items() if value == "untrained"]
    if untrained:
        return [f"the {' and the '.join(untrained)} network begin with random weights (method.{untrained[0]}_weights)"]
    proxy = config.values.get("proxy", {})
    if proxy.get("name") != "anchor-aware":
        return []
    options = {key: value for key, value in proxy.items() if key != "name"}
    sentence = degeneracy(options)
    return [f"proxy: {sentence}"] if sentence else []


def is_finished(folder: Path) -> bool:
    """Say whether a run was trained and evaluated to the end."""
    return (folder / EVALUATION).is_file()


def _dimension(features: Features) -> int:
    return features.shape[1] if isinstance(features, Tensor) else 0


def _write_checkpoint(folder: Path, encoder: Encoder, session: RunSession) -> None:
    """Write the final state: the best epoch's weights and what `finish` added to them."""
    tensors = {f"method.{k}": v for k, v in encoder.method.state().items()}
    tensors |= {f"inputs.{k}": v for k, v in encoder.scaling.state().items()}
    best = session.best()
    write_tensors(folder / CHECKPOINT, tensors, best.facts if best else {})
    # nothing is left to continue: the state is large, and the checkpoint has all that embedding needs
    (folder / TRAINING_STATE).unlink(missing_ok=True)


def _seconds_before(folder: Path) -> float:
    """Sum the epochs of an interrupted training that is to be continued."""
    if not (folder / TRAINING_STATE).is_file():
        return 0.0
    return sum(float(record.get("seconds", 0.0)) for record in read_metrics(folder))


def _selected_epoch(session: RunSession) -> int | None:
    best = session.best()
    return int(best.facts["epoch"]) if best else None


def _check_same_data(folder: Path, splits: Splits) -> None:
    path = folder / ENVIRONMENT
    if path.is_file() and read_json(path)["data"]["sha256"] != data_hash(splits):
        raise InputError(f"{splits.name}: the data changed since {folder} was begun; start a new run")
