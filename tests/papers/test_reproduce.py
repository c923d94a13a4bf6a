"""What is trained for the AADML paper: every row once, whoever asks for it."""

from dataclasses import replace

import numpy as np
import pytest

from aadml.configuration.config import resolve
from aadml.configuration.files import read_yaml
from aadml.data.ave import AVE15, with_drawn_clock
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.session import Session
from aadml.papers.clock import drawn_sets
from aadml.papers.cost import Forecast, Rate, forecast, in_words, measured
from aadml.papers.parts import PARTS, chosen_parts
from aadml.papers.rows import BEST_K, LEAKS, paper_runs
from aadml.papers.schedule import STEPS, shortened
from aadml.papers.sizes import other_size
from aadml.runs.data import load_splits
from aadml.studies.comparison_rows import RowSettings, published_methods
from aadml.studies.job import Job
from aadml.studies.published_figures import published
from aadml.studies.shards import Division, check_complete


@pytest.fixture(scope="module")
def runs():
    def laid_out(name):
        shared = RowSettings("x.h5", config=f"aadml_{name}", with_controls=False)
        return paper_runs(name, shared, shorten=lambda config: config, draws={})

    return {name: laid_out(name) for name in ("vegas", "ave")}


def test_every_row_of_the_papers_tables_is_there(runs):
    for name, one in runs.items():
        assert [row.item for row in one.losses] == list(published("losses"))
        assert [row.item for row in one.methods] == published_methods()
        assert len(one.losses) == 23
        batch = {"vegas": 400, "ave": 200}[name]
        assert {row.cell.config.training.batch for row in one.losses} == {batch}
        assert {row.cell.config.training.epochs for row in one.losses} == {400}


def test_tables_and_figures_share_their_runs(runs, tmp_path):
    one = runs["ave"]
    by_loss = {row.item: row.cell for row in one.losses}
    assert [row.cell for row in one.methods if row.item == "aadml"] == [by_loss["aa-triplet"]]
    assert {loss: cells[BEST_K[loss]] for loss, cells in one.neighbors.items()} == one.curves
    assert {len(cells) for cells in one.neighbors.values()} == {7}
    everything = one.jobs(list(PARTS), range(5), tmp_path)
    assert len({job.folder for job in everything}) == len(everything) == 5 * (20 - 1 + 23 + 3 * 6)
    assert len({job.config.yaml() for job in everything}) == len(everything)


def test_what_a_run_logs_does_not_depend_on_the_parts_that_are_asked_for(runs, tmp_path):
    one = runs["ave"]
    whole = {job.folder: job for job in one.jobs(list(PARTS), range(1), tmp_path)}
    for part in PARTS:
        for job in one.jobs([part], range(1), tmp_path):
            assert whole[job.folder] == job
    assert {job.protocols for job in one.jobs(["table-3"], range(1), tmp_path)} == {LEAKS}
    assert {job.diagnosis for job in one.jobs(["figure-5"], range(1), tmp_path)} == {1}
    assert one.jobs(["table-2"], range(1), tmp_path) == []


@pytest.mark.parametrize(
    ("only", "there", "parts", "notes"),
    [
        (None, ["vegas", "ave"], list(PARTS), 0),
        (None, ["ave"], [name for name in PARTS if name != "table-2"], 5),
        ("figure-4, table-1", ["vegas", "ave"], ["table-1", "figure-4"], 0),
        ("table-2", ["ave"], None, 0),
        ("table-4", ["ave"], None, 0),
    ],
)
def test_parts_are_chosen_by_name_and_by_what_there_is(only, there, parts, notes):
    if parts is None:
        with pytest.raises(InputError, match="table-"):
            chosen_parts(only, there)
        return
    found, said = chosen_parts(only, there)
    assert found == parts
    assert len(said) == notes


def test_shards_divide_the_runs():
    jobs = list(range(11))
    parts = [Division((i, 3)).own(jobs) for i in range(3)]
    assert sorted(job for part in parts for job in part) == jobs


def test_a_merge_names_what_is_missing(tmp_path):
    config = resolve(read_yaml("aadml") | {"data": "x.h5"})
    with pytest.raises(InputError, match=r"7 of 7 runs.*ave/a=0.*\.\.\."):
        check_complete([Job(tmp_path / "ave" / "runs" / f"a={n}", config) for n in range(7)])
    check_complete([])


def test_a_shortened_schedule_has_so_many_steps_and_logs_every_epoch():
    config = resolve(read_yaml("aadml_ave"))
    short = shortened(config, 1577)
    assert short.training.epochs * 1577 / 200 == pytest.approx(STEPS, rel=0.1)
    assert short.training.train_map == 1
    assert shortened(config, 100_000).training.epochs == 1
    brief = replace(config, training=replace(config.training, epochs=2))
    assert shortened(brief, 100) is brief


def with_clock(count):
    counts = np.array([count, 20]), np.array([12, 5]), np.array([12, 5])
    train, valid, test = (part.tolist() for part in counts)
    content = synthetic(classes=2, train=train, valid=valid, test=test, dimensions=(4, 5))
    return replace(content, class_names=("Clock", "Cat"))


def test_a_draw_of_clock_keeps_100_clips_and_all_others():
    content = with_clock(120)
    drawn = with_drawn_clock(content, 0)
    kept = [(label, split) for label, split in zip(drawn.labels.tolist(), drawn.splits, strict=True)]
    assert [kept.count((0, split)) for split in ("train", "valid", "test")] == list(AVE15["Clock"])
    assert sum(label == 1 for label, _ in kept) == 30
    assert with_drawn_clock(content, 0).ids == drawn.ids
    assert set(with_drawn_clock(content, 1).ids) != set(drawn.ids)
    for other, message in ((with_clock(70), "94 clips"), (replace(content, class_names=("A", "B")), "no class")):
        with pytest.raises(InputError, match=message):
            with_drawn_clock(other, 0)


def test_draws_are_made_where_there_are_clips_to_spare_and_else_it_is_said_why_not(tmp_path):
    said = []
    write_features(tmp_path / "all.h5", with_clock(120))
    place, others = drawn_sets(str(tmp_path / "all.h5"), tmp_path, said.append, with_others=True)
    assert [others[seed] for seed in (1, 2, 3, 4)] == [str(tmp_path / f"clock-draw={n}.h5") for n in (1, 2, 3, 4)]
    assert place == str(tmp_path / "clock-draw=0.h5")
    assert "drawn by seed (130 of 174 clips are kept)" in said[0]
    write_features(tmp_path / "few.h5", with_clock(70))
    assert drawn_sets(str(tmp_path / "few.h5"), tmp_path, said.append, with_others=True) == (
        str(tmp_path / "few.h5"),
        {},
    )
    assert "not measured: Clock has 94 clips" in said[-1]


def test_data_of_another_size_than_the_papers_are_told_from_them():
    def drawn(classes, train, test):
        return synthetic(classes=classes, train=train, valid=0, test=test, dimensions=(2, 2))

    vegas = drawn(10, 22_482, 5_621)
    assert other_size("vegas", vegas) == other_size("ave", drawn(15, 1_766, 189)) == []
    assert other_size("ave", vegas) == [
        "28,103 clips of 10 classes (is it VEGAS?); the paper's AVE has 1,955 of 15, so its values are of other data"
    ]
    (said,) = other_size("ave", drawn(15, 90, 30))
    assert said.startswith("120 clips of 15 classes; the paper's AVE has")


def test_a_forecast_adds_up_and_long_runs_come_first(base, tmp_path):
    config = resolve(base)
    jobs = [Job(tmp_path / name, config) for name in "abc"]
    told = Forecast({str(job.folder): cost for job, cost in zip(jobs, (10, 30, 20), strict=True)}, 4, 2)
    assert told.wall == 30
    assert [job.folder.name for job in told.longest_first(jobs)] == ["b", "c", "a"]
    assert "7 runs: 4 are finished, 3 to do, about 30 s on 2 workers" in told.sentence()
    rate = Rate(clips=60, step=2.0, epoch=1.0, look=0.5, fixed=3.0)
    epochs, steps = config.training.epochs, 3
    assert rate.seconds(Job(tmp_path, config, diagnosis=1)) == 3 + epochs * (steps * 2 + 1) + (epochs + 1) * 0.5
    assert [in_words(s) for s in (0.1, 80, 600, 7200)] == ["1 s", "80 s", "10 min", "2.0 h"]
    assert "in this process" in replace(told, workers=0).sentence()


def test_every_kind_of_run_is_measured_once_and_finished_ones_cost_nothing(base, tmp_path, monkeypatch):
    seen = []

    def counted(config, splits):
        seen.append(config.label())
        return measured(config, splits)

    monkeypatch.setattr("aadml.papers.cost.measured", counted)
    kinds = [base | {"proxy": {"name": "anchor-aware", "k": k}} for k in (1, 2)] + [base | {"proxy": "identity"}]
    jobs = [Job(tmp_path / f"{n}-{s}", resolve(values | {"seed": s})) for n, values in enumerate(kinds) for s in (0, 1)]
    told = forecast(jobs, 1)
    assert len(seen) == 2
    assert len(told.seconds) == 6
    assert all(one > 0 for one in told.seconds.values())


def test_what_cannot_begin_is_foretold_as_nothing_and_said(base, features, tmp_path):
    said = []
    job = Job(tmp_path / "a", resolve({"method": {"name": "cca", "dimension": 500}, "data": str(features)}))
    assert forecast([job], 1, said.append).seconds.keys() == {str(job.folder)}
    assert "counts as nothing" in said[1]


@pytest.mark.slow
def test_kinds_are_measured_by_as_many_processes_as_will_train(base, features, tmp_path):
    said = []
    cca = {"method": {"name": "cca", "dimension": 500}, "data": str(features)}
    kinds = {"plain": base | {"proxy": "identity"}, "anchored": base, "cca": cca}
    jobs = [Job(tmp_path / name, resolve(values)) for name, values in kinds.items()]
    told = forecast(jobs, 2, said.append)
    assert told.workers == 2
    seconds = [told.seconds[str(job.folder)] for job in jobs]
    nothing = Rate().seconds(jobs[2])
    assert seconds[2] == nothing
    assert min(seconds[:2]) > nothing
    assert said[0] == "forecast: measuring 3 kinds of runs"
    assert len(said) == 2
    assert "cca" in said[1]
    assert "counts as nothing" in said[1]


@pytest.mark.slow
def test_one_kind_on_two_workers_is_foretold_once(features, tmp_path):
    said = []
    values = {"method": {"name": "cca", "dimension": 500}, "data": str(features)}
    forecast([Job(tmp_path / str(seed), resolve(values | {"seed": seed})) for seed in (0, 1)], 2, said.append)
    assert [line.split(":")[1].split()[0] for line in said] == ["measuring", "cca"]


@pytest.mark.slow
def test_data_that_cannot_be_read_end_a_forecast_in_processes_too(base, tmp_path):
    jobs = [Job(tmp_path / str(seed), resolve(base | {"data": "none.h5", "seed": seed})) for seed in (0, 1)]
    with pytest.raises(InputError, match=r"none\.h5"):
        forecast(jobs, 2)


def test_measuring_leaves_the_number_of_threads_and_fits_closed_forms_whole(base, features):
    config = resolve({"method": {"name": "cca", "dimension": 2}, "data": str(features)})
    rate = measured(config, load_splits(config))
    assert rate.step == 0
    assert rate.fixed > 0
    assert Session().history == []
