"""Figures of runs, as SVG that stands in a page by itself."""

import io
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from aadml.methods.session import Record
from feature_extraction.ground.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, FAINT = "#22303c", "#d8dee4"
COLORS = ("#0b7285", "#e8590c", "#5f3dc4", "#2b8a3e", "#c2255c", "#1864ab", "#846358", "#868e96")
Series = Mapping[str, tuple[Sequence[float], Sequence[float]]]


def canvas(width: float = 6.0, height: float = 3.4, columns: int = 1) -> tuple["Figure", list["Axes"]]:
    """Open a figure in the house style, with axes side by side.

    Raises:
        InputError: matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError as error:
        raise InputError("figures need matplotlib: pip install 'aadml[plot]'") from error
    from matplotlib.figure import Figure

    style = {
        "font.size": 9,
        "axes.edgecolor": FAINT,
        "axes.labelcolor": INK,
        "text.color": INK,
        "svg.hashsalt": "aadml",
    }
    style |= {"xtick.color": INK, "ytick.color": INK, "axes.spines.top": False, "axes.spines.right": False}
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(width * columns, height), layout="constrained")
        axes = [figure.add_subplot(1, columns, number + 1) for number in range(columns)]
    for one in axes:
        one.grid(color=FAINT, linewidth=0.6)
        one.set_axisbelow(True)
    return figure, axes


def svg(figure: "Figure") -> str:
    """Write a figure as an SVG element that scales with the page, the same bytes for the same figure."""
    import matplotlib

    text = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "aadml", "svg.fonttype": "none"}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    element = text.getvalue()
    element = element[element.index("<svg") :]
    return re.sub(r'<svg ([^>]*?)width="[^"]*"', r"<svg \1", re.sub(r'height="[^"]*pt"', "", element, count=1), count=1)


def curves(series: Series, *, x: str, y: str, marks: Mapping[str, float] | None = None, log: bool = False) -> str:
    """Draw lines over a common axis.

    Args:
        series: name -> (x values, y values).
        x: what the horizontal axis shows.
        y: what the vertical axis shows.
        marks: name -> height of a dashed line (chance).
        log: whether the horizontal axis is logarithmic.
    """
    figure, (axes,) = canvas()
    for color, (name, (xs, ys)) in zip(COLORS * 9, series.items(), strict=False):
        axes.plot(xs, ys, color=color, label=name, linewidth=1.6, marker="o" if len(xs) < 12 else None, markersize=3)
    for name, height in (marks or {}).items():
        axes.axhline(height, color=INK, linewidth=1, linestyle=(0, (4, 3)), label=f"{name} {height:.3f}")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if log:
        axes.set_xscale("log")
    axes.legend(frameon=False, fontsize=8)
    return svg(figure)


def training_curves(records: Sequence[Record], selected: int | None) -> str:
    """Draw loss and validation MAP over epochs, the selected epoch marked."""
    figure, (losses, scores) = canvas(4.6, 3.2, columns=2)
    epochs = [record["epoch"] for record in records]
    parts = [key for key in records[0] if key == "loss" or key.endswith(("_loss", " loss"))]
    for color, key in zip(COLORS, parts, strict=False):
        losses.plot(epochs, [record.get(key, np.nan) for record in records], color=color, label=key.replace("_", " "))
    scored = [record for record in records if any(key.startswith("valid ") for key in record)]
    for color, key in zip(COLORS, [key for key in (scored or [{}])[0] if key.startswith("valid ")], strict=False):
        label = key.removeprefix("valid ").replace("map_mean", "MAP, mean").replace("map ", "MAP, ")
        values = [record.get(key, np.nan) for record in scored]
        scores.plot([record["epoch"] for record in scored], values, color=color, label=label)
    if selected is not None:
        scores.axvline(selected, color=INK, linewidth=1, linestyle=(0, (4, 3)), label=f"kept: epoch {selected}")
    for axes, y in ((losses, "training loss"), (scores, "validation")):
        axes.set_xlabel("epoch")
        axes.set_ylabel(y)
        axes.legend(frameon=False, fontsize=8)
    return svg(figure)


def class_bars(names: Sequence[str], values: Mapping[str, Sequence[float]], chance: Sequence[float]) -> str:
    """Draw the MAP of every class of queries, one bar a direction, chance as a tick."""
    figure, (axes,) = canvas(7.0, 0.7 + 0.34 * len(names))
    places = np.arange(len(names))
    height = 0.8 / max(len(values), 1)
    for number, (name, heights) in enumerate(values.items()):
        axes.barh(places + (number - (len(values) - 1) / 2) * height, heights, height, color=COLORS[number], label=name)
    axes.scatter(chance, places, marker="|", s=90, color=INK, label="chance", zorder=3)
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xlabel("MAP of the class's queries")
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    return svg(figure)


def class_map(points: Mapping[str, NDArray[np.float64]], labels: NDArray[np.int64], names: Sequence[str]) -> str:
    """Draw embeddings in two dimensions: color is the class, shape the modality; points (n, 2) each."""
    import matplotlib

    figure, (axes,) = canvas(7.0, 4.6)
    palette = matplotlib.colormaps["tab20" if len(names) > 10 else "tab10"]
    for marker, (modality, places) in zip("os^", points.items(), strict=False):
        for label, name in enumerate(names):
            own = labels == label
            shown = name if marker == "o" else None
            color = palette(label % palette.N)
            axes.scatter(
                places[own, 0], places[own, 1], s=16, marker=marker, color=color, alpha=0.75, linewidths=0, label=shown
            )
        axes.scatter([], [], s=16, marker=marker, color=INK, label=modality)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    return svg(figure)
