"""What people should know of a training before it begins."""

from aadml.configuration.config import Config
from aadml.configuration.unused_options import idle_options
from aadml.feature_extraction.ground.json_values import nested
from aadml.feature_extraction.weights.hub_names import PREFIX
from aadml.methods.pairwise.teacher import smaller_batch
from aadml.methods.training.settings import AUTO, Training
from aadml.proxies.anchor_aware import degeneracy
from aadml.runs.forecast import forecast
from aadml.runs.prepare import Prepared


def config_warnings(config: Config) -> list[str]:
    """Say what people should know of a config before it trains.

    Readings that degenerate, networks without training, and options that change nothing.
    """
    return [*_degenerate(config), *idle_options(config)]


def _degenerate(config: Config) -> list[str]:
    weights = [key for key, value in config.options.items() if key.endswith("_weights") and value == "untrained"]
    untrained = [name for key in weights if not _is_pretrained(config, name := key.removesuffix("_weights"))]
    if untrained:
        who = f"the {' and the '.join(untrained)} network {'begin' if len(untrained) > 1 else 'begins'}"
        return [f"{who} with random weights ({', '.join(f'method.{name}_weights' for name in untrained)})"]
    proxy = config.section("proxy")
    sentence = degeneracy(proxy.options) if proxy and proxy.name == "anchor-aware" else None
    return [f"proxy: {sentence}"] if sentence else []


def _is_pretrained(config: Config, network: str) -> bool:
    return str(config.options.get(network, "")).startswith(PREFIX)


def remarks(prepared: Prepared) -> list[str]:
    """Say what was done to the data, what is not learned from or not chosen, and what becomes of a teacher."""
    return [*prepared.splits.notes, *_fewer_clips(prepared), *_nothing_chosen(prepared), *_teacher_notes(prepared)]


def foretold(prepared: Prepared) -> list[str]:
    """Make the remarks on a training, and say how long it will take, which some steps are taken to find out."""
    expected = forecast(prepared.model.method, prepared.splits.train.per_epoch, len(prepared.model.class_names))
    return [*remarks(prepared), *([expected] if expected else [])]


def _fewer_clips(prepared: Prepared) -> list[str]:
    """Say so where a method learns only from the clips that have all modalities."""
    train, name = prepared.splits.train, prepared.config.method
    count = len(train) - len(train.whole)
    if not count or prepared.model.method.takes_missing:
        return []
    return [
        f"{name} learns from the {len(train) - count} of {len(train)} training clips that have all modalities; pairs, "
        "clip and aadml without a proxy learn from all"
    ]


def _nothing_chosen(prepared: Prepared) -> list[str]:
    """Say so where no epoch is trained, or one is to be chosen and there is nothing to choose it on."""
    training, defaults = prepared.config.training, Training()
    if not hasattr(prepared.model.method, "learner"):
        set_to = [f"training.{key}={value}" for key, value in vars(training).items() if value != getattr(defaults, key)]
        change = "change" if len(set_to) > 1 else "changes"
        why = f"{change} nothing: {prepared.config.method} trains in no epochs"
        return [f"{', '.join(set_to)} {why}"] if set_to else []
    if len(prepared.splits.valid):
        return []
    chosen = ["there are no validation clips to choose an epoch on: the last one is kept"]
    looked = {"patience": training.patience > 0, "schedule": training.schedule == "plateau"}
    looked["criterion"] = training.criterion != AUTO
    asked = [f"training.{key}={getattr(training, key)}" for key, is_set in looked.items() if is_set]
    idle = [f"{one} changes nothing: there are no validation clips to look at" for one in asked]
    return [*(chosen if training.select == "best" else []), *idle]


def _teacher_notes(prepared: Prepared) -> list[str]:
    """Say what becomes of a teacher (neighbors.space=dcca) on few clips."""
    asked = nested(prepared.config.sections, "neighbors")
    taught = asked.get("space") == "dcca" and asked.get("positives") != "none"
    return smaller_batch(prepared.splits.train.per_epoch) if taught else []
