from dataclasses import replace
from pathlib import Path

import pytest

import aadml
from aadml.configuration.config import resolve
from aadml.configuration.files import open_config
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.reports.tables import Table, as_json, markdown
from aadml.studies import execution
from aadml.studies.execution import Execution, SweepResult, check_complete, log, shard_of, work_off_needed
from aadml.studies.job import Job
from aadml.studies.sweep import SweepOutcome

SMALL = ["method.dimension=4"]


def test_shards_divide_the_runs(tmp_path):
    jobs = list(range(11))
    parts = [Execution(folder=tmp_path, shard=(i, 3)).part(jobs) for i in range(3)]
    assert sorted(job for part in parts for job in part) == jobs


def test_a_merge_names_what_is_missing(tmp_path):
    config = resolve(open_config("aadml").values | {"data": "x.h5"})
    with pytest.raises(
        InputError, match=r"7 of 7 runs are not finished \(ave/a=0, ave/a=1, ave/a=2, ave/a=3, ave/a=4 \.\.\.\)"
    ):
        check_complete([Job(tmp_path / "ave" / "runs" / f"a={n}", config) for n in range(7)])
    with pytest.raises(InputError, match=r"5 of 5 .*, ave/a=4\); copy"):
        check_complete([Job(tmp_path / "ave" / "runs" / f"a={n}", config) for n in range(5)])
    check_complete([])


def test_a_merge_trains_nothing_and_needs_every_run(tmp_path, monkeypatch):
    config = resolve(open_config("aadml").values | {"data": "x.h5"})
    jobs = [Job(tmp_path / "ave" / "runs" / f"a={n}", config) for n in range(3)]
    jobs[2] = replace(jobs[2], needs=Job(tmp_path / "ave" / "runs" / "needed", config))
    merge = Execution(folder=tmp_path, merge=True, work=lambda *_: pytest.fail("runs were trained"))
    with pytest.raises(InputError, match="--merge: 4 of 4 runs are not finished"):
        merge.train(jobs)
    monkeypatch.setattr(execution, "check_complete", lambda jobs: None)
    monkeypatch.setattr(execution, "check_same_study", lambda jobs: None)
    assert merge.train(jobs) == [SweepOutcome(job, was_finished=True) for job in (*jobs, jobs[2].needs)]


def test_a_merge_refuses_runs_of_another_config(features, tmp_path):
    common = {"methods": "cca", "workers": 0, "output": tmp_path / "out"}
    for shard in ("0/2", "1/2"):
        aadml.compare(data=features, seeds=2, settings=[*SMALL, "method.ridge=0.5"], shard=shard, **common)
    for ridge, changed in ((0.001, r"method is .*0\.5.* instead of .*0\.001"), (0.1, "method is")):
        with pytest.raises(InputError, match=rf"cca_seed0 contains a run of a different config \({changed}"):
            aadml.compare(data=features, seeds=2, settings=[*SMALL, f"method.ridge={ridge}"], merge=True, **common)
    assert not (tmp_path / "out" / "report.html").exists()
    features.rename(tmp_path / "moved.h5")  # on the machine of the merge, the data may have another path
    merged = aadml.compare(
        data=tmp_path / "moved.h5", seeds=2, settings=[*SMALL, "method.ridge=0.5"], merge=True, **common
    )
    assert len(merged.outcomes) == 2


def test_shards_may_have_their_files_in_other_folders(features, tmp_path, monkeypatch):
    settings = ["relevance=judged.csv", "method.dimension=4"]
    common = {"data": features, "methods": "cca", "seeds": 2, "settings": settings, "output": tmp_path / "out"}
    ids = aadml.read(features).test.ids
    for folder, options in (("a", {"shard": "0/2"}), ("b", {"shard": "1/2"}), ("c", {"merge": True})):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        Path("judged.csv").write_text(f"query,item,grade\n{ids[0]},{ids[1]},1\n")
        result = aadml.compare(workers=0, **options, **common)
    assert len(result.outcomes) == 2
    Path("judged.csv").rename("others.csv")
    common["settings"] = ["relevance=others.csv", "method.dimension=4"]
    with pytest.raises(InputError, match=r"relevance is .*a/judged\.csv instead of .*c/others\.csv\); repeat the opt"):
        aadml.compare(workers=0, merge=True, **common)


def test_a_merge_refuses_runs_with_different_judgments(features, tmp_path, monkeypatch):
    settings = ["relevance=judged.csv", "method.dimension=4"]
    common = {"data": features, "methods": "cca", "seeds": 2, "settings": settings, "workers": 0}
    ids = aadml.read(features).test.ids
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        monkeypatch.chdir(tmp_path / str(number))
        Path("judged.csv").write_text(f"query,item,grade\n{ids[0]},{ids[number]},1\n")
        aadml.compare(shard=f"{number}/2", output=tmp_path / "out", **common)
    with pytest.raises(
        InputError,
        match=r"cca_seed0 and .*cca_seed1 are runs on different judgments; remove the runs on other judgments",
    ):
        aadml.compare(merge=True, output=tmp_path / "out", **common)


def test_a_merge_refuses_runs_on_different_data(features, tmp_path):
    common = {"methods": ["cca", "random"], "seeds": 1, "workers": 0, "settings": SMALL}
    aadml.compare(data=features, shard="0/2", output=tmp_path / "out", **common)
    known = (tmp_path / "out" / "data.json").read_bytes()
    write_features(features, synthetic(classes=4, train=60, valid=0, test=24, dimensions=(6, 8), seed=1))
    aadml.compare(data=features, shard="1/2", output=tmp_path / "other", **common)
    (tmp_path / "other" / "runs" / "random_seed0").rename(tmp_path / "out" / "runs" / "random_seed0")
    assert (tmp_path / "out" / "data.json").read_bytes() == known
    write_features(features, synthetic(classes=4, train=60, valid=0, test=24, dimensions=(6, 8), difficulty=0.2))
    with pytest.raises(InputError, match=r"cca_seed0 and .*random_seed0 are runs on different data; remove"):
        aadml.compare(data=features, output=tmp_path / "out", merge=True, **common)


@pytest.mark.parametrize(
    ("valid", "settings", "are_fixed"),
    [(12, [], True), (0, [], False), (12, ["train_per_class=4"], False), (12, ["unseen_classes=0.5"], False)],
)
def test_a_merge_compares_the_data_of_seeds_that_draw_no_clips(valid, settings, are_fixed, tmp_path):
    data = tmp_path / "f.h5"
    common = {"methods": "cca", "seeds": 2, "workers": 0, "settings": [*SMALL, *settings]}
    drawn = [synthetic(classes=8, train=60, valid=valid, test=24, dimensions=(6, 8), seed=seed) for seed in (0, 1)]
    for shard, content in zip(("0/2", "1/2"), drawn if are_fixed else drawn[:1] * 2, strict=True):
        write_features(data, content)
        aadml.compare(data=data, shard=shard, output=tmp_path / shard[0], **common)
    (tmp_path / "1" / "runs" / "cca_seed1").rename(tmp_path / "0" / "runs" / "cca_seed1")
    write_features(data, drawn[0])
    if are_fixed:
        with pytest.raises(InputError, match=r"cca_seed0 and .*cca_seed1 are runs on different data; remove"):
            aadml.compare(data=data, output=tmp_path / "0", merge=True, **common)
    else:
        assert len(aadml.compare(data=data, output=tmp_path / "0", merge=True, **common).outcomes) == 2


def test_a_merge_reads_draws_from_a_field_that_earlier_versions_lack(tmp_path, monkeypatch):
    data, known = tmp_path / "f.h5", execution.read_environment
    common = {"methods": "cca", "seeds": 2, "workers": 0, "settings": SMALL, "data": data}
    note = "a fifth of each class was drawn for test (seed 0)"
    contents = [synthetic(classes=4, train=60, valid=12, test=24, dimensions=(6, 8), seed=seed) for seed in (0, 1)]
    for content in contents:
        content.provenance["audio"]["notes"] = [note]
    for name, shards in (("same", contents[:1] * 2), ("other", contents)):
        for seed, content in enumerate(shards):
            write_features(data, content)
            aadml.compare(shard=f"{seed}/2", output=tmp_path / name / str(seed), **common)
        (tmp_path / name / "1" / "runs" / "cca_seed1").rename(tmp_path / name / "0" / "runs" / "cca_seed1")
    write_features(data, contents[0])
    assert note in known(tmp_path / "same" / "0" / "runs" / "cca_seed0").data.notes
    assert len(aadml.compare(output=tmp_path / "same" / "0", merge=True, **common).outcomes) == 2
    with pytest.raises(InputError, match=r"cca_seed0 and .*cca_seed1 are runs on different data; remove"):
        aadml.compare(output=tmp_path / "other" / "0", merge=True, **common)

    def earlier(manifest):
        environment = known(manifest)
        return replace(environment, data=replace(environment.data, drawn=None))

    monkeypatch.setattr(execution, "read_environment", earlier)
    assert len(aadml.compare(output=tmp_path / "other" / "0", merge=True, **common).outcomes) == 2


def test_a_shard_tells_how_many_of_its_runs_are_finished(tmp_path):
    config = resolve(open_config("aadml").values | {"data": "x.h5"})
    jobs = [Job(tmp_path / "ave" / "runs" / f"a={n}", config) for n in range(5)]
    notes = []

    def work(jobs, workers):
        return [SweepOutcome(job, "no disk" * (job.folder.name == "a=2")) for job in jobs]

    shard = Execution(folder=tmp_path, shard=(0, 2), work=work, note=notes.append)
    outcomes = shard.train(jobs, order=lambda jobs: jobs[::-1])
    assert [outcome.job for outcome in outcomes] == [jobs[4], jobs[2], jobs[0]]
    assert notes[0].startswith("shard 0/2: 2 of its 3 runs are finished;")
    assert len(replace(shard, shard=None).train(jobs)) == 5
    assert len(notes) == 1


def test_a_result_prints_its_tables_and_its_page_or_its_folder(tmp_path):
    table = Table(("row", "MAP"), (("a", 0.5),), "about")
    job = Job(tmp_path, resolve({"method": "cca", "data": "x.h5"}))
    outcomes = [SweepOutcome(job, reason) for reason in ("", "no disk", "not possible: too wide")]
    one = SweepResult(outcomes, tmp_path, [table], tmp_path / "page.html")
    assert one.failed == 1
    assert repr(one) == f"{markdown(table)}\n{tmp_path / 'page.html'}"
    assert repr(SweepResult([], tmp_path)) == str(tmp_path)
    assert one.to_dict() == as_json(table)
    assert SweepResult([], tmp_path, [table] * 2).to_dict() == [as_json(table)] * 2
    assert SweepResult([], tmp_path).to_dict() == []
    with pytest.raises(InputError, match=r"no run of .* finished; train the study, or merge its shards"):
        SweepResult([], tmp_path).plot()
    with pytest.raises(InputError, match=r"a reproduction has no figure of all rows; open its page .*page\.html"):
        one.plot()


def test_a_shard_has_a_folder_of_its_own_and_is_never_merged(tmp_path, monkeypatch):
    assert Execution(folder=tmp_path, shard=(1, 3)).locked == tmp_path / "shard-1-of-3"
    assert Execution(folder=tmp_path).locked == tmp_path
    assert (shard_of("1/3", merge=False), shard_of(None, merge=True)) == ((1, 3), None)
    with pytest.raises(InputError, match="--shard 1/3 and --merge cannot be combined"):
        shard_of("1/3", merge=True)
    checked = []
    monkeypatch.setattr(execution, "check_towers", lambda config: checked.append(config.common.seed))
    config = resolve({"method": "cca", "data": "x.h5"})
    jobs = [Job(tmp_path / f"{seed}", config.seeded(seed)) for seed in range(4)]
    Execution(folder=tmp_path, shard=(1, 2), work=lambda jobs, workers: [*map(SweepOutcome, jobs)]).train(jobs)
    assert checked == [3]  # once for each config


def test_a_run_whose_needed_run_failed_is_not_trained(tmp_path):
    config = resolve(open_config("aadml").values | {"data": "x.h5"})
    needed = {name: Job(tmp_path / name, config) for name in ("good", "bad")}
    jobs = [Job(tmp_path / f"on {name}", config, needs=job) for name, job in needed.items()]
    trained = []

    def work(jobs, workers):
        trained.append([job.folder.name for job in jobs])
        return [SweepOutcome(job, "no disk" * (job.folder.name == "bad")) for job in jobs]

    outcomes = work_off_needed([*jobs, Job(tmp_path / "alone", config)], 3, work)
    assert trained == [["good", "bad"], ["on good", "alone"]]
    reasons = {outcome.job.folder.name: outcome.reason for outcome in outcomes}
    assert reasons.pop("on bad") == "the needed run bad failed: no disk"
    assert reasons == {"good": "", "bad": "no disk", "on good": "", "alone": ""}


STUDIES = [
    ("studies.ablation", "Execution", lambda **more: aadml.ablate({"proxy.k": [1, 2]}, data="synthetic:ave", **more)),
    ("studies.comparison", "Execution", lambda **more: aadml.compare(losses="triplet", data="synthetic:ave", **more)),
    ("papers.reproduction", "ReproductionPlan", lambda **more: aadml.reproduce("paper", ave="synthetic:ave", **more)),
]


@pytest.mark.parametrize(("module", "planned", "call"), STUDIES, ids=[module for module, *_ in STUDIES])
@pytest.mark.parametrize("on_note", [None, lambda message: None])
def test_a_study_has_a_folder_of_its_own_and_its_notes_go_to_the_caller_or_to_the_log(
    module, planned, call, on_note, tmp_path, monkeypatch
):
    plans = []

    def stop(**plan):
        plans.append(plan)
        raise InputError("stopped")

    monkeypatch.setattr(f"aadml.{module}.{planned}", stop)
    for output in (None, tmp_path / "out"):
        with pytest.raises(InputError, match="stopped"):
            call(on_note=on_note, output=output)
    assert {plan["note"] for plan in plans} == {on_note or log}
    assert {(plan["workers"], plan["shard"], plan["merge"]) for plan in plans} == {(None, None, False)}
    kept, chosen = (plan["folder"] for plan in plans)
    assert chosen == tmp_path / "out"
    assert len(kept.parts) == 2
    assert kept.parts[0] in ("ablations", "comparisons", "reproductions")
