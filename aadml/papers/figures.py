"""Figures 3 to 5 of the AADML paper, and the leaks of its tables: the figures as SVG and their numbers as tables."""

from collections.abc import Callable, Mapping, Sequence
from typing import ParamSpec

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.session import Record
from aadml.papers.rows import LEAKS, SELECTION
from aadml.papers.tables import Group
from aadml.reports.figures import COLORS, DASHED, INK, canvas, in_house_style, label, legend, svg
from aadml.reports.tables import Cell, Table
from aadml.retrieval.significance import spread
from aadml.runs.test_curve import PREFIX
from aadml.studies.comparison_rows import ComparisonRow
from aadml.studies.grid import Cell as Point
from aadml.studies.published_figures import published
from aadml.studies.sweep_figures import Band, bands_over, spread_curve

P = ParamSpec("P")

DRAWN = ("aadml", "msnsca", "tlca", "vae-cca", "eics", "cctl", "c-cca", "cca")
"""The methods of Figure 3 that are drawn: as many as there are colors; all are in its CSV."""
WIDEST = 1000
"""The largest K of the paper's axis."""
SERIES = {"train": ("train loss", "train map_mean"), "valid": ("valid loss", "valid map_mean"),
          "test": (f"{PREFIX}loss", f"{PREFIX}map_mean")}  # fmt: skip
"""Split -> the figures of an epoch that Figure 5 shows."""
_MARKS = ("v", "s", "^", "D", "P", "*", "X")


def scope_figure(rows: Sequence[ComparisonRow], group: Group) -> tuple[dict[str, str], Table]:
    """Draw precision-scope@K in each direction, K from 10 to 1,000 as far as the gallery goes.

    Returns:
        Direction -> figure, and the numbers of all rows.
    """
    directions = next((one.directions for one in group.scores.values() if one.runs), [])
    lines: list[tuple[Cell, ...]] = []
    panels: dict[str, str] = {}
    for direction in directions:
        bands: dict[str, Band] = {}
        for row in rows:
            curves = [run.record.directions[direction].scope for run in group.scores[row.cell.name].runs.values()]
            if not curves:
                continue
            values = np.array([curve.precision for curve in curves])
            shown = [place for place, k in enumerate(curves[0].k) if k <= WIDEST]
            lines += [(row.item, direction, curves[0].k[j], spread(values[:, j].tolist())) for j in shown]
            if row.item in DRAWN:
                color = DRAWN.index(row.item)
                bands[row.item] = Band([curves[0].k[j] for j in shown], values[:, shown], color)
        if bands:
            widest = max(max(band.x) for band in bands.values())
            panels[direction] = drawn(bands_over, bands, x="scope K", y="precision-scope@K", span=(0, widest))
    columns = ("method", "direction", "K", "precision")
    return panels, Table(columns, tuple(lines), f"Precision of the K nearest results. {group.about}")


def neighbor_figure(neighbors: Mapping[str, Mapping[int, Point]], group: Group) -> tuple[str, Table]:
    """Draw the MAP over k for the three triplet losses; give the numbers beside."""
    lines: list[tuple[Cell, ...]] = []
    bands: dict[str, Band] = {}
    for color, (name, cells) in enumerate(neighbors.items()):
        columns: list[list[float]] = []
        places: list[float] = []
        for k, cell in cells.items():
            own = group.scores[cell.name]
            figures = [own.over_seeds("map", direction) for direction in (*own.directions, None)]
            lines.append((name, k, *(figures if figures[1:] else [None] * 3)))
            if own.runs:
                places.append(k)
                columns.append([run.map_mean for run in own.runs.values()])
        if places:
            bands[name] = Band(places, _even(columns), color)
    directions = next((one.directions for one in group.scores.values() if one.runs), [])
    columns_of = ("loss", "k", *(f"MAP {name}" for name in (*directions, "mean")))
    drawing = drawn(spread_curve, bands, {}, x="k neighbors", y="MAP, mean of both directions")
    return drawing, Table(columns_of, tuple(lines), f"MAP over the number of neighbors. {group.about}")


def epoch_figures(curves: Mapping[str, Point], group: Group) -> tuple[dict[str, str], Table]:
    """Draw loss and MAP by epoch: six curves each, train solid and test dashed; and what alone chooses the epoch.

    Returns:
        Title -> figure, and the numbers.
    """
    lines: list[tuple[Cell, ...]] = []
    panels: dict[str, dict[str, Band]] = {"loss": {}, "MAP": {}, "validation MAP, which alone chooses the epoch": {}}
    loss, score, chosen = panels.values()
    for color, (name, cell) in enumerate(curves.items()):
        runs = group.scores[cell.name].runs
        for split, keys in SERIES.items():
            for key, title, kept in zip(keys, ("loss", "MAP"), (loss, score), strict=True):
                epochs, values = _by_epoch([run.epochs for run in runs.values()], key)
                columns = values.T.tolist()
                lines += [(name, split, title, n, spread(own)) for n, own in zip(epochs, columns, strict=True)]
                if not epochs:
                    continue
                band = Band(epochs, values, color, dashed=split == "test")
                if split != "valid":
                    kept[f"{name}, {split}{' (diagnosis)' * (split == 'test')}"] = band
                elif title == "MAP":
                    chosen[name] = band
    figures = {
        title: drawn(bands_over, bands, x="epoch", y=title.split(",")[0]) for title, bands in panels.items() if bands
    }
    named = ("loss", "split", "figure", "epoch", "value")
    return figures, Table(named, tuple(lines), f"Loss and MAP by epoch; test is a diagnosis. {group.about}")


def drawn(draw: Callable[P, str], *args: P.args, **kwargs: P.kwargs) -> str:
    """Draw a figure; nothing where matplotlib is not installed."""
    try:
        return draw(*args, **kwargs)
    except InputError:
        return ""


@in_house_style
def leak_dots(rows: Sequence[ComparisonRow], group: Group, kind: str) -> str:
    """Draw a line for each row: its inductive MAP, what each leak makes of the same runs, and what was published."""
    printed = published(kind)
    shown = [row for row in rows if group.scores[row.cell.name].runs]
    named: set[str] = set()
    figure, axes = canvas(0.9 + 0.2 * len(shown))
    for place, row in enumerate(shown):
        own, leaks = group.scores[row.cell.name].over_seeds("map"), group.leaks.get(row.cell.name, {})
        known = printed.get(row.item, {}).get(group.name, {}).get("mean")
        assert own is not None
        ends = [own.mean, *(one.mean for one in leaks.values())]
        axes.plot([min(ends), max(ends)], [place, place], color=COLORS[7], linewidth=0.8, zorder=1)
        for number, leak in enumerate((SELECTION, *LEAKS)):
            if leak in leaks:
                axes.scatter(leaks[leak].mean, place, s=16, marker=_MARKS[number], color=COLORS[number % 7], zorder=2,
                             linewidths=0, label=None if leak in named else label(leak))  # fmt: skip
                named.add(leak)
        axes.errorbar(own.mean, place, xerr=own.sd if own.count > 1 else 0, color=INK, marker="o", markersize=5,
                      capsize=2, label="inductive (ours)" if place == 0 else None, linewidth=1.4, zorder=4)  # fmt: skip
        if known is not None:
            axes.scatter(known, place, s=34, marker="|", color=INK, zorder=3, linewidths=1.6)
    _finish_dots(axes, [label(row.item, 28) for row in shown], group)
    return svg(figure)


def _finish_dots(axes: "object", names: Sequence[str], group: Group) -> None:
    from matplotlib.axes import Axes

    assert isinstance(axes, Axes)
    chance = float(np.mean([run.record.chance for one in group.scores.values() for run in one.runs.values()]))
    axes.scatter([], [], s=34, marker="|", color=INK, linewidths=1.6, label="published (protocol unstated)")
    axes.axvline(chance, color=INK, linewidth=1, linestyle=DASHED, label=f"chance {chance:.3f}")
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(0, 1)
    axes.set_xlabel(f"MAP on {group.name}, mean of both directions")
    legend(axes)


def _even(columns: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """Lay out columns (seeds) as (seeds, n), NaN where a run failed."""
    longest = max(map(len, columns), default=0)
    padded = [[*column, *[float("nan")] * (longest - len(column))] for column in columns]
    return np.array(padded, dtype=np.float64).T


def _by_epoch(logs: Sequence[Sequence[Record]], key: str) -> tuple[list[int], NDArray[np.float64]]:
    """Give the epochs that all logs have a figure of, and its values (seeds, epochs)."""
    known = [{int(one["epoch"]): float(one[key]) for one in log if key in one} for log in logs]
    epochs = sorted(set.intersection(*map(set, known))) if known else []
    return epochs, np.array([[one[epoch] for epoch in epochs] for one in known], dtype=np.float64)
