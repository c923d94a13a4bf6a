"""The figures of a session in a notebook: matplotlib objects, drawn as the pages draw them."""

import sys

import pytest

import aadml
from aadml.feature_extraction.ground.errors import InputError, MissingExtraError

SMALL = {"network.hidden": [8], "training.batch": 20}


@pytest.fixture(scope="module")
def run(small_features, tmp_path_factory):
    return aadml.fit(small_features, settings=SMALL, epochs=3, runs=tmp_path_factory.mktemp("runs"))


def lines_of(figure):
    panels = figure.subfigs or [figure]
    return {panel.axes[0].get_ylabel(): panel.axes[0].get_lines() for panel in panels}


def test_a_run_draws_its_curves_in_memory_and_loaded(run, small_features):
    in_memory = aadml.fit(small_features, settings=SMALL, epochs=3)
    for model in (run, in_memory, aadml.load(run.folder)):
        lines = lines_of(model.plot_curves())
        assert {"loss", "MAP"} <= set(lines)
        assert all(line.get_xdata().tolist() == [1, 2, 3] for line in lines["loss"][:1])
        assert any("kept" in line.get_label() for line in lines["MAP"])


def test_an_evaluation_draws_its_scope(run):
    evaluation = aadml.evaluate(run.folder)
    figure = evaluation.plot_scope()
    first, second = lines_of(figure)["precision@K"]
    scope = evaluation.directions[0].curves.scope
    assert (first.get_xdata().tolist(), first.get_ydata().tolist()) == (
        scope.cutoffs.tolist(),
        scope.precision.tolist(),
    )
    assert second.get_label() == evaluation.directions[1].name
    assert figure._repr_svg_().startswith("<svg")
    with pytest.raises(InputError, match="metric is 'map'; choose from precision, recall, hit_rate"):
        evaluation.plot_scope("map")


def test_a_comparison_draws_its_rows(small_features, tmp_path):
    result = aadml.compare(data=small_features, methods="cca,random", seeds=2, workers=0, output=tmp_path / "study")
    (axes,) = result.plot().axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["cca", "random"]
    shard = aadml.compare(
        data=small_features, methods="cca", seeds=1, workers=0, shard="0/2", output=tmp_path / "shard"
    )
    with pytest.raises(InputError, match=r"plot: no run of .* finished"):
        shard.plot()


def test_what_has_no_curves_or_no_matplotlib_ends_in_one_line(small_features, run, monkeypatch):
    with pytest.raises(InputError, match="plot_curves: the model has no training log by epoch"):
        aadml.fit(small_features, method="cca").plot_curves()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"aadml\[plot\]"):
        run.plot_curves()
