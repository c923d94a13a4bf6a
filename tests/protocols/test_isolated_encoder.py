"""Messages of an isolated encoder."""

import io
import os
import sys

import numpy as np

from aadml.protocols import isolated_encoder


def test_arrays_of_a_message_come_back_in_one_order():
    stream = io.BytesIO()
    isolated_encoder._write(stream, {name: np.zeros(2) for name in ("visual", "text", "state", "audio")})
    for _ in range(20):
        stream.seek(0)
        assert list(isolated_encoder._receive(stream)) == ["audio", "state", "text", "visual"]


def test_what_an_encoder_reads_elsewhere_or_sends_is_recorded_once(tmp_path):
    for name in ("inside/a", "inside-not/b", "path"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    inside, outside = tmp_path / "inside" / "a", tmp_path / "inside-not" / "b"
    watch = isolated_encoder._Channels([str(tmp_path / "inside")], [], searched=[str(tmp_path / "path")])
    for opened in (inside, outside, os.fsencode(outside), tmp_path / "inside", tmp_path / "path", tmp_path / "none", 3):
        watch("open", (opened, "r", 0))
    for event in ("socket.connect", "socket.bind"):
        watch(event, ("a socket", ("127.0.0.1", 9)))
    for event in ("os.utime", "os.setxattr", "os.chmod", "os.listdir", "import"):
        watch(event, (str(inside), 1))
    assert watch.channels == [
        f"file {outside}", "socket.connect ('127.0.0.1', 9)", "socket.bind ('127.0.0.1', 9)", f"os.utime {inside}",
        f"os.setxattr {inside}", f"os.chmod {inside}",
    ]  # fmt: skip


def test_variables_of_the_environment_of_the_audit_are_recorded(monkeypatch):
    hooks = []
    monkeypatch.setattr(os._Environ, "__getitem__", os._Environ.__getitem__)  # is as before after this test
    monkeypatch.setattr(sys, "addaudithook", hooks.append)
    monkeypatch.setenv("OF_THE_AUDIT", "1")
    monkeypatch.setenv("OF_BOTH", "2")
    watch = isolated_encoder._Channels([], ["OF_THE_AUDIT"])
    watch.start()
    assert [os.environ[name] for name in ("OF_BOTH", "OF_THE_AUDIT")] == ["2", "1"]
    assert watch.channels == ["environment variable OF_THE_AUDIT"]
    assert hooks == [watch]
