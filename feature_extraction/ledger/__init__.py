"""The ledger of an extraction job: what was finished is appended and never changed; no kill can lose it.

Two files in the work folder. `values.f32` holds nothing but numbers: the descriptions, one after the other, float32 in
little-endian order. `records.jsonl` holds a line for each finished piece of work, `<CRC-32> <key> <JSON>`, which says
what became of it and where its values stand, with their own checksum; lines with the key 0 are notes about the job.
Values are written before their line, so what a kill cut short is cut off at the next opening; what a disk damaged is
skipped, and that piece of work is done again. In memory there are 16 bytes for each line.
"""

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
    "is_in_use",
    "notes_of",
    "open_ledger",
]
