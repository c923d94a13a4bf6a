import base64

import numpy as np

from aadml.feature_extraction.backbones import Extractor
from aadml.feature_extraction.ledger.ledger import open_ledger
from aadml.feature_extraction.ledger.records import Record
from aadml.feature_extraction.ledger.track import Track
from aadml.feature_extraction.media import Sound
from aadml.feature_extraction.media.fingerprints import SIZE

FINGERPRINT = np.arange(SIZE, dtype=np.uint8)


def test_a_track_has_the_values_times_and_fingerprints_of_its_clips(tmp_path):
    values = [np.ones((2, 3), np.float32), np.zeros((1, 3), np.float32)]
    track = Track()
    with open_ledger(tmp_path) as ledger:
        for number, rows in enumerate(values):
            encoded = base64.b64encode(FINGERPRINT.tobytes()).decode() if number == 0 else ""
            ledger.append(
                Record(str(number), "audio", "s", "c", (1,), start=0.5, seconds=2.0, fingerprint=encoded), rows
            )
        track.add(ledger.find("0", "audio", "s"))
        track.add(None)
        track.add(ledger.find("1", "audio", "s"))
        read = list(track.descriptions(ledger))
    assert [rows.tolist() for rows in read] == [rows.tolist() for rows in values]
    assert track.present.tolist() == [True, False, True]
    assert track.lengths.tolist() == [2, 0, 1]
    assert track.shapes == {(True, 3)}
    np.testing.assert_array_equal(track.fingerprints, [FINGERPRINT, np.zeros(SIZE), np.zeros(SIZE)])
    times = [moments.tolist() for moments in track.times(Extractor("a", "audio", 3, Sound(8000), {}, np.asarray))]
    assert times == [[0.5, 1.5], [0.5]]


def test_pooled_values_have_no_rows_over_time(tmp_path):
    track = Track()
    with open_ledger(tmp_path) as ledger:
        ledger.append(Record("a", "audio", "s", "c", (1,)), np.ones(3, np.float32))
        track.add(ledger.find("a", "audio", "s"))
        assert [values.shape for values in track.descriptions(ledger)] == [(3,)]
    assert track.lengths.tolist() == [0]
    assert track.shapes == {(False, 3)}
    assert Track().shapes == set()
