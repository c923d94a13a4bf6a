"""Shortened schedules: the whole page in minutes, for a first look."""

import math

from aadml.configuration.config import Config, resolve
from aadml.configuration.overrides import with_setting
from aadml.studies.epoch_limit import at_most

STEPS = 60
"""Steps of a shortened training, rounded up to whole epochs."""
SEEDS = 2
"""Seeds of a shortened reproduction, unless others are asked for."""
LEAST_EPOCHS = {"3cmlf": 3}
"""A method in stages needs an epoch for each."""

NOTE = (
    f"SHORTENED (--quick): every training stops after {STEPS} steps or one epoch where that is more, a fraction of the "
    "paper's schedule. These figures show that all of it runs, not what the methods reach."
)


def shortened(config: Config, clips: int) -> Config:
    """Return a config with fewer epochs, each of which is logged in full.

    Args:
        config: complete.
        clips: that are trained on.
    """
    epochs = max(math.ceil(STEPS * config.training.batch / max(clips, 1)), LEAST_EPOCHS.get(config.method, 1))
    shorter = at_most(config, epochs)
    if shorter is config:
        return config
    return resolve(with_setting(shorter.values, "training.train_map", min(config.training.train_map, 1)))
