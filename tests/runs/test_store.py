"""The run folder as a store: what was committed is there, whatever happened; other files are untouched."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from faults import in_child, watched

from aadml.feature_extraction.ground.checksummed_json import FileSum, seal
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.training.session import Checkpoint
from aadml.runs import store as stores
from aadml.runs.manifest import FORMAT, LOG, MANIFEST, RESERVED, VERSION, read_log, read_manifest
from aadml.runs.session import RunSession
from aadml.runs.store import begun, opened
from tests.runs.planted import committed, own, plant


def refuse(folder, line=b"", files=None, beside=None):
    """Begin a run, commit, and end as a training does whose config turns out not to fit."""
    with begun(folder) as store:
        store.append(line)
        store.commit(files or {})
        if beside:
            (folder / beside).write_text("mine")
        raise InputError("k is too large")


@pytest.fixture
def folder(tmp_path):
    plant(tmp_path / "run")
    return tmp_path / "run"


def test_a_commit_names_new_files_counts_the_log_and_removes_what_it_drops(folder):
    with begun(folder) as store:
        store.append(b"one\n")
        store.commit({"state-3.safetensors": b"a", "config.yaml": b"c"})
        store.commit({"state-4.safetensors": b"b"}, drop=["state-3.safetensors"], seconds=2.5)
    assert committed(folder) == {"state-4.safetensors": b"b", "config.yaml": b"c", LOG: b"one\n"}
    assert own(folder).keys() == {MANIFEST, LOG, "config.yaml", "state-4.safetensors"}
    assert (read_manifest(folder).generation, read_manifest(folder).seconds) == (3, 2.5)


def test_lines_of_the_log_count_from_the_next_commit_on(folder):
    with begun(folder) as store:
        store.append(b"one\n")
        store.commit({})
        store.append(b"two\n")
    assert read_log(folder) == b"one\n"
    with opened(folder) as store:
        assert (folder / LOG).read_bytes() == b"one\n"
        store.append(b"other\n")
        store.commit({})
    assert read_log(folder) == b"one\nother\n"


def test_the_log_may_be_read_by_whom_a_new_file_may_be_read(folder):
    with begun(folder) as store:
        store.append(b"one\n")
        store.commit({})
    (folder / "other").touch()
    assert (folder / LOG).stat().st_mode == (folder / "other").stat().st_mode


def test_numbers_are_never_used_again(folder):
    given = []
    for _ in range(3):
        with begun(folder) if not (folder / MANIFEST).exists() else opened(folder) as store:
            for _ in range(2):
                given.append(store.next_number())
                state = store.manifest.numbered("state")
                store.commit({f"state-{given[-1]}.safetensors": b"s"}, drop=[state] if state else [])
            (folder / f"best-{store.next_number()}.safetensors").write_bytes(b"left by a kill")
    assert given == sorted(set(given))


@pytest.mark.parametrize("name", [*RESERVED, "state-7.safetensors", "best-1.safetensors"])
def test_a_folder_that_holds_a_file_of_a_runs_names_is_refused_and_left_as_it_is(folder, name):
    (folder / name).write_bytes(b"precious")
    with pytest.raises(InputError, match=name), begun(folder):
        pass
    assert own(folder) == {name: b"precious"}


def test_opening_removes_only_what_a_kill_left_of_the_run(folder):
    with begun(folder) as store:
        store.commit({"state-3.safetensors": b"s"})
    left = ["state-4.safetensors", "best-4.safetensors", ".manifest.abcd_123.partial.json",
            ".state-4.abcd_123.partial.safetensors", ".README.abcd_123.partial.md"]  # fmt: skip
    others = ["state-x.safetensors", "best.safetensors", ".thesis.abcd_123.partial.json", ".manifest.partial.json",
              "state-4.safetensors.bak"]  # fmt: skip
    for name in left + others:
        (folder / name).write_bytes(b"?")
    (folder / "state-9.safetensors").mkdir()
    with opened(folder):
        pass
    assert own(folder).keys() == {MANIFEST, "state-3.safetensors", *others}
    assert (folder / "state-9.safetensors").is_dir()


def test_what_a_kill_left_of_a_first_manifest_is_gone_once_a_run_begins(folder):
    (folder / ".manifest.abcd_123.partial.json").write_bytes(b"{")
    with begun(folder):
        pass
    assert own(folder).keys() == {MANIFEST}


def test_a_run_that_is_refused_before_anything_was_learned_takes_its_own_files_back(folder):
    with pytest.raises(InputError, match="k is too large"):
        refuse(folder, b"one\n", {"config.yaml": b"c"})
    assert own(folder) == {}


@pytest.mark.parametrize("made", [True, False])
def test_a_folder_goes_with_a_refused_run_only_where_it_was_made_for_it_and_is_empty(tmp_path, made):
    place = tmp_path / "run"
    if not made:
        place.mkdir()
    with pytest.raises(InputError, match="too large"):
        refuse(place)
    assert place.exists() != made
    with pytest.raises(InputError, match="too large"):
        refuse(tmp_path / "other", beside="notes.txt")
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["notes.txt"]


def test_a_run_that_learned_something_stays_when_it_is_refused(folder):
    with pytest.raises(InputError, match="too large"):
        refuse(folder, b"", {"state-3.safetensors": b"s"})
    assert committed(folder) == {"state-3.safetensors": b"s", LOG: b""}


def test_a_name_that_gets_other_content_is_out_of_the_run_in_between(folder):
    with begun(folder) as store:
        store.commit({"a.json": b"one", "b.json": b"same"})
    calls = []

    def look(call, moment):
        calls.append(call)
        assert committed(folder).keys() <= {"a.json", "b.json", LOG}  # and each as its sum says

    with opened(folder) as store, watched(folder, look):
        store.commit({"a.json": b"two", "b.json": b"same"})
    assert "replace" in calls or "rename" in calls
    assert committed(folder) == {"a.json": b"two", "b.json": b"same", LOG: b""}


@pytest.mark.parametrize("enter", [opened, begun])
def test_a_second_process_is_refused_in_one_line(folder, enter):
    with begun(folder):
        ending = in_child(lambda: enter(folder).__enter__())
    assert ending.code == 2
    assert "another process" in ending.text
    assert len(ending.text.splitlines()) == 1


def test_what_a_kill_left_of_a_further_evaluation_is_gone_once_it_is_written_again(folder):
    left = folder / "evaluations" / ".inductive-test.abcdefgh.partial.json"
    left.parent.mkdir()
    left.write_bytes(b"{")
    with begun(folder) as store:
        RunSession(store).add("evaluations/inductive-test.json", b"{}")
    assert not left.exists()


@pytest.mark.slow
def test_a_second_process_waits_where_it_is_told_to(folder):
    with begun(folder) as store:
        store.commit({"state-3.safetensors": b"s"})
        # no fork here: a child of this process would hold the lock too
        waiting = subprocess.Popen([sys.executable, "-c", WAITING, str(folder)], stdout=subprocess.PIPE, text=True)
        assert waiting.stdout.readline() == "asking\n"
        store.commit({"state-4.safetensors": b"t"}, drop=["state-3.safetensors"])
    assert waiting.communicate(timeout=600)[0] == "state-4.safetensors\n"


WAITING = """
import sys
from pathlib import Path
from aadml.runs.store import opened
print("asking", flush=True)
with opened(Path(sys.argv[1]), wait=True) as store:
    print(store.manifest.numbered("state"))
"""


@pytest.mark.parametrize("name", ["../precious", "/etc/precious", "a/../../precious"])
def test_a_manifest_that_names_a_file_outside_its_folder_is_refused(tmp_path, name):
    (tmp_path / "precious").write_bytes(b"p")
    with begun(tmp_path / "run"):
        pass
    content = {"format": FORMAT, "version": VERSION, "run": "r", "generation": 1, "seconds": 0.0}
    sums = {"log": vars(FileSum.of(b"")), "files": {name: vars(FileSum.of(b"p"))}}
    (tmp_path / "run" / MANIFEST).write_bytes(seal(content | sums))
    with pytest.raises(InputError, match="not in its folder"), opened(tmp_path / "run"):
        pass
    assert (tmp_path / "precious").read_bytes() == b"p"


def test_a_symbolic_link_among_leftovers_is_removed_and_not_followed(tmp_path, folder):
    (tmp_path / "precious").write_bytes(b"p")
    with begun(folder):
        (folder / "state-9.safetensors").symlink_to(tmp_path / "precious")
    with opened(folder):
        pass
    assert (tmp_path / "precious").read_bytes() == b"p"
    assert not (folder / "state-9.safetensors").exists()


def test_files_are_forced_to_the_disk_at_most_once_a_minute_and_when_asked(folder, monkeypatch):
    now, forced = [0.0], []
    monkeypatch.setattr(stores.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(os, "fsync", lambda handle: forced.append(Path(f"/proc/self/fd/{handle}").readlink().name))
    with begun(folder) as store:
        for second in (1, 59, 61, 100, 119):
            now[0] = second
            store.append(b"line\n")
            store.commit({f"state-{second + 10}.safetensors": b"s"})
            seen, forced[:] = list(forced), []
            assert bool(seen) == (second == 61)
            if seen:  # also what earlier commits did not wait for
                assert {f"state-{n}.safetensors" for n in (11, 69, 71)} | {LOG, folder.name} <= set(seen)
        store.commit({}, flush=True)
    assert {"state-110.safetensors", "state-129.safetensors", LOG, folder.name} <= set(forced)
    assert "state-11.safetensors" not in forced


@pytest.mark.parametrize(("share", "saved"), [(0, [0, 2, 10.5, 12, 30]), (10, [0, 12, 30])])
def test_saves_that_would_take_more_than_their_share_of_the_time_are_left_out(folder, monkeypatch, share, saved):
    now, seen = [0.0], []
    monkeypatch.setattr(stores.time, "monotonic", lambda: now[0])
    with begun(folder) as store:
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
    with begun(folder) as store:
        session, names = RunSession(store), []
        for best in (1, None, 2, None):
            if best:
                session.keep_best(Checkpoint({"w": torch.full((1,), float(best))}))
                assert float(session.best().tensors["w"]) == best
            session.save(Checkpoint({"w": torch.zeros(1)}, {"epochs_done": len(names)}))
            names.append(store.manifest.numbered("best"))
        assert names[0] == names[1] != names[2] == names[3]
        assert [name for name in own(folder) if name.startswith("best")] == names[3:]
    with opened(folder) as store:
        session = RunSession(store)
        assert session.resume().facts == {"epochs_done": 3}
        assert float(session.best().tensors["w"]) == 2


def test_the_seconds_of_a_session_are_those_of_the_run_so_far_and_its_own(folder):
    with begun(folder) as store:
        store.commit({}, seconds=50.0)
        assert 50 <= RunSession(store).seconds < 100


def test_a_commit_that_the_system_refuses_leaves_the_last_one_and_nothing_of_its_own(folder):
    with begun(folder) as store:
        store.commit({"state-3.safetensors": b"a"})
        with pytest.raises(InputError, match=r"cannot be"):
            store.commit({"state-4.safetensors": b"b", "figures/state-1.safetensors/x.json": b"c"})
        assert committed(folder) == {"state-3.safetensors": b"a", LOG: b""}
        assert own(folder).keys() == {MANIFEST, "state-3.safetensors"}
        store.commit({"state-4.safetensors": b"b"}, drop=["state-3.safetensors"])
    assert committed(folder) == {"state-4.safetensors": b"b", LOG: b""}
