"""What `ablate` and `compare` run, without training."""

from functools import partial
from pathlib import Path

import pytest

import aadml
from aadml.configuration.files import open_config
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.studies import ablation, comparison
from aadml.studies.execution import Execution, SweepResult
from aadml.studies.grid import axes_of, folder_name


@pytest.fixture
def planned(monkeypatch, tmp_path):
    """The execution and the jobs of each study; nothing is trained, and the results are planted."""
    monkeypatch.chdir(tmp_path)
    studies = []
    monkeypatch.setattr(Execution, "train", lambda self, jobs: studies.append((self, jobs)) or ["outcome"])
    for module in (ablation, comparison):
        monkeypatch.setattr(module, "collected", lambda cells, *given: {cell.name: cell.name for cell in cells})
    monkeypatch.setattr(ablation, "write_ablation", lambda *given: ("table", Path("page")))
    written = []
    monkeypatch.setattr(
        comparison, "write_comparison", lambda *given, **more: written.append(more) or ("tables", "page")
    )
    return studies, written


def test_an_ablation_runs_each_cell_with_each_seed(planned, features, tmp_path):
    common = {"data": features, "settings": ["training.batch=9"], "max_epochs": 7, "seeds": 2, "metrics": "recall@5"}
    result = aadml.ablate({"proxy.k": [1, 2]}, **common, output=tmp_path / "out", command="a line", workers=3)
    ((execution, jobs),) = planned[0]
    assert (execution.folder, execution.command, execution.workers) == (tmp_path / "out", "a line", 3)
    assert result == SweepResult(("outcome",), tmp_path / "out", ["table"], Path("page"), result.scores)
    assert len(result.scores) == 3
    assert [job.folder.name for job in jobs[:2]] == ["proxy.k--1_seed0", "proxy.k--2_seed0"]
    assert [job.config.common.seed for job in jobs] == [0] * 3 + [1] * 3
    assert {(job.config.training.batch, job.config.training.epochs, job.metrics) for job in jobs} == {
        (9, 7, ("recall@5",))
    }
    assert {job.config.data for job in jobs} == {str(features)}
    shard = aadml.ablate({"proxy.k": [1, 2]}, **common, shard="1/2", baseline=["none"])
    assert shard == SweepResult(("outcome",), shard.folder)
    execution, jobs = planned[0][1]
    assert (shard.folder.parts[0], execution.shard, len(jobs)) == ("ablations", (1, 2), 4)
    for baseline, cells in ((["proxy.k=5"], 2), ("proxy.k=5", 2), ("none", 1)):
        assert len(aadml.ablate({"proxy.k": [1]}, **common, baseline=baseline).scores) == cells


@pytest.mark.parametrize("over", [{}, [], iter(())])
def test_an_ablation_over_nothing_is_refused(planned, features, over):
    with pytest.raises(InputError, match=r'over is empty; pass a key and its values, such as \{"proxy\.k": \[1, 3\]\}'):
        aadml.ablate(over, data=features)
    assert planned[0] == []


def test_an_axis_over_data_keeps_to_all_of_its_data(features, tmp_path):
    other = tmp_path / "other.h5"
    write_features(other, synthetic(classes=4, train=60, valid=0, test=24, dimensions=(6, 8), seed=1))
    common = {"method": "random", "seeds": 1, "workers": 0, "output": tmp_path / "out", "data": features}
    over = {"data": [str(features), str(other)]}
    aadml.ablate(over, **common)
    assert all(outcome.was_finished for outcome in aadml.ablate(over, **common).outcomes)
    write_features(other, synthetic(classes=4, train=60, valid=0, test=24, dimensions=(6, 8), seed=2))
    with pytest.raises(InputError, match=r"^\S*other.h5: the content has changed since the runs in"):
        aadml.ablate(over, **common)


def test_data_of_an_axis_or_of_the_settings_are_trained_with_the_preset_for_data(planned, features, monkeypatch):
    sample = lambda config, note: config if config.data else pytest.fail("sample clips")  # noqa: E731
    monkeypatch.setattr(ablation, "with_sample_data", sample)
    aadml.ablate({"proxy.k": [1]}, data=features)
    aadml.ablate({"data": [str(features), "synthetic:ave"]})
    aadml.ablate({"proxy.k": [1]}, settings={"data": str(features)})
    trainings = {job.config.training for _, jobs in planned[0] for job in jobs}
    assert len(trainings) == 1


def test_a_study_keeps_to_its_file_of_judgments(features, tmp_path):
    ids, judged = aadml.read(features).test.ids, tmp_path / "judged.csv"
    common = {"data": features, "workers": 0, "settings": [f"relevance={judged}"], "output": tmp_path / "out"}
    studies = [partial(aadml.ablate, {"validation": [0.2]}, method="random"), partial(aadml.compare, methods="random")]
    for number, study in enumerate(studies):
        common["output"] = tmp_path / f"out{number}"
        judged.write_text(f"query,item,grade\n{ids[0]},{ids[1]},1\n")
        study(seeds=1, **common)
        assert study(seeds=2, **common).failed == 0
        judged.write_text(f"query,item,grade\n{ids[0]},{ids[2]},1\n")
        with pytest.raises(InputError, match=r"^\S*judged\.csv: the content has changed"):
            study(seeds=3, **common)


def test_paths_of_a_study_are_absolute_in_the_config_of_each_run(planned, features, tmp_path):
    settings = ["relevance=judged.txt"]
    aadml.ablate({"data": [features.name, "synthetic:ave"]}, method="random", data=features, settings=settings)
    aadml.compare(methods="random", data=features.name, settings=settings)
    configs = [job.config for _, jobs in planned[0] for job in jobs]
    assert {config.data for config in configs} == {str(features), "synthetic:ave"}
    assert {config.common.relevance for config in configs} == {str(tmp_path / "judged.txt")}


def test_the_folder_of_a_study_depends_on_the_config_as_it_is_written(planned, features, tmp_path):
    config = tmp_path / "c.yaml"
    config.write_text(f"method: random\ndata: {features.name}\n")
    over = {"validation": [0.2]}
    result = aadml.ablate(over, config=str(config))
    assert result.folder.name == folder_name(open_config(str(config)).resolve(), axes_of(over))
    ((_, jobs),) = planned[0]
    assert {job.config.data for job in jobs} == {str(features)}


def test_a_comparison_runs_each_row_with_each_seed(planned, features, tmp_path, monkeypatch):
    notes = []
    common = {"data": features, "seeds": 2, "on_note": notes.append}
    settings = ["loss.margin=0.5"]
    result = aadml.compare(methods="cca", losses="triplet", settings=settings, max_epochs=3, baseline="cca", **common)
    ((execution, jobs),) = planned[0]
    assert (result.tables, result.page, execution.folder.parts[0]) == ("tables", "page", "comparisons")
    assert len(jobs) == 2 * len(result.scores) == 2 * 6
    assert list(result.scores)[:3] == ["cca", "triplet", "aa-triplet"]
    assert notes == ["loss.margin was not set for rows that cannot use this setting: cca"]
    assert planned[1] == [{"baseline": "cca", "notes": notes, "metrics": ()}]
    shard = aadml.compare(
        methods="cca,random", shard="0/2", modalities="audio,visual", output=tmp_path / "out", **common
    )
    assert shard == SweepResult(("outcome",), tmp_path / "out")
    assert {tuple(job.config.common.modalities) for job in planned[0][1][1]} == {("audio", "visual")}
    tuned, recorded = [], []
    monkeypatch.setattr(
        comparison, "tuned_rows", lambda rows, *given: tuned.append(given) or (rows[:1], {"cca": "record"}, {})
    )
    monkeypatch.setattr(comparison, "write_records", lambda *given: recorded.append(given))
    tried = aadml.compare(methods="cca,random", trials=3, **common)
    assert tuned == [(3, planned[0][-1][0])]
    ((records, cells, seeds, folder),) = recorded
    assert (records, [cell.name for cell in cells], seeds, folder) == (
        {"cca": "record"},
        ["cca"],
        range(2),
        tried.folder,
    )
    assert notes[-1] == "Options of every row: the best of at most 3 trials on validation clips (seed 0)."


def test_without_data_a_study_is_of_the_sample_clips(planned, features, monkeypatch):
    notes = []
    monkeypatch.setattr(
        ablation, "with_sample_data", lambda config, note: config.on(config.common.data or str(features))
    )
    monkeypatch.setattr(comparison, "sample_features", lambda note: features)
    aadml.ablate({"proxy.k": [1]}, on_note=notes.append)
    aadml.compare(methods="cca", on_note=notes.append)
    assert {job.config.data for _, jobs in planned[0] for job in jobs} == {str(features)}
    assert [[job.config.common.seed for job in jobs] for _, jobs in planned[0]] == [
        [seed for seed in range(5) for _ in range(cells)] for cells in (2, 1)
    ]
    assert notes == [f"--data is not set, so the rows are compared on the sample clips: {features}"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": "cca", "trials": 2, "shard": "0/2"}, "--trials 2 cannot be combined with --shard 0/2, because"),
        ({"methods": "cca", "trials": 2, "merge": True}, "--trials 2 cannot be combined with --merge, because"),
        ({"methods": "cca", "baseline": "ccaa"}, "no row 'ccaa'; did you mean 'cca'"),
        ({"methods": "xie"}, "--methods xie needs captioned sound, but compare trains on feature files"),
        ({"methods": "cca", "metrics": "recal@5"}, "recal"),
    ],
)
def test_a_comparison_of_options_that_exclude_each_other_is_refused(planned, features, options, message):
    with pytest.raises(InputError, match=message):
        aadml.compare(data=features, **options)
    assert planned[0] == []
