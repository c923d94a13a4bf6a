"""Controls and rivals of an anchor-aware row: simpler training runs that isolate the effect of the proxy."""

from aadml.configuration.config import Config
from aadml.objective.composition import Weighted, has_class_proxies
from aadml.studies.grid import Overrides, without_proxy

ALONE = "without proxy"
RANDOM = "random same-class neighbors"
HALF = "without proxy, half weight"
NONE = "no metric loss"
MEMORY = "cross-batch memory"
CLASS_MEAN = "class means"
UNIFORM = "uniform mean of neighbors"
AFFINE = "affine map of the anchor"

DEFINING = {
    RANDOM: ("proxy.neighbors",),
    HALF: ("loss.weight",),
    NONE: ("loss.weight",),
    UNIFORM: ("proxy.reading", "proxy.attention", "proxy.temperature"),
    AFFINE: ("proxy.reading", "proxy.attention"),
}
"""Control or rival -> config keys that define this row, besides those of the loss and the proxy."""

EVEN = 1e4
"""Temperature that makes the weights of free attention nearly equal: they differ by 0.02 % at most."""

MIXED = ("residual", "aa_on", "aa_mix")
"""Options of every proxy that define how the loss uses the proxy."""


def controls(config: Config) -> dict[str, Config]:
    """Return the controls of a config with a proxy, by name.

    A config without a proxy, or with the identity as proxy, has no controls. One control is the loss without proxy.
    For a proxy over neighbors, another control uses random neighbors of the class, to isolate the effect of the
    graph. With a label loss, there are two further controls without proxy: half the weight of the metric loss, and
    no metric loss. These two controls show whether a proxy helps only by weakening a harmful loss.
    """
    proxy = config.section("proxy")
    if proxy is None or not config.prefix:
        return {}
    alone = without_proxy(config)
    by_name = {ALONE: alone}
    if "neighbors" in proxy.options:
        by_name[RANDOM] = Overrides({"proxy.neighbors": "random"}).applied(config)
    if "label_loss" not in config.sections:
        return by_name  # the only loss cannot be removed, and half its weight does not change training
    return by_name | {HALF: weighted(alone, 0.5), NONE: weighted(alone, 0.0)}


def rivals(config: Config) -> dict[str, Config]:
    """Return configs with simpler replacements of the anchor-aware proxy, by name; empty without this proxy.

    One replacement is cross-batch memory, which isolates the effect of a bank of training clips. This replacement is
    left out for losses with class proxies, which read no candidates. Two replacements are the mean of the clip's
    class, and the mean of the same neighbors with nearly equal weights. Unless the option `attention` is "free", a
    fourth replacement is attention with the anchor as every value. This attention is an affine map with as many
    parameters as the attention of the proxy.
    """
    proxy, loss = config.section("proxy"), config.section("loss")
    if proxy is None or loss is None or proxy.name != "anchor-aware":
        return {}
    options = proxy.options.plain()
    mixed = {key: options[key] for key in MIXED}
    named = {**options, "name": proxy.name}
    changes = {
        MEMORY: Overrides({"proxy": {"name": "memory"}}),
        CLASS_MEAN: Overrides({"proxy": {"name": "class-mean", **mixed}}),
        UNIFORM: Overrides({"proxy": {**named, "reading": "R3", "attention": "free", "temperature": EVEN}}),
    }
    if has_class_proxies(loss.entry):
        del changes[MEMORY]
    if options["attention"] != "free":
        changes[AFFINE] = Overrides({"proxy": {**named, "reading": "R1"}})
    return {name: changed.applied(config) for name, changed in changes.items()}


def weighted(config: Config, factor: float) -> Config:
    """Return a config with the weight of the metric loss multiplied by `factor`."""
    loss = config.section("loss")
    assert loss is not None
    return Overrides({"loss.weight": factor * loss.shared(Weighted).weight}).applied(config)
