"""Ledger of an extraction job: an append-only record of finished work that survives a kill at any time.

The work folder has two files. `values.f32` contains the features of all clips, concatenated, as little-endian
float32. `records.jsonl` contains one line `<CRC-32> <key> <JSON>` for each finished clip and modality. The JSON
contains the outcome, and the position and checksum of the values. Lines with key 0 are notes about the job. Values
are written before their line, so an unfinished write is truncated at the next opening. A damaged record is skipped,
and its work is done again. The index of an open ledger needs about 16 bytes of memory per record.
`Ledger.find_content` builds a second index of at most the same size.
"""
