"""The controls of an anchor-aware row: what it has to beat before the proxy can be said to add anything."""

from aadml.configuration.changes import with_setting
from aadml.configuration.config import Config, resolve
from aadml.feature_extraction.ground.json_values import Json, JsonObject
from aadml.feature_extraction.ground.options import completed, schema
from aadml.objective.composition import Weighted
from aadml.proxies.anchor_aware import AnchorAware, reaches_no_encoder
from aadml.proxies.correlation import GraphOptions
from aadml.sweeps.grid import without_proxy

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
    mixed: dict[str, Json] = {key: proxy.options[key] for key in MIXED}
    changes: dict[str, dict[str, Json]] = {
        MEMORY: {"name": "memory"},
        CLASS_MEAN: {"name": "class-mean", **mixed},
        UNIFORM: {**proxy.options, "name": proxy.name, "reading": "R3", "attention": "free", "temperature": EVEN},
    }
    if proxy.options["attention"] != "free":
        changes[AFFINE] = {**proxy.options, "name": proxy.name, "reading": "R1"}
    return {name: resolve(config.values | {"proxy": changed}) for name, changed in changes.items()}


def weighted(config: Config, factor: float) -> Config:
    """Return a config with the weight of the metric loss multiplied."""
    loss = config.section("loss")
    assert loss is not None
    return resolve(with_setting(config.values, "loss.weight", factor * loss.shared(Weighted).weight))


def essence(config: Config) -> Config:
    """Return the config with those options of its anchor-aware proxy at one value that change nothing as they stand.

    Two configs of one essence are the same training, but for its random draws. Under reading R1 every value is the
    anchor: graph, query and k have no effect. Over one key R3 weights it 1, whoever asks.
    A proxy that is its anchor is none, and one through which no gradient passes leaves no metric loss.
    """
    proxy = config.section("proxy")
    if proxy is None or proxy.name != "anchor-aware":
        return config
    options = _plain(proxy.options)
    convex, free = options["residual"] == "convex", options["attention"] == "free"
    itself = options["reading"] == "R1" and free and options["residual"] != "add"
    if itself or options["aa_mix"] == 0 or (convex and options["residual_weight"] == 0):
        return without_proxy(config)
    if reaches_no_encoder(options) and "label_loss" in config.sections:
        return weighted(without_proxy(config), 0.0)
    return resolve(config.values | {"proxy": {**options, "name": proxy.name}})


def _plain(options: JsonObject) -> dict[str, Json]:
    """Return the options of an anchor-aware proxy, with those that have no effect at their defaults."""
    found, inert = dict(options), [] if options["residual"] == "convex" else ["residual_weight"]
    if options["attention_dropout"]:
        return found
    if options["reading"] == "R1":
        inert += [*schema(GraphOptions), "query", "live"]
    elif options["reading"] == "R3" and options["k"] == 1:
        inert += ["query", "temperature"]
    return found | {key: value for key, value in completed(AnchorAware, {}, "proxy").items() if key in inert}
