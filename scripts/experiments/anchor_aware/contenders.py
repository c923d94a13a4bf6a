"""CONTENDERS and RIVALS of the plan, each with the search space of its trials, and their common narrow network."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from aadml.configuration.files import ConfigFile
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import Json, JsonObject
from aadml.studies.grid import Overrides

Space = Mapping[str, Sequence[Json]]

TRAIN_MAP = 1_000_000
"""Value of `training.train_map` with which only the chosen epoch is scored on training clips."""
NARROW: JsonObject = {
    "network.hidden": [256, 256, 256],
    "training.batch": 50,
    "training.train_map": TRAIN_MAP,
}
"""Settings of the plan that differ from `configs/aadml.yaml`."""

SHARED: Space = {
    "training.learning_rate": (1e-4, 3e-4, 5e-4, 1e-3),
    "network.dropout": (0.0, 0.1, 0.3),
    "inputs.scaling": ("none", "standard"),
}
"""Search space of every method."""

MARGINS: Space = {"loss.margin": (0.6, 1.2, 2.4)}
_ATTENTION: Space = {
    "proxy.reading": ("R1", "R2", "R3", "R4", "R5", "R6"),
    "proxy.live": (False, True),
    "proxy.aa_mix": (0.25, 0.5, 1.0),
    "proxy.residual": ("none", "add", "convex"),
    "proxy.attention": ("mha", "identity-start", "free"),
    "proxy.aa_on": ("all", "anchor", "reference"),
    "proxy.k": (1, 2, 3, 4, 5, 6, 7),
}


@dataclass(frozen=True)
class Contender:
    """A loss, and the part of its search space that other methods do not share."""

    loss: str
    space: Space

    @property
    def whole_space(self) -> Space:
        """Return the complete search space."""
        return {**SHARED, **self.space}


PLAIN, ANCHOR_AWARE, MEMORY = "triplet", "aa-triplet", "xbm-triplet"

CONTENDERS = {
    PLAIN: Contender(PLAIN, MARGINS),
    ANCHOR_AWARE: Contender(ANCHOR_AWARE, {**MARGINS, **_ATTENTION}),
    MEMORY: Contender(MEMORY, {**MARGINS, "loss.weight": (0.25, 0.5, 1.0)}),
}
RIVALS = {
    "multi-similarity": Contender("multi-similarity", {"loss.base": (0.25, 0.5, 0.75)}),
    "proxy-nca": Contender("proxy-nca", {"loss.temperature": (0.111, 0.333, 1.0)}),
    "proxy-anchor": Contender("proxy-anchor", {"loss.margin": (0.05, 0.1, 0.2)}),
    "soft-triple": Contender("soft-triple", {"loss.scale": (5.0, 10.0, 20.0)}),
    "arcface": Contender("arcface", {"loss.scale": (16.0, 32.0, 64.0)}),
    "ee-triplet": Contender("ee-triplet", MARGINS),
}

NO_METRIC, SUMS_ALONE = "no metric loss", "sums without proxy"
"""Methods that are compared with the readings."""


def _under_sums(loss: str, **options: Json) -> Contender:
    """Return a contender with the settings of the paper; only the learning rate is tuned."""
    fixed: Space = {
        "inputs.scaling": ("none",), "network.dropout": (0.1,), "label_loss": ("frobenius",),
        "loss.reduction": ("sum",), "loss.combine": ("sum",),
    }  # fmt: skip
    return Contender(loss, {**fixed, **{key.replace("__", "."): (value,) for key, value in options.items()}})


def _reading(name: str, *, live: bool) -> Contender:
    return _under_sums(
        ANCHOR_AWARE, proxy__reading=name, proxy__live=live, proxy__query="partner", proxy__residual="none",
        proxy__aa_mix=1.0,
    )  # fmt: skip


READINGS = {
    "R1 (R4)": _reading("R1", live=False),
    "R2, live": _reading("R2", live=True),
    **{
        f"{name}, {'live' if live else 'detached'}": _reading(name, live=live)
        for name in ("R3", "R5", "R6")
        for live in (False, True)
    },
}
"""The readings of Equation 7 that are different training, with all other settings of the paper.

R2 on detached neighbors passes no gradient to the encoders, and is therefore no metric loss.
"""
UNDER_SUMS = {**READINGS, NO_METRIC: _under_sums(PLAIN, loss__weight=0.0), SUMS_ALONE: _under_sums(PLAIN)}

PARTNER = f"{ANCHOR_AWARE}, partner query"
SHARING = {
    PLAIN: CONTENDERS[PLAIN],
    ANCHOR_AWARE: CONTENDERS[ANCHOR_AWARE],
    PARTNER: Contender(
        ANCHOR_AWARE, {**MARGINS, **_ATTENTION, "proxy.reading": ("R3", "R5", "R6"), "proxy.query": ("partner",)}
    ),
}
"""Methods compared at different shares of partners; in R1 and R2, the query has no effect."""


def current(options: JsonObject) -> JsonObject:
    """Return options with a current reading in place of a removed one, under whose name rows are stored.

    R4 is the same map as R1. R3 replaces R2 where points are drawn and listed, but is never trained in place of R2; see
    `is_removed`.
    """
    reading = {"R4": "R1", "R2": "R3"}.get(str(options.get("proxy.reading")))
    return {**options, "proxy.reading": reading} if reading else options


def is_removed(options: JsonObject) -> bool:
    """Return whether options can no longer be trained: R2 was removed, and its rows are those of earlier commits."""
    return options.get("proxy.reading") == "R2"


def drawn_points(name: str, contender: Contender, base: JsonObject, count: int) -> list[JsonObject]:
    """Draw distinct points of a method's space; points that the config rejects are omitted.

    Args:
        name: name of the method, which determines the draw together with the seed 0.
        contender: the method.
        base: config values of all points.
        count: number of points; a smaller space is returned completely.
    """
    space = {key: list(values) for key, values in contender.whole_space.items()}
    return list(_drawn(name, contender.loss, json.dumps(space), json.dumps(base), count))


@lru_cache(maxsize=256)  # every stage calls this for every data set
def _drawn(name: str, loss: str, space: str, base: str, count: int) -> tuple[JsonObject, ...]:
    found: list[JsonObject] = []
    base_file = ConfigFile(json.loads(base))
    for point in _shuffled(name, json.loads(space)):
        if len(found) == count:
            break
        try:
            Overrides({"loss": loss, **current(point)}).applied(base_file)
        except InputError:
            continue
        found.append(point)
    return tuple(found)


def _shuffled(name: str, space: Space) -> Iterator[JsonObject]:
    """Yield the points of a space in random order."""
    sizes = [len(values) for values in space.values()]
    digest = hashlib.sha256(name.encode()).digest()
    generator = np.random.default_rng([0, int.from_bytes(digest[:8], "little")])
    for number in generator.permutation(math.prod(sizes)):
        places = np.unravel_index(number, sizes)
        yield {key: values[int(place)] for (key, values), place in zip(space.items(), places, strict=True)}
