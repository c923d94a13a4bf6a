"""Ledger of an extraction job: an append-only record of finished work that survives a kill at any time.

The work folder has two files. `values.f32` holds the features of all clips, concatenated, as little-endian float32.
`records.jsonl` holds one line `<CRC-32> <key> <JSON>` for each finished clip and modality, with its outcome and the
position and checksum of its values. Lines with key 0 are notes about the job. Values are written before their line, so
an unfinished write is truncated at the next opening. A damaged record is skipped, and its work is done again. Memory:
16 bytes per line.
"""

from aadml.feature_extraction.ledger.integrity import damages_of_ledger
from aadml.feature_extraction.ledger.ledger import RECORDS, DamagedValues, Ledger, is_in_use, open_ledger
from aadml.feature_extraction.ledger.notes import Beginning, Progress, notes_of
from aadml.feature_extraction.ledger.records import Block, Record
from aadml.feature_extraction.ledger.track import Track

__all__ = [
    "RECORDS",
    "Beginning",
    "Block",
    "DamagedValues",
    "Ledger",
    "Progress",
    "Record",
    "Track",
    "damages_of_ledger",
    "is_in_use",
    "notes_of",
    "open_ledger",
]
