"""What the figures of curves contain, and their common style."""

import warnings

import pytest

from aadml.feature_extraction.ground import figures
from tests.drawn_figures import contents

pytest.importorskip("matplotlib")

CURVES = """\
height 3.34
x 'epoch'
y 'loss'
legend 0, 1, 2, 3, 4, 5, 6, 7, 8, selected
caps
line (1,0)(2,0) #0b7285 1.6 - o 3 z 2
line (1,0)(2,1) #e8590c 1.6 [8.0, 3.2] o 3 z 2
line (1,0)(2,2) #5f3dc4 1.6 [1.6, 2.4000000000000004] o 3 z 2
line (1,0)(2,3) #2b8a3e 1.6 [8.0, 2.4000000000000004, 1.6, 2.4000000000000004] o 3 z 2
line (1,0)(2,4) #c2255c 1.6 - o 3 z 2
line (1,0)(2,5) #1864ab 1.6 [8.0, 3.2] o 3 z 2
line (1,0)(2,6) #846358 1.6 [1.6, 2.4000000000000004] o 3 z 2
line (1,0)(2,7) #868e96 1.6 [8.0, 2.4000000000000004, 1.6, 2.4000000000000004] o 3 z 2
line (1,0)(2,8) #0b7285 1.6 - o 3 z 2
line (2,0)(2,1) #22303c 1 [4.0, 2.5] None 6 z 2
"""


def test_curves_have_colors_and_line_styles_in_turn_and_marks():
    series = {str(number): ([1, 2], [0.0, float(number)]) for number in range(9)}
    assert contents(figures.curves, series, x="epoch", y="loss", marks={"selected": 2.0}) == CURVES


@pytest.mark.parametrize(("points", "marker"), [(11, "o 3"), (12, "None 3")])
def test_few_points_have_markers(points, marker):
    xs = list(range(points))
    drawn = contents(figures.curves, {"a": (xs, xs)}, x="x", y="y").splitlines()[-1]
    assert drawn.endswith(f" #0b7285 1.6 - {marker} z 2")


def test_names_are_printable_and_short_and_hidden_from_no_legend():
    names = ["a\n b\x00c", "x" * 44, "x" * 45, "_a", 3]
    assert [figures.label(name) for name in names] == ["a b c", "x" * 44, f"{'x' * 43}…", " _a", "3"]
    assert figures.label("abcdef", 4) == "abc…"


def test_all_figures_have_one_style():
    chart = figures.panels([lambda axes: figures.draw_curves(axes, {"$a$": ([0, 1], [0, 1])}, x="x", y="y")] * 2)
    first, second = chart.subfigs
    axes, legend = first.axes[0], first.legends[0]
    assert [*chart.get_size_inches()] == pytest.approx([4.6, 2 * (2.8 + 0.18)])
    assert (len(chart.subfigs), len(second.axes)) == (2, 1)
    line, tick, text = axes.xaxis.get_gridlines()[0], axes.xaxis.get_ticklabels()[0], legend.get_texts()[0]
    style = {
        "grid": (line.get_visible(), line.get_color(), line.get_linewidth(), axes.get_axisbelow()),
        "spines": {side: spine.get_visible() for side, spine in axes.spines.items()},
        "tick": (tick.get_fontsize(), tick.get_color(), axes.xaxis.label.get_color()),
        "legend": (text.get_fontsize(), text.get_text(), text.get_parse_math(), legend.get_frame_on()),
        "layout": (legend.handlelength, legend.columnspacing, legend._ncols),
    }
    assert style == {
        "grid": (True, "#d8dee4", 0.6, True),
        "spines": {"left": True, "bottom": True, "right": False, "top": False},
        "tick": (9.0, "#22303c", "#22303c"),
        "legend": (8.5, "$a$", False, False),
        "layout": (2.2, 1.2, 1),
    }
    assert all(place == int(place) for place in axes.get_xticks())


def test_a_legend_has_as_many_columns_as_fit():
    def columns(*names):
        chart = figures.panels([lambda axes: [axes.plot([0], [0], label=name) for name in names] and 1.0])
        return chart.legends[0]._ncols, round((chart.get_figheight() - 1.0) / 0.18)

    assert columns(*"abcdefghij") == (8, 2)
    assert columns("a" * 23, "b") == (2, 1)
    assert columns("a" * 24, "b") == (1, 2)
    assert columns("a" * 90, "b") == (1, 2)
    assert figures.panels([lambda axes: 2.0]).get_figheight() == 2.0


def test_an_svg_scales_with_the_page_and_names_no_date_or_missing_glyph():
    chart = figures.panels([lambda axes: figures.draw_curves(axes, {"\u4e00": ([0], [0])}, x="x", y="y")])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svg = figures.svg(chart)
    head, body = svg.split(">", 1)
    assert head.startswith("<svg ")
    assert "viewBox=" in head
    assert "width=" not in head
    assert "height=" not in head
    assert svg.endswith("</svg>")
    assert "<dc:date>" not in body
    assert "\u4e00</text>" in body
    assert chart._repr_svg_() == svg
