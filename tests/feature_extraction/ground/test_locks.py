"""Locks with `flock`, and lock files where it is missing."""

import errno
import fcntl
import os
import socket
import threading
import time

import pytest

import aadml
from aadml.feature_extraction.ground.errors import InputError, InUseError
from aadml.feature_extraction.ground.locks import locked
from aadml.feature_extraction.ledger.ledger import RECORDS, is_in_use, open_ledger


@pytest.fixture
def handle(tmp_path):
    handle = os.open(tmp_path, os.O_RDONLY)
    yield handle
    os.close(handle)


@pytest.fixture
def no_flock(monkeypatch):
    def flock(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)


def test_a_second_lock_is_refused_and_the_first_leaves_nothing(tmp_path, handle):
    other = os.open(tmp_path, os.O_RDONLY)
    try:
        with locked(handle, tmp_path / "lock", "busy"):
            assert [*tmp_path.iterdir()] == []
            with pytest.raises(InputError, match=r"^busy$"), locked(other, tmp_path / "lock", "busy"):
                pass
        os.close(handle)
        with locked(other, tmp_path / "lock", "busy"):
            pass
    finally:
        os.dup2(other, handle)
        os.close(other)


def test_a_lock_of_a_process_that_is_ending_is_waited_for(tmp_path, handle):
    other = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    release = threading.Timer(0.2, os.close, (other,))
    release.start()
    with locked(handle, tmp_path / "lock", "busy"):
        release.join()
        third = os.open(tmp_path, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(third, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(third)


def test_without_flock_a_file_holds_host_and_process(tmp_path, handle, no_flock):
    lock = tmp_path / "lock"
    with locked(handle, lock, "busy"):
        assert lock.read_text() == f"{socket.gethostname()} {os.getpid()}\n"
        with (
            pytest.raises(InputError, match=f"^busy, or remove .*/lock if process {os.getpid()} on .* has ended$"),
            locked(handle, lock, "busy"),
        ):
            pass
        assert lock.exists()
    assert not lock.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            f"{socket.gethostname()} 999999999",
            "lock was left behind by process 999999999 of this machine, which has ended; remove this file$",
        ),
        ("elsewhere 12", "^busy, or remove .*lock if process 12 on elsewhere has ended$"),
        ("", "^busy, or remove .*lock if no other process is running$"),
        ("elsewhere 1x", "if no other process is running"),
        (" 12", "if no other process is running"),
        ("\xff\n", "if no other process is running"),
    ],
)
def test_a_stale_lock_file_is_explained_and_stays(tmp_path, handle, no_flock, content, message):
    (tmp_path / "lock").write_text(content, encoding="latin-1")
    with pytest.raises(InputError, match=message), locked(handle, tmp_path / "lock", "busy"):
        pass
    assert (tmp_path / "lock").read_text(encoding="latin-1") == content


def test_a_stale_lock_file_is_not_waited_for(tmp_path, handle, no_flock):
    (tmp_path / "lock").write_text(f"{socket.gethostname()} 999999999\n")
    with pytest.raises(InUseError, match="has ended"), locked(handle, tmp_path / "lock", "busy", wait=True):
        pass


def test_a_lock_file_of_a_living_process_is_waited_for(tmp_path, handle, no_flock, monkeypatch):
    (tmp_path / "lock").write_text(f"{socket.gethostname()} {os.getpid()}\n")
    pauses = []
    monkeypatch.setattr(time, "sleep", lambda pause: pauses.append(pause) or (tmp_path / "lock").unlink())
    with locked(handle, tmp_path / "lock", "busy", wait=True):
        (tmp_path / "lock").unlink()  # the lock ends without an error
    assert pauses == [1.0]
    (tmp_path / "lock").touch()  # of a process that has not yet written its number
    with locked(handle, tmp_path / "lock", "busy", wait=True):
        pass
    assert len(pauses) == 2


def test_a_lock_file_that_cannot_be_written_is_an_input_error(tmp_path, handle, no_flock):
    place = tmp_path / "none" / "lock"
    with (
        pytest.raises(InputError, match=r"lock cannot be written \(No such file or directory\); choose another path$"),
        locked(handle, place, "busy"),
    ):
        pass


def test_another_error_of_the_system_is_one_line(tmp_path, handle, monkeypatch):
    def flock(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(InputError, match="cannot be locked"), locked(handle, tmp_path / "lock", "busy"):
        pass


def test_a_ledger_without_flock_is_in_use_while_it_is_open(tmp_path, no_flock):
    with open_ledger(tmp_path / "work"):
        assert is_in_use(tmp_path / "work" / RECORDS)
        with pytest.raises(InputError, match="another extraction is writing this file"), open_ledger(tmp_path / "work"):
            pass
    assert not is_in_use(tmp_path / "work" / RECORDS)


def test_a_ledger_without_flock_is_not_in_use_after_its_process_was_killed(tmp_path, no_flock):
    with open_ledger(tmp_path):
        (tmp_path / "lock.host").write_text(f"{socket.gethostname()} 999999999\n")
        assert not is_in_use(tmp_path / RECORDS)
        (tmp_path / "lock.host").write_text("elsewhere 999999999\n")
        assert is_in_use(tmp_path / RECORDS)


def test_index_and_training_work_without_flock_and_leave_no_lock(tmp_path, no_flock):
    aadml.index("synthetic:ave", tmp_path / "i")
    model = aadml.fit("synthetic:ave", method="cca", runs=tmp_path / "runs")
    assert aadml.verify(tmp_path / "i") == aadml.verify(model.folder) == []
    assert not [*tmp_path.rglob("lock*")]


def test_a_training_that_cannot_lock_leaves_no_folder(tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(InputError, match="cannot be locked"):
        aadml.fit("synthetic:ave", method="cca", runs=tmp_path / "runs")
    assert not [*(tmp_path / "runs").iterdir()]
