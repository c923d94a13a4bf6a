"""Objectives: who meets whom, as whom, which of them count and at what cost, reduced to one number to minimize."""

from aadml.objective.objective import Embedded, Objective, ObjectiveOptions, parse_directions, reduce

__all__ = ["Embedded", "Objective", "ObjectiveOptions", "parse_directions", "reduce"]
