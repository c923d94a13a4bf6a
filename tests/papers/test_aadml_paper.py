"""The reproduction of the AADML paper: its notes."""

from contextlib import nullcontext
from types import SimpleNamespace

from aadml.papers import aadml_paper


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
