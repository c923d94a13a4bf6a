"""Stages of presets: all methods at their own schedules (stage 5), without labels and with few labels (stage 6)."""

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
"""Number of steps after which the capped runs end."""
METHOD_SEEDS = 3
BUDGET = "training.epochs"
"""Option of a row of stage 5 that stores its budget."""

ALONE, NEIGHBORS, EITHER, RANDOM = "pairs", "agreeing neighbors", "neighbors in either modality", "random neighbors"
_AGREEING: JsonObject = {"neighbors.positives": "agreeing"}
WITHOUT_LABELS: dict[str, JsonObject] = {
    ALONE: {},
    NEIGHBORS: _AGREEING,
    EITHER: {"neighbors.positives": "either"},
    RANDOM: {**_AGREEING, "neighbors.control": "random"},
    "AA proxies": {"loss": "aa-nt-xent"},
}
"""Method -> its changes of the preset `pairs`."""
LABELS_A_CLASS = (4, 12)
WITH_FEW: dict[str, JsonObject] = {
    "labels alone": {"loss.weight": 0.0},
    **{name: WITHOUT_LABELS[name] for name in (ALONE, NEIGHBORS, RANDOM)},
}
"""Method -> its changes of the preset `few_labels`."""


def few(name: str, count: int) -> str:
    """Return the name of a method of `WITH_FEW` with `count` labels per class."""
    return f"{name}, {count} labels a class"


def all_methods(name: str, data_set: DataSet, experiment: Experiment) -> list[Run]:
    """Return the runs of the methods of the paper's table 1, each at its own schedule."""
    return _methods(FIFTH, name, data_set.shipped(published_methods()), experiment)


def capped_methods(name: str, data_set: DataSet, experiment: Experiment) -> list[Run]:
    """Return the same runs ended after `CAP` steps, without methods whose own schedules are not longer."""
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
    """Return the runs that train on pairs alone; labels are omitted in training, selection and score."""
    options = {method: {**one, "relevance": "own"} for method, one in WITHOUT_LABELS.items()}
    return _variants(PAIRS, "pairs", name, data_set, options, experiment)


def few_labels(name: str, data_set: DataSet, experiment: Experiment) -> list[Run]:
    """Return the runs that train on pairs and a few labels."""
    options: dict[str, dict[str, Json]] = {
        few(method, count): {**one, "train_per_class": count, "unlabelled": "keep"}
        for count in LABELS_A_CLASS
        for method, one in WITH_FEW.items()
    }
    return _variants(FEW_LABELS, "few-labels", name, data_set, options, experiment)


def _variants(
    stage: str, shipped: str, name: str, data_set: DataSet, options: dict[str, dict[str, Json]], experiment: Experiment
) -> list[Run]:
    """Return the runs of variants of a preset; empty for sets with pairs drawn by class, whose pairs are labels."""
    if name in DRAWN_BY_CLASS:
        return []
    base = data_set.shipped([shipped])[shipped]
    configs = {method: Overrides(one).applied(base) for method, one in options.items()}
    return [
        Run.of(stage, name, method, options[method], config, seed)
        for seed in seeds_of(CONTROL_SEEDS, experiment)
        for method, config in configs.items()
    ]
