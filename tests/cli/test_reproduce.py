"""`aadml reproduce` as a user meets it, on files of three classes and networks of eight units."""

import csv
import json
import os
import random
import subprocess
import sys
from dataclasses import replace

import pytest

from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.papers.reproduction import reproduce
from aadml.studies.forecast import Rate
from aadml.studies.sweep import sweep

SMALL = ["network.hidden=[8]", "training.learning_rate=0.01", "training.batch=40"]
FLAGS = [part for setting in SMALL for part in ("--set", setting)]
PATIENCE = 300  # seconds, for processes that a test waits for


@pytest.fixture
def ave(tmp_path):
    """A file of three classes, one of them a Clock with clips to spare."""
    content = synthetic(classes=3, train=[100, 20, 20], valid=[12, 5, 5], test=[12, 8, 8], dimensions=(8, 10))
    path = tmp_path / "ave.h5"
    write_features(path, replace(content, class_names=("Clock", "Cat", "Bus")))
    return path


@pytest.fixture
def two_rows(monkeypatch):
    """Two rows of each table instead of all."""
    from aadml.papers import rows

    few = {"losses": ("triplet", "aa-triplet"), "methods": ("cca", "aadml")}
    printed = {kind: {name: rows.PAPER.published[kind][name] for name in names} for kind, names in few.items()}
    monkeypatch.setattr(rows, "PAPER", replace(rows.PAPER, published=printed))
    monkeypatch.setattr(rows, "published_losses", lambda: ["triplet"])
    monkeypatch.setattr(rows, "published_methods", lambda: ["cca", "aadml"])


@pytest.fixture
def unmeasured(monkeypatch):
    """Forecasts without a measurement, for calls that are repeated."""

    def rates(examples, workers, note):
        return dict.fromkeys(examples, Rate(step=0.001))

    monkeypatch.setattr("aadml.studies.forecast.measured_rates", rates)


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def results(folder):
    """All numbers of a reproduction but the seconds that it took."""
    return {path.name: [{k: v for k, v in row.items() if not k.startswith("seconds")} for row in rows(path)]
            for path in sorted(folder.glob("*.csv"))}  # fmt: skip


def call(folder, ave, **options):
    return reproduce("paper", ave=ave, output=folder, workers=0, settings=SMALL, max_epochs=3, **options)


@pytest.mark.slow
@pytest.mark.usefixtures("two_rows")
def test_tables_and_figures_of_one_data_set_beside_published_figures_and_leaks(aadml, ave, tmp_path):
    out = tmp_path / "out"
    arguments = ["reproduce", "paper", "--ave", ave, "--quick", "--max-epochs", 3, "--workers", 0, *FLAGS,
                 "--set", "method.dimension=2", "-o", out]  # fmt: skip
    code, said, err = aadml(*arguments)
    assert code == 0, err
    assert "table-2 is left out, because no --vegas is given" in err
    assert "forecast: " in err
    assert "drawn by seed" in err
    assert "3 classes; the paper's AVE has 1,955 clips of 15 classes" in err
    names = {"table-1-ave", "table-1-ave-leaks", "table-1-ave-readings", "table-3", "table-3-leaks", "table-3-readings",
             "figure-3-ave", "figure-4-ave", "figure-5-ave", "clock-draw"}  # fmt: skip
    assert {path.stem for path in out.glob("*.csv")} == names
    plain, anchored = rows(out / "table-3.csv")
    assert (anchored["loss"], anchored["published mean"]) == ("aa-triplet", "0.887")
    assert anchored["difference to itself without proxy"]
    assert plain["difference to itself without proxy"] == ""
    leaks = [column for column in anchored if column.startswith("legacy:") and column[-3:] not in (" sd", "p n")]
    assert len([one for one in leaks if not one.endswith(" n")]) == 7
    assert float(anchored["legacy:test-selection"]) >= float(anchored["MAP mean"]) - 1e-9
    cca = rows(out / "table-1-ave.csv")[0]
    assert (cca["method"], cca["legacy:test-selection"], cca["published mean"]) == ("cca", "", "0.19")
    assert float(cca["legacy:partner"]) > float(cca["MAP mean"])
    assert [row["K"] for row in rows(out / "figure-3-ave.csv")][:2] == ["10", "20"]
    assert {row["k"] for row in rows(out / "figure-4-ave.csv")} == set("1234567")
    epochs = rows(out / "figure-5-ave.csv")
    assert {row["split"] for row in epochs} == {"train", "valid", "test"}
    assert {row["figure"] for row in epochs} == {"loss", "MAP"}
    assert "draw 4" in rows(out / "clock-draw.csv")[0]
    page = (out / "report.html").read_text()
    assert page.count("SHORTENED (--quick)") == 7
    assert "cannot be compared" in page
    assert "AVE has 1,955 clips of 15 classes, so the values of the paper come from other data" in page
    for name in ("table-3.md", "table-3.tex", "report.html"):
        assert "random numbers (synthetic), not features of recordings" in (out / name).read_text()
    assert "not used for any choice" in page
    assert said.strip().splitlines()[-1] == str(out / "report.html")
    before = results(out)
    code, _, err = aadml(*arguments)
    assert code == 0
    assert "finished earlier and kept" in err
    assert "forecast" not in err
    assert results(out) == before


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ([], "pass --vegas F.h5, --ave G.h5"),
        (["--ave", "AVE", "--only", "table-2"], "pass --vegas F.h5"),
        (["--ave", "AVE", "--only", ","], "names no part; choose from table-1"),
        (["--ave", "AVE", "--only", "tabel-3"], "did you mean 'table-3'"),
        (["--ave", "AVE", "--shard", "2/2"], "--shard 2/2"),
        (["--ave", "AVE", "--shard", "0/2", "--merge"], "pass only one option"),
        (["--ave", "absent.h5"], "does not exist"),
        (["--ave", "AVE", "--set", "netwrk.hidden=[3]"], "no row can use this setting"),
    ],
)
def test_bad_calls_are_one_line_and_code_2(aadml, ave, tmp_path, arguments, hint):
    given = [str(ave) if part == "AVE" else part for part in arguments]
    code, _, err = aadml("reproduce", "paper", *given, "--workers", 0, "-o", tmp_path / "out")
    assert code == 2
    assert hint in err
    assert not list(tmp_path.glob("out/*/runs"))
    assert "absent.h5" not in arguments or not list(tmp_path.glob("out/*/data.json"))


@pytest.mark.slow
@pytest.mark.usefixtures("two_rows", "unmeasured")
def test_a_long_job_is_refused_where_nobody_can_answer(aadml, ave, tmp_path, monkeypatch):
    monkeypatch.setattr("aadml.studies.forecast.WORTH_ASKING", 0.001)
    arguments = ["reproduce", "paper", "--ave", ave, "--only", "figure-5", "--seeds", 1, *FLAGS, "--max-epochs", 1,
                 "--workers", 0, "-o", tmp_path / "out"]  # fmt: skip
    code, _, err = aadml(*arguments)
    assert code == 2
    assert "stdin is not a terminal; pass --yes" in err
    assert not list(tmp_path.glob("out/*/runs"))
    code, _, err = aadml(*arguments, "--yes")
    assert code == 0, err


@pytest.mark.slow
@pytest.mark.usefixtures("two_rows", "unmeasured")
def test_interrupted_at_ten_moments_and_continued_it_gives_the_same_tables(ave, tmp_path):
    options = {"only": "table-3,figure-5", "seeds": 2}
    call(tmp_path / "whole", ave, **options)
    moments = random.Random(7)
    stopped = 0

    def interrupted(jobs, workers):
        left = moments.randrange(4)

        def count(job, done, total):
            nonlocal left
            left -= 1
            if left < 0:
                raise KeyboardInterrupt

        return sweep(jobs, workers=workers, on_epoch=count)

    for _ in range(10):
        try:
            call(tmp_path / "stopped", ave, work=interrupted, **options)
        except KeyboardInterrupt:
            stopped += 1
    call(tmp_path / "stopped", ave, **options)
    assert stopped >= 2
    assert results(tmp_path / "stopped") == results(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.usefixtures("two_rows", "unmeasured")
def test_an_incomplete_merge_is_refused_and_a_complete_one_trains_nothing(ave, tmp_path):
    options = {"only": "figure-5", "seeds": 2}
    call(tmp_path / "out", ave, shard="0/2", **options)
    assert not (tmp_path / "out" / "report.html").exists()
    with pytest.raises(InputError, match="2 of 4 runs are not finished"):
        call(tmp_path / "out", ave, merge=True, **options)
    call(tmp_path / "out", ave, shard="1/2", **options)
    for weights in (tmp_path / "out").rglob("*.safetensors"):  # not copied here: the page is made of the small files
        weights.unlink()

    def none(jobs, workers):
        raise AssertionError("a merge trains nothing")

    assert call(tmp_path / "out", ave, merge=True, work=none, **options).page.is_file()


def started(ave, folder, *more):
    arguments = ["reproduce", "paper", "--ave", str(ave), "--only", "figure-5", "--seeds", "2", "--max-epochs", "3",
                 "--workers", "0", *FLAGS, "-o", str(folder), *more]  # fmt: skip
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-m", "aadml", *arguments], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, env=environment)  # fmt: skip


@pytest.mark.slow
def test_two_shards_in_two_processes_and_merged_give_the_tables_of_one(ave, tmp_path):
    shards = [started(ave, tmp_path / "two", "--shard", f"{n}/2") for n in range(2)]
    for process in shards:
        said, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, said
    for name, flag in (("two", "--merge"), ("one", "--yes")):
        process = started(ave, tmp_path / name, flag)
        said, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, said
    assert results(tmp_path / "two") == results(tmp_path / "one")


@pytest.mark.slow
def test_killed_processes_leave_what_the_next_one_needs(ave, tmp_path):
    moments = random.Random(3)
    for _ in range(4):
        process = started(ave, tmp_path / "killed")
        try:
            process.wait(timeout=3 + 5 * moments.random())
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate(timeout=PATIENCE)
    for name in ("killed", "whole"):
        process = started(ave, tmp_path / name)
        said, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, said
    assert results(tmp_path / "killed") == results(tmp_path / "whole")


@pytest.mark.usefixtures("two_rows", "unmeasured")
def test_the_three_lines_of_python(ave, tmp_path):
    result = call(tmp_path / "out", ave, only="figure-5", quick=True, seeds=1)
    assert result.failed == 0
    assert json.loads((tmp_path / "out" / "ave" / "data.json").read_text())["data"] == str(ave)


@pytest.mark.slow
@pytest.mark.usefixtures("two_rows", "unmeasured")
def test_without_matplotlib_the_page_has_the_tables_and_no_figures(ave, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = call(tmp_path / "out", ave, only="table-3,figure-5", seeds=1)
    page = result.page.read_text()
    assert "<table" in page
    assert "<svg" not in page
    assert {path.name for path in (tmp_path / "out").glob("*.csv")} == {
        "table-3.csv", "table-3-leaks.csv", "table-3-readings.csv", "figure-5-ave.csv",
    }  # fmt: skip
    assert not list((tmp_path / "out").glob("*.svg"))
