"""Figures of runs, as self-contained SVG elements."""

import functools
import io
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.ground.import_paths import optional
from aadml.methods.training.session import Record, numbers
from aadml.runs.test_curve import without_diagnosis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")
INK, FAINT = "#22303c", "#d8dee4"
COLORS = ("#0b7285", "#e8590c", "#5f3dc4", "#2b8a3e", "#c2255c", "#1864ab", "#846358", "#868e96")
LINES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)))
"""Line styles that can be distinguished without colors."""

MARKERS = "o^DvP*"
"""Markers of modalities; squares are the markers of classes."""

_GRAYS = (14, 15)  # colors of tab20 that are not used for classes: gray marks points without color

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
    """Decorate a function that draws on axes, so that a call returns an SVG element with a legend.

    The function itself returns the height of the figure in inches. The figure has one panel, in the style of aadml.
    Names are not parsed as formulas.

    Raises:
        InputError: matplotlib is not installed.
    """

    @functools.wraps(draw)
    def styled(*args: P.args, **kwargs: P.kwargs) -> str:
        matplotlib = optional("matplotlib", "a figure", "aadml[plot]")
        from matplotlib.figure import Figure

        with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from")  # the reader's fonts draw the text
            panel = Figure(layout="constrained")
            axes = panel.add_subplot()
            panel.set_size_inches(WIDTH, draw(axes, *args, **kwargs))
            legend(axes)
            return svg(panel)

    return styled


def label(name: object, width: int = LONGEST) -> str:
    """Return a printable, shortened name for a figure; a space precedes "_", since matplotlib hides names in "_..."."""
    plain = " ".join("".join(letter if letter.isprintable() else " " for letter in str(name)).split())
    short = plain if len(plain) <= width else f"{plain[: width - 1]}…"
    return f" {short}" if short.startswith("_") else short


def over_counts(axes: "Axes", x: str, y: str) -> None:
    """Label the axes, with whole numbers as ticks of the horizontal axis, which counts epochs or results."""
    from matplotlib.ticker import MaxNLocator

    axes.set(xlabel=label(x), ylabel=label(y))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def legend(axes: "Axes") -> None:
    """Draw the legend below the axes, in as many columns as fit."""
    figure: Any = axes.figure
    handles, names = axes.get_legend_handles_labels()
    if not names:
        return
    columns = max(1, min(len(names), LEGEND_LETTERS // (max(map(len, names)) + 6)))
    figure.set_figheight(figure.get_figheight() + LEGEND_LINE * -(-len(names) // columns))
    figure.legend(handles, names, loc="outside lower left", ncols=columns, handlelength=2.2, columnspacing=1.2)


def svg(figure: "Figure") -> str:
    """Return a figure as an SVG element that scales with the page; equal figures have equal bytes."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    element = out.getvalue()
    element = element[element.index("<svg") :].strip()
    return re.sub(r'<svg ([^>]*?)width="[^"]*"', r"<svg \1", re.sub(r'height="[^"]*pt"', "", element, count=1), count=1)


@figure
def curves(axes: "Axes", series: Series, *, x: str, y: str, marks: Mapping[str, float] | None = None) -> float:
    """Draw lines over a common axis.

    Args:
        axes: axes to draw on.
        series: name -> (x values, y values).
        x: label of the horizontal axis.
        y: label of the vertical axis.
        marks: name -> position of a dashed vertical line, such as the selected epoch.
    """
    for number, (name, (xs, ys)) in enumerate(series.items()):
        marker = "o" if len(xs) < 12 else None
        color, line = COLORS[number % len(COLORS)], LINES[number % len(LINES)]
        axes.plot(xs, ys, color=color, linestyle=line, label=label(name), linewidth=1.6, marker=marker, markersize=3)
    for name, place in (marks or {}).items():
        axes.axvline(place, color=INK, linewidth=1, linestyle=DASHED, label=label(name))
    over_counts(axes, x, y)
    return 2.8


def training_curves(records: Sequence[Record], selected: int | None) -> dict[str, str]:
    """Draw the logged curves: the losses, and each metric of the validation clips, with the selected epoch marked.

    Returns:
        Figures by the label of their vertical axis. The figure of the MAP includes the MAP of the training clips, if
        logged.
    """
    marks = {} if selected is None else {f"epoch {selected}, kept": selected}
    logged = list(dict.fromkeys(key for record in records for key in without_diagnosis(record)))
    panels: dict[str, dict[str, str]] = {}
    for key in logged:
        if key == "loss" or key.endswith(("_loss", " loss")):
            panels.setdefault("loss", {})[key.replace("_", " ").replace("valid", "validation")] = key
        elif key.startswith("valid "):
            metric, _, direction = key.removeprefix("valid ").replace("_mean", " mean").partition(" ")
            name = metric.replace("map", "MAP")
            panels.setdefault(name, {})[f"validation clips, {direction or 'mean'}"] = key
    fitted = next((record for record in records if "train map_mean" in record), None)
    if fitted is not None:
        queries = f" ({fitted['train queries']:,} queries)" if "train queries" in fitted else ""
        panels.setdefault("MAP", {})[f"training clips, mean{queries}"] = "train map_mean"
    return {
        name: curves({title: _logged(records, key) for title, key in keys.items()}, x="epoch", y=name, marks=marks)
        for name, keys in panels.items()
    }


def _logged(records: Sequence[Record], key: str) -> tuple[list[float], list[float]]:
    known = [numbers(record) for record in records if key in record]
    return [record["epoch"] for record in known], [record[key] for record in known]


@figure
def class_bars(
    axes: "Axes", names: Sequence[str], values: Mapping[str, Sequence[float]], chance: Sequence[float]
) -> float:
    """Draw the MAP of the queries of each class, with one bar per direction and a tick at chance."""
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

    If there are more classes than colors, the largest classes have colors, and the other points are hollow.

    Args:
        axes: axes to draw on.
        points: modality -> (n, 2).
        labels: modality -> (n,) class of each point, an index of `names`; negative for points without class.
        names: names of the classes.
    """
    every = np.concatenate(list(labels.values()))
    counts = np.bincount(every[every >= 0], minlength=len(names))
    colored = _colored(counts)
    for marker, (modality, places) in zip(cycle(MARKERS), points.items(), strict=False):
        axes.scatter([], [], s=18, marker=marker, color=INK, label=label(modality))
        for number, color in colored.items():
            members = places[labels[modality] == number]
            axes.scatter(members[:, 0], members[:, 1], s=18, marker=marker, color=color, alpha=0.8, linewidths=0)
        rest = places[~np.isin(labels[modality], list(colored))]
        axes.scatter(
            rest[:, 0], rest[:, 1], s=14, marker=marker, facecolors="none", edgecolors=COLORS[-1], linewidths=0.8
        )
    for number, color in colored.items():
        axes.scatter(
            [], [], s=18, marker="s", color=color, label=label(names[number] if number < len(names) else number, 28)
        )
    further = len(counts) - len(colored)
    kinds = [f"{further} further classes"] * bool(further) + ["no class"] * bool((every < 0).any())
    if kinds:
        axes.scatter(
            [], [], s=18, marker="s", facecolors="none", edgecolors=COLORS[-1], linewidths=0.8, label=", ".join(kinds)
        )
    axes.set(xticks=[], yticks=[])
    return 3.6


def _colored(counts: NDArray[np.int64]) -> dict[int, str]:
    """Return colors of the largest classes, by class; there are as many as can be distinguished."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    many = [to_hex(colormaps["tab20"](n)) for n in range(20) if n not in _GRAYS]
    colors = COLORS if len(counts) <= len(COLORS) else many
    largest = np.argsort(-counts, kind="stable")[: len(colors)]
    return dict(zip(np.sort(largest).tolist(), colors, strict=False))
