import fcntl
import json
import os
import resource
import zlib
from pathlib import Path

import numpy as np
import pytest

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ledger.ledger import DamagedValues, is_in_use, open_ledger
from tests.feature_extraction.ledger.small_ledger import append, record


def filled(folder, count=3):
    with open_ledger(folder) as ledger:
        for number in range(count):
            append(ledger, number)
    return folder / "records.jsonl", folder / "values.f32"


def found(ledger, number):
    """The values of a clip; None where it is not on record."""
    record = ledger.find(f"clip {number}", "audio", "s")
    return None if record is None else ledger.values(record.block)


def test_remembers_what_was_appended(tmp_path):
    filled(tmp_path)
    failure = record(7, id="ö\n", reason="corrupt", detail="why", warnings=("w",))
    with open_ledger(tmp_path) as ledger:
        ledger.append(failure)
    with open_ledger(tmp_path) as ledger:
        assert len(ledger) == 4
        assert ledger.find("ö\n", "audio", "s") == failure
        np.testing.assert_array_equal(found(ledger, 2), [2, 3, 4])
        assert ledger.find("clip 2", "visual", "s") is None
        assert ledger.find("clip 2", "audio", "t") is None


def test_a_long_record_is_found(tmp_path):
    failure = record(0, reason="corrupt", detail="why " * 5000)
    with open_ledger(tmp_path) as ledger:
        ledger.append(failure)
        append(ledger, 1)
        assert ledger.find("clip 0", "audio", "s") == failure


def test_keeps_descriptions_over_time(tmp_path):
    values = np.random.default_rng(0).normal(size=(4, 2)).astype(np.float32)
    with open_ledger(tmp_path) as ledger:
        ledger.append(record(0), values)
    with open_ledger(tmp_path) as ledger:
        np.testing.assert_array_equal(found(ledger, 0), values)


def test_the_newest_record_counts(tmp_path):
    filled(tmp_path)
    with open_ledger(tmp_path) as ledger:
        ledger.append(record(1, content="new"), np.zeros(1, np.float32))
        assert ledger.find("clip 1", "audio", "s").content == "new"
    with open_ledger(tmp_path) as ledger:
        assert ledger.find("clip 1", "audio", "s").content == "new"
        assert len(found(ledger, 1)) == 1


@pytest.mark.slow
def test_a_kill_at_any_byte_costs_only_the_record_being_written(tmp_path):
    """Values are written before their line: a kill leaves a torn line, or values that no line knows, or both."""
    records, values = (path.read_bytes() for path in filled(tmp_path / "a"))
    ends = [position + 1 for position, byte in enumerate(records) if byte == ord("\n")]
    for cut in range(0, len(records) + 1, 7):
        kept = sum(end <= cut for end in ends)
        for torn in {12 * kept, min(12 * kept + 5, len(values)), min(12 * kept + 12, len(values))}:
            folder = tmp_path / f"cut {cut} {torn}"
            folder.mkdir()
            (folder / "records.jsonl").write_bytes(records[:cut])
            (folder / "values.f32").write_bytes(values[:torn])
            with open_ledger(folder) as ledger:
                assert len(ledger) == kept
                for number in range(kept, 3):
                    append(ledger, number)
            assert (folder / "records.jsonl").read_bytes() == records
            assert (folder / "values.f32").read_bytes() == values


def test_a_damaged_record_is_forgotten_and_the_others_are_not(tmp_path):
    path, _ = filled(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b"clip", b"clop")
    path.write_bytes(b"".join(lines))
    with open_ledger(tmp_path) as ledger:
        np.testing.assert_array_equal(found(ledger, 0), [0, 1, 2])
        assert found(ledger, 1) is None
        np.testing.assert_array_equal(found(ledger, 2), [2, 3, 4])


def test_damaged_values_are_noticed_and_forgotten(tmp_path):
    _, path = filled(tmp_path)
    content = bytearray(path.read_bytes())
    content[13] ^= 1  # of the second record
    path.write_bytes(content)
    with open_ledger(tmp_path) as ledger:
        with pytest.raises(DamagedValues):
            found(ledger, 1)
        assert ledger.forget_damaged() == 1
        assert found(ledger, 1) is None
        np.testing.assert_array_equal(found(ledger, 2), [2, 3, 4])
        append(ledger, 1)
        np.testing.assert_array_equal(found(ledger, 1), [1, 2, 3])


def test_values_that_were_lost_are_forgotten_at_the_opening(tmp_path):
    _, path = filled(tmp_path)
    path.write_bytes(path.read_bytes()[:20])
    with open_ledger(tmp_path) as ledger:
        assert [found(ledger, number) is None for number in range(3)] == [False, True, True]


def test_one_process_at_a_time(tmp_path):
    with open_ledger(tmp_path), pytest.raises(InputError, match="another extraction is writing"), open_ledger(tmp_path):
        pass
    with open_ledger(tmp_path) as ledger:
        assert len(ledger) == 0


def test_who_looks_sees_whether_it_is_in_use_and_hinders_nobody(tmp_path):
    with open_ledger(tmp_path):
        assert is_in_use(tmp_path / "records.jsonl")
    assert not is_in_use(tmp_path / "records.jsonl")
    with (tmp_path / "records.jsonl").open("rb") as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        fcntl.flock(looking, fcntl.LOCK_UN)
        with open_ledger(tmp_path):
            pass


def test_a_full_disk_leaves_what_was_recorded(tmp_path):
    path, _ = filled(tmp_path)
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with open_ledger(tmp_path) as ledger:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 40, hard))
        try:
            with pytest.raises(InputError, match="; saved results: 3"):
                append(ledger, 3)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert path.read_bytes() == before
        append(ledger, 3)
    with open_ledger(tmp_path) as ledger:
        assert len(ledger) == 4
        np.testing.assert_array_equal(found(ledger, 3), [3, 4, 5])


def test_a_place_that_cannot_be_written_is_an_input_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"), open_ledger(tmp_path / "file"):
        pass


def test_a_flush_forces_values_and_records_to_the_disk(tmp_path, monkeypatch):
    flushed = []
    monkeypatch.setattr(os, "fsync", lambda number: flushed.append(Path(f"/proc/self/fd/{number}").resolve().name))
    with open_ledger(tmp_path / "f.work") as ledger:
        flushed.clear()
        ledger.flush()
        assert sorted(flushed) == ["records.jsonl", "values.f32"]


@pytest.mark.parametrize("name", ["records.jsonl", "values.f32", "notes/deep", ""])
def test_no_file_outside_a_work_folder_is_written_through_a_link(tmp_path, name):
    victim, work = tmp_path / "mine", tmp_path / "s.h5.work"
    if name:
        victim.write_text("mine")
    else:
        victim.mkdir()
    link = work / name if name else work
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(victim)
    with pytest.raises(InputError, match=f"{link.name} is a symbolic link, and is not written"), open_ledger(work):
        raise AssertionError("opened")
    assert victim.read_text() == "mine" if name else not [*victim.iterdir()]
    assert link.is_symlink()
    assert [path.name for path in work.iterdir()] == ([name.split("/")[0]] if name else [])


def test_no_file_outside_a_work_folder_is_written_through_a_hard_link(tmp_path):
    for file in filled(tmp_path / "work"):
        (tmp_path / file.name).hardlink_to(file)
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    with open_ledger(tmp_path / "work") as ledger:
        append(ledger, 3)
        assert len(ledger) == 4
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("change", [{"end": 10**12}, {"end": "x"}, {"end": -4}, "no object", [1]])
def test_an_impossible_size_in_the_last_line_changes_no_values(tmp_path, change):
    records, values = filled(tmp_path)
    *lines, last = records.read_bytes().splitlines(keepends=True)
    content = json.loads(last[26:]) | change if isinstance(change, dict) else change
    checked = last[9:26] + json.dumps(content).encode()
    records.write_bytes(b"".join([*lines, b"%08x %s\n" % (zlib.crc32(checked), checked)]))
    with open_ledger(tmp_path) as ledger:
        assert values.stat().st_size == 36
        append(ledger, 3)
        assert ledger.find_content("none", "audio", "s") is None
        for number in (0, 1, 3):
            np.testing.assert_array_equal(found(ledger, number), [number, number + 1, number + 2])
