"""Figures 3 to 5 of the AADML paper, and a figure of MAP under each leak, as SVG, with tables of the numbers."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from aadml.configuration.config import DEFAULT_METHOD
from aadml.feature_extraction.ground.figures import COLORS, DASHED, INK, figure, label
from aadml.papers.fidelity import FIDELITY, READINGS
from aadml.papers.rows import LEAKS, SELECTION
from aadml.papers.tables import Group
from aadml.reports.published import PAPER
from aadml.reports.tables import Cell, Table
from aadml.retrieval.significance import spread
from aadml.runs.test_curve import PREFIX
from aadml.studies.comparison_rows import ComparisonRow
from aadml.studies.results import directions_of, mean_chance
from aadml.studies.sweep_figures import Band, bands_over, drawn, epoch_band, map_band, scope_band, spread_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SERIES = {"train": ("train loss", "train map_mean"), "valid": ("valid loss", "valid map_mean"),
          "test": (f"{PREFIX}loss", f"{PREFIX}map_mean")}  # fmt: skip
"""Split -> keys of the log in figure 5, for loss and MAP."""
_PANELS = {
    ("loss", "train"): "train loss",
    ("loss", "test"): "test loss, not used for any choice",
    ("MAP", "train"): "train MAP",
    ("MAP", "test"): "test MAP, not used for any choice",
    ("MAP", "valid"): "valid MAP, which selects the epoch",
}
"""Figure and split -> title of a panel of figure 5."""
_READINGS = {"aa-triplet": DEFAULT_METHOD} | {name: name for name in READINGS}
"""Loss or preset of figure 4 -> its name among the readings of Equation 7."""
_MARKS = ("v", "s", "^", "D", "P", "*", "X")
Figures = tuple[Mapping[str, str], Table]
"""Figures by title, and a table of their numbers."""


def scope_figure(group: Group) -> Figures:
    """Draw precision-scope@K in each direction, for K up to 1,000, or up to the size of a smaller gallery."""
    lines: list[tuple[Cell, ...]] = []
    panels: dict[str, str] = {}
    for direction in directions_of(group.scores):
        bands: dict[str, Band] = {}
        for row in group.runs.methods:
            color = PAPER.scope_methods.index(row.item) if row.item in PAPER.scope_methods else 0
            band = scope_band(group.of(row), direction, color, widest=PAPER.widest_scope)
            if band is None:
                continue
            lines += _over_seeds(band, row.item, direction)
            if row.item in PAPER.scope_methods:
                bands[row.item] = band
        if bands:
            widest = max(max(band.x) for band in bands.values())
            panels[direction] = drawn(bands_over, bands, x="scope K", y="precision-scope@K", span=(0, widest))
    columns_of = ("method", "direction", "K", "precision")
    return panels, Table(columns_of, tuple(lines), f"Precision of the K nearest results. {group.about}")


def neighbor_figure(group: Group) -> Figures:
    """Draw the MAP over k for the three triplet losses, and for the readings of Equation 7 with the triplet loss."""
    directions = directions_of(group.scores)
    lines: list[tuple[Cell, ...]] = []
    bands: dict[str, Band] = {}
    for color, (name, cells) in enumerate(group.runs.neighbors.items()):
        by_k = {k: group.scores[cell.name] for k, cell in cells.items()}
        lines += [
            (name, k, *(cell.over_seeds("map", direction) for direction in (*directions, None)))
            for k, cell in by_k.items()
        ]
        if trained := {k: cell for k, cell in by_k.items() if cell.runs}:
            bands[name] = map_band(list(trained), list(trained.values()), color)
    panels = {
        "MAP over k": {name: bands[name] for name in PAPER.best_k if name in bands},
        "MAP over k by reading of Equation 7": {
            FIDELITY.reading(reading): bands[name] for name, reading in _READINGS.items() if name in bands
        },
    }
    columns = ("loss", "k", *(f"MAP {name}" for name in (*directions, "mean")))
    figures = {
        title: drawn(spread_curve, shown, {}, x="k neighbors", y="MAP, mean of both directions")
        for title, shown in panels.items()
        if shown
    }
    return figures, Table(columns, tuple(lines), f"MAP over the number of neighbors. {group.about}")


def epoch_figures(group: Group) -> Figures:
    """Draw loss and MAP by epoch on train and test, and MAP on valid.

    Dashed lines show losses without anchor-aware proxies.
    """
    lines: list[tuple[Cell, ...]] = []
    panels: dict[str, dict[str, Band]] = {title: {} for title in _PANELS.values()}
    for number, (name, cell) in enumerate(group.runs.curves.items()):
        runs, dashed = group.scores[cell.name].runs.values(), name not in PAPER.best_k
        for split, keys in SERIES.items():
            for key, figure_name in zip(keys, ("loss", "MAP"), strict=True):
                band = epoch_band(runs, key, number // 2, dashed=dashed)
                if band is None:
                    continue
                lines += _over_seeds(band, name, split, figure_name)
                if title := _PANELS.get((figure_name, split)):
                    panels[title][name] = band
    figures = {
        title: drawn(bands_over, bands, x="epoch", y=title.split(",")[0]) for title, bands in panels.items() if bands
    }
    named = ("loss", "split", "figure", "epoch", "value")
    about = f"Loss and MAP by epoch. Test curves were not used for any choice. {group.about}"
    return figures, Table(named, tuple(lines), about)


def _over_seeds(band: Band, *names: str) -> list[tuple[Cell, ...]]:
    return [(*names, x, spread(values)) for x, values in zip(band.x, band.y.T, strict=True)]


@figure
def leak_dots(axes: "Axes", rows: Sequence[ComparisonRow], group: Group) -> float:
    """Draw one line per row: inductive MAP, MAP of the same runs under each leak, and published MAP.

    Args:
        axes: axes to draw on.
        rows: rows of one table.
        group: results of the rows on one data set.

    Returns:
        Height of the figure in inches.
    """
    printed = PAPER.published[rows[0].table]
    shown = [(row, inductive) for row in rows if (inductive := group.of(row).over_seeds("map"))]
    labeled: set[str] = set()
    for height, (row, inductive) in enumerate(shown):
        leaks = group.leaked(row)
        ends = [inductive.mean, *(leaked.mean for leaked in leaks.values())]
        axes.plot([min(ends), max(ends)], [height, height], color=COLORS[7], linewidth=0.8, zorder=1)
        for number, leak in enumerate((SELECTION, *LEAKS)):
            if leak in leaks:
                axes.scatter(leaks[leak].mean, height, s=16, marker=_MARKS[number], color=COLORS[number], zorder=2,
                             linewidths=0, label=None if leak in labeled else label(leak))  # fmt: skip
                labeled.add(leak)
        axes.errorbar(inductive.mean, height, xerr=inductive.sd if inductive.count > 1 else 0, color=INK, marker="o",
                      markersize=5, capsize=2, label="inductive (ours)" if height == 0 else None, linewidth=1.4,
                      zorder=4)  # fmt: skip
        if known := printed.get(row.item, {}).get(group.name):
            axes.scatter(known.mean, height, s=34, marker="|", color=INK, zorder=3, linewidths=1.6)
    chance = mean_chance(group.scores.values())
    axes.scatter([], [], s=34, marker="|", color=INK, linewidths=1.6, label="published (protocol unstated)")
    axes.axvline(chance, color=INK, linewidth=1, linestyle=DASHED, label=f"chance {chance:.3f}")
    axes.set_yticks(range(len(shown)), [label(row.item, 28) for row, _ in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_xlim(0, 1)
    axes.set_xlabel(f"MAP on {group.name}, mean of both directions")
    return 0.9 + 0.2 * len(shown)
