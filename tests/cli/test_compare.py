"""`aadml compare` as a user meets it."""

import csv
import json

import pytest

from aadml.configuration.files import open_config
from aadml.losses import LOSSES
from aadml.objective.recipes import RECIPES
from aadml.reports.published import PAPER

SMALL = ["--set", "network.hidden=[8]", "--set", "training.batch=20", "--set", "training.learning_rate=0.01"]
QUICK = ["--set", "method.dimension=3", "--max-epochs", "2", "--seeds", "2", "--workers", "0"]


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return {row[next(iter(row))]: row for row in csv.DictReader(file)}


@pytest.mark.slow
def test_methods_and_losses_stand_beside_the_published_columns_and_their_controls(aadml, features, tmp_path):
    out = tmp_path / "out"
    arguments = [
        "--data",
        features.rename(tmp_path / "AVE.h5"),
        "--methods",
        "random,cca,aadml",
        "--losses",
        "triplet",
        *SMALL,
        *QUICK,
        "--seeds",
        "1",
        "-o",
        out,
    ]
    code, said, err = aadml("compare", *arguments)
    assert code == 0, err
    assert "method.dimension was not set for rows that cannot use" in err
    methods, losses, proxies = (rows(out / f"{name}.csv") for name in ("methods", "losses", "proxies"))
    controls = ["without proxy", "random same-class neighbors", "without proxy, half weight", "no metric loss"]
    assert list(methods) == ["random", "cca", "aadml", *(f"aadml, {name}" for name in controls)]
    assert list(losses) == [
        "triplet",
        "aa-triplet",
        *(f"aa-triplet, {name}" for name in controls[1:3]),
        "no metric loss",
    ]
    assert float(methods["cca"]["AVE published mean"]) == 0.19
    assert methods["aadml, no metric loss"]["AVE published mean"] == ""
    assert "VEGAS published mean" not in methods
    assert float(losses["aa-triplet"]["AVE published mean"]) == 0.887
    assert methods["random"]["parameters"] == "0"
    assert int(methods["aadml"]["parameters"]) > int(methods["aadml, without proxy"]["parameters"])
    assert set(proxies["aa-triplet"]) == {"with proxy", "MAP mean", "MAP mean sd", "MAP mean n", "steps"} | {
        f"minus {name}" for name in controls
    }
    assert all(proxies["aa-triplet"][f"minus {name}"].endswith("(one seed: not tested)") for name in controls)
    assert int(methods["aadml"]["steps"]) >= int(methods["aadml"]["epochs"]) >= 1
    assert methods["cca"]["steps"] == ""
    page = (out / "report.html").read_text()
    assert "published" in page
    assert "<h1>AVE.h5: methods and losses</h1>" in page
    assert "protocol inductive" in page
    assert 'src="http' not in page
    # the plain loss of both tables is one run, and so is no metric loss
    assert len(list((out / "runs").iterdir())) == 2 + 5
    assert said.strip().splitlines()[-1] == str(out / "report.html")


def test_a_failing_row_is_told_and_the_others_are_tabulated(aadml, features, tmp_path):
    out = tmp_path / "out"
    quick = [*QUICK[2:], "--set", "method.dimension=500"]
    code, said, err = aadml("compare", "--data", features, "--methods", "cca,random", *quick, "-o", out)
    assert code == 1, err
    assert "2 of 4 runs failed" in err
    assert "cca, seed 0, failed" in said
    assert float(rows(out / "methods.csv")["random"]["MAP mean"]) > 0


@pytest.mark.slow
def test_equal_budgets_choose_on_validation_clips_and_are_recorded(aadml, features, tmp_path):
    out = tmp_path / "out"
    quick = ["--seeds", "1", "--workers", "0", "--set", "method.hidden=[8]", "--max-epochs", "2"]
    arguments = ["--data", features, "--methods", "random,clip", "--trials", "3", *quick, "-o", out]
    code, _, err = aadml("compare", *arguments)
    assert code == 0, err
    trials = [json.loads(path.read_text()) for path in out.glob("trials/*/evaluation.json")]
    assert len(trials) == 1 + 3  # the random baseline has nothing to search
    assert {trial["split"] for trial in trials} == {"valid"}
    record = json.loads((out / "runs" / "clip_trials3_seed0" / "trials.json").read_text())
    assert record["trials"][0]["settings"] == {}
    best = max(record["trials"], key=lambda trial: trial["valid map_mean"])
    assert record["chosen"] == best["settings"]
    chosen = open_config(out / "runs" / "clip_trials3_seed0" / "config.yaml").values
    assert all(chosen[key.split(".")[0]][key.split(".")[1]] == value for key, value in record["chosen"].items())
    assert json.loads((out / "runs" / "clip_trials3_seed0" / "evaluation.json").read_text())["split"] == "test"
    code, _, err = aadml("compare", *arguments)
    assert code == 0
    assert "4 runs were finished earlier" in err


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ([], "--methods all"),
        (["--methods", "ccaa"], "did you mean 'cca'"),
        (["--losses", "tripled"], "did you mean 'triplet'"),
        (["--methods", "audio-text"], "captioned sound"),
        (["--methods", "cca", "--set", "netwrk.hidden=[3]"], "no row can use this setting (cca: netwrk: "),
        (["--methods", "cca", "--baseline", "kcca"], "no row 'kcca'"),
    ],
)
def test_bad_comparisons_are_one_line_and_code_2(aadml, features, tmp_path, arguments, hint):
    code, _, err = aadml("compare", "--data", features, *arguments, "--workers", "0", "-o", tmp_path / "out")
    assert code == 2
    assert hint in err
    assert not (tmp_path / "out").exists()


def test_the_papers_tables_name_rows_that_are_here():
    from aadml.studies.comparison_rows import method_names, published_losses

    assert set(PAPER.published["methods"]) <= set(method_names())
    assert set(published_losses()) <= {*LOSSES, *RECIPES}
    assert len(PAPER.published["methods"]) == 20
    assert len(published_losses()) == 15


def test_the_summary_is_that_of_the_losses_where_every_method_failed(aadml, features, tmp_path):
    code, _, err = aadml(
        "compare", "--data", features, "--methods", "cca", "--losses", "triplet", "--no-controls", "--max-epochs", "1",
        "--seeds", "1", "--workers", "0", *SMALL, "-o", tmp_path / "out",
    )  # fmt: skip
    assert code == 1
    assert "cca" in err
    assert "triplet" in (tmp_path / "out" / "report.html").read_text()
