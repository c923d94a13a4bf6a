"""Figures in words: one line for each axis, legend, text, line, area and set of dots, with places and styles."""

import numpy as np

from aadml.feature_extraction.ground.figures import panels


def contents(draw, *args, **kwargs):
    """Return what a function with the decorator `figure` draws, as text."""
    from matplotlib.collections import LineCollection, PathCollection
    from matplotlib.colors import to_hex
    from matplotlib.lines import Line2D
    from matplotlib.markers import MarkerStyle
    from matplotlib.patches import Rectangle
    from matplotlib.ticker import FixedLocator

    def shape(marker):
        return marker.get_path().transformed(marker.get_transform()).vertices.round(3).tobytes()

    shapes = {shape(MarkerStyle(marker)): marker for marker in "o^DvP*sX|"}

    def color(values):
        return " ".join(to_hex(value, keep_alpha=value[3] < 1) for value in np.reshape(values, (-1, 4))) or "none"

    def artist(one):
        if isinstance(one, Line2D):
            line = f"{one.get_linewidth():g} {one._dash_pattern[1] if one.is_dashed() else one.get_linestyle()}"
            marker = f"{one.get_marker()} {one.get_markersize():g}"
            kind, places = "line", f"{points(one.get_xydata())} {one.get_color()} {line} {marker}"
        elif isinstance(one, PathCollection):
            marker = shapes[one.get_paths()[0].vertices.round(3).tobytes()]
            style = f"{color(one.get_facecolors())} {color(one.get_edgecolors())} {numbers(one.get_linewidths())}"
            kind, places = f"dots {marker}", f"{points(one.get_offsets())} {numbers(one.get_sizes())} {style}"
        elif isinstance(one, LineCollection):
            style = f"{color(one.get_colors())} {numbers(one.get_linewidths())}"
            kind, places = "bars", f"{' '.join(points(segment) for segment in one.get_segments())} {style}"
        elif isinstance(one, Rectangle):
            box, fill = (*one.get_xy(), one.get_width(), one.get_height()), color(one.get_facecolor())
            kind, places = "box", f"{numbers(box)} {fill} {one.get_linewidth():g}"
        else:
            ends = one.get_paths()[0].vertices
            spans = [(x, *np.quantile(ends[ends[:, 0] == x, 1], (0, 1))) for x in np.unique(ends[:, 0])]
            kind, places = "area", f"{points(spans)} {color(one.get_facecolors())} {numbers(one.get_linewidths())}"
        return f"{kind} {places} z {one.get_zorder():g}"

    def side(axis, limits, is_set):
        ticks = f" at {numbers(axis.get_ticklocs())} {[text.get_text() for text in axis.get_ticklabels()]}"
        chosen = ticks if isinstance(axis.get_major_locator(), FixedLocator) else ""
        return f"{axis.get_label_text()!r}{f' {numbers(limits)}' * is_set}{chosen}"

    chart = panels([lambda axes: draw.__wrapped__(axes, *args, **kwargs)])
    (axes,) = chart.axes
    sides = [
        f"x {side(axes.xaxis, axes.get_xlim(), not axes.get_autoscalex_on())}",
        f"y {side(axes.yaxis, axes.get_ylim(), not axes.get_autoscaley_on())}",
    ]
    legend = [text.get_text() for text in (chart.legends[0].get_texts() if chart.legends else ())]
    texts = [
        f"text {numbers(t.get_position())} {t.get_fontsize():g} {t.get_color()} {t.get_text()!r}" for t in axes.texts
    ]
    caps = sorted({line.get_markersize() for line in axes.lines if line.get_marker() in ("|", "_")})
    lines = [line for line in axes.lines if line.get_marker() not in ("|", "_")]
    shown = [artist(one) for one in (*axes.patches, *axes.collections, *lines)]
    facts = [
        f"height {chart.get_figheight():g}",
        *sides,
        f"legend {', '.join(legend)}",
        f"caps {numbers(caps)}".strip(),
    ]
    return "\n".join([*facts, *texts, *shown, ""])


def numbers(values):
    return " ".join(f"{value + 0.0:g}" for value in np.round(np.asarray(values, float), 4))


def points(values):
    return "".join(f"({numbers(value).replace(' ', ',')})" for value in values)
