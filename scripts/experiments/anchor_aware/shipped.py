"""Stages of shipped configs: all methods at their own schedules (stage 5), without labels and with few (stage 6)."""

from dataclasses import replace

from aadml.configuration.config import Config
from aadml.feature_extraction.ground.json_values import Json, JsonObject
from aadml.studies.comparison_rows import published_methods
from aadml.studies.grid import Overrides
from scripts.experiments.anchor_aware.experiment import DataSet, Experiment, Run
from scripts.experiments.anchor_aware.finals import CONTROL_SEEDS, seeds_of
from scripts.experiments.anchor_aware.sets import DRAWN_BY_CLASS

FIFTH, CAPPED, PAIRS, FEW_LABELS = "stage-5", "stage-5-capped", "stage-6-pairs", "stage-6-few-labels"
CAP = 600
"""Steps after which the capped runs end."""
METHOD_SEEDS = 3
BUDGET = "training.epochs"
"""The option by which a row of stage 5 says its budget."""

ALONE, NEIGHBORS, EITHER, RANDOM = "pairs", "agreeing neighbors", "neighbors in either modality", "random neighbors"
_AGREEING: JsonObject = {"neighbors.positives": "agreeing"}
WITHOUT_LABELS: dict[str, JsonObject] = {
    ALONE: {},
    NEIGHBORS: _AGREEING,
    EITHER: {"neighbors.positives": "either"},
    RANDOM: {**_AGREEING, "neighbors.control": "random"},
    "AA proxies": {"loss": "aa-nt-xent"},
}
"""Method -> what it changes in the config `pairs`."""
LABELS_A_CLASS = (4, 12)
WITH_FEW: dict[str, JsonObject] = {
    "labels alone": {"loss.weight": 0.0},
    **{name: WITHOUT_LABELS[name] for name in (ALONE, NEIGHBORS, RANDOM)},
}
"""Method -> what it changes in the config `few_labels`."""


def few(name: str, count: int) -> str:
    """Name a method of `WITH_FEW` at so many labels a class."""
    return f"{name}, {count} labels a class"


def all_methods(name: str, data_set: DataSet, experiment: Experiment) -> list[Run]:
    """List the methods of the paper's table 1, each at its own schedule."""
    return _methods(FIFTH, name, data_set.shipped(published_methods()), experiment)


def capped_methods(name: str, data_set: DataSet, experiment: Experiment) -> list[Run]:
    """List the same ended after `CAP` steps, without those that take no more of themselves."""
    configs = data_set.shipped(published_methods())
    short = {method: _capped(config, data_set.clips) for method, config in configs.items()}
    return _methods(CAPPED, name, {key: one for key, one in short.items() if one != configs[key]}, experiment)


def _capped(config: Config, clips: int) -> Config:
    training = config.training
    epochs = max(1, CAP // -(-clips // training.batch))
    return replace(config, training=replace(training, epochs=min(epochs, training.epochs)))


def _methods(stage: str, name: str, configs: dict[str, Config], experiment: Experiment) -> list[Run]:
    return [
        Run.of(stage, name, method, {BUDGET: config.training.epochs}, config, seed)
        for seed in seeds_of(METHOD_SEEDS, experiment)
        for method, config in configs.items()
    ]


def without_labels(name: str, data_set: DataSet, experiment: Experiment) -> list[Run]:
    """List what learns from pairs alone, their labels left out of training, selection and score."""
    options = {method: {**one, "relevance": "own"} for method, one in WITHOUT_LABELS.items()}
    return _variants(PAIRS, "pairs", name, data_set, options, experiment)


def few_labels(name: str, data_set: DataSet, experiment: Experiment) -> list[Run]:
    """List what learns from pairs and a few labels."""
    options: dict[str, dict[str, Json]] = {
        few(method, count): {**one, "train_per_class": count, "unlabelled": "keep"}
        for count in LABELS_A_CLASS
        for method, one in WITH_FEW.items()
    }
    return _variants(FEW_LABELS, "few-labels", name, data_set, options, experiment)


def _variants(
    stage: str, shipped: str, name: str, data_set: DataSet, options: dict[str, dict[str, Json]], experiment: Experiment
) -> list[Run]:
    """List variants of a shipped config; nothing on sets whose pairs are drawn by class, which would be labels."""
    if name in DRAWN_BY_CLASS:
        return []
    base = data_set.shipped([shipped])[shipped]
    configs = {method: Overrides(one).applied(base) for method, one in options.items()}
    return [
        Run.of(stage, name, method, options[method], config, seed)
        for seed in seeds_of(CONTROL_SEEDS, experiment)
        for method, config in configs.items()
    ]
