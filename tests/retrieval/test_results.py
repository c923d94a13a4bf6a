"""How an evaluation reads in Python: short by itself, complete where all of it is requested."""

import pytest
import torch

from aadml.comparison.embeddings import Embeddings
from aadml.retrieval.evaluation import evaluate


@pytest.fixture(scope="module")
def scores():
    generator = torch.Generator().manual_seed(0)
    vectors = {m: torch.randn(30, 3, generator=generator) for m in ("audio", "visual")}
    return evaluate(Embeddings(vectors, torch.arange(30) % 3, tuple(map(str, range(30)))))


def test_printing_scores_prints_one_short_table(scores):
    lines = repr(scores).splitlines()
    assert len(lines) <= 16
    assert max(map(len, lines)) <= 100
    assert lines[0].startswith("protocol ")
    assert any(line.startswith("MAP ") for line in lines)
    assert "per_query" not in repr(scores)


def test_metrics_and_directions_are_found_by_name(scores):
    assert scores.map == scores["map"] == scores.map_mean
    assert scores["audio-visual"].map == scores["audio-visual"].average_precision.mean()
    assert 0 <= scores["recall@10"] <= 1
    with pytest.raises(KeyError, match=r"recal@10 was not computed; .*audio-visual, visual-audio"):
        scores["recal@10"]


def test_the_table_in_a_notebook_holds_the_numbers_of_the_printed_table(scores):
    page = scores._repr_html_()
    assert page.startswith("<table>")
    assert f"<td>{scores.map:.4f}</td>" in page


def test_the_dictionary_is_that_of_the_command_line(scores):
    assert scores.to_dict() == scores.to_json()
    assert scores.to_dict()["map_mean"] == scores.map


def test_a_data_frame_has_a_column_for_each_direction(scores):
    pytest.importorskip("pandas")
    frame = scores.to_pandas()
    assert list(frame.columns) == ["audio-visual", "visual-audio"]
    assert frame.loc["MAP", "audio-visual"] == scores["audio-visual"].map
