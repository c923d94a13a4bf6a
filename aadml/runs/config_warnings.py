"""Warnings before training, about config and data."""

from aadml.configuration.config import Config
from aadml.configuration.unused_options import idle_options
from aadml.feature_extraction.weights.hub_names import PREFIX
from aadml.methods import METHODS
from aadml.methods.pairwise.teacher import smaller_batch
from aadml.methods.training.settings import AUTO, Training
from aadml.proxies import anchor_aware, class_mean
from aadml.runs.prepare import Prepared

_DEGENERACY = {"anchor-aware": anchor_aware.degeneracy, "class-mean": class_mean.degeneracy}
"""Functions that return a warning about the options of a proxy, by the name of the proxy."""


def config_warnings(config: Config) -> list[str]:
    """Return warnings about a config: untrained networks, a degenerate proxy, and options without effect."""
    return [*_untrained_networks(config), *_degenerate_proxy(config), *idle_options(config)]


def training_warnings(prepared: Prepared) -> list[str]:
    """Return notes on the data, and warnings on unused clips, options without effect, and a teacher's small batch."""
    notes = [*prepared.splits.notes, *prepared.notes, *_incomplete_clips(prepared), *_unused_training_options(prepared)]
    neighbors = getattr(prepared.config.sections, "neighbors", None)
    if neighbors and neighbors.space == "dcca" and neighbors.positives != "none":
        notes += smaller_batch(prepared.splits.train.per_epoch)
    return notes


def _untrained_networks(config: Config) -> list[str]:
    keys = [key for key, value in vars(config.options).items() if key.endswith("_weights") and value == "untrained"]
    names = [key.removesuffix("_weights") for key in keys]
    names = [name for name in names if not str(getattr(config.options, name, "")).startswith(PREFIX)]
    if not names:
        return []
    networks = f"the {' and the '.join(names)} network {'begin' if len(names) > 1 else 'begins'}"
    return [f"{networks} with random weights ({', '.join(f'method.{name}_weights' for name in names)})"]


def _degenerate_proxy(config: Config) -> list[str]:
    proxy = config.section("proxy")
    sentence = _DEGENERACY[proxy.name](proxy.options) if proxy and proxy.name in _DEGENERACY else None
    return [f"proxy: {sentence}"] if sentence else []


def _incomplete_clips(prepared: Prepared) -> list[str]:
    train, method = prepared.splits.train, prepared.model.method
    complete = len(train.whole)
    if complete == len(train) or method.takes_missing:
        return []
    return [
        f"{prepared.config.method} trains on the {complete} of {len(train)} training clips that have all modalities; "
        "pairs, clip and aadml without a proxy train on all clips"
    ]


def _unused_training_options(prepared: Prepared) -> list[str]:
    """Return warnings about `training` options that have no effect without epochs or without validation clips."""
    training, defaults = prepared.config.training, Training()
    if not hasattr(prepared.model.method, "learner"):
        name = prepared.config.method
        if not METHODS.is_own(name):  # a method from outside aadml may have a loop of its own
            return []
        changed = [
            f"training.{key}={value}" for key, value in vars(training).items() if value != getattr(defaults, key)
        ]
        verb = "change" if len(changed) > 1 else "changes"
        return [f"{', '.join(changed)} {verb} nothing: {name} trains without epochs"] if changed else []
    if len(prepared.splits.valid):
        return []
    needs_validation = {
        "patience": training.patience > 0,
        "schedule": training.schedule == "plateau",
        "criterion": training.criterion != AUTO,
    }
    last = ["there are no validation clips to choose an epoch on, so the last epoch is kept"]
    keys = [key for key, is_set in needs_validation.items() if is_set]
    unused = [f"training.{key}={getattr(training, key)} changes nothing: there are no validation clips" for key in keys]
    return [*(last if training.select == "best" else []), *unused]
