"""Other galleries than the full one: asked for, stored apart, as columns and as criteria."""

import csv
import json

import numpy as np
import pytest

import aadml as face
from tests.cli.test_metrics import GRID, SMALL


def read(path):
    return json.loads(path.read_text())


@pytest.mark.parametrize(
    ("flag", "option", "gallery", "size"),
    [("--exclude-partner", "exclude_partner", "without-partner", 29), ("--disjoint", "disjoint", "disjoint", 15)],
)
def test_another_gallery_is_stored_under_its_own_name(aadml, small_run, flag, option, gallery, size):
    before = (small_run / "evaluation.json").read_bytes()
    code, out, err = aadml("evaluate", small_run, flag, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert (found["gallery"], found["directions"]["audio-visual"]["gallery"]) == (gallery, size)
    stored = read(small_run / f"evaluations/inductive-test-{gallery}.json")
    assert (stored["gallery"], stored["map_mean"]) == (gallery, found["map_mean"])
    assert [path.name for path in (small_run / "evaluations").iterdir()] == [f"inductive-test-{gallery}.json"]
    assert (small_run / "evaluation.json").read_bytes() == before
    full = json.loads(before)
    assert full["gallery"] == "full"
    assert full["map_mean"] != found["map_mean"]
    assert face.evaluate(small_run, **{option: True}).map_mean == found["map_mean"]
    code, out, _ = aadml("evaluate", small_run, flag)
    assert out.splitlines()[1].startswith(f"gallery {gallery}: ")
    code, _, err = aadml("verify", small_run)
    assert code == 0, err


def test_the_run_itself_says_its_gallery_and_map_without_the_partner(aadml, small_run):
    own = read(small_run / "evaluation.json")["directions"]["audio-visual"]["without_partner"]
    _, out, _ = aadml("evaluate", small_run, "--exclude-partner", "--json")
    other = json.loads(out)["directions"]["audio-visual"]
    assert own == {"map": pytest.approx(other["map"]), "chance": pytest.approx(other["chance"]), "queries": 30}


def test_embeddings_made_elsewhere_have_other_galleries_too(aadml, tmp_path, generator):
    path, labels = tmp_path / "e.npz", np.arange(40) % 4
    vectors = {m: generator.standard_normal((40, 4)) + np.eye(4)[labels] for m in ("audio", "visual")}
    np.savez(path, **vectors, label=labels)
    found = {}
    for flag in ((), ("--exclude-partner",), ("--disjoint",)):
        code, out, err = aadml("evaluate", "--embeddings", path, "--json", *flag)
        assert code == 0, err
        found[flag] = json.loads(out)
    assert [one["gallery"] for one in found.values()] == ["full", "without-partner", "disjoint"]
    assert len({one["map_mean"] for one in found.values()}) == 3
    code, _, err = aadml("evaluate", "--embeddings", path, "--exclude-partner", "--disjoint")
    assert (code, "pass only disjoint" in err) == (2, True)


@pytest.mark.slow
def test_other_galleries_are_columns_and_criteria(aadml, features, tmp_path):
    names = ("map-without-partner", "map-disjoint")
    metrics = [part for name in names for part in ("--metric", name)]
    code, _, err = aadml("ablate", "--data", features, *GRID, *metrics, "-o", tmp_path / "out")
    assert code == 0, err
    with (tmp_path / "out" / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        values = [float(row[f"{name} mean"]) for name in ("MAP", *names)]
        assert len(set(values)) == 3
    grid = [
        "--over",
        f"training.criterion=auto,{','.join(names)}",
        "--seeds",
        1,
        "--max-epochs",
        3,
        "--workers",
        0,
        "--baseline",
        "none",
    ]
    code, _, err = aadml("ablate", "--data", features, *grid, *SMALL, "-o", tmp_path / "criteria")
    assert code == 0, err
    logs = [path.read_text() for path in sorted(tmp_path.glob("criteria/runs/*/metrics.jsonl"))]
    assert [sum(f'"valid {name}"' in log for log in logs) for name in names] == [1, 1]
