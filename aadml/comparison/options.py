"""Types of common options with valid ranges, from which `aadml.feature_extraction.ground.options` builds the schema."""

from typing import Annotated, Literal

from annotated_types import Interval, Len

from aadml.feature_extraction.ground.option_types import NoOption

Share = Annotated[float, Interval(ge=0, le=1)]
"""Share of a total."""
Dropout = Annotated[float, Interval(ge=0, lt=1)]
"""Share of units, or of attention weights, dropped in training."""
Momentum = Annotated[float, Interval(ge=0, lt=1)]
"""Weight of the previous value in a running mean."""
Weight = Annotated[float, Interval(ge=0, le=1e6)]
"""Factor of a term in a sum."""
Margin = Annotated[float, Interval(ge=0, le=1e4)]
"""Required difference of scores."""
Temperature = Annotated[float, Interval(ge=1e-4, le=1e4)]
"""Divisor of scores before a softmax."""
Scale = Annotated[float, Interval(ge=1e-4, le=1e4)]
"""Factor of scores before a softmax."""
Cosine = Annotated[float, Interval(ge=-1, le=1)]
"""Cosine similarity."""
Ridge = Annotated[float, Interval(ge=0, le=1e6)]
"""Constant added to the diagonal of a covariance."""
LearningRate = Annotated[float, Interval(ge=0, le=10)]
"""Learning rate of an optimizer."""
Length = Annotated[float, Interval(ge=1e-4, le=1e4)]
"""Euclidean norm of a vector."""
Width = Annotated[int, Interval(ge=1, le=65_536)]
"""Number of units of a layer, or of dimensions of a vector."""
Layers = Annotated[tuple[Width, ...], Len(0, 64)]
"""Widths of hidden layers; may be empty."""
SomeLayers = Annotated[tuple[Width, ...], Len(1, 64)]
"""Widths of layers, at least one."""
Count = Annotated[int, Interval(ge=1, le=1_000_000)]
"""Positive count."""
CountOrZero = Annotated[int, Interval(ge=0, le=1_000_000)]
"""Count, or 0, whose meaning each option describes."""
Seeds = Annotated[int, Interval(ge=1, le=10_000)]
"""Number of seeds."""
Size = Annotated[int, NoOption()]
"""Width or number of classes of the data, not an option."""
Fidelity = Literal["source", "repaired"]
"""Formula as in the released code, or without the errors of the code; each option describes the difference."""
Seed = Annotated[int, Interval(ge=0, le=2**63 - 1)]
"""Seed of random draws."""
