"""Any metric as a column of an ablation or a comparison, and as the criterion of the epoch."""

import csv
import json

import pytest

SMALL = ["--set", "network.hidden=[8]", "--set", "training.batch=20", "--set", "training.learning_rate=0.01"]
GRID = ["--over", "loss=triplet,contrastive", "--seeds", 2, "--max-epochs", 2, "--workers", 0, *SMALL]
OWN = '''
def first(ranking):
    """Say whether the best item is relevant."""
    return (ranking.above[ranking.offsets[:-1]] == 0).astype(float)
'''


def rows(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def columns(name):
    return [f"{name} {where}" for where in ("audio-visual", "visual-audio", "mean")]


@pytest.mark.slow
def test_metrics_are_columns_of_an_ablation_and_can_be_asked_for_later(aadml, features, tmp_path):
    (features.parent / "own_metric.py").write_text(OWN)
    out = tmp_path / "out"
    code, _, err = aadml("ablate", "--data", features, *GRID, "--metric", "recall@3", "-o", out)
    assert code == 0, err
    before = {path: path.read_bytes() for path in out.glob("runs/*/evaluation.json")}
    first = rows(out / "results.csv")
    assert all(0 < float(row[name].split(" ")[0]) < 1 for row in first for name in columns("recall@3"))
    more = ["--metric", "recall@3", "--metric", "own_metric:first", "--metric", "mean-rank", "--metric", "map@4"]
    code, _, err = aadml("ablate", "--data", features, *GRID, *more, "-o", out)
    assert code == 0, err
    second = rows(out / "results.csv")
    for name in (*columns("own_metric:first"), *columns("mean-rank"), *columns("map@4")):
        assert all(row[name] not in ("", "–") for row in second), name
    assert [[row[name] for name in columns("recall@3")] for row in second] == [
        [row[name] for name in columns("recall@3")] for row in first
    ]
    assert {path: path.read_bytes() for path in before} == before
    code, _, err = aadml("ablate", "--data", features, *GRID, *more, "-o", out)
    assert (code, "4 runs were finished earlier" in err) == (0, True)


def test_metrics_are_columns_of_a_comparison(aadml, features, tmp_path):
    code, _, err = aadml(
        "compare", "--data", features, "--methods", "cca,random", "--seeds", 1, "--workers", 0, "--set",
        "method.dimension=3", "--metric", "hit-rate@2", "-o", tmp_path / "out",
    )  # fmt: skip
    assert code == 0, err
    by_name = {row["method"]: row for row in rows(tmp_path / "out" / "methods.csv")}
    assert float(by_name["cca"]["hit-rate@2 mean"]) > float(by_name["random"]["hit-rate@2 mean"])


@pytest.mark.parametrize(
    ("metric", "message"),
    [("recal@3", "did you mean 'recall'"), ("recall", "needs a cutoff; add the cutoff, as in recall@10"),
     ("own_absent:metric", "there is no module 'own_absent'")],
)  # fmt: skip
def test_a_wrong_metric_is_refused_before_anything_runs(aadml, features, tmp_path, metric, message):
    code, _, err = aadml("ablate", "--data", features, *GRID, "--metric", metric, "-o", tmp_path / "out")
    assert (code, message in err) == (2, True)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_criterion_of_a_run_chooses_its_epoch_and_the_audit_knows_it(aadml, features, tmp_path):
    flags = ["--epochs", 6, "--criterion", "hit-rate@1", "--runs", tmp_path / "runs", *SMALL]
    code, out, err = aadml("train", "--data", features, *flags)
    assert code == 0, err
    run = tmp_path / "runs" / out.strip().splitlines()[-1].rsplit("/", 1)[-1]
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    scores = [record["valid hit-rate@1"] for record in records]
    kept = json.loads((run / "evaluation.json").read_text())["selected_epoch"]
    assert kept == 1 + scores.index(max(scores))
    _, out, _ = aadml("audit", run, "--json")
    (finding,) = [finding for finding in json.loads(out)["findings"] if finding["check"] == "kept epoch"]
    assert "best validation hit-rate@1" in finding["evidence"]
    code, _, err = aadml("train", "--data", features, *flags, "--criterion", "median-rank")
    assert (code, "better when smaller" in err) == (2, True)
