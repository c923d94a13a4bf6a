"""An upper limit on how long the rows of a table train."""

from aadml.configuration.config import Config, resolve
from aadml.configuration.overrides import with_setting


def at_most(config: Config, epochs: int) -> Config:
    """Limit the epochs of a training, and those of the model that it trains first (3cmlf)."""
    long: list[str] = []
    if config.training.epochs > epochs:
        long.append("training.epochs")
    prior = getattr(config.options, "ancillary_epochs", None)
    if isinstance(prior, int) and prior > epochs:
        long.append("method.ancillary_epochs")
    values = config.values
    for key in long:
        values = with_setting(values, key, epochs)
    return resolve(values) if long else config
