"""Figures: names are text, no two classes have one color, equal figures give equal bytes."""

import math
import re

import numpy as np
import pytest

from aadml.feature_extraction.ground import figures as kit
from tests.drawn_figures import contents
from tests.reports.parsed_html import HOSTILE, read

figures = pytest.importorskip("aadml.reports.figures")


def legend_of_map(labels, names):
    pytest.importorskip("matplotlib")
    points = {m: np.random.default_rng(0).normal(size=(len(own), 2)) for m, own in labels.items()}
    svg = figures.class_map(points, labels, names)
    return svg, read(svg)[1]


def test_no_two_classes_of_a_map_have_one_color():
    names = [f"class {n}." for n in range(60)]
    svg, words = legend_of_map({"audio": np.repeat(np.arange(60), np.arange(60) + 1)}, names)
    named = [name for name in names if name in words]
    assert named == names[-len(named) :]  # the largest
    assert f"{60 - len(named)} further classes" in words
    fills = set(re.findall(r"fill: (#[0-9a-f]{6})", svg)) - {figures.INK, "#000000"}
    assert len(fills) == len(named)
    _, words = legend_of_map({"audio": np.arange(8)}, names[:8])
    assert "further" not in words


def test_a_map_shows_every_modality_and_clips_without_class():
    labels = {m: np.array([0, 1, -1]) for m in ("audio", "visual", "text", "touch")}
    svg, words = legend_of_map(labels, ["a.", "b."])
    assert all(word in words for word in (*labels, "a.", "b.", "no class"))
    assert svg.count("<use ") >= 4 * 3


@pytest.mark.slow
def test_names_in_figures_are_text(drawn):
    for svg in drawn:
        tags, words = read(svg)
        assert not {"img", "script"} & {tag for tag, _ in tags}
        assert not any(key.startswith("on") for _, attributes in tags for key in attributes)
        for name in HOSTILE:
            assert figures.label(name, 28).strip(" …") in words
        assert "$\\frac{1}$" in words


def test_axes_and_lines_of_training_curves_are_named_after_what_they_show():
    pytest.importorskip("matplotlib")
    records = [
        {"epoch": n, "loss": 1.0, "metric_loss": 0.5, "valid map_mean": 0.2, "valid map audio-visual": 0.3,
         "valid recall@10": 0.4, "train map_mean": 0.5, "train queries": 1000, "valid loss": 2.0}
        for n in (1, 2)
    ]  # fmt: skip
    curves = figures.training_curves(records, 2)
    assert list(curves) == ["loss", "MAP", "recall@10"]
    words = {name: read(svg)[1] for name, svg in curves.items()}
    for name in ("validation clips, mean", "validation clips, audio-visual", "training clips, mean (1,000 queries)"):
        assert name in words["MAP"]
    assert "validation clips, mean" in words["recall@10"]
    assert "validation loss" in words["loss"]
    assert "metric loss" in words["loss"]
    assert all("epoch 2, kept" in of_figure for of_figure in words.values())


def test_a_legend_of_names_makes_the_figure_higher_by_its_rows(monkeypatch):
    pytest.importorskip("matplotlib")

    @kit.figure
    def lines(axes, names):
        for name in names:
            axes.plot([0, 1], [0, 1], label=name)
        return 2.0

    panels = []
    monkeypatch.setattr(kit, "svg", lambda panel: panels.append(panel) or "")
    for count in (1, 2, 9, 10, 11):
        names = [f"a line of number {n}" for n in range(count)]
        lines(names)
        (legend,) = panels[-1].legends
        rows = (panels[-1].get_figheight() - 2.0) / kit.LEGEND_LINE
        assert rows == pytest.approx(math.ceil(count / legend._ncols))
        assert [text.get_text() for text in legend.get_texts()] == names


def test_every_direction_has_bars_of_its_classes():
    pytest.importorskip("matplotlib")
    values = {"audio-visual": [0.2, 0.4], "visual-audio": [0.3, 0.1]}
    _, words = read(figures.class_bars(["rain.", "dog."], values, [0.5, 0.5]))
    assert all(word in words for word in (*values, "rain.", "dog.", "chance"))


BARS = """\
height 1.38
x "MAP of the class's queries" 0 1
y '' 1.6 -0.6 at 0 1 ['rain', 'a class with a name of two …']
legend chance, a-v, v-a
caps
box 0 -0.4 0.2 0.4 #0b7285 1 z 1
box 0 0.6 0.4 0.4 #0b7285 1 z 1
box 0 0 0.3 0.4 #e8590c 1 z 1
box 0 1 0.1 0.4 #e8590c 1 z 1
dots | (0.5,0)(0.6,1) 90 #22303c #22303c 1.5 z 3
"""


def test_bars_of_a_class_lie_side_by_side_from_zero_to_one():
    axes = pytest.importorskip("matplotlib.figure").Figure().add_subplot()
    names = ["rain", "a class with a name of two lines"]
    assert contents(figures.class_bars, names, {"a-v": [0.2, 0.4], "v-a": [0.3, 0.1]}, [0.5, 0.6]) == BARS
    for directions, height in ((1, 3.6), (4, 4.2)):
        values = {str(number): [0.5] * 10 for number in range(directions)}
        assert figures.class_bars.__wrapped__(axes, ["x"] * 10, values, [0.5] * 10) == pytest.approx(height)


MAP = """\
height 4.5
x '' at  []
y '' at  []
legend audio, visual, rain, a class with a name of two …, no class
caps
dots o  18 #22303c #22303c 1 z 1
dots o (0,1) 18 #0b7285cc #0b7285cc 0 z 1
dots o (2,3) 18 #e8590ccc #e8590ccc 0 z 1
dots o (4,5) 14 none #868e96 0.8 z 1
dots ^  18 #22303c #22303c 1 z 1
dots ^  18 #0b7285cc #0b7285cc 0 z 1
dots ^ (6,7)(8,9) 18 #e8590ccc #e8590ccc 0 z 1
dots ^  14 none #868e96 0.8 z 1
dots s  18 #0b7285 #0b7285 1 z 1
dots s  18 #e8590c #e8590c 1 z 1
dots s  18 none #868e96 0.8 z 1
"""


def test_a_map_has_a_color_for_each_class_and_a_shape_for_each_modality():
    points = {"audio": np.arange(6.0).reshape(3, 2), "visual": np.arange(6.0, 10.0).reshape(2, 2)}
    labels = {"audio": np.array([0, 1, -1]), "visual": np.array([1, 1])}
    assert contents(figures.class_map, points, labels, ["rain", "a class with a name of two lines"]) == MAP
    points, labels = {"audio": np.zeros((21, 2))}, {"audio": np.append(np.arange(20), -1)}
    legend = contents(figures.class_map, points, labels, []).splitlines()[3].partition(" ")[2].split(", ")
    assert legend == ["audio", *map(str, range(18)), "2 further classes", "no class"]


def test_few_classes_have_the_colors_of_all_figures_and_many_have_others():
    pytest.importorskip("matplotlib")
    few = len(figures.COLORS)
    assert figures._colored(np.arange(few)) == dict(enumerate(figures.COLORS))
    many = figures._colored(np.arange(few + 1))
    assert list(many) == list(range(few + 1))
    assert len(set(many.values())) == few + 1
    assert len(figures._colored(np.arange(30))) == 18
    assert not {"#7f7f7f", "#c7c7c7"} & set(figures._colored(np.arange(30)).values())  # gray is of no class


def test_the_same_figure_gives_the_same_bytes(drawn):
    series = {"a": ([1, 2], [0.1, 0.2])}
    assert figures.curves(series, x="K", y="recall") == figures.curves(series, x="K", y="recall")
