"""Sections of a config as objects, for tests that build methods and objectives without a config."""

from aadml.methods.label_space.readouts import ReadoutSection
from aadml.methods.networks import NetworkOptions
from aadml.objective.composition import LabelLossSection, LossSection, ProxySection, SelectionSection
from aadml.objective.neighbor_positives import NeighborOptions

KINDS = {kind.key: kind for kind in (LabelLossSection, LossSection, ProxySection, ReadoutSection, SelectionSection)}
UNNAMED = {"network": NetworkOptions, "neighbors": NeighborOptions}


def typed(**arguments):
    """Return arguments with sections as objects; each is a name, or a mapping of a name and options."""
    return {key: section(KINDS[key], value) if key in KINDS else value for key, value in arguments.items()}


def section(kind, value):
    """Return a section that is a name, or a mapping of a name and options, as an object."""
    if isinstance(value, kind):
        return value
    return kind.of(value) if isinstance(value, str) else kind.of(**value)
