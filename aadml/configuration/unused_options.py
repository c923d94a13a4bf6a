"""Options of a config that were changed but have no effect with the other options."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass

from aadml.configuration.config import Config
from aadml.feature_extraction.ground.options import idle
from aadml.methods import METHODS
from aadml.methods.inputs import Inputs
from aadml.methods.training.settings import Training
from aadml.objective.composition import Weighted, has_class_proxies
from aadml.objective.sections import EntrySection

_OF_LOSS = ("selection", "proxy", "neighbors")
"""Sections of the parts of a metric loss."""
_SELECTS_ANCHORS = "one-pair-a-class"
"""Selection that leaves out anchors, not only candidates."""


def idle_options(config: Config) -> list[str]:
    """Return a sentence for each changed option that has no effect with the other options.

    The marker `OnlyWith` in the type of an option lists required values of other options. With other values, the option
    has no effect. The weight of a loss has an effect only with a second loss, and parts of the loss only with a weight
    above 0.
    """
    sentences = [sentence for where, entry, options in _entries(config) for sentence in idle(entry, options, where)]
    loss = config.section("loss")
    if loss and "label_loss" not in config.sections and loss.shared(Weighted).weight != 1:
        weight = f"loss.weight={loss.shared(Weighted).weight:g}"
        sentences.append(
            f"{weight} changes nothing: it has an effect only with a second loss, and {config.method} has one loss"
        )
    if loss and "label_loss" in config.sections and not loss.shared(Weighted).weight:
        defaults = inspect.signature(METHODS[config.method]).parameters
        parts = {key: part for key, part in vars(config.sections).items() if key in _OF_LOSS}
        changed = [key for key, part in parts.items() if part != defaults[key].default]
        sentences += [f"{key} changes nothing: it belongs to the loss, and loss.weight is 0" for key in changed]
    return sentences + _unread_candidates(config)


def _unread_candidates(config: Config) -> list[str]:
    """Return warnings about options that change only candidates, beside a loss with class proxies."""
    loss, selection, proxy = map(config.section, ("loss", "selection", "proxy"))
    if loss is None or not has_class_proxies(loss.entry):
        return []
    unread = []
    if selection and selection.name not in ("all", _SELECTS_ANCHORS) and not selection.is_outside:
        unread.append(f"selection.name={selection.name}")
    if proxy and getattr(proxy.options, "aa_on", None) == "reference":
        unread.append("proxy.aa_on=reference")
    reason = f"the loss {loss.name} compares anchors with class proxies, not with candidates"
    return [f"{option} changes nothing: {reason}" for option in unread]


def _entries(config: Config) -> Iterator[tuple[str, Callable[..., object], object]]:
    """Yield (section, declaration of options, object with the options) for every section except `towers`.

    A section that chooses an entry yields one tuple for the entry and one for each group of shared options.
    """
    yield "method", METHODS[config.method], config.options
    yield "inputs", Inputs, config.inputs
    yield "training", Training, config.training
    for key, section in vars(config.sections).items():
        if isinstance(section, EntrySection):
            for declared in (section.entry, *section.groups):
                yield key, declared, section.options
        elif is_dataclass(section):
            yield key, type(section), section
