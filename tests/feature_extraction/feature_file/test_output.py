import errno
import resource
from contextlib import contextmanager

import h5py
import numpy as np
import pytest

from aadml.feature_extraction.feature_file.output import Output, hdf5_output


@contextmanager
def file_size_limit(size):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_writes_after_a_failed_one_are_dropped_and_read_as_zeros(tmp_path):
    path = tmp_path / "f"
    path.touch()
    with Output(path, "r+b") as output, file_size_limit(10):
        assert output.write(b"x" * 8) == 8
        assert output.write(b"y" * 8) == 8
        assert output.failure is not None
        assert output.write(b"z") == 1
        assert [output.truncate(4), output.truncate()] == [4, 0]
        buffer = bytearray(12)
        output.seek(0)
        assert output.readinto(buffer) == 12
    assert bytes(buffer) == b"xxxxxxxxyy\0\0"
    assert path.read_bytes() == b"xxxxxxxxyy"
    with Output(path, "r+b") as output, file_size_limit(20):
        assert [output.truncate(16), output.truncate(24), output.truncate(2)] == [16, 24, 2]
        assert output.failure.errno == errno.EFBIG
    assert path.stat().st_size == 16


def test_the_first_failed_write_is_raised_once_the_file_is_closed(tmp_path):
    path = tmp_path / "f.h5"
    path.touch()
    with file_size_limit(5_000), pytest.raises(OSError, match="File too large"), hdf5_output(path) as writer:
        writer.dataset("a/b", np.ones(10_000))


def test_equal_calls_give_equal_bytes_and_missing_groups_are_created(tmp_path):
    for name in ("one.h5", "two.h5"):
        (tmp_path / name).touch()
        with hdf5_output(tmp_path / name) as writer:
            writer.dataset("a/b/c", np.arange(3))
            writer.group("a/d")
    assert (tmp_path / "one.h5").read_bytes() == (tmp_path / "two.h5").read_bytes()
    with h5py.File(tmp_path / "one.h5") as file:
        assert file["a/b/c"][()].tolist() == [0, 1, 2]
        assert list(file["a"]) == ["b", "d"]


def test_no_dataset_stores_the_time_of_its_creation(tmp_path):
    path = tmp_path / "f.h5"
    path.touch()
    with hdf5_output(path) as file:
        file.dataset("group/a", data=np.ones((3, 2), np.float32))
    with h5py.File(path) as file:
        assert not file["group/a"].id.get_create_plist().get_obj_track_times()
