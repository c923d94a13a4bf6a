"""Stage r5: controls of reading R5, by docs/lab/experiments/r5_plan.md."""

from dataclasses import dataclass

from aadml.configuration.config import Config
from aadml.feature_extraction.ground.consent import consent_to
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.proxies.anchor_aware import AnchorAware
from aadml.proxies.unchanged import Unchanged
from aadml.studies.control_rows import ALONE, MIXED, controls
from aadml.studies.grid import Overrides
from scripts.experiments.anchor_aware.contenders import ANCHOR_AWARE
from scripts.experiments.anchor_aware.experiment import STEPS, DataSet, Experiment, Run
from scripts.experiments.anchor_aware.ledger import Ledger
from scripts.experiments.anchor_aware.r5_proxies import Noise, NoKeys, OtherClasses, OwnClass, Shrinkage, ShuffledValues
from scripts.experiments.anchor_aware.search import MAIN, finalists

STAGE = "r5"
FIRST_SEED = 200


@dataclass(frozen=True)
class Planned:
    """Plan of a set.

    Attributes:
        options: set on which stage 1 chose the options.
        seeds: number of seeds.
        weight: mean weight of R5 on the other clips of a batch.
        noise: root mean square of R5's proxy minus its clip, relative to that of the clips.
    """

    options: str
    seeds: int
    weight: float
    noise: float


PLANNED = {
    "corsmal": Planned("corsmal", 40, 0.9529482760382254, 0.5378381365796968),
    "av_digits": Planned("av_digits", 20, 0.9822494356032554, 0.7320517309275),
}
"""Data set -> plan; the constants are printed by r5_pilot.py."""


PLUG_INS: dict[str, type[Unchanged]] = {
    "own class alone": OwnClass,
    "other classes alone": OtherClasses,
    "shuffled values": ShuffledValues,
    "no keys": NoKeys,
    "convex shrinkage alone": Shrinkage,
    "noise of equal size": Noise,
}
R5, NO_PROXY = "R5", "no proxy"


def r5_controls(name: str, data_set: DataSet, experiment: Experiment) -> list[Run]:
    """Return the runs of R5, of the same options without a proxy, and of the six controls, seed by seed."""
    planned = PLANNED.get(name)
    options = r5_options(planned.options, experiment.ledger) if planned else None
    if planned is None or options is None:
        return []
    config = data_set.config(ANCHOR_AWARE, options, STEPS)
    rows = {R5: config, NO_PROXY: controls(config)[ALONE]}
    rows |= {control: in_place_of_r5(config, proxy, planned) for control, proxy in PLUG_INS.items()}
    seeds = range(FIRST_SEED, FIRST_SEED + min(planned.seeds, experiment.seeds))
    return [Run.of(STAGE, name, row, options, one, seed) for seed in seeds for row, one in rows.items()]


def r5_options(name: str, ledger: Ledger) -> JsonObject | None:
    """Return the options that stage 1 chose for the anchor-aware loss on a set, in reading R5; None before stage 1."""
    chosen = finalists(MAIN, name, ledger)
    return {**chosen[ANCHOR_AWARE], "proxy.reading": "R5"} if chosen else None


def in_place_of_r5(config: Config, proxy: type[Unchanged], planned: Planned) -> Config:
    """Return the config with a plug-in in place of its proxy; options that both proxies have are kept."""
    section = config.section("proxy")
    assert section is not None
    constants: JsonObject = {Shrinkage: {"weight": planned.weight}, Noise: {"relative": planned.noise}}.get(proxy, {})
    options = section.options.plain()
    if not issubclass(proxy, AnchorAware):
        options = {key: options[key] for key in MIXED}
    place = f"{proxy.__module__}:{proxy.__name__}"
    consent_to(place)
    return Overrides({"proxy": {**options, **constants, "name": place}}).applied(config)
