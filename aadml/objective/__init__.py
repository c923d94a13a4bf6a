"""Objectives of training, with directions, a proxy, a selection and losses.

An objective reduces the losses of all directions to one number, which is minimized. The names below are imported on
first use, so listing the recipes of `aadml.objective.recipes` does not import torch.
"""

from typing import TYPE_CHECKING

from aadml.feature_extraction.ground.import_paths import imported_on_demand

if TYPE_CHECKING:
    from aadml.objective.embedded import Embedded
    from aadml.objective.objective import Objective, ObjectiveOptions, parse_directions, reduce

__all__ = ["Embedded", "Objective", "ObjectiveOptions", "parse_directions", "reduce"]

__getattr__ = imported_on_demand(__name__, dict.fromkeys(__all__, "objective") | {"Embedded": "embedded"})
