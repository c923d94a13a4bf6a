"""Sessions of runs: when they save, what they save, and how long they took."""

import pytest
import torch

from aadml.feature_extraction.ground.errors import DamagedFileError
from aadml.methods.training.session import Checkpoint
from aadml.runs import store as stores
from aadml.runs.session import RunSession, read_records
from aadml.runs.store import new_run, open_run
from tests.runs.planted import own


@pytest.mark.parametrize(("share", "saved"), [(0, [0, 2, 10.5, 12, 30]), (10, [0, 12, 30])])
def test_saves_that_would_take_more_than_their_share_of_the_time_are_left_out(folder, monkeypatch, share, saved):
    now, seen = [0.0], []
    monkeypatch.setattr(stores.time, "monotonic", lambda: now[0])
    with new_run(folder) as store:
        commit, session = store.commit, RunSession(store, saving_share=share)

        def slowly(*given, **options):
            now[0] += 1
            commit(*given, **options)

        monkeypatch.setattr(store, "commit", slowly)
        for second in (0, 2, 10.5, 12, 30):
            now[0] = second
            session.save(Checkpoint({"w": torch.zeros(1)}))
            seen += [second] * (now[0] > second)
    assert seen == saved


def test_best_weights_are_written_once_and_with_the_next_save(folder):
    with new_run(folder) as store:
        session, names = RunSession(store), []
        for best in (1, None, 2, None):
            if best:
                session.keep_best(Checkpoint({"w": torch.full((1,), float(best))}))
                assert float(session.best().tensors["w"]) == best
            session.save(Checkpoint({"w": torch.zeros(1)}, {"epochs_done": len(names)}))
            names.append(store.manifest.numbered("best"))
        assert names[0] == names[1] != names[2] == names[3]
        assert [name for name in own(folder) if name.startswith("best")] == names[3:]
    with open_run(folder) as store:
        session = RunSession(store)
        assert session.resume().facts == {"epochs_done": 3}
        assert float(session.best().tensors["w"]) == 2


def test_the_seconds_of_a_session_are_those_of_the_run_so_far_and_its_own(folder):
    with new_run(folder) as store:
        store.commit({}, seconds=50.0)
        assert 50 <= RunSession(store).seconds < 100


@pytest.mark.parametrize("line", [
    b"not json", b'["a"]', b'{"loss": 1.0}', b'{"epoch": "x"}', b'{"epoch": 1, "loss": null}',
    b'{"epoch": 1, "steps": 1%s}' % (b"0" * 400), b"[" * 100_000,
])  # fmt: skip
def test_a_log_that_does_not_describe_epochs_is_damaged(folder, line):
    with new_run(folder) as store:
        store.append(line + b"\n")
        store.commit({})
    with pytest.raises(DamagedFileError, match=r"metrics\.jsonl is damaged"):
        read_records(folder)
