"""How an evaluation reads in Python: short by itself, complete where all of it is requested."""

import pytest
import torch

from aadml.comparison.embeddings import Embeddings
from aadml.retrieval.evaluation import evaluate
from aadml.retrieval.metric_names import names_at


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


@pytest.mark.parametrize("name", ["hit_rate@1", "R@1", "mrr", "recall@7"])
def test_a_metric_that_was_not_computed_is_answered_with_the_computed_metrics(scores, name):
    with pytest.raises(KeyError) as caught:
        scores[name]
    message = caught.value.args[0]
    computed = message.removeprefix(
        f"{name} was not computed; choose a direction (audio-visual, visual-audio) or a computed metric ("
    ).removesuffix("); aadml.evaluate computes others with metrics=[...]")
    assert {"map", "median-rank", "recall@1", "hit-rate@10"} < set(computed.split(", "))


def test_every_listed_metric_is_found():
    requested = (
        "map@3",
        "map-min@10",
        "map-hits@1",
        "ndcg",
        "mrr",
        "mrr@3",
        "map-disjoint",
        "map-without-partner",
        "running",
    )
    vectors = {m: torch.randn(30, 3, generator=torch.Generator().manual_seed(1)) for m in ("audio", "visual")}
    scores = evaluate(Embeddings(vectors, torch.arange(30) % 3, tuple(map(str, range(30)))), extra=requested)
    computed = names_at(scores.record().directions["audio-visual"].figures)
    assert set(requested) | {"map", "recall@10"} <= set(computed)
    assert all(scores.record().figure(name) is not None for name in computed)


def test_the_dictionary_is_that_of_the_command_line(scores):
    assert scores.to_dict() == scores.to_json()
    assert scores.to_dict()["map_mean"] == scores.map


def test_a_data_frame_has_a_column_for_each_direction(scores):
    pytest.importorskip("pandas")
    frame = scores.to_pandas()
    assert list(frame.columns) == ["audio-visual", "visual-audio"]
    assert frame.loc["MAP", "audio-visual"] == scores["audio-visual"].map
