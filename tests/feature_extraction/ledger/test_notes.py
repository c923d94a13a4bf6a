import zlib

from aadml.feature_extraction.ledger.ledger import open_ledger
from aadml.feature_extraction.ledger.notes import Beginning, Progress, notes_of
from tests.feature_extraction.ledger.small_ledger import append


def test_notes_are_no_records_and_are_read_while_the_ledger_is_in_use(tmp_path):
    notes = [Beginning(1.0, 3, "aadml extract", "here"), Progress(2.0, 1, 0, {"corrupt": 1})]
    with open_ledger(tmp_path) as ledger:
        ledger.note(notes[0])
        append(ledger, 0)
        ledger.note(notes[1])
        assert list(notes_of(tmp_path / "records.jsonl")) == notes
        assert len(ledger) == 1
    with open_ledger(tmp_path) as ledger:
        assert len(ledger) == 1
    torn = (tmp_path / "records.jsonl").read_bytes()[:-1]
    (tmp_path / "records.jsonl").write_bytes(torn)
    assert list(notes_of(tmp_path / "records.jsonl")) == notes[:1]


def test_the_processor_times_in_ledgers_of_earlier_versions_are_ignored(tmp_path):
    """A line as the version before wrote it."""
    with open_ledger(tmp_path) as ledger:
        ledger.note(Beginning(1.0, 3))
    note = (
        b'0000000000000000 {"end":0,"beginning":null,"progress":{"at":2.0,"done":1,"reused":0,"failed":{"corrupt":1},'
        b'"finished":false,"running":[31.5,0.1]}}'
    )
    with (tmp_path / "records.jsonl").open("ab") as records:
        records.write(b"%08x %s\n" % (zlib.crc32(note), note))
    with open_ledger(tmp_path) as ledger:
        ledger.note(Progress(3.0, 2, 0, {"corrupt": 1}))
    notes = [Beginning(1.0, 3), Progress(2.0, 1, 0, {"corrupt": 1}), Progress(3.0, 2, 0, {"corrupt": 1})]
    assert list(notes_of(tmp_path / "records.jsonl")) == notes
    assert (tmp_path / "records.jsonl").read_bytes().count(b"running") == 1, "it is not written any more"
