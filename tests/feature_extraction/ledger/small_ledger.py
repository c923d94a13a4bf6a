"""Records of a ledger, one for each number."""

import numpy as np

from aadml.feature_extraction.ledger.records import Record


def record(number, **changes):
    return Record(
        **{"id": f"clip {number}", "modality": "audio", "settings": "s", "content": "c", "stamp": (1, 2), **changes}
    )


def numbers(number):
    return np.arange(3, dtype=np.float32) + number


def append(ledger, number):
    ledger.append(record(number), numbers(number))
