"""A sample of queries: who asks, what it says of itself, and that all queries give the plain result."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from aadml.cli import cli
from aadml.comparison.embeddings import Embeddings
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.retrieval.evaluation import evaluate
from aadml.retrieval.record import EvaluationRecord
from aadml.retrieval.significance import mean_interval
from aadml.retrieval.summary import summary


def embeddings(n=60, classes=4):
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(n) % classes
    centers = torch.randn(classes, 5, generator=generator)
    vectors = {m: centers[labels] + 1.5 * torch.randn(n, 5, generator=generator) for m in ("audio", "visual")}
    return Embeddings(vectors, labels, tuple(f"clip {i}" for i in range(n)), class_names=tuple("abcd"[:classes]))


@pytest.mark.parametrize("gallery", ["full", "without-partner", "disjoint"])
def test_each_query_of_a_sample_has_the_figure_that_it_has_among_all(gallery):
    extra = ("recall@3", "map-without-partner", "map-disjoint")
    whole, some = (evaluate(embeddings(), gallery=gallery, extra=extra, queries=n) for n in (None, 13))
    for all_of_them, few in zip(whole.directions, some.directions, strict=True):
        among = dict(zip(all_of_them.ids, all_of_them.average_precision, strict=True))
        assert len(few.ids) == len(set(few.ids)) == 13
        assert [among[name] for name in few.ids] == few.average_precision.tolist()
        assert few.gallery == all_of_them.gallery
        assert few.map_interval == mean_interval(few.unit_values)
    assert {result.ids for result in some.directions} == {some.directions[0].ids}


@pytest.mark.parametrize("gallery", ["full", "without-partner", "disjoint"])
def test_as_many_queries_as_there_are_give_the_plain_result(gallery):
    whole, all_asked = (evaluate(embeddings(), gallery=gallery, extra=("mrr",), queries=n) for n in (None, 60))
    assert whole.to_json(queries=True) == all_asked.to_json(queries=True)
    assert summary(whole) == summary(all_asked)
    assert "sample" not in whole.to_json()


def test_the_same_queries_are_drawn_again():
    ids = [evaluate(embeddings(), queries=20)["audio-visual"].ids for _ in range(2)]
    assert ids[0] == ids[1]


@pytest.mark.parametrize("count", [-1, 0, 1, 61])
def test_refuses_more_queries_than_there_are_and_less_than_two(count):
    with pytest.raises(InputError, match=f"queries is {count}; pass a number from 2 to 60"):
        evaluate(embeddings(), queries=count)


def test_a_sample_says_what_it_is():
    found = evaluate(embeddings(), queries=13)
    content = json.loads(json.dumps(found.to_json()))
    assert content["sample"] == {"queries": 13, "seed": 0, "of": {"audio-visual": 60, "visual-audio": 60}}
    assert EvaluationRecord.from_json(content, "x").sample == found.sample
    assert "a random sample: 13 of 60 queries (seed 0) against the whole gallery" in summary(found)
    low, high = found["audio-visual"].map_interval
    assert f"{low:.4f}..{high:.4f}" in next(line for line in summary(found).splitlines() if "95 % interval" in line)


def test_only_clips_that_have_the_modality_are_drawn():
    there = torch.arange(60) % 3 != 0
    found = evaluate(replace(embeddings(), present={"visual": there}), queries=30)
    assert found.sample is not None
    assert found.sample.of == {"audio-visual": 60, "visual-audio": 40}
    assert all(int(name.split()[1]) % 3 for name in found["visual-audio"].ids)
    assert "30 of 60 (audio-visual), 40 (visual-audio) queries" in summary(found)


def test_the_interval_of_a_sample_holds_the_map_of_all_about_as_often_as_it_says(monkeypatch):
    clips = embeddings(n=300)
    whole = evaluate(clips)["audio-visual"].map
    inside = []
    for seed in range(20):
        monkeypatch.setattr("aadml.retrieval.sampling.SEED", seed)
        low, high = evaluate(clips, queries=30)["audio-visual"].map_interval
        inside.append(low <= whole <= high)
    assert np.mean(inside) >= 0.85


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sampled")
    write_features(folder / "f.h5", synthetic(classes=3, train=60, valid=15, test=30, dimensions=(6, 8)))
    words = [
        "train",
        "--data",
        str(folder / "f.h5"),
        "--method",
        "cca",
        "--set",
        "method.dimension=4",
        "--runs",
        folder,
    ]
    return CliRunner().invoke(cli, list(map(str, words))).stdout.splitlines()[-1], folder


def called(*words):
    result = CliRunner().invoke(cli, list(map(str, words)))
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_command_keeps_a_sample_beside_the_run_under_a_name_of_its_own(run):
    folder = run[0]
    found = json.loads(called("evaluate", folder, "--queries", 10, "--json"))
    assert found["sample"] == {"queries": 10, "seed": 0, "of": {"audio-visual": 30, "visual-audio": 30}}
    kept = Path(folder, "evaluations", "inductive-test-queries-10-seed-0.json")
    assert json.loads(kept.read_text())["sample"] == found["sample"]
    running = json.loads(called("evaluate", folder, "--queries", 10, "--protocol", "legacy:running-map", "--json"))
    assert running["directions"]["audio-visual"]["queries"] == 10
    result = CliRunner().invoke(cli, ["evaluate", folder, "--queries", "31"])
    assert isinstance(result.exception, InputError)
    assert "queries is 31" in str(result.exception)


@pytest.mark.slow
def test_the_page_of_a_sample_says_so(run):
    folder, place = run
    page = place / "page.html"
    called("report", folder, "--queries", 10, "-o", page)
    assert "a random sample: 10 of 30 queries (seed 0)" in page.read_text()
