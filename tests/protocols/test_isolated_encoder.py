"""Messages of an isolated encoder."""

import io
import os
import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from aadml.feature_extraction.ground.errors import InputError
from aadml.protocols import isolated_encoder
from aadml.protocols.isolated_encoder import IsolatedEncoder, Order
from aadml.protocols.subprocess_embedding import in_fresh_process


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


def test_a_message_is_its_length_and_its_content_or_the_end():
    stream = io.BytesIO()
    isolated_encoder._write(stream, {"a": np.arange(6.0).reshape(2, 3).T})
    content = stream.getvalue()
    assert int.from_bytes(content[:8], "little") == len(content) - 8
    assert isolated_encoder._receive(io.BytesIO(content))["a"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert isolated_encoder._receive(io.BytesIO(content[:7])) is None
    assert isolated_encoder._receive(io.BytesIO(b"")) is None
    value = {"words": ["ä", 1]}
    assert isolated_encoder._unpacked(isolated_encoder._packed(value)) == value


def test_a_command_gets_a_file_and_gives_one_or_a_folder_of_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = np.arange(5, dtype=np.uint8)
    copied = isolated_encoder._encoder(Order(command=("cp", "{input}", "{output}")))
    for _ in range(2):
        assert copied({"input": content})["output"].tolist() == content.tolist()
    script = "mkdir {output}/b; cp {train} {output}/b/c; cp {train} {output}/a; ln -s a {output}/link"
    trained = isolated_encoder._encoder(Order(command=("sh", "-c", script)))({"train": content})
    assert {name: values.tolist() for name, values in trained.items()} == dict.fromkeys(("a", "b/c"), content.tolist())
    (tmp_path / "trained" / "a").unlink()
    for command, request, message in (
        (("true", "{input}", "{output}"), "input", r"did not write the file \{output\}"),
        (("sh", "-c", "echo one >&2; echo two >&2; exit 3"), "input", r"ended with exit status 3 \(two\); test the"),
        (("/no/such/program",), "input", r"the command /no/such/program cannot be started \(.*\); check the path"),
        (("true",), "train", r"wrote no file into the folder \{output\}"),
    ):
        shutil.rmtree(tmp_path / "trained", ignore_errors=True)
        with pytest.raises(InputError, match=message):
            isolated_encoder._encoder(Order(command=command))({request: content})


def test_a_function_is_found_by_its_name_in_a_module_or_a_class(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    (tmp_path / "own_module.py").write_text("class A:\n    def encode(features, labels): return features\n")
    (tmp_path / "own_package").mkdir()
    (tmp_path / "own_package" / "__init__.py").write_text("from own_package.inner import encode")
    (tmp_path / "own_package" / "inner.py").write_text(
        "def encode(features, labels): return {'audio': labels[:, None]}"
    )
    readable = tuple(str(tmp_path / name) for name in ("own_module.py", "own_package"))
    request = {"audio": np.ones((2, 3)), "labels": np.array([3, 4])}
    for place, expected in (("own_module:A.encode", np.ones((2, 3))), ("own_package:encode", [[3], [4]])):
        arrays = isolated_encoder._encoder(Order(place=place, readable=readable))(request)
        assert {name: values.tolist() for name, values in arrays.items()} == {"audio": np.array(expected).tolist()}
    with pytest.raises(InputError, match="own_module:B: the module has no function 'B'; pass module:function"):
        isolated_encoder._encoder(Order(place="own_module:B", readable=readable))


def answered(order, requests=1):
    """Return the last output for equal requests, and the channels, of a pass."""
    started = []

    def work():
        started.append(IsolatedEncoder(order))
        outputs = [started[0]({"input": np.arange(4, dtype=np.uint8)})["output"] for _ in range(requests)]
        return [{"output": torch.tensor(outputs[-1])}]

    results = in_fresh_process(work, seconds=60.0, channels=lambda: started[0].channels)
    return bytes(results.vectors[0]["output"].tolist()), results.channels


OWN = """
import sys
from pathlib import Path
def encode(features, labels):
    print("no message")
    assert sys.stdin.read() == ""
    for name in "abcdef":
        Path("{folder}", name).read_text()
    return {{"audio": features["audio"] + labels[:, None]}}
"""


def test_a_function_may_print_and_read_its_input_and_five_of_its_channels_are_listed(tmp_path):
    (tmp_path / "encoder_of_tests.py").write_text(OWN.format(folder=tmp_path))
    for name in "abcdef":
        (tmp_path / name).write_text(name)
    order = Order("encoder_of_tests:encode", readable=(str(tmp_path / "encoder_of_tests.py"),), by_kernel=False)
    request, started = {"audio": np.ones((2, 3)), "labels": np.array([3, 4])}, []

    def work():
        started.append(IsolatedEncoder(order))
        return [{m: torch.tensor(values) for m, values in started[0](request).items()} for _ in range(2)]

    results = in_fresh_process(work, seconds=60.0, channels=lambda: started[0].channels)
    assert [{m: v.tolist() for m, v in of.items()} for of in results.vectors] == [{"audio": [[4.0] * 3, [5.0] * 3]}] * 2
    first, *files = results.channels
    assert first.startswith("files, network and processes (the kernel did not isolate the encoder: ")
    assert files == [f"file {tmp_path / name}" for name in "abcd"]


def test_an_isolated_encoder_answers_every_request_and_reads_no_other_file(tmp_path):
    (tmp_path / "secret").write_text("labels")
    outside = ("cp", str(tmp_path / "secret"), "{output}")
    output, channels = answered(Order(command=("cp", "{input}", "{output}")), requests=2)
    assert output == bytes(range(4))
    if channels:
        pytest.skip("the kernel does not isolate processes here")
    with pytest.raises(InputError, match=r"exit status 1 \(cp: .*Permission denied\)"):
        answered(Order(command=outside))
    readable = Order(command=("cp", "secret", "{output}"), readable=(str(tmp_path / "secret"),))
    assert answered(readable) == (b"labels", ())
    assert answered(replace(readable, command=outside, by_kernel=False)) == (
        b"labels",
        ("files, network and processes (the kernel did not isolate the encoder: isolation by the kernel is off)",),
    )
