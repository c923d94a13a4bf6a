"""The reproduction of the AADML paper: its notes."""

from contextlib import nullcontext
from types import SimpleNamespace

from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.papers import aadml_paper


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
        result=lambda *_: None,
    )  # fmt: skip
    aadml_paper.reproduce_paper({"ave": "f.h5"}, None, plan)
    assert told == written[0] == ["no VEGAS", "ave is small"]
