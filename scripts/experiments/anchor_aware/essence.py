"""Configs that are the same training: those whose anchor-aware proxies differ in options without effect."""

from aadml.configuration.config import Config, resolve
from aadml.feature_extraction.ground.json_values import Json, JsonObject
from aadml.feature_extraction.ground.options import OptionValues, completed, schema
from aadml.proxies.anchor_aware import AnchorAware, reaches_no_encoder
from aadml.proxies.correlation import GraphOptions
from aadml.studies.control_rows import weighted
from aadml.studies.grid import without_proxy


def essence(config: Config) -> Config:
    """Return the config with those options of its anchor-aware proxy that have no effect set to one value.

    Two configs with equal results are the same training, except for random draws. Under reading R1 every value is the
    anchor: graph, query and k have no effect. Over one key, R3 has weight 1 for any query. A proxy equal to its anchor
    is omitted, and a proxy that passes no gradient leaves no metric loss.
    """
    proxy = config.section("proxy")
    if proxy is None or proxy.name != "anchor-aware":
        return config
    options = _plain(proxy.options.plain())
    itself = options["reading"] == "R1" and options["attention"] == "free" and options["residual"] != "add"
    if itself or options["aa_mix"] == 0:
        return without_proxy(config)
    if reaches_no_encoder(OptionValues(**options)) and "label_loss" in config.sections:
        return weighted(without_proxy(config), 0.0)
    return resolve(config.values | {"proxy": {**options, "name": proxy.name}})


def _plain(options: JsonObject) -> dict[str, Json]:
    """Return the options of an anchor-aware proxy, with those that have no effect at their defaults."""
    found, inert = dict(options), list[str]()
    if options["reading"] == "R1":
        inert += [*schema(GraphOptions), "query", "live"]
    elif options["reading"] == "R3" and options["k"] == 1:
        inert += ["query", "temperature"]
    defaults = vars(completed(AnchorAware, OptionValues(), "proxy"))
    return found | {key: value for key, value in defaults.items() if key in inert}
