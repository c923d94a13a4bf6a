"""Figures of many runs: mean and standard deviation over seeds."""

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ParamSpec

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.figures import COLORS, DASHED, INK, figure, label, over_counts
from aadml.studies.results import CellScores, RunScores, mean_chance, mean_map

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME_LETTERS = 26
"""Largest number of letters in a line of the name of a row."""
P = ParamSpec("P")


@dataclass(frozen=True)
class Band:
    """A line over an axis, for several seeds.

    Attributes:
        x: positions on the axis, (n,).
        y: values, (seeds, n); NaN if a seed has no value.
        color: number of a color. A line and its reference have the same color.
        dashed: whether the line is dashed, as a reference for the solid line of the same color.
    """

    x: Sequence[float]
    y: NDArray[np.float64]
    color: int = 0
    dashed: bool = False


def map_band(x: Sequence[float], cells: Sequence[CellScores], color: int = 0) -> Band:
    """Return the MAP of n cells as a line over positions x (n,), with values for each seed; NaN where a run failed."""
    seeds = sorted({seed for cell in cells for seed in cell.runs})
    y = [[cell.runs[seed].map_mean if seed in cell.runs else np.nan for cell in cells] for seed in seeds]
    return Band(x, np.array(y), color)


def epoch_band(runs: Iterable[RunScores], key: str, color: int = 0, *, dashed: bool = False) -> Band | None:
    """Return the values of a key of the logs, over the epochs that all logs share; None without common epochs."""
    logs = [run.by_epoch(key) for run in runs]
    epochs = sorted(set.intersection(*map(set, logs))) if logs else []
    return Band(epochs, np.array([[log[epoch] for epoch in epochs] for log in logs]), color, dashed) if epochs else None


def scope_band(
    cell: CellScores, direction: str, color: int = 0, *, dashed: bool = False, widest: float = float("inf")
) -> Band | None:
    """Return the precision-scope@K of a direction, for each seed and each K up to `widest`.

    None is returned without runs, or if the lists of K differ between runs.
    """
    curves = [run.record.directions[direction].scope for run in cell.runs.values()]
    if not curves or any(curve.k != curves[0].k for curve in curves):
        return None
    k = [cutoff for cutoff in curves[0].k if cutoff <= widest]
    return Band(k, np.array([curve.precision[: len(k)] for curve in curves]), color, dashed)


def drawn(draw: Callable[P, str], *args: P.args, **kwargs: P.kwargs) -> str:
    """Return a figure as SVG; "" if matplotlib is not installed."""
    try:
        return draw(*args, **kwargs)
    except InputError:
        return ""


@figure
def spread_curve(
    axes: "Axes", bands: Mapping[str, Band], levels: Mapping[str, Band], *, x: str, y: str, note: str = ""
) -> float:
    """Draw lines with their standard deviation over seeds. Levels are constant and drawn as dashed lines.

    Args:
        axes: axes to draw on.
        bands: name -> line.
        levels: name -> line of a single point, drawn across the full width.
        x: label of the horizontal axis.
        y: label of the vertical axis.
        note: text in the lower left corner.
    """
    for name, band in levels.items():
        mean, sd = _mean(band.y)[0], _sd(band.y)[0]
        color = COLORS[band.color % len(COLORS)]
        axes.axhspan(mean - sd, mean + sd, color=color, alpha=0.1, linewidth=0)
        axes.axhline(mean, color=color, linewidth=1.2, linestyle=DASHED, label=label(name))
    lines = {name: (np.asarray(band.x, float), _mean(band.y), _sd(band.y)) for name, band in bands.items()}
    _bars(axes, lines, [band.color for band in bands.values()])
    axes.set(xlabel=label(x), ylabel=label(y))
    if note:
        axes.text(0.01, 0.02, label(note), transform=axes.transAxes, fontsize=8, color=INK)
    return 3.0


@figure
def difference_curve(
    axes: "Axes", lines: Mapping[str, Sequence[tuple[float, float, float]]], *, x: str, y: str
) -> float:
    """Draw a line at zero, and paired differences with error bars of one standard error.

    Args:
        axes: axes to draw on.
        lines: name -> (position, difference, standard error) of each point.
        x: label of the horizontal axis.
        y: label of the vertical axis.
    """
    axes.axhline(0.0, color=INK, linewidth=1)
    _bars(axes, {name: list(np.asarray(sorted(line)).T) for name, line in lines.items()}, range(len(lines)))
    axes.set(xlabel=label(x), ylabel=label(y))
    return 3.0


def draw_spread(
    axes: "Axes", values: Mapping[str, NDArray[np.float64]], *, x: str, marks: Mapping[str, float]
) -> float:
    """Draw one row per name: seeds as dots, mean and standard deviation as a bar.

    Args:
        axes: axes to draw on.
        values: name -> values, (seeds,).
        x: label of the horizontal axis.
        marks: name -> position of a dashed line, such as the chance level.

    Returns:
        Height of the figure in inches.
    """
    names = ["\n".join(textwrap.wrap(label(name), NAME_LETTERS)) or " " for name in values]
    for place, scores in enumerate(values.values()):
        if not len(scores):
            continue
        mean, sd = float(np.mean(scores)), float(np.std(scores, ddof=1)) if len(scores) > 1 else 0.0
        axes.scatter(scores, [place] * len(scores), s=14, color=COLORS[1], linewidths=0, zorder=3,
                     label="one seed" if place == 0 else None)  # fmt: skip
        axes.errorbar(mean, place, xerr=sd, color=COLORS[0], marker="o", markersize=5, capsize=2, linewidth=1.4,
                      label="mean ± sd over seeds" if place == 0 else None)  # fmt: skip
    for name, height in marks.items():
        axes.axvline(height, color=INK, linewidth=1, linestyle=DASHED, label=f"{label(name)} {height:.3f}")
    axes.set_yticks(range(len(values)), names)
    axes.set_ylim(len(values) - 0.4, -0.6)
    axes.locator_params(axis="x", nbins=5)  # long names and signed tick labels leave little space
    axes.set_xlabel(label(x))
    return 0.7 + sum(0.14 + 0.15 * (1 + name.count("\n")) for name in names)


spread_dots = figure(draw_spread)
"""Return the rows of `draw_spread` as an SVG element."""


def draw_dots(axes: "Axes", scores: Mapping[str, CellScores]) -> float:
    """Draw the mean MAP of the rows with runs, and chance; see `draw_spread`."""
    cells = {name: cell for name, cell in scores.items() if cell.runs}
    values = {name: cell.maps() for name, cell in cells.items()}
    return draw_spread(axes, values, x=mean_map(cells.values()), marks={"chance": mean_chance(cells.values())})


dots = figure(draw_dots)
"""Return the rows of `draw_dots` as an SVG element."""


@figure
def bands_over(
    axes: "Axes", bands: Mapping[str, Band], *, x: str, y: str, span: tuple[float, float] | None = None
) -> float:
    """Draw lines with their standard deviation over seeds.

    Args:
        axes: axes to draw on.
        bands: name -> line.
        x: label of the horizontal axis.
        y: label of the vertical axis.
        span: limits of the horizontal axis; if set, the vertical axis ranges from 0 to 1.
    """
    if span is not None:
        axes.set(xlim=span, ylim=(0, 1))
    for name, band in bands.items():
        color, mean, sd = COLORS[band.color % len(COLORS)], _mean(band.y), _sd(band.y)
        axes.fill_between(band.x, mean - sd, mean + sd, color=color, alpha=0.12, linewidth=0)
        axes.plot(band.x, mean, color=color, linewidth=1.5, linestyle=DASHED if band.dashed else "-", label=label(name))
    over_counts(axes, x, y)
    return 2.8


def _bars(axes: "Axes", lines: Mapping[str, Sequence[NDArray[np.float64]]], colors: Sequence[int]) -> None:
    """Draw lines with error bars. Each line is shifted horizontally to avoid overlap.

    Args:
        axes: axes to draw on.
        lines: name -> x (n,), means (n,) and errors (n,).
        colors: number of a color for each line.
    """
    values = sorted({float(value) for x, _, _ in lines.values() for value in x})
    step = 0.012 * (values[-1] - values[0]) if len(values) > 1 else 0.0
    for number, ((name, (x, mean, error)), color) in enumerate(zip(lines.items(), colors, strict=True)):
        axes.errorbar(x + step * (number - (len(lines) - 1) / 2), mean, error, color=COLORS[color % len(COLORS)],
                      linewidth=1.7, marker="o", markersize=4, capsize=2, label=label(name))  # fmt: skip
    axes.set_xticks(values if len(values) <= 12 else values[:: len(values) // 8])


def _mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.nanmean(values, axis=0))


def _sd(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard deviation of each column; 0 for a column with fewer than two values."""
    several = (~np.isnan(values)).sum(axis=0) > 1
    deviations = np.zeros(values.shape[1])
    deviations[several] = np.nanstd(values[:, several], axis=0, ddof=1)
    return deviations
