"""The reproduction of the AADML paper: its notes."""

from contextlib import nullcontext
from types import SimpleNamespace

from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.papers import aadml_paper
from aadml.studies.execution import SweepResult


def test_the_runs_on_ave_are_on_a_draw_and_those_on_vegas_on_the_data(tmp_path, monkeypatch):
    for name in ("given", "drawn"):
        write_features(tmp_path / f"{name}.h5", synthetic(classes=2, train=20, valid=5, test=5, dimensions=(3, 3)))
    given, drawn = (str(tmp_path / f"{name}.h5") for name in ("given", "drawn"))
    monkeypatch.setattr(aadml_paper, "drawn_sets", lambda *_, **__: (drawn, {1: drawn}))
    plan = SimpleNamespace(
        folder=tmp_path, settings=("training.patience=3", "loss.margin=0.5"), max_epochs=7, quick=True
    )
    notes = []
    for name, place, draws in (("ave", drawn, {1}), ("vegas", given, set())):
        runs = aadml_paper._runs(name, given, ["table-1"], plan, notes.append)
        assert {row.cell.config.data for row in runs.losses} == {place}
        assert set(runs.draws) == draws
        assert {row.cell.config.training.patience for row in runs.losses} == {3}
        epochs = 2 if name == "ave" else 4
        assert {row.cell.config.training.epochs for row in runs.losses} == {epochs}
        assert any(note.startswith("loss.margin was not set for rows that cannot use") for note in notes)
        assert any(note.startswith(f"{place.split('/')[-1]}: the data have 30 clips") for note in notes)


def test_every_note_is_told_once_and_stands_on_the_page(tmp_path, monkeypatch):
    told, written = [], []

    def runs(name, place, parts, plan, note):
        note(f"{name} is small")
        note(f"{name} is small")
        return SimpleNamespace(jobs=lambda *_: [])

    monkeypatch.setattr(aadml_paper, "chosen_parts", lambda *_: ([], ["no VEGAS"]))
    monkeypatch.setattr(aadml_paper, "_runs", runs)
    monkeypatch.setattr(aadml_paper, "sole_owner", lambda *_: nullcontext())
    monkeypatch.setattr(aadml_paper, "write_reproduction", lambda *given: written.append(given[3]) or ([], None))
    plan = SimpleNamespace(
        note=told.append, locked=tmp_path, folder=tmp_path, seeds=(0,), shard=None, reproduce=lambda jobs: [],
        result=lambda *_: None, settings=(),
    )  # fmt: skip
    aadml_paper.reproduce_paper({"ave": "f.h5"}, None, plan)
    assert told == written[0] == ["no VEGAS", "ave is small"]


def test_results_of_each_data_set_with_runs_are_collected_from_its_folder_but_not_by_a_shard(tmp_path, monkeypatch):
    first, second, drawn = (
        SimpleNamespace(name=name, config=SimpleNamespace(data=place))
        for name, place in (("first", "a.h5"), ("second", "a.h5"), ("drawn", "b.h5"))
    )
    cells = {"table-1": [first, second], "table-3": [second, drawn]}
    found = {name: SimpleNamespace(runs=runs) for name, runs in (("first", {}), ("second", {0: 1}), ("drawn", {0: 2}))}
    jobs = {"ave": ["a job"], "vegas": []}
    locked, calls, written = [], [], []

    def runs(name, place, parts, plan, note):
        assert (place, parts) == (f"{name}.h5", ["table-1", "table-3"])
        return SimpleNamespace(data_set=name, cells=cells.get, jobs=lambda *given: calls.append(given) or jobs[name])

    def recorded(name):
        return lambda *given: calls.append((name, *given)) or (found if name == "collected" else name)

    monkeypatch.setattr(aadml_paper, "_runs", runs)
    monkeypatch.setattr(aadml_paper, "sole_owner", lambda *given: locked.append(given) or nullcontext())
    for name in ("collected", "leaks_of", "describe"):
        monkeypatch.setattr(aadml_paper, name, recorded(name))
    monkeypatch.setattr(aadml_paper, "write_reproduction", lambda *given: written.append(given) or (["table"], "page"))
    plan = SimpleNamespace(
        note=len, locked=tmp_path / "locked", folder=tmp_path, seeds=(0, 1), shard=None,
        reproduce=lambda jobs: [f"outcome of {job}" for job in jobs], settings=["relevance=" + __file__],
    )  # fmt: skip
    data = {"ave": "ave.h5", "vegas": "vegas.h5"}
    result = aadml_paper.reproduce_paper(data, "table-1,table-3", plan)
    outcomes, folder, parts = ["outcome of a job"], tmp_path / "ave", ["table-1", "table-3"]
    assert result == SweepResult(tuple(outcomes), tmp_path, ["table"], "page")
    assert locked == [(tmp_path / "locked", {tmp_path / name: place for name, place in data.items()}, [__file__])]
    assert calls == [
        (parts, (0, 1), folder), (parts, (0, 1), tmp_path / "vegas"),
        ("collected", [first, second, drawn], (0, 1), folder, outcomes),
        ("describe", {"second": found["second"]}, (0, 1), folder), ("describe", found, (0, 1), folder),
        ("leaks_of", found, ["a job"], folder),
    ]  # fmt: skip
    ((of_parts, groups, of_plan, notes),) = written
    assert (of_parts, of_plan, notes, list(groups)) == (parts, plan, [], ["ave"])
    group = groups["ave"]
    assert (group.runs.data_set, group.scores, group.leaks, group.about) == ("ave", found, "leaks_of", "describe")
    found["second"].runs.clear()
    calls.clear()
    aadml_paper.reproduce_paper(data, "table-1,table-3", plan)
    assert [content for name, content, *_ in calls if name == "describe"] == [found, found]
    plan.shard = (0, 2)
    assert aadml_paper.reproduce_paper(data, "table-1,table-3", plan) == SweepResult(tuple(outcomes), tmp_path)
