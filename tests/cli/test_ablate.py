"""`aadml ablate` as a user meets it."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

SMALL = ["--set", "network.hidden=[8]", "--set", "training.batch=20", "--set", "training.learning_rate=0.01"]
HERE = ["--workers", "0"]


@pytest.mark.slow
def test_a_grid_leaves_table_figures_and_page(aadml, features, tmp_path):
    out = tmp_path / "out"
    grid = ["--over", "proxy.k=1,2", "--over", "loss=aa-triplet,aa-contrastive", "--seeds", 2, "--max-epochs", 2]
    code, said, err = aadml("ablate", "--data", features, *grid, *SMALL, *HERE, "-o", out)
    assert code == 0, err
    assert said.strip().splitlines()[-1] == str(out / "report.html")
    names = {path.name for path in out.iterdir()}
    assert {
        "results.md",
        "results.csv",
        "results.tex",
        "curve.svg",
        "differences.svg",
        "training-loss.svg",
        "report.html",
    } <= names
    assert len(list((out / "runs").iterdir())) == (4 + 2) * 2  # the losses without proxy join in
    page = (out / "report.html").read_text()
    assert "protocol inductive" in page
    assert "chance" in page
    assert 'src="http' not in page
    before = (out / "results.csv").read_bytes()
    code, _, err = aadml("ablate", "--data", features, *grid, *SMALL, *HERE, "-o", out)
    assert code == 0
    assert "12 runs were finished earlier" in err
    assert (out / "results.csv").read_bytes() == before


@pytest.mark.slow
def test_a_grid_over_the_size_of_the_data_says_from_where_to_where_it_goes(aadml, features, tmp_path):
    out = tmp_path / "out"
    code, _, err = aadml(
        "ablate", "--data", features, "--over", "train_per_class=5,10", "--set", "loss=triplet", "--seeds", 1,
        "--max-epochs", 1, *SMALL, *HERE, "-o", out,
    )  # fmt: skip
    assert code == 0, err
    caption = (out / "results.md").read_text().splitlines()[0]
    assert re.search(r"\((\d+) to (\d+) train, ", caption)
    page = (out / "report.html").read_text()
    assert "5 training clips per class" not in page  # of one cell, not of all


@pytest.mark.slow
def test_json_has_mean_and_spread_of_every_cell(aadml, features, tmp_path):
    code, said, err = aadml(
        "ablate", "--data", features, "--over", "label_loss=ce,row-norm", "--seeds", 2, *SMALL, *HERE,
        "--max-epochs", 2, "-o", tmp_path / "out", "--config", "recommended", "--json",
    )  # fmt: skip
    assert code == 0, err
    found = json.loads(said)
    assert [row["label_loss"] for row in found["rows"]] == ["ce", "row-norm"]
    assert all(row["MAP mean"]["seeds"] == 2 and row["MAP mean"]["sd"] >= 0 for row in found["rows"])
    assert found["rows"][1]["difference to"] == "label_loss=ce"


@pytest.mark.slow
def test_a_named_baseline_joins_the_cells_and_none_compares_nothing(aadml, features, tmp_path):
    common = [
        "ablate",
        "--data",
        features,
        "--over",
        "proxy.k=1,2",
        "--seeds",
        1,
        "--max-epochs",
        1,
        *SMALL,
        *HERE,
        "--json",
    ]
    code, said, _ = aadml(*common, "-o", tmp_path / "a", "--baseline", "proxy.k=3")
    assert code == 0
    assert {row["difference to"] for row in json.loads(said)["rows"]} == {"proxy.k=3", ""}
    code, said, _ = aadml(*common, "-o", tmp_path / "b", "--baseline", "none")
    assert code == 0
    assert all("difference" not in row for row in json.loads(said)["rows"])
    assert len(json.loads(said)["rows"]) == 2


def test_a_failed_run_is_told_and_the_rest_is_tabulated(aadml, features, tmp_path):
    code, said, err = aadml(
        "ablate", "--data", features, "--method", "cca", "--over", "method.dimension=2,500", "--seeds", 2, *HERE,
        "-o", tmp_path / "out",
    )  # fmt: skip
    assert code == 1
    assert "method.dimension--500_seed0 failed" in err
    assert "failed: " in said
    assert "2 of 4 runs failed" in err


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--over", "proxy.kk=1..3"], "did you mean 'k'"),
        (["--over", "proxy.k"], "key=values"),
        (["--over", "seed=1..3"], "--seeds"),
        (["--over", "loss=aa-tripelt"], "did you mean"),
    ],
)
def test_bad_grids_are_one_line_and_code_2(aadml, features, tmp_path, arguments, hint):
    code, _, err = aadml("ablate", "--data", features, *arguments, *HERE, "-o", tmp_path / "out")
    assert code == 2
    assert hint in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_kill_in_the_middle_and_the_same_command_again_give_the_same_bytes(features, tmp_path, wait_until):
    def command(out):
        grid = ["--over", "proxy.k=1..3", "--seeds", "1", "--max-epochs", "40", "--workers", "2"]
        return [
            sys.executable,
            "-c",
            "from aadml.cli import main; main()",
            "ablate",
            "--data",
            str(features),
            *grid,
            *SMALL,
            "-o",
            str(out),
        ]

    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment}
    subprocess.run(command(tmp_path / "whole"), check=True, **quiet)
    killed = tmp_path / "killed"
    process = subprocess.Popen(command(killed), **quiet)
    wait_until(lambda: len(list(killed.glob("runs/*/evaluation.json"))) >= 2, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(list(killed.glob("runs/*/evaluation.json"))) < 4
    subprocess.run(command(killed), check=True, **quiet)

    def content(folder):
        kept = [*folder.glob("runs/*/model.safetensors"), *folder.glob("results.*"), *folder.glob("curve.svg")]
        return {str(path.relative_to(folder)): path.read_bytes() for path in kept}

    assert len(content(killed)) == 4 + 4
    assert content(killed) == content(tmp_path / "whole")
    assert not [path for path in killed.rglob(".*") if "partial" in path.name]


def test_a_column_beyond_the_gallery_is_refused_before_the_training(aadml, features, tmp_path):
    out = tmp_path / "out"
    grid = ["--over", "method.dimension=2,3", "--method", "cca", "--seeds", 1, "--workers", 0]
    code, _, err = aadml("ablate", "--data", features, *grid, "--metric", "recall@31", "-o", out)
    assert code == 2
    assert "metric recall@31: the gallery has 30 items; use a cutoff up to 30, or the metric map" in err
    assert not list(out.glob("runs/*/model.json"))
