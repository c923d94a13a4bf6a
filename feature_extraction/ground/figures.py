"""Figures in one style, as matplotlib objects or as self-contained SVG elements."""

import functools
import io
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from aadml.feature_extraction.ground.import_paths import optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")
INK, FAINT = "#22303c", "#d8dee4"
COLORS = ("#0b7285", "#e8590c", "#5f3dc4", "#2b8a3e", "#c2255c", "#1864ab", "#846358", "#868e96")
LINES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)))
"""Line styles that can be distinguished without colors."""

DASHED = (0, (4, 2.5))
WIDTH = 4.6
"""Width of a figure in inches, narrow enough for its text to be readable on a phone."""

LEGEND_LETTERS = 58  # characters in a line of the legend
LEGEND_LINE = 0.18  # height in inches
LONGEST = 44  # characters of a name
_STYLE = {
    "font.size": 9, "legend.fontsize": 8.5, "axes.edgecolor": FAINT, "axes.labelcolor": INK, "text.color": INK,
    "xtick.color": INK, "ytick.color": INK, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "axes.axisbelow": True, "grid.color": FAINT, "grid.linewidth": 0.6, "legend.frameon": False,
    "svg.hashsalt": "aadml", "svg.fonttype": "none", "text.parse_math": False,
}  # fmt: skip
Series = Mapping[str, tuple[Sequence[float], Sequence[float]]]


def figure(draw: Callable[Concatenate["Axes", P], float]) -> Callable[P, str]:
    """Return a variant of `draw` whose result is an SVG element with a legend.

    The variant has the arguments of `draw` except the axes.

    Args:
        draw: function that draws a panel on axes and returns the height of the panel in inches, without the legend
            (see `panels`).
    """

    @functools.wraps(draw)
    def styled(*args: P.args, **kwargs: P.kwargs) -> str:
        return svg(panels([lambda axes: draw(axes, *args, **kwargs)]))

    return styled


def panels(drawings: Sequence[Callable[["Axes"], float]]) -> "Figure":
    """Return a figure in the style of aadml: panels one below the other, with a legend below each panel.

    Text in the figure is not parsed as formulas. Jupyter shows the figure without pyplot.

    Args:
        drawings: functions that draw a panel on its axes and return the height of the panel in inches, without the
            legend.

    Raises:
        InputError: matplotlib cannot be imported.
    """
    matplotlib = optional("matplotlib", "a figure", "aadml[plot]")
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        chart = Figure(layout="constrained")
        parts: Any = [chart] if len(drawings) == 1 else chart.subfigures(len(drawings), 1)
        heights = []
        for part, draw in zip(parts, drawings, strict=True):
            axes = part.add_subplot()
            heights.append(draw(axes) + legend(axes))
        chart.set_size_inches(WIDTH, sum(heights))
        vars(chart)["_repr_svg_"] = partial(svg, chart)
    return chart


def label(name: object, width: int = LONGEST) -> str:
    """Return a printable name, shortened to `width` characters.

    A first "_", which would hide the name in the legend, is preceded by a space.
    """
    plain = " ".join("".join(letter if letter.isprintable() else " " for letter in str(name)).split())
    short = plain if len(plain) <= width else f"{plain[: width - 1]}…"
    return f" {short}" if short.startswith("_") else short


def over_counts(axes: "Axes", x: str, y: str) -> None:
    """Set the axis labels `x` and `y`. The horizontal axis counts epochs or results, and has whole-number ticks."""
    from matplotlib.ticker import MaxNLocator

    axes.set(xlabel=label(x), ylabel=label(y))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def legend(axes: "Axes") -> float:
    """Draw the legend below the axes, and return the legend's height in inches; 0 for axes without named lines.

    The legend has as many columns as fit.
    """
    figure: Any = axes.figure
    handles, names = axes.get_legend_handles_labels()
    if not names:
        return 0.0
    columns = max(1, min(len(names), LEGEND_LETTERS // (max(map(len, names)) + 6)))
    figure.legend(handles, names, loc="outside lower left", ncols=columns, handlelength=2.2, columnspacing=1.2)
    return LEGEND_LINE * -(-len(names) // columns)


def svg(figure: "Figure") -> str:
    """Return a figure as an SVG element that scales with the page. Equal figures produce equal text."""
    matplotlib, out = optional("matplotlib", "a figure", "aadml[plot]"), io.StringIO()
    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # the reader's fonts draw the text
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    element = out.getvalue()
    element = element[element.index("<svg") :].strip()
    return re.sub(r'<svg ([^>]*?)width="[^"]*"', r"<svg \1", re.sub(r'height="[^"]*pt"', "", element, count=1), count=1)


def draw_curves(axes: "Axes", series: Series, *, x: str, y: str, marks: Mapping[str, float] | None = None) -> float:
    """Draw lines over a common horizontal axis.

    Args:
        axes: axes to draw on.
        series: name -> (x values, y values).
        x: label of the horizontal axis.
        y: label of the vertical axis.
        marks: name -> position of a dashed vertical line, such as the selected epoch.

    Returns:
        Height of the panel in inches, without the legend.
    """
    for number, (name, (xs, ys)) in enumerate(series.items()):
        marker = "o" if len(xs) < 12 else None
        color, line = COLORS[number % len(COLORS)], LINES[number % len(LINES)]
        axes.plot(xs, ys, color=color, linestyle=line, label=label(name), linewidth=1.6, marker=marker, markersize=3)
    for name, place in (marks or {}).items():
        axes.axvline(place, color=INK, linewidth=1, linestyle=DASHED, label=label(name))
    over_counts(axes, x, y)
    return 2.8


curves = figure(draw_curves)
"""Return the lines of `draw_curves` as an SVG element."""
