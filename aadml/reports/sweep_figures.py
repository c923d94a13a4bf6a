"""Figures of many runs: mean and spread over seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aadml.reports.figures import COLORS, FAINT, INK, canvas, svg

DASHED = (0, (4, 2.5))


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


def spread_curve(bands: Mapping[str, Band], levels: Mapping[str, Band], *, x: str, y: str, note: str = "") -> str:
    """Draw lines with their spread, and levels that do not depend on x as dashed lines across.

    Args:
        bands: name -> line.
        levels: name -> line of one point, drawn across the whole width.
        x: what the horizontal axis shows.
        y: what the vertical axis shows.
        note: a few words for the lower left corner.
    """
    figure, (axes,) = canvas(6.4, 3.8)
    places = sorted({float(value) for band in bands.values() for value in band.x})
    for name, band in levels.items():
        mean, sd = _mean(band.y)[0], _sd(band.y)[0]
        color = COLORS[band.color % len(COLORS)]
        axes.axhspan(mean - sd, mean + sd, color=color, alpha=0.07, linewidth=0)
        axes.axhline(mean, color=color, linewidth=1.2, linestyle=DASHED, label=name)
    shift = 0.012 * (places[-1] - places[0]) if len(places) > 1 else 0.0
    for number, (name, band) in enumerate(bands.items()):
        color, mean, sd = COLORS[band.color % len(COLORS)], _mean(band.y), _sd(band.y)
        at = np.asarray(band.x, dtype=float) + shift * (number - (len(bands) - 1) / 2)
        axes.errorbar(at, mean, sd, color=color, linewidth=1.7, marker="o", markersize=4, capsize=2, label=name)
    axes.set_xticks(places if len(places) <= 12 else places[:: len(places) // 8])
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if note:
        axes.text(0.01, 0.02, note, transform=axes.transAxes, fontsize=8, color=INK)
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return svg(figure)


def difference_curve(lines: Mapping[str, Sequence[tuple[float, float, float]]], *, x: str, y: str) -> str:
    """Draw paired differences with their standard errors around a line at zero.

    Args:
        lines: name -> (place, difference, standard error).
        x: what the horizontal axis shows.
        y: what the vertical axis shows.
    """
    figure, (axes,) = canvas(6.4, 2.9)
    places = sorted({place for line in lines.values() for place, _, _ in line})
    shift = 0.012 * (places[-1] - places[0]) if len(places) > 1 else 0.0
    axes.axhline(0.0, color=INK, linewidth=1)
    for number, (name, line) in enumerate(lines.items()):
        at, mean, error = np.asarray(sorted(line)).T
        at = at + shift * (number - (len(lines) - 1) / 2)
        color = COLORS[number % len(COLORS)]
        axes.errorbar(at, mean, error, color=color, linewidth=1.7, marker="o", markersize=4, capsize=2, label=name)
    axes.set_xticks(places if len(places) <= 12 else places[:: len(places) // 8])
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return svg(figure)


def spread_dots(values: Mapping[str, NDArray[np.float64]], *, x: str, marks: Mapping[str, float] | None = None) -> str:
    """Draw a row for each name: every seed as a dot, mean and spread as a bar.

    Args:
        values: name -> (seeds,).
        x: what the horizontal axis shows.
        marks: name -> place of a dashed line (chance).
    """
    figure, (axes,) = canvas(7.0, 0.9 + 0.27 * len(values))
    for place, figures in enumerate(values.values()):
        if not len(figures):
            continue
        mean, sd = float(np.mean(figures)), float(np.std(figures, ddof=1)) if len(figures) > 1 else 0.0
        axes.scatter(figures, [place] * len(figures), s=12, color=COLORS[0], alpha=0.35, linewidths=0)
        axes.errorbar(mean, place, xerr=sd, color=COLORS[0], marker="o", markersize=5, capsize=2, linewidth=1.4)
    for name, height in (marks or {}).items():
        axes.axvline(height, color=INK, linewidth=1, linestyle=DASHED, label=f"{name} {height:.3f}")
    axes.set_yticks(range(len(values)), list(values))
    axes.invert_yaxis()
    axes.set_xlabel(x)
    if marks:
        axes.legend(frameon=False, fontsize=8)
    return svg(figure)


def side_by_side(panels: Mapping[str, Mapping[str, Band]], *, x: str, log: bool = False) -> str:
    """Draw panels of lines with their spread side by side, one legend for all.

    Args:
        panels: what a vertical axis shows -> name -> line.
        x: what the horizontal axes show.
        log: whether they are logarithmic.
    """
    figure, places = canvas(4.4, 3.3, columns=len(panels))
    for axes, (y, bands) in zip(places, panels.items(), strict=True):
        for name, band in bands.items():
            color, mean, sd = COLORS[band.color % len(COLORS)], _mean(band.y), _sd(band.y)
            axes.fill_between(band.x, mean - sd, mean + sd, color=color, alpha=0.1, linewidth=0)
            axes.plot(band.x, mean, color=color, linewidth=1.5, linestyle=DASHED if band.dashed else "-", label=name)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        if log:
            axes.set_xscale("log")
    places[-1].legend(frameon=False, fontsize=8, edgecolor=FAINT)
    return svg(figure)


def _mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.nanmean(values, axis=0))


def _sd(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.nanstd(values, axis=0, ddof=1)) if len(values) > 1 else np.zeros(values.shape[1])
