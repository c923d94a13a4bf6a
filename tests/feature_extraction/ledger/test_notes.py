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
