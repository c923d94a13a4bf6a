import hashlib
import os
import socket
from pathlib import Path

import pytest

from aadml.feature_extraction.ground.file_content import (
    content_of,
    file_digest,
    file_kind,
    read_bytes,
    sha256,
    stamp_of,
    text_stamp,
)


def test_a_stamp_changes_with_its_file(tmp_path):
    path = tmp_path / "f"
    path.write_text("a")
    stamp = stamp_of(str(path))
    assert stamp == stamp_of(str(path))
    path.write_text("ab")
    assert stamp_of(str(path)) != stamp


def test_what_is_not_a_regular_file_has_no_stamp(tmp_path):
    assert stamp_of(str(tmp_path / "none")) is None
    assert stamp_of("a\0b") is None
    os.mkfifo(tmp_path / "pipe")
    assert stamp_of(str(tmp_path / "pipe")) == ()


def test_content_is_the_sha256_of_the_bytes(tmp_path):
    (tmp_path / "f").write_bytes(b"x" * 3_000_000)
    assert content_of(str(tmp_path / "f"), (1,)) == hashlib.sha256(b"x" * 3_000_000).hexdigest()
    assert content_of(str(tmp_path / "none"), (1,)) == ""
    os.mkfifo(tmp_path / "pipe")
    assert content_of(str(tmp_path / "pipe"), ()) == hashlib.sha256(b"").hexdigest()


def test_content_that_could_not_be_read_is_read_again(tmp_path):
    assert content_of(str(tmp_path / "f"), (2,)) == ""
    (tmp_path / "f").write_bytes(b"x")
    assert content_of(str(tmp_path / "f"), (2,)) == hashlib.sha256(b"x").hexdigest()


def test_equal_texts_have_equal_stamps():
    assert text_stamp("a") == text_stamp("a") != text_stamp("b")


def test_a_stamp_is_the_size_the_times_and_the_inode(tmp_path):
    (tmp_path / "f").write_text("abc")
    status = (tmp_path / "f").stat()
    expected = (3, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    assert stamp_of(str(tmp_path / "f")) == expected
    assert text_stamp("abc") == (0xBA7816BF8F01CFEA,)


def test_kinds_of_files_are_named(tmp_path):
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        kinds = {
            name: file_kind(os.stat(tmp_path / name))  # noqa: PTH116 - "/proc" replaces the folder
            for name in ("file", ".", "pipe", "socket", "/dev/null", "/proc", "/proc/version")
        }
    assert kinds == {
        "file": "regular file", ".": "folder", "pipe": "pipe", "socket": "socket", "/dev/null": "device",
        "/proc": "folder", "/proc/version": "file of the kernel",
    }  # fmt: skip


def test_a_folder_has_the_digest_of_its_names_and_contents(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c").write_bytes(b"1")
    (tmp_path / "a").write_bytes(b"2")
    parts = [name + b"\0" + hashlib.sha256(data).digest() for name, data in ((b"a", b"2"), (b"b/c", b"1"))]
    assert sha256(tmp_path) == hashlib.sha256(b"".join(parts)).hexdigest()
    assert sha256(tmp_path / "a") == file_digest(Path(tmp_path, "a")) == hashlib.sha256(b"2").hexdigest()
    assert file_digest(tmp_path / "a", "md5") == hashlib.md5(b"2", usedforsecurity=False).hexdigest()


def test_only_a_regular_file_is_read(tmp_path):
    (tmp_path / "file").write_bytes(b"content")
    assert read_bytes(tmp_path / "file") == b"content"
    os.mkfifo(tmp_path / "pipe")
    for path, problem in ((tmp_path / "pipe", "it is a pipe"), (Path("/dev/zero"), "it is a device")):
        with pytest.raises(OSError, match=problem):
            read_bytes(path)
    for path, kind in ((tmp_path / "none", FileNotFoundError), (tmp_path, IsADirectoryError)):
        with pytest.raises(kind):
            read_bytes(path)
