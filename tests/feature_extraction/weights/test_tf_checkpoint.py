"""The checkpoint beside this file was written by TensorFlow 2.20's Saver, in version 1, from `EXPECTED`."""

import contextlib
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.weights.tf_checkpoint import is_tf_checkpoint, read_tf_checkpoint

FOLDER = Path(__file__).with_name("checkpoints")
EXPECTED = {
    "net/conv1/weights": np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 5,
    "net/conv1/biases": np.zeros(4, dtype=np.float32),
    "net/zeros": np.zeros((40, 50), dtype=np.float32),
    "net/pattern": np.tile(np.arange(7, dtype=np.float32), 300),
    "net/double": np.linspace(-1, 1, 5),
    "net/scalar": np.float32(3.5),
}  # tensors of integers and text were in the checkpoint too


def assert_expected(tensors):
    assert tensors.keys() == EXPECTED.keys()
    for name, array in EXPECTED.items():
        assert tensors[name].dtype == array.dtype
        np.testing.assert_array_equal(tensors[name], array)


def test_reads_what_tensorflow_wrote_without_tensorflow():
    assert is_tf_checkpoint(FOLDER / "version1.ckpt")
    assert_expected(read_tf_checkpoint(FOLDER / "version1.ckpt"))


def varint(value: int) -> bytes:
    result = b""
    while value > 127:
        result += bytes([value & 127 | 128])
        value >>= 7
    return result + bytes([value])


def table(entries: list[tuple[bytes, bytes]], compression: int) -> bytes:
    """Build a sorted string table with one block per entry, by LevelDB's format page."""

    def block(pairs):
        return b"".join(b"\0" + varint(len(k)) + varint(len(v)) + k + v for k, v in pairs) + struct.pack("<II", 0, 1)

    content, handles = b"", []
    for pair in entries:
        raw = block([pair])
        handles.append((pair[0] + b"~", varint(len(content)) + varint(len(raw))))
        content += raw + bytes([compression]) + b"crc."
    index = block(handles)
    footer = varint(0) + varint(0) + varint(len(content)) + varint(len(index))
    return content + index + b"\0" + b"crc." + footer.ljust(40, b"\0") + bytes.fromhex("57fb808b247547db")


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def test_reads_raw_content_and_refuses_compressed_blocks(tmp_path):
    values = np.arange(300, dtype=np.float32)
    shape = field(2, field(2, b"\x08" + varint(len(values))))
    meta = field(1, field(1, field(1, b"x") + shape + b"\x18\x01"))
    data = field(2, field(1, b"x") + field(3, b"\x08\x01" + field(4, values.tobytes())))
    path = tmp_path / "small.ckpt"
    path.write_bytes(table([(b"", meta), (b"x", data)], 0))
    np.testing.assert_array_equal(read_tf_checkpoint(path)["x"], values)
    path.write_bytes(table([(b"", meta), (b"x", data)], 1))
    with pytest.raises(
        InputError, match=r"small\.ckpt: the checkpoint has compressed blocks; save the checkpoint again"
    ):
        read_tf_checkpoint(path)


@given(st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_checkpoint_gives_numbers_or_the_error_meant_for_people(tmp_path, data):
    name = "version1.ckpt"
    content = bytearray((FOLDER / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content))) :]
    (tmp_path / name).write_bytes(content)
    with contextlib.suppress(InputError):
        assert isinstance(read_tf_checkpoint(tmp_path / name), dict)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\x80" * 52 + bytes.fromhex("57fb808b247547db"), "a number is too long"),
        (table([(b"", b"\x0b")], 0), "wire type 3 is unknown"),
        (table([(b"", b"\x0a\x09x")], 0), "a field extends beyond the end"),
    ],
)
def test_errors_name_the_damaged_checkpoint(tmp_path, content, problem):
    path = tmp_path / "damaged.ckpt"
    path.write_bytes(content)
    with pytest.raises(InputError) as refused:
        read_tf_checkpoint(path)
    assert (
        str(refused.value)
        == f"{path} is not a complete TensorFlow checkpoint ({problem}); download the checkpoint again"
    )


def test_other_files_are_no_checkpoints(tmp_path):
    (tmp_path / "text").write_text("x" * 100)
    assert not is_tf_checkpoint(tmp_path / "text")
    assert not is_tf_checkpoint(tmp_path / "absent")
    assert not is_tf_checkpoint(tmp_path)
