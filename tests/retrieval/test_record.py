import json

import numpy as np
import pytest
import torch

from aadml.comparison.embeddings import Embeddings
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import schema
from aadml.retrieval import METRICS
from aadml.retrieval.evaluation import evaluate
from aadml.retrieval.metric_names import ALWAYS, place_of, split_name
from aadml.retrieval.record import EvaluationRecord


def embeddings(count=24, classes=3):
    generator = torch.Generator().manual_seed(1)
    vectors = {m: torch.randn(count, 3, generator=generator).round() for m in ("audio", "visual")}
    return Embeddings(vectors, torch.arange(count) % classes, tuple(f"clip{i}" for i in range(count)))


def names():
    return [f"{name}@3" if "cutoff" in schema(METRICS[name]) else name for name in METRICS]


@pytest.mark.parametrize("queries", [True, False])
def test_what_is_written_is_read_back_equal(queries):
    record = evaluate(embeddings(), extra=names()).record(queries=queries)
    written = json.loads(json.dumps(record.to_json()))
    assert EvaluationRecord.from_json(written, "here") == record
    assert EvaluationRecord.from_json(written, "here").to_json() == record.to_json()


@pytest.mark.parametrize("name", names())
def test_every_metric_has_a_figure_under_its_name_in_each_direction_and_on_the_mean(name):
    record = evaluate(embeddings(), extra=[name]).record()
    values = [record.figure(name, direction) for direction in record.directions]
    assert len(values) == 2
    assert all(value is not None and np.isfinite(value) for value in values)
    assert record.figure(name) == pytest.approx(np.mean(values))


def test_the_figures_of_cutoffs_are_those_of_the_tables():
    record = evaluate(embeddings(), extra=["recall@3", "precision@10", "hit-rate@5", "map@5"]).record()
    plain = evaluate(embeddings()).record()
    for name in ("precision@10", "hit-rate@5", "map", "map-at-r", "median-rank", "recall@5"):
        assert record.figure(name) == pytest.approx(plain.figure(name), abs=1e-12)
    assert plain.figure("recall@3") is None
    assert plain.figure("recall@1") < record.figure("recall@3") < plain.figure("recall@5")


def test_a_figure_of_another_evaluation_is_taken_over():
    plain, later = evaluate(embeddings()).record(), evaluate(embeddings(), extra=["recall@3", "running"]).record()
    joined = plain.with_figures(["recall@3", "running"], later)
    for name in ("recall@3", "running", "recall@5", "map"):
        assert joined.figure(name) == later.figure(name)
    assert plain.figure("recall@3") is None


@pytest.mark.parametrize("content", [{}, {"directions": 3}, {"directions": {"audio-visual": {}}}, {"map_mean": 1}])
def test_anything_else_is_no_evaluation(content):
    with pytest.raises(InputError, match="here is of another version, or is damaged"):
        EvaluationRecord.from_json(content, "here")


def test_no_two_metrics_share_a_place():
    places = [place_of(name) for name in names()]
    assert len(set(places)) == len(places)
    assert [split_name(name) for name in ALWAYS] == [(name, None) for name in ALWAYS]
