"""What people should know of a training before it begins."""

from aadml.configuration.config import Config
from aadml.methods.teacher import smaller_batch
from aadml.proxies.anchor_aware import degeneracy
from aadml.runs.forecast import forecast
from aadml.runs.prepare import Prepared
from feature_extraction.ground.json_values import nested
from feature_extraction.hub_names import PREFIX


def config_warnings(config: Config) -> list[str]:
    """Say what people should know of a config before it trains: readings that degenerate, networks without training."""
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
    """Say so where an epoch is to be chosen and there is nothing to choose it on."""
    learns = hasattr(prepared.model.method, "learner") and prepared.config.training.select == "best"
    if len(prepared.splits.valid) or not learns:
        return []
    return ["there are no validation clips to choose an epoch on: the last one is kept"]


def _teacher_notes(prepared: Prepared) -> list[str]:
    """Say what becomes of a teacher (neighbors.space=dcca) on few clips."""
    asked = nested(prepared.config.sections, "neighbors")
    taught = asked.get("space") == "dcca" and asked.get("positives") != "none"
    return smaller_batch(prepared.splits.train.per_epoch) if taught else []
