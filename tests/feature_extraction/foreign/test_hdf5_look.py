"""Limits of the inspection of an HDF5 file: what is just allowed, and what is one more."""

import resource
import signal
from pathlib import Path

import h5py
import numpy as np
import pytest

from aadml.feature_extraction.foreign import hdf5_look

LIMIT = hdf5_look._limit  # other tests inspect without limits


def chunked(length, size):
    return lambda file: file.create_dataset("a", (length,), "f4", chunks=(size,))


def stored(length):
    def write(file):
        file.create_dataset("a", (length,), "f4", chunks=(100,))[:100] = 1

    return write


def both(length, second):
    def write(file):
        file.create_dataset("g/a", (length,), "f4", chunks=(10,))
        second(file, length)

    return write


SECOND = {
    "another array": lambda file, length: file.create_dataset("h/a", (length,), "f4", chunks=(10,)),
    "a hard link": lambda file, _: file.create_group("h").__setitem__("a", file["g/a"]),
    "a soft link": lambda file, _: file.__setitem__("h/a", h5py.SoftLink("/g/a")),
    "a group's hard link": lambda file, _: file.__setitem__("h", file["g"]),
    "a group's soft link": lambda file, _: file.__setitem__("h", h5py.SoftLink("/g")),
}


def groups(count):
    return lambda file: [file.create_group(f"g/{n}" if n else "g") for n in range(count)]


def attribute(size):
    return lambda file: file.attrs.create("a", np.zeros(size, np.uint8))


def texts(length):
    def write(file):
        file.create_dataset("text", (3,), f"S{length}")[:] = [b"x" * length] * 3

    return write


@pytest.mark.parametrize(
    ("limits", "allowed", "refused", "says"),
    [
        ({"_FREE": 1000}, chunked(250, 10), chunked(251, 10), "/a declares 1,004 bytes, but stores 0"),
        ({"_FREE": 0, "_RATIO": 3}, stored(300), stored(301), "/a declares 1,204 bytes, but stores 400"),
        (
            {"_TOTAL": 1000, "_RATIO": 0},
            chunked(250, 10),
            chunked(251, 10),
            "the arrays up to /a declare 1,004 bytes, but the file has 20",
        ),
        (
            {"_TOTAL": 0, "_RATIO": 60},
            chunked(300, 10),
            chunked(301, 10),
            "the arrays up to /a declare 1,204 bytes, but the file has 20",
        ),
        ({"_CHUNK": 40}, chunked(30, 10), chunked(30, 11), "/a is stored in 3 chunks of 44 bytes, more than allowed"),
        ({"_CHUNKS": 3}, chunked(30, 10), chunked(31, 10), "/a is stored in 4 chunks of 40 bytes, more than allowed"),
        ({"_OBJECTS": 3}, groups(3), groups(4), "the file contains more than 3 objects"),
        (
            {"_FREE": 64},
            attribute(64),
            attribute(65),
            "/: its attribute 'a' declares 65 bytes, more than the allowed 64",
        ),
        (
            {"_RATIO": 10**6, "_FREE": 40},
            texts(30),
            texts(31),
            "/text contains more text than a file of its size can store",
        ),
    ],
)
def test_what_is_just_allowed_passes_and_one_more_is_refused(tmp_path, monkeypatch, limits, allowed, refused, says):
    for name, value in limits.items():
        monkeypatch.setattr(hdf5_look, name, value)
    monkeypatch.setattr(hdf5_look.os.path, "getsize", lambda _: 20)
    monkeypatch.setattr(hdf5_look, "_limit", lambda _: None)
    for name, write in (("allowed", allowed), ("refused", refused)):
        with h5py.File(tmp_path / name, "w") as file:
            write(file)
    assert hdf5_look.main(str(tmp_path / "allowed"), 1.0) == ""
    assert hdf5_look.main(str(tmp_path / "refused"), 1.0) == says


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (MemoryError(), "the file needs more memory than is plausible for a file of its size"),
        (RuntimeError("a fault"), "the file cannot be read as HDF5 (a fault)"),
    ],
)
def test_an_error_of_the_library_is_a_line(monkeypatch, error, says):
    def fails(_):
        raise error

    monkeypatch.setattr(hdf5_look, "_limit", lambda _: None)
    monkeypatch.setattr(hdf5_look, "look", fails)
    assert hdf5_look.main("a.h5", 1.0) == says


@pytest.mark.parametrize(("hard", "most"), [(resource.RLIM_INFINITY, None), (5, 5), (2**60, None)])
def test_the_process_has_limits_on_time_memory_and_core_files(monkeypatch, hard, most):
    calls = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (0, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda *call: calls.append(call))
    monkeypatch.setattr(signal, "signal", lambda *call: calls.append(call))
    monkeypatch.setattr(signal, "setitimer", lambda *call: calls.append(call))
    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    LIMIT(3.5)
    assert calls[:3] == [
        (resource.RLIMIT_CORE, (0, 0)), (signal.SIGPROF, signal.SIG_DFL), (signal.ITIMER_PROF, 3.5)
    ]  # fmt: skip
    ((kind, (limit, upper)),) = calls[3:]
    assert (kind, upper) == (resource.RLIMIT_AS, hard)
    assert limit == (most or pytest.approx(used + 2**29, abs=2**24))


@pytest.mark.parametrize("second", SECOND)
def test_an_array_counts_once_under_each_of_its_names(tmp_path, monkeypatch, second):
    monkeypatch.setattr(hdf5_look, "_limit", lambda _: None)
    monkeypatch.setattr(hdf5_look, "_TOTAL", 1000)
    monkeypatch.setattr(hdf5_look, "_RATIO", 0)
    answers = []
    for length in (125, 126):
        with h5py.File(tmp_path / "f", "w") as file:
            both(length, SECOND[second])(file)
        answers.append(hdf5_look.main(str(tmp_path / "f"), 1.0))
    assert answers[0] == ""
    assert " declare 1,008 bytes, but the file has " in answers[1]


def test_a_group_that_contains_itself_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(hdf5_look, "_limit", lambda _: None)
    with h5py.File(tmp_path / "f", "w") as file:
        file["g/h"] = file["/"]
    assert hdf5_look.main(str(tmp_path / "f"), 1.0) == "the file contains more than 100,000 objects"


def test_a_soft_link_to_a_group_above_itself_is_allowed(tmp_path, monkeypatch):
    monkeypatch.setattr(hdf5_look, "_limit", lambda _: None)
    answers = []
    for count in (1000, 1001):
        monkeypatch.setattr(hdf5_look, "_TOTAL", 4 * 4 * 1000)  # an array has a path with 0, 1, 2 and 3 of the links
        monkeypatch.setattr(hdf5_look, "_RATIO", 0)
        with h5py.File(tmp_path / "f", "w") as file:
            file["about/top"] = h5py.SoftLink("/")
            file.create_dataset("a", (count,), "f4", chunks=(10,))
        answers.append(hdf5_look.main(str(tmp_path / "f"), 1.0))
    assert answers[0] == ""
    assert " declare 16,016 bytes, but the file has " in answers[1]


def test_an_array_may_declare_64_mebibytes_and_a_file_a_gibibyte_or_200_times_their_size(tmp_path, monkeypatch):
    monkeypatch.setattr(hdf5_look, "_limit", lambda _: None)
    problems = []
    for count, length in ((1, 1 << 26), (1, (1 << 26) + 1), (16, 1 << 26), (17, 1 << 26)):
        with h5py.File(tmp_path / "f", "w") as file:
            for number in range(count):
                file.create_dataset(f"{number:02}", (length,), "u1", chunks=(1 << 26,))
        problems.append(hdf5_look.main(str(tmp_path / "f"), 1.0).partition(" bytes, ")[0])
    assert problems == ["", "/00 declares 67,108,865", "", "the arrays up to /16 declare 1,140,850,688"]
    assert hdf5_look._RATIO == 200
