"""Options of a config that were changed and cannot act beside the others."""

from collections.abc import Callable, Iterator

from aadml.configuration.config import FIXED, TABLES, UNNAMED, Config
from aadml.feature_extraction.ground.json_values import JsonObject, nested
from aadml.feature_extraction.ground.options import idle
from aadml.methods import METHODS
from aadml.objective.composition import Weighted


def idle_options(config: Config) -> list[str]:
    """Say of each option that has another value than its default, and changes nothing as the others are, that it does.

    An option names those that it needs by the marker `OnlyWith` of its type. The weight of a loss needs another loss.
    """
    found = [sentence for where, entry, values in _entries(config) for sentence in idle(entry, values, where)]
    loss = config.section("loss")
    if loss and "label_loss" not in config.sections and loss.shared(Weighted).weight != 1:
        weight = f"loss.weight={loss.shared(Weighted).weight:g}"
        found.append(f"{weight} changes nothing: {config.method} has no other loss to weigh it against")
    return found


def _entries(config: Config) -> Iterator[tuple[str, Callable[..., object], JsonObject]]:
    """Give (section, what declares its options, their values), of every section that a config has."""
    yield "method", METHODS[config.method], config.options
    for section, entry in FIXED.items():
        yield section, entry, nested(config.values, section)
    for section in config.sections:
        values = nested(config.sections, section)
        if section in UNNAMED:
            yield section, UNNAMED[section], values
        elif named := config.section(section) if section in TABLES else None:
            table, shared = TABLES[section]
            for declared in (table[named.name], *shared):
                yield section, declared, values
