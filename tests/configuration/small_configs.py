"""Full configs of narrow networks, of every method that learns from vectors."""

from collections.abc import Mapping

from aadml.configuration.config import resolve
from aadml.configuration.overrides import with_setting

SMALL: dict[str, dict[str, object]] = {
    "aadml": {"network.hidden": [8], "proxy": "anchor-aware", "selection": "semi-hard", "readout": "posterior"},
    "cctl": {"network.hidden": [8]},
    "eics": {"network.hidden": [8], "method.hidden": [8], "method.explicit": 4},
    "tlca": {"network.hidden": [8]},
    "video-adviser-lite": {"network.hidden": [8], "method.hidden": [8]},
    "cca": {"method.dimension": 3},
    "c-cca": {"method.dimension": 3},
    "kcca": {"method.dimension": 3},
    "dcca": {"method.outputs": 3, "method.dimension": 2, "method.hidden_audio": [8], "method.hidden_visual": [8]},
    "c-dcca": {"method.outputs": 3, "method.dimension": 2, "method.hidden": [8]},
    "tnn-c-cca": {"method.dimension": 3, "method.hidden": [8]},
    "vae-cca": {"method.hidden": 8, "method.inner": 4, "method.dimension": 3},
    "agah": {"method.hidden": [8], "method.dimension": 4},
    "acmr": {"method.hidden": [8], "method.visual_hidden": [8], "method.dimension": 4},
    "dscmr": {"method.hidden": [8], "method.dimension": 4},
    "clip": {"method.hidden": [8], "method.dimension": 4},
    "bic-net": {"method.hidden": [8], "method.dimension": 16, "method.tokens": 2, "method.depth": 1},
    "dcil": {"method.hidden": [8], "method.dimension": 4},
    "msnsca": {"method.visual_hidden": 8, "method.width": 16, "method.dimension": 4},
    "few-labels": {"network.hidden": [8], "method.pair_dimension": 4},
    "pairs": {"network.hidden": [8], "method.dimension": 4},
    "random": {},
}


def full(method, **changes):
    values = {"method": method}
    for key, value in {**SMALL[method], "training.epochs": 1, "training.batch": 24, **changes}.items():
        values = with_setting(values, key, value)
    return resolve(values)


def keys_of(values: Mapping[str, object], path=""):
    for key, value in values.items():
        yield f"{path}{key}"
        if isinstance(value, Mapping):
            yield from keys_of(value, f"{path}{key}.")
