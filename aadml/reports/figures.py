"""Figures of run pages, as self-contained SVG elements."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.ground.figures import COLORS, INK, curves, figure, label
from aadml.methods.training.session import Record
from aadml.model.curves import selection_mark, training_series
from aadml.runs.test_curve import without_diagnosis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKERS = "o^DvP*"
"""Markers of modalities; in the legend, squares mark classes."""

_GRAYS = (14, 15)  # colors of tab20 that are not used for classes: gray marks points without a class color


def training_curves(records: Sequence[Record], selected: int | None) -> dict[str, str]:
    """Draw the logged curves except the curves of test clips, and mark the epoch `selected` unless it is None.

    Returns:
        SVG elements by the label of the vertical axis.
    """
    marks, lines = selection_mark(selected), training_series([*map(without_diagnosis, records)])
    return {y: curves(series, x="epoch", y=y, marks=marks) for y, series in lines.items()}


@figure
def class_bars(
    axes: "Axes", names: Sequence[str], values: Mapping[str, Sequence[float]], chance: Sequence[float]
) -> float:
    """Draw the MAP of the queries of each class, with one bar per direction and a tick at chance.

    Args:
        axes: axes to draw on.
        names: names of the classes.
        values: direction -> MAP of each class, NaN for a class without queries.
        chance: MAP of a random order, by class.
    """
    places = np.arange(len(names))
    height = 0.8 / max(len(values), 1)
    for number, (name, widths) in enumerate(values.items()):
        shift = (number - (len(values) - 1) / 2) * height
        axes.barh(places + shift, widths, height, color=COLORS[number % len(COLORS)], label=label(name))
    axes.scatter(chance, places, marker="|", s=90, color=INK, label="chance", zorder=3)
    axes.set_yticks(places, [label(name, 28) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(0, 1)
    axes.set_xlabel("MAP of the class's queries")
    return 0.6 + max(0.3, 0.09 * len(values)) * len(names)


@figure
def class_map(
    axes: "Axes",
    points: Mapping[str, NDArray[np.float64]],
    labels: Mapping[str, NDArray[np.int64]],
    names: Sequence[str],
) -> float:
    """Draw embeddings in two dimensions: the color shows the class, and the shape shows the modality.

    If there are more classes than colors, only the classes with the most points have colors. Points without a
    colored class are hollow.

    Args:
        axes: axes to draw on.
        points: modality -> (n, 2).
        labels: modality -> (n,) class of each point, an index of `names`; negative for points without class.
        names: names of the classes.
    """
    hollow = partial(axes.scatter, facecolors="none", edgecolors=COLORS[-1], linewidths=0.8)
    every = np.concatenate(list(labels.values()))
    counts = np.bincount(every[every >= 0], minlength=len(names))
    colored = _colored(counts)
    for marker, (modality, places) in zip(cycle(MARKERS), points.items(), strict=False):
        axes.scatter([], [], s=18, marker=marker, color=INK, label=label(modality))
        for number, color in colored.items():
            members = places[labels[modality] == number]
            axes.scatter(members[:, 0], members[:, 1], s=18, marker=marker, color=color, alpha=0.8, linewidths=0)
        rest = places[~np.isin(labels[modality], list(colored))]
        hollow(rest[:, 0], rest[:, 1], s=14, marker=marker)
    for number, color in colored.items():
        name = names[number] if number < len(names) else number
        axes.scatter([], [], s=18, marker="s", color=color, label=label(name, 28))
    further = len(counts) - len(colored)
    kinds = [f"{further} further classes"] * bool(further) + ["no class"] * bool((every < 0).any())
    if kinds:
        hollow([], [], s=18, marker="s", label=", ".join(kinds))
    axes.set(xticks=[], yticks=[])
    return 3.6


def _colored(counts: NDArray[np.int64]) -> dict[int, str]:
    """Return a color for each of the largest classes, up to the number of distinguishable colors."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    many = [to_hex(colormaps["tab20"](n)) for n in range(20) if n not in _GRAYS]
    colors = COLORS if len(counts) <= len(COLORS) else many
    largest = np.argsort(-counts, kind="stable")[: len(colors)]
    return dict(zip(np.sort(largest).tolist(), colors, strict=False))
