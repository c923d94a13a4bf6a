"""Clips and recordings in several splits: they are counted and named, exactly and only where they are the same."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from aadml.comparison.stored_rows import StoredRows
from aadml.data.splitting.shared_clips import copy_notes
from aadml.data.splitting.splits import to_splits
from aadml.data.synthetic import synthetic

CONTENT = synthetic(classes=3, train=30, valid=9, test=12, dimensions=(6, 80))
NOTE = (
    "{} test clips have the same features as train or valid clips ({}), so scores are too high; "
    "`aadml convert IN OUT --drop-duplicates train` removes the other copies"
)


def copied(rows, others, modalities=("audio", "visual"), change=0.0):
    features = {name: values.copy() for name, values in CONTENT.features.items()}
    for name in modalities:
        features[name][rows] = features[name][others]
        features[name][rows, 3] += np.float32(change)
    return replace(CONTENT, features=features)


def test_test_clips_that_are_copies_of_train_or_valid_clips_are_noted():
    test, train, valid = (CONTENT.rows(split) for split in ("test", "train", "valid"))
    content = copied(test[[4, 7]], [train[1], valid[2]])
    note = NOTE.format(2, f"{CONTENT.ids[test[4]]}, {CONTENT.ids[test[7]]}")
    assert to_splits(content).notes == (*to_splits(CONTENT).notes, note)


@pytest.mark.parametrize("options", [{"modalities": ("audio",)}, {"change": 1e-3}])
def test_clips_that_differ_in_a_number_or_a_modality_are_not_copies(options):
    test, train = (CONTENT.rows(split) for split in ("test", "train"))
    content = copied(test[[4, 7]], train[[1, 2]], **options)
    assert to_splits(content).notes == to_splits(CONTENT).notes
    assert not copy_notes(to_splits(copied(train[[4, 7]], train[[1, 2]])))


def test_zeros_of_either_sign_and_stored_rows_are_compared():
    test, train = (CONTENT.rows(split) for split in ("test", "train"))
    content = copied(test[[4]], train[[1]])
    content.features["audio"][test[4]], content.features["audio"][train[1]] = 0.0, -0.0
    splits = to_splits(content)
    note = NOTE.format(1, CONTENT.ids[test[4]])
    assert note in splits.notes
    for name in ("train", "test"):
        rows = torch.from_numpy(content.rows(name))
        stored = {m: StoredRows.of(values).select(rows) for m, values in content.features.items()}
        splits = splits.having(name, replace(splits[name], features=stored))
    assert copy_notes(splits) == [note]


def test_recordings_in_two_splits_are_noted():
    recordings = [f"recording {n}" for n in range(len(CONTENT.ids))]
    recordings[CONTENT.rows("test")[0]] = recordings[CONTENT.rows("train")[0]]
    content = replace(CONTENT, columns={"recording": tuple(recordings)})
    name = recordings[CONTENT.rows("train")[0]]
    assert to_splits(content).notes[-1] == f"1 recordings have clips in both splits of train-test ({name})"


def test_notes_on_recordings_are_those_of_the_drawn_splits(make_content):
    splits = ["train"] * 4 + ["test"] * 2
    content = make_content([-1] * 6, splits, class_names=(), columns={"recording": tuple("aabbab")})
    notes = [note.split(" (")[0] for note in to_splits(content).notes if "both splits" in note]
    assert notes == [f"1 recordings have clips in both splits of {pair}" for pair in ("train-test", "valid-test")]
