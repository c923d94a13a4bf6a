import pytest
from hypothesis import given
from hypothesis import strategies as st

from aadml.feature_extraction.ledger.records import (
    NOTE,
    Block,
    Record,
    content_of,
    key_of,
    key_of_line,
    line_of,
    record_of,
)

FAILURE = Record("ö\n", "audio", "s", "c", (1, 2), reason="corrupt", detail="why", warnings=("w",))
DESCRIBED = Record(
    "a", "visual", "s", "c", (1, 2), start=0.5, seconds=2.0, block=Block(12, (3, 4), 7), fingerprint="AA=="
)


@pytest.mark.parametrize("record", [FAILURE, DESCRIBED])
def test_a_record_comes_back_from_its_line(record):
    key = key_of(record.id, record.modality, record.settings)
    line = line_of(key, record.content_of_line, 60)
    assert line.count(b"\n") == 1
    assert key_of_line(line) == key
    assert content_of(line)["end"] == 60
    assert record_of(line) == record


@given(st.data())
def test_a_changed_byte_makes_a_line_damaged(data):
    line = bytearray(line_of(5, DESCRIBED.content_of_line, 60))
    line[data.draw(st.integers(0, len(line) - 2))] ^= data.draw(st.integers(1, 255))
    assert key_of_line(bytes(line)) is None
    assert content_of(bytes(line)) == {}
    assert record_of(bytes(line)) is None


def test_a_record_of_another_version_is_none():
    assert record_of(line_of(5, DESCRIBED.content_of_line | {"color": "red"}, 60)) is None
    assert record_of(line_of(NOTE, {"progress": {}}, 60)) is None


@given(st.text(), st.text(), st.text())
def test_no_key_is_that_of_notes(clip, modality, settings):
    assert key_of(clip, modality, settings) != NOTE
