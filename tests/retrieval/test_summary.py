import pytest
import torch

from aadml.comparison.embeddings import Embeddings
from aadml.retrieval.evaluation import evaluate
from aadml.retrieval.summary import class_table, summary, table_of


def evaluation(**options):
    generator = torch.Generator().manual_seed(0)
    vectors = {m: torch.randn(30, 3, generator=generator).round() for m in ("audio", "visual")}
    given = Embeddings(vectors, torch.arange(30) % 3, tuple(map(str, range(30))), class_names=("rain", "dog", "car"))
    return evaluate(given, **options)


def row(text, name):
    return next(line.split(name)[1].split() for line in text.splitlines() if line.startswith(name))


def test_every_figure_stands_under_its_name_for_each_direction_with_the_protocol():
    found = evaluation(protocol="bank", split="valid", extra=("running", "map-at-k"))
    text = summary(found, everything=True)
    assert text.splitlines()[0] == "protocol bank, split valid, similarity cosine"
    result = found["audio-visual"]
    assert row(text, "MAP ")[0] == f"{result.map:.4f}"
    assert row(text, "MAP ")[2] == f"{found.map_mean:.4f}"
    low, high = result.map_bounds
    assert row(text, "MAP, worst..best order of ties")[0] == f"{low:.4f}..{high:.4f}"
    assert row(text, "chance level of MAP")[2] == f"{found.chance:.4f}"
    assert row(text, "tie rate")[0] == f"{result.tie_rate:.2%}"
    assert row(text, "precision@10")[0] == f"{result.record().figure('precision@10'):.4f}"
    assert row(text, "MAP@5, over min(R,k)")[0] == f"{result.record().figure('map-min@5'):.4f}"
    assert text.splitlines()[1] == "gallery full: all clips, including the query's own"
    assert row(text, "MAP, without partner")[2] == f"{found.record().figure('map-without-partner'):.4f}"
    assert row(text, "chance level, without partner")[0] < row(text, "chance level of MAP")[0]
    assert "running MAP" in text
    assert "accuracy" in text


@pytest.mark.parametrize("gallery", ["full", "without-partner", "disjoint"])
def test_every_metric_of_the_whole_table_has_a_chance_level_and_in_the_short_one_only_map(gallery):
    found = evaluation(gallery=gallery, extra=("running", "map-at-k", "recall@3", "mrr"))
    names = [name for name, *_ in table_of(found, everything=True)[1:]]
    levels = {name.removeprefix("chance level of ") for name in names if name.startswith("chance level of ")}
    others = [n for n in names if "chance level" not in n and not n.startswith(("MAP, ", "tie rate"))]
    assert others == [name for name in others if name in levels]
    assert [name for name, *_ in table_of(found) if "chance level of" in name] == ["chance level of MAP"]


@pytest.mark.parametrize("gallery", ["full", "without-partner", "disjoint"])
def test_chance_levels_are_the_means_over_random_orders(gallery):
    found = evaluation(gallery=gallery)
    generator = torch.Generator().manual_seed(1)
    draws = []
    for _ in range(200):
        vectors = {m: torch.randn(30, 3, generator=generator) for m in ("audio", "visual")}
        random = Embeddings(vectors, torch.arange(30) % 3, tuple(map(str, range(30))))
        draws.append(evaluate(random, gallery=gallery).record())
    for metric in ("precision@5", "recall@5", "hit-rate@1", "map-at-r"):
        mean = sum(draw.figure(metric) for draw in draws) / len(draws)
        assert found.record().chance_of(metric) == pytest.approx(mean, rel=0.05)


def test_running_map_is_shown_only_when_asked_for():
    assert "running" not in summary(evaluation(), everything=True)


def test_the_short_table_shows_every_requested_metric_once():
    def rows(*extra):
        return [name for name, *_ in table_of(evaluation(extra=extra))[1:]]

    always = rows()
    expected = {
        "recall@3": ["recall@3"],
        "hit-rate": ["hit rate@1", "hit rate@5", "hit rate@10"],
        "mean-rank": ["mean rank of the first relevant"],
        "map-at-r": ["MAP@R"],
        "map-min@2": ["MAP@2, over min(R,k)"],
        "ndcg@4": ["ndcg@4"],
        "recall@10": [],
        "median-rank": [],
        "map": [],
        "map-without-partner": [],
    }
    for metric, added in expected.items():
        assert sorted(rows(metric)) == sorted([*always, *added])
    assert sorted(rows(*expected)) == sorted(sum(expected.values(), always))


@pytest.mark.parametrize("small", ["audio", "text"])
def test_cutoffs_above_the_gallery_of_a_direction_have_neither_row_nor_name(small):
    labels = torch.arange(6).repeat_interleave(5)
    vectors = {m: torch.randn(6, 8, generator=torch.Generator().manual_seed(0))[labels] for m in ("audio", "text")}
    found = evaluate(Embeddings(vectors, labels, tuple(f"clip {n}" for n in labels.tolist()), once=(small,)))
    for text in (summary(found), summary(found, everything=True)):
        assert "nan" not in text
        assert "@10 " not in text
        assert "recall@5" in text
    assert found["recall@5"] > 0
    with pytest.raises(KeyError, match="recall@10 was not computed") as caught:
        found["recall@10"]
    assert "recall@5" in str(caught.value)
    assert str(caught.value).count("recall@10") == 1


def test_the_table_by_class_names_every_class():
    lines = class_table(evaluation()["audio-visual"]).splitlines()
    assert [line.split()[0] for line in lines] == ["audio-visual", "rain", "dog", "car"]
    assert lines[1].split()[1] == "10"
