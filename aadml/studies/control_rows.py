"""The controls of an anchor-aware row: what it has to beat before the proxy can be said to add anything."""

from aadml.configuration.config import Config, resolve
from aadml.configuration.overrides import with_setting
from aadml.feature_extraction.ground.json_values import Json
from aadml.objective.composition import Weighted
from aadml.studies.grid import without_proxy

ALONE = "without proxy"
RANDOM = "random same-class neighbors"
HALF = "without proxy, half weight"
NONE = "no metric loss"
MEMORY = "cross-batch memory"
CLASS_MEAN = "class means"
UNIFORM = "uniform mean of neighbors"
AFFINE = "affine map of the anchor"

EVEN = 1e4
"""Temperature of free attention at which the weights of two neighbors differ by 0.02 % at most."""

MIXED = ("residual", "residual_weight", "aa_on", "aa_mix")
"""Options by which a proxy enters the loss, whatever it is."""


def controls(config: Config) -> dict[str, Config]:
    """Return the controls of a config with an anchor-aware proxy, by name; none of any other.

    The loss without proxy; the proxy over random neighbors of the class, which shows what the graph is worth; the loss
    at half its weight, since a proxy may help by weakening a loss that harms; and no metric loss at all. The last two
    are of losses that stand beside a label loss.
    """
    proxy = config.section("proxy")
    if proxy is None or not config.prefix:
        return {}
    alone = without_proxy(config)
    found = {ALONE: alone}
    if "neighbors" in proxy.options:
        found[RANDOM] = resolve(with_setting(config.values, "proxy.neighbors", "random"))
    if "label_loss" not in config.sections:
        return found  # nothing is left without the only loss, and half of it is the same training
    return found | {HALF: weighted(alone, 0.5), NONE: weighted(alone, 0.0)}


def rivals(config: Config) -> dict[str, Config]:
    """Return what else could do the work of an anchor-aware proxy, by name; none of a config with any other proxy.

    Cross-batch memory on the same bank, which shows what a bank alone gives; the mean of the clip's class in the
    proxy's place; the mean of the same neighbors, without attention; and attention whose values are all the anchor, an
    affine map of it with as many parameters (reading R1).
    """
    proxy = config.section("proxy")
    if proxy is None or proxy.name != "anchor-aware":
        return {}
    options = proxy.options.plain()
    mixed = {key: options[key] for key in MIXED}
    changes: dict[str, dict[str, Json]] = {
        MEMORY: {"name": "memory"},
        CLASS_MEAN: {"name": "class-mean", **mixed},
        UNIFORM: {**options, "name": proxy.name, "reading": "R3", "attention": "free", "temperature": EVEN},
    }
    if options["attention"] != "free":
        changes[AFFINE] = {**options, "name": proxy.name, "reading": "R1"}
    return {name: resolve(config.values | {"proxy": changed}) for name, changed in changes.items()}


def weighted(config: Config, factor: float) -> Config:
    """Return a config with the weight of the metric loss multiplied."""
    loss = config.section("loss")
    assert loss is not None
    return resolve(with_setting(config.values, "loss.weight", factor * loss.shared(Weighted).weight))
