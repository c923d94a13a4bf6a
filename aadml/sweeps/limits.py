"""An upper limit on how long the rows of a table train."""

from aadml.configuration.changes import with_setting
from aadml.configuration.config import Config, resolve


def at_most(config: Config, epochs: int) -> Config:
    """Limit the epochs of a training, and those of the model that it trains first (3cmlf)."""
    long: list[str] = []
    if config.training.epochs > epochs:
        long.append("training.epochs")
    prior = config.options.get("ancillary_epochs")
    if isinstance(prior, int) and prior > epochs:
        long.append("method.ancillary_epochs")
    values = config.values
    for key in long:
        values = with_setting(values, key, epochs)
    return resolve(values) if long else config
