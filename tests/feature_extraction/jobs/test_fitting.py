import numpy as np
import pytest

from aadml.feature_extraction.feature_file.rows import FeatureRows, ModalityRows
from aadml.feature_extraction.jobs.fitting import fitted

SPLITS = ("train", "test", "train", "valid")
PRESENT = np.array([True, True, False, True])
SEQUENCE = np.arange(10, dtype=np.float32).reshape(5, 2)
OFFSETS = np.array([0, 2, 3, 3, 5])


class Centering:
    def arrays(self, train):
        return {"mean": np.concatenate(list(train)).mean(axis=0)}

    def transformation(self, arrays):
        return lambda description: (description - arrays["mean"])[:, :1]


def transformed(**options):
    times = FeatureRows.of(np.zeros(5))
    rows = ModalityRows(FeatureRows.of(np.zeros((4, 2), np.float32)), FeatureRows.of(SEQUENCE), OFFSETS, times)
    return fitted(rows, Centering(), SPLITS, PRESENT, **options)


def test_the_fit_uses_the_training_clips_and_changes_all():
    rows, arrays = transformed(sequence=True)
    assert arrays["mean"].tolist() == [1.0, 2.0]  # of the first clip; the other training clip lacks the modality
    assert rows.sequence.array().tolist() == [[-1], [1], [3], [5], [7]]
    assert rows.pooled.array().tolist() == [[0], [3], [0], [6]]
    assert rows.offsets is OFFSETS


@pytest.mark.parametrize("pool", [np.sum, np.max])
def test_without_a_sequence_only_pooled_rows_are_returned(pool):
    rows, _ = transformed(sequence=False, pool=lambda description: pool(description, axis=0))
    assert (rows.sequence, rows.offsets, rows.times) == (None, None, None)
    assert rows.pooled.array()[3] == pool([5, 7])
