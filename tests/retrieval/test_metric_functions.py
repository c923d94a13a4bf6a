import pytest
import torch

from aadml.comparison.embeddings import Embeddings
from aadml.feature_extraction.ground.consent import consent_to
from aadml.feature_extraction.ground.errors import InputError
from aadml.retrieval.evaluation import evaluate
from aadml.retrieval.metric_functions import check_columns, check_criterion


def embeddings(count=24, classes=3):
    generator = torch.Generator().manual_seed(1)
    vectors = {m: torch.randn(count, 3, generator=generator).round() for m in ("audio", "visual")}
    return Embeddings(vectors, torch.arange(count) % classes, tuple(f"clip{i}" for i in range(count)))


def test_an_outside_metric_is_a_column_and_what_it_gives_is_checked(tmp_path, monkeypatch):
    (tmp_path / "own_metrics_of_records.py").write_text(
        "def half(ranking, *, cutoff):\n    return [0.5] * len(ranking)\n\ndef wrong(ranking):\n    return 0.5\n\n"
        "def weighted(ranking, *, cutoff, weight=2.0):\n    return [weight] * len(ranking)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    consent_to(*(f"own_metrics_of_records:{name}" for name in ("half", "wrong", "weighted")))
    record = evaluate(embeddings(), extra=["own_metrics_of_records:half@2"]).record()
    assert record.figure("own_metrics_of_records:half@2") == 0.5
    with pytest.raises(InputError, match=r"own_metrics_of_records:wrong returned .*; define a metric as"):
        evaluate(embeddings(), extra=["own_metrics_of_records:wrong"])
    with pytest.raises(InputError, match="weighted has the option 'weight', but the only"):
        evaluate(embeddings(), extra=["own_metrics_of_records:weighted@2"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("recal@3", "no metric 'recal'; did you mean 'recall'"),
        ("recall@x", "is not a cutoff; write a number of at least 1 after the @"),
        ("recall@0", "is not a cutoff; write a number of at least 1 after the @"),
        ("recall@25", "metric recall@25: the gallery has 24 items"),
        ("running@3", "metric running@3: running accepts no cutoff; pass running"),
        ("mean-rank@3", "accepts no cutoff"),
    ],
)
def test_a_wrong_metric_is_refused(name, message):
    with pytest.raises(InputError, match=message):
        evaluate(embeddings(), extra=[name])


def test_a_column_is_one_figure_and_a_criterion_one_that_should_rise():
    assert check_columns(["recall@3", "map", "recall@3"]) == ("recall@3", "map")
    assert check_columns("recall@3,map") == check_columns(["recall@3,map"]) == ("recall@3", "map")
    for name in ("recall", "map-at-k"):
        with pytest.raises(InputError, match=r"needs a cutoff; add the cutoff, as in (recall|map)@10"):
            check_columns([name])
    assert check_criterion("hit-rate@1") == "hit-rate@1"
    for name in ("mean-rank", "median-rank"):
        with pytest.raises(InputError, match="better when smaller"):
            check_criterion(name)
    for name in ("map,mrr", "map,", ""):
        with pytest.raises(InputError, match=f"'{name}' is not a single metric; pass one metric"):
            check_criterion(name)


def test_a_metric_without_the_cutoff_it_needs_is_computed_at_all_of_the_tables():
    found = evaluate(embeddings(), extra=["map-min"], cutoffs=(1, 4)).record()
    assert [found.figure(f"map-min@{k}") is None for k in (1, 3, 4)] == [False, True, False]
