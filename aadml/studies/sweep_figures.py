"""Figures of many runs: mean and spread over seeds."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from aadml.reports.figures import COLORS, DASHED, INK, canvas, in_house_style, label, legend, over_counts, svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME_LETTERS = 26  # in a line of a row's name


@dataclass(frozen=True)
class Band:
    """A line over an axis, for several seeds.

    Attributes:
        x: (n,).
        y: (seeds, n); NaN where a seed has nothing.
        color: number of a color; lines of one color belong together.
        dashed: for what the solid line of its color is measured against.
    """

    x: Sequence[float]
    y: NDArray[np.float64]
    color: int = 0
    dashed: bool = False


@in_house_style
def spread_curve(bands: Mapping[str, Band], levels: Mapping[str, Band], *, x: str, y: str, note: str = "") -> str:
    """Draw lines with their spread, and levels that do not depend on x as dashed lines across.

    Args:
        bands: name -> line.
        levels: name -> line of one point, drawn across the whole width.
        x: what the horizontal axis shows.
        y: what the vertical axis shows.
        note: a few words for the lower left corner.
    """
    figure, axes = canvas(3.0)
    places = sorted({float(value) for band in bands.values() for value in band.x})
    for name, band in levels.items():
        mean, sd = _mean(band.y)[0], _sd(band.y)[0]
        color = COLORS[band.color % len(COLORS)]
        axes.axhspan(mean - sd, mean + sd, color=color, alpha=0.1, linewidth=0)
        axes.axhline(mean, color=color, linewidth=1.2, linestyle=DASHED, label=label(name))
    for number, (name, band) in enumerate(bands.items()):
        at = np.asarray(band.x, dtype=float) + _shift(places) * (number - (len(bands) - 1) / 2)
        _bars(axes, at, _mean(band.y), _sd(band.y), COLORS[band.color % len(COLORS)], name)
    _over_numbers(axes, places, x, y)
    if note:
        axes.text(0.01, 0.02, label(note), transform=axes.transAxes, fontsize=8, color=INK)
    legend(axes)
    return svg(figure)


@in_house_style
def difference_curve(lines: Mapping[str, Sequence[tuple[float, float, float]]], *, x: str, y: str) -> str:
    """Draw paired differences with their standard errors around a line at zero.

    Args:
        lines: name -> (place, difference, standard error).
        x: what the horizontal axis shows.
        y: what the vertical axis shows.
    """
    figure, axes = canvas(3.0)
    places = sorted({place for line in lines.values() for place, _, _ in line})
    axes.axhline(0.0, color=INK, linewidth=1)
    for number, (name, line) in enumerate(lines.items()):
        at, mean, error = np.asarray(sorted(line)).T
        at = at + _shift(places) * (number - (len(lines) - 1) / 2)
        _bars(axes, at, mean, error, COLORS[number % len(COLORS)], name)
    _over_numbers(axes, places, x, y)
    legend(axes)
    return svg(figure)


@in_house_style
def spread_dots(values: Mapping[str, NDArray[np.float64]], *, x: str, marks: Mapping[str, float] | None = None) -> str:
    """Draw a row for each name: every seed as a dot, mean and spread as a bar.

    Args:
        values: name -> (seeds,).
        x: what the horizontal axis shows.
        marks: name -> place of a dashed line (chance).
    """
    names = ["\n".join(textwrap.wrap(label(name), NAME_LETTERS)) or " " for name in values]
    figure, axes = canvas(0.7 + sum(0.14 + 0.15 * (1 + name.count("\n")) for name in names))
    for place, scores in enumerate(values.values()):
        if not len(scores):
            continue
        mean, sd = float(np.mean(scores)), float(np.std(scores, ddof=1)) if len(scores) > 1 else 0.0
        axes.scatter(scores, [place] * len(scores), s=14, color=COLORS[1], linewidths=0, zorder=3,
                     label="one seed" if place == 0 else None)  # fmt: skip
        axes.errorbar(mean, place, xerr=sd, color=COLORS[0], marker="o", markersize=5, capsize=2, linewidth=1.4,
                      label="mean ± sd over seeds" if place == 0 else None)  # fmt: skip
    for name, height in (marks or {}).items():
        axes.axvline(height, color=INK, linewidth=1, linestyle=DASHED, label=f"{label(name)} {height:.3f}")
    axes.set_yticks(range(len(values)), names)
    axes.set_ylim(len(values) - 0.4, -0.6)
    axes.locator_params(axis="x", nbins=5)  # long names leave little room, and signs take more of it
    axes.set_xlabel(label(x))
    legend(axes)
    return svg(figure)


@in_house_style
def bands_over(
    bands: Mapping[str, Band], *, x: str, y: str, log: bool = False, span: tuple[float, float] | None = None
) -> str:
    """Draw lines with their spread.

    Args:
        bands: name -> line.
        x: what the horizontal axis shows.
        y: what the vertical axis shows.
        log: whether the horizontal axis is logarithmic.
        span: ends of the horizontal axis; the vertical one then goes from 0 to 1.
    """
    figure, axes = canvas(2.8)
    if span is not None:
        axes.set(xlim=span, ylim=(0, 1))
    for name, band in bands.items():
        color, mean, sd = COLORS[band.color % len(COLORS)], _mean(band.y), _sd(band.y)
        axes.fill_between(band.x, mean - sd, mean + sd, color=color, alpha=0.12, linewidth=0)
        axes.plot(band.x, mean, color=color, linewidth=1.5, linestyle=DASHED if band.dashed else "-", label=label(name))
    over_counts(axes, x, y, log=log)
    legend(axes)
    return svg(figure)


def _bars(
    axes: "Axes", at: NDArray[np.float64], mean: NDArray[np.float64], error: NDArray[np.float64], color: str, name: str
) -> None:
    axes.errorbar(at, mean, error, color=color, linewidth=1.7, marker="o", markersize=4, capsize=2, label=label(name))


def _over_numbers(axes: "Axes", places: Sequence[float], x: str, y: str) -> None:
    axes.set_xticks(places if len(places) <= 12 else places[:: len(places) // 8])
    axes.set(xlabel=label(x), ylabel=label(y))


def _shift(places: Sequence[float]) -> float:
    return 0.012 * (places[-1] - places[0]) if len(places) > 1 else 0.0


def _mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.nanmean(values, axis=0))


def _sd(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.nanstd(values, axis=0, ddof=1)) if len(values) > 1 else np.zeros(values.shape[1])
