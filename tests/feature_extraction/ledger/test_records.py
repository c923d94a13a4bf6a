import json
import zlib
from dataclasses import make_dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aadml.feature_extraction.ledger.notes import Progress, line_of_note
from aadml.feature_extraction.ledger.records import (
    NOTE,
    Block,
    Record,
    body_of,
    key_of,
    key_of_line,
    line_of,
    read_line,
)

FAILURE = Record("ö\n", "audio", "s", "c", (1, 2), reason="corrupt", detail="why", warnings=("w",))
DESCRIBED = Record(
    "a", "visual", "s", "c", (1, 2), start=0.5, seconds=2.0, block=Block(12, (3, 4), 7), fingerprint="AA=="
)


@pytest.mark.parametrize("record", [FAILURE, DESCRIBED])
def test_a_record_comes_back_from_its_line(record):
    key = key_of(record.id, record.modality, record.settings)
    line = line_of(key, replace(record, end=60))
    assert line.count(b"\n") == 1
    assert key_of_line(line) == key
    assert json.loads(body_of(line))["end"] == read_line(Record, line).end == 60
    assert read_line(Record, line) == record


@given(st.data())
def test_a_changed_byte_makes_a_line_damaged(data):
    line = bytearray(line_of(5, DESCRIBED))
    line[data.draw(st.integers(0, len(line) - 2))] ^= data.draw(st.integers(1, 255))
    assert key_of_line(bytes(line)) is None
    assert body_of(bytes(line)) == b""
    assert read_line(Record, bytes(line)) is None


def test_a_record_of_another_version_is_none():
    later = make_dataclass("Later", [("color", str)], bases=(Record,), kw_only=True, frozen=True)
    assert read_line(Record, line_of(5, later(**vars(DESCRIBED), color="red"))) is None
    assert read_line(Record, line_of_note(Progress(1.0, 2), 60)) is None


def test_a_line_of_an_earlier_version_is_read():
    text = (
        b'{"id":"a","modality":"visual","settings":"s","content":"c","stamp":[1,2],"reason":"","detail":"","warnings":[],'
        b'"start":0.5,"seconds":2,"block":[12,[3,4],7],"fingerprint":"AA==","end":60}'
    )
    line = line_of(5, DESCRIBED)
    assert json.loads(body_of(line)).keys() - json.loads(text).keys() == {"source"}
    checked = line[9:26] + text
    assert read_line(Record, b"%08x %s\n" % (zlib.crc32(checked), checked)) == DESCRIBED


def test_characters_that_are_not_unicode_are_replaced():
    assert read_line(Record, line_of(5, replace(FAILURE, detail="f\udcff"))).detail == "f?"


@given(st.text(), st.text(), st.text())
def test_no_key_is_that_of_notes(clip, modality, settings):
    assert key_of(clip, modality, settings) != NOTE


@pytest.mark.parametrize(
    "changes",
    [
        {"end": -4}, {"end": 2**63}, {"end": "x"}, {"block": (-4, (3,), 7)}, {"block": (0, (-1, 3), 7)},
        {"block": (0, (), 7)}, {"block": (0, (1, 1, 3), 7)}, {"block": (0, (10**30,), 7)}, {"block": (0, (3,), -7)},
    ],
)  # fmt: skip
def test_a_line_with_impossible_numbers_is_none(changes):
    assert read_line(Record, line_of(5, replace(DESCRIBED, **changes))) is None


def test_the_key_of_a_line_has_no_sign():
    checked = b"-000000000000005 {}"
    assert key_of_line(b"%08x %s\n" % (zlib.crc32(checked), checked)) is None


@pytest.mark.parametrize("shape", [(3,), (10**12,), (10**9, 10**9)])
def test_values_beyond_the_file_are_none(tmp_path, shape):
    path = tmp_path / "values.f32"
    path.write_bytes(bytes(8))
    with path.open("rb") as file:
        assert Block(0, shape, 0).read(file) is None
        assert Block(4, (1,), zlib.crc32(bytes(4))).read(file) == [0.0]
