"""The run folder as a store: what was committed is there, whatever happened; other files are untouched."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest
from faults import in_child, watched

from aadml.feature_extraction.ground.errors import InputError, InUseError
from aadml.runs import store as stores
from aadml.runs.manifest import LOG, MANIFEST, RESERVED, read_manifest
from aadml.runs.session import RunSession
from aadml.runs.store import new_run, open_run
from tests.runs.planted import committed, own


def refuse(folder, line=b"", files=None, beside=None):
    """Begin a run, commit, and end as a training does whose config turns out not to fit."""
    with new_run(folder) as store:
        store.append(line)
        store.commit(files or {})
        if beside:
            (folder / beside).write_text("mine")
        raise InputError("k is too large")


def test_a_commit_names_new_files_counts_the_log_and_removes_what_it_drops(folder):
    with new_run(folder) as store:
        store.append(b"one\n")
        store.commit({"state-3.safetensors": b"a", "config.yaml": b"c"})
        store.commit({"state-4.safetensors": b"b"}, drop=["state-3.safetensors"], seconds=2.5)
    assert committed(folder) == {"state-4.safetensors": b"b", "config.yaml": b"c", LOG: b"one\n"}
    assert own(folder).keys() == {MANIFEST, LOG, "config.yaml", "state-4.safetensors"}
    assert (read_manifest(folder).generation, read_manifest(folder).seconds) == (3, 2.5)


def test_lines_of_the_log_count_from_the_next_commit_on(folder):
    with new_run(folder) as store:
        store.append(b"one\n")
        store.commit({})
        store.append(b"two\n")
    assert read_manifest(folder).read_log() == b"one\n"
    with open_run(folder) as store:
        assert (folder / LOG).read_bytes() == b"one\n"
        store.append(b"other\n")
        store.commit({})
    assert read_manifest(folder).read_log() == b"one\nother\n"
    (folder / LOG).write_bytes(b"two\nother\n")
    with pytest.raises(InputError, match=LOG):
        read_manifest(folder).read_log()


def test_the_log_may_be_read_by_whom_a_new_file_may_be_read(folder):
    with new_run(folder) as store:
        store.append(b"one\n")
        store.commit({})
    (folder / "other").touch()
    assert (folder / LOG).stat().st_mode == (folder / "other").stat().st_mode


def test_a_store_leaves_no_file_open(folder):
    before = {*Path("/proc/self/fd").iterdir()}
    with new_run(folder) as store:
        store.append(b"one\n")
        store.commit({"state-3.safetensors": b"a"}, flush=True)
    with open_run(folder):
        pass
    assert {*Path("/proc/self/fd").iterdir()} <= before


def test_numbers_are_never_used_again(folder):
    given = []
    for _ in range(3):
        with new_run(folder) if not (folder / MANIFEST).exists() else open_run(folder) as store:
            for _ in range(2):
                given.append(store.next_number())
                state = store.manifest.numbered("state")
                store.commit({f"state-{given[-1]}.safetensors": b"s"}, drop=[state] if state else [])
            (folder / f"best-{store.next_number()}.safetensors").write_bytes(b"left by a kill")
    assert given == sorted(set(given))


@pytest.mark.parametrize("name", [*RESERVED, "state-7.safetensors", "best-1.safetensors"])
def test_a_folder_that_holds_a_file_of_a_runs_names_is_refused_and_left_as_it_is(folder, name):
    (folder / name).write_bytes(b"precious")
    with pytest.raises(InputError, match=name), new_run(folder):
        pass
    assert own(folder) == {name: b"precious"}


def test_opening_removes_only_what_a_kill_left_of_the_run(folder):
    with new_run(folder) as store:
        store.commit({"state-3.safetensors": b"s"})
    left = ["state-4.safetensors", "best-4.safetensors", ".manifest.abcd_123.partial.json",
            ".state-4.abcd_123.partial.safetensors", ".README.abcd_123.partial.md"]  # fmt: skip
    others = ["state-x.safetensors", "best.safetensors", ".thesis.abcd_123.partial.json", ".manifest.partial.json",
              "state-4.safetensors.bak"]  # fmt: skip
    for name in left + others:
        (folder / name).write_bytes(b"?")
    (folder / "state-9.safetensors").mkdir()
    with open_run(folder):
        pass
    assert own(folder).keys() == {MANIFEST, "state-3.safetensors", *others}
    assert (folder / "state-9.safetensors").is_dir()


def test_what_a_kill_left_of_a_first_manifest_is_gone_once_a_run_begins(folder):
    (folder / ".manifest.abcd_123.partial.json").write_bytes(b"{")
    with new_run(folder):
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
    with new_run(folder) as store:
        store.commit({"a.json": b"one", "b.json": b"same"})
    calls = []

    def look(call, moment):
        calls.append(call)
        assert committed(folder).keys() <= {"a.json", "b.json", LOG}  # and each as its sum says

    with open_run(folder) as store, watched(folder, look):
        store.commit({"a.json": b"two", "b.json": b"same"})
    assert "replace" in calls or "rename" in calls
    assert committed(folder) == {"a.json": b"two", "b.json": b"same", LOG: b""}


@pytest.mark.parametrize("enter", [open_run, new_run])
def test_a_second_process_is_refused_in_one_line(folder, enter):
    with new_run(folder):
        ending = in_child(lambda: enter(folder).__enter__())
    assert ending.code == 2
    assert "another process" in ending.text
    assert len(ending.text.splitlines()) == 1


def test_what_a_kill_left_of_a_further_evaluation_is_gone_once_it_is_written_again(folder):
    left = folder / "evaluations" / ".inductive-test.abcdefgh.partial.json"
    left.parent.mkdir()
    left.write_bytes(b"{")
    with new_run(folder) as store:
        RunSession(store).add("evaluations/inductive-test.json", b"{}")
    assert not left.exists()


@pytest.mark.slow
def test_a_second_process_waits_where_it_is_told_to(folder):
    with new_run(folder) as store:
        store.commit({"state-3.safetensors": b"s"})
        # no fork here: a child of this process would hold the lock too
        waiting = subprocess.Popen([sys.executable, "-c", WAITING, str(folder)], stdout=subprocess.PIPE, text=True)
        assert waiting.stdout.readline() == "asking\n"
        store.commit({"state-4.safetensors": b"t"}, drop=["state-3.safetensors"])
    assert waiting.communicate(timeout=600)[0] == "state-4.safetensors\n"


WAITING = """
import sys
from pathlib import Path
from aadml.runs.store import open_run
print("asking", flush=True)
with open_run(Path(sys.argv[1]), wait=True) as store:
    print(store.manifest.numbered("state"))
"""


def test_files_are_forced_to_the_disk_at_most_once_a_minute_and_when_asked(folder, monkeypatch):
    now, forced = [0.0], []
    monkeypatch.setattr(stores.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(os, "fsync", lambda handle: forced.append(Path(f"/proc/self/fd/{handle}").readlink().name))
    with new_run(folder) as store:
        for second in (1, 59, 60, 100, 119):
            now[0] = second
            store.append(b"line\n")
            store.commit({f"state-{second + 10}.safetensors": b"s"})
            seen, forced[:] = list(forced), []
            assert bool(seen) == (second == 60)
            if seen:  # also what earlier commits did not wait for
                assert {f"state-{n}.safetensors" for n in (11, 69, 70)} | {LOG, folder.name} <= set(seen)
        store.commit({}, flush=True)
    assert {"state-110.safetensors", "state-129.safetensors", LOG, folder.name} <= set(forced)
    assert "state-11.safetensors" not in forced


def test_a_commit_that_the_system_refuses_leaves_the_last_one_and_nothing_of_its_own(folder):
    with new_run(folder) as store:
        store.commit({"state-3.safetensors": b"a"})
        with pytest.raises(InputError, match=r"cannot be"):
            store.commit({"state-4.safetensors": b"b", "figures/state-1.safetensors/x.json": b"c"})
        assert committed(folder) == {"state-3.safetensors": b"a", LOG: b""}
        assert own(folder).keys() == {MANIFEST, "state-3.safetensors"}
        store.commit({"state-4.safetensors": b"b"}, drop=["state-3.safetensors"])
    assert committed(folder) == {"state-4.safetensors": b"b", LOG: b""}


def test_a_new_folder_stays_if_another_process_has_locked_it(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    other = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(InUseError), new_run(folder, made=True):
            pass
        assert folder.is_dir()
    finally:
        os.close(other)


@pytest.mark.parametrize(
    "name", [LOG, MANIFEST, "audit.json", "evaluations", "evaluations/inductive-test.json", "state-9.safetensors"]
)
@pytest.mark.parametrize("there", [True, False])
def test_no_file_outside_a_run_is_written_through_a_link(folder, tmp_path, name, there):
    with new_run(folder) as store:
        store.commit({})
    victim, link = tmp_path / "outside", folder / name
    if name == MANIFEST:
        link.rename(victim)
    elif there:
        victim.write_text("mine")
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(victim)
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match=f"{name} is a symbolic link, and is not written"), open_run(folder):
        raise AssertionError("opened")
    if name != MANIFEST:
        (folder / MANIFEST).unlink()
        with pytest.raises(InputError, match=r" is a symbolic link"), new_run(folder):
            raise AssertionError("opened")
    assert {path: path.read_bytes() for path in files if path.exists()} == {
        path: data for path, data in files.items() if path.name != MANIFEST or name == MANIFEST
    }
    assert link.is_symlink()


def test_the_folder_of_a_run_may_be_a_link(folder, tmp_path):
    with new_run(folder) as store:
        store.append(b"one\n")
        store.commit({})
    (tmp_path / "link").symlink_to(folder)
    with open_run(tmp_path / "link") as store:
        store.commit({"audit.json": b"{}"})
    assert read_manifest(folder).read("audit.json") == b"{}"


def test_the_log_is_not_written_through_a_link_that_replaces_it(folder, tmp_path):
    victim = tmp_path / "mine"
    victim.touch()
    with new_run(folder) as store:
        (folder / LOG).symlink_to(victim)
        with pytest.raises(InputError, match=f"{LOG} cannot be written"):
            store.append(b"one\n")
    assert not victim.read_bytes()


def test_the_log_is_not_written_through_a_hard_link(folder, tmp_path):
    with new_run(folder) as store:
        store.append(b"one\n")
        store.commit({})
    victim, log = tmp_path / "mine", folder / LOG
    victim.write_bytes(b"one\nof many\n")
    log.unlink()
    log.hardlink_to(victim)
    with open_run(folder) as store:
        store.append(b"two\n")
        store.commit({})
    assert victim.read_bytes() == b"one\nof many\n"
    assert log.read_bytes() == b"one\ntwo\n"
