"""Types of options that recur, with what is valid; `aadml.feature_extraction.ground.options` makes them the schema."""

from typing import Annotated, Literal

from annotated_types import Interval, Len

from aadml.feature_extraction.ground.option_types import NoOption

Share = Annotated[float, Interval(ge=0, le=1)]
"""A part of a whole."""
Dropout = Annotated[float, Interval(ge=0, lt=1)]
"""The share of units, or of attention weights, that is dropped while training."""
Momentum = Annotated[float, Interval(ge=0, lt=1)]
"""The share of a running mean that stays."""
Weight = Annotated[float, Interval(ge=0, le=1e6)]
"""A factor of one term beside others."""
Margin = Annotated[float, Interval(ge=0, le=1e4)]
"""How much nearer is near enough, in units of a score."""
Temperature = Annotated[float, Interval(ge=1e-4, le=1e4)]
"""What divides scores before a softmax."""
Scale = Annotated[float, Interval(ge=1e-4, le=1e4)]
"""What multiplies scores before a softmax."""
Cosine = Annotated[float, Interval(ge=-1, le=1)]
"""A cosine similarity."""
Ridge = Annotated[float, Interval(ge=0, le=1e6)]
"""What is added to the diagonal of a covariance."""
LearningRate = Annotated[float, Interval(ge=0, le=10)]
"""A step of an optimizer."""
Length = Annotated[float, Interval(ge=1e-4, le=1e4)]
"""The Euclidean length of a vector."""
Width = Annotated[int, Interval(ge=1, le=65_536)]
"""Units of a layer, or dimensions of a vector."""
Layers = Annotated[tuple[Width, ...], Len(0, 64)]
"""Hidden layers; none is possible."""
SomeLayers = Annotated[tuple[Width, ...], Len(1, 64)]
"""Layers, of which there is at least one."""
Count = Annotated[int, Interval(ge=1, le=1_000_000)]
"""A number of things, of which there is at least one."""
CountOrZero = Annotated[int, Interval(ge=0, le=1_000_000)]
"""A number of things; 0 is possible, and the option says what it means."""
Size = Annotated[int, NoOption()]
"""A width or a number of classes that the data decide, not the user."""
Fidelity = Literal["source", "repaired"]
"""Whether a formula is that of the released code, or that without its slips; the option says which."""
Seed = Annotated[int, Interval(ge=0, le=2**63 - 1)]
"""What draws begin with."""
