"""The controls of an anchor-aware row: what it has to beat before the proxy can be said to add anything."""

from aadml.configuration.changes import with_setting
from aadml.configuration.config import Config, resolve
from aadml.objective.composition import Weighted
from aadml.sweeps.grid import without_proxy

ALONE = "without proxy"
RANDOM = "random same-class neighbors"
HALF = "without proxy, half weight"
NONE = "no metric loss"


def controls(config: Config) -> dict[str, Config]:
    """Return the controls of a config with an anchor-aware proxy, by name; none of any other.

    The loss without proxy; the proxy over random neighbors of the class, which shows what the graph is worth; the loss
    at half its weight, since a proxy may help by weakening a loss that harms; and no metric loss at all.
    """
    proxy = config.section("proxy")
    if proxy is None or not config.prefix:
        return {}
    alone = without_proxy(config)
    found = {ALONE: alone}
    if "neighbors" in proxy.options:
        found[RANDOM] = resolve(with_setting(config.values, "proxy.neighbors", "random"))
    return found | {HALF: weighted(alone, 0.5), NONE: weighted(alone, 0.0)}


def weighted(config: Config, factor: float) -> Config:
    """Return a config with the weight of the metric loss multiplied."""
    loss = config.section("loss")
    assert loss is not None
    return resolve(with_setting(config.values, "loss.weight", factor * loss.shared(Weighted).weight))
