import resource

import numpy as np
import pytest

from feature_extraction.ground.errors import InputError
from feature_extraction.ledger import Record, open_ledger


def record(number, **changes):
    values = np.arange(3, dtype=np.float32) + number
    return Record(
        **{
            "id": f"clip {number}",
            "modality": "audio",
            "settings": "s",
            "content": "c",
            "stamp": (1, 2),
            "values": values,
            **changes,
        }
    )


def filled(folder, count=3):
    with open_ledger(folder) as ledger:
        for number in range(count):
            ledger.append(record(number))
    return folder / "ledger.jsonl"


def test_remembers_what_was_appended(tmp_path):
    filled(tmp_path)
    with open_ledger(tmp_path) as ledger:
        ledger.append(record(7, id="ö\n", reason="corrupt", detail="why", warnings=("w",), values=None))
    with open_ledger(tmp_path) as ledger:
        assert len(ledger) == 4
        assert ledger.find("ö\n", "audio", "s") == record(7, id="ö\n", reason="corrupt", detail="why", warnings=("w",))
        np.testing.assert_array_equal(ledger.values("clip 2", "audio", "s"), [2, 3, 4])
        assert ledger.find("clip 2", "visual", "s") is None
        assert ledger.find("clip 2", "audio", "t") is None


def test_keeps_descriptions_over_time(tmp_path):
    values = np.random.default_rng(0).normal(size=(4, 2)).astype(np.float32)
    with open_ledger(tmp_path) as ledger:
        ledger.append(record(0, values=values))
    with open_ledger(tmp_path) as ledger:
        np.testing.assert_array_equal(ledger.values("clip 0", "audio", "s"), values)


def test_the_newest_record_counts(tmp_path):
    filled(tmp_path)
    with open_ledger(tmp_path) as ledger:
        ledger.append(record(1, content="new", values=np.zeros(1, np.float32)))
    with open_ledger(tmp_path) as ledger:
        assert ledger.find("clip 1", "audio", "s").content == "new"
        assert len(ledger.values("clip 1", "audio", "s")) == 1


def test_a_kill_at_any_byte_costs_only_the_record_being_written(tmp_path):
    whole = filled(tmp_path / "a").read_bytes()
    ends = [position + 1 for position, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(0, len(whole) + 1, 7):
        folder = tmp_path / f"cut {cut}"
        folder.mkdir()
        (folder / "ledger.jsonl").write_bytes(whole[:cut])
        kept = sum(end <= cut for end in ends)
        with open_ledger(folder) as ledger:
            assert len(ledger) == kept
            for number in range(kept, 3):
                ledger.append(record(number))
        assert (folder / "ledger.jsonl").read_bytes() == whole


def test_a_damaged_record_is_forgotten_and_the_others_are_not(tmp_path):
    path = filled(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b"clip", b"clop")
    path.write_bytes(b"".join(lines))
    with open_ledger(tmp_path) as ledger:
        assert [ledger.find(f"clip {number}", "audio", "s") is not None for number in range(3)] == [True, False, True]
        np.testing.assert_array_equal(ledger.values("clip 2", "audio", "s"), [2, 3, 4])


def test_one_process_at_a_time(tmp_path):
    with open_ledger(tmp_path), pytest.raises(InputError, match="another extraction is writing"), open_ledger(tmp_path):
        pass
    with open_ledger(tmp_path) as ledger:
        assert len(ledger) == 0


def test_a_full_disk_leaves_what_was_recorded(tmp_path):
    path = filled(tmp_path)
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with open_ledger(tmp_path) as ledger:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 40, hard))
        try:
            with pytest.raises(InputError, match="3 results so far are safe"):
                ledger.append(record(3))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert path.read_bytes() == before
        ledger.append(record(3))
    with open_ledger(tmp_path) as ledger:
        assert len(ledger) == 4


def test_a_place_that_cannot_be_written_is_an_input_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"), open_ledger(tmp_path / "file"):
        pass
