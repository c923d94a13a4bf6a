"""Files that look like the papers': what the reader makes of them is what was drawn."""

import h5py
import numpy as np
import pytest

import aadml
from aadml.data.ave import AVE15
from aadml.data.conversion import convert
from aadml.data.reading import open_data


@pytest.fixture(scope="module")
def ave(tmp_path_factory):
    path = tmp_path_factory.mktemp("released") / "AVE.h5"
    return path, convert("synthetic:ave", path, layout="split-keys")


def test_the_file_has_the_counts_and_the_keys_of_the_released_one(ave):
    with h5py.File(ave[0]) as file:
        shapes = {key: values.shape for key, values in file.items()}
    assert shapes == {
        "audio_train": (1766, 128), "visual_train": (1766, 1024), "lab_train": (1766, 1),
        "audio_test": (189, 128), "visual_test": (189, 1024), "lab_test": (189, 1),
    }  # fmt: skip


def test_rows_stand_in_blocks_of_one_class_and_validation_behind_train(ave):
    with h5py.File(ave[0]) as file:
        labels, test = file["lab_train"][:, 0], file["lab_test"][:, 0]
    counts = list(AVE15.values())
    for part, found in ((0, labels[:1577]), (1, labels[1577:]), (2, test)):
        assert np.repeat(np.arange(15), [row[part] for row in counts]).tolist() == found.tolist()


def test_audio_is_sparse_and_visual_is_white_on_train(ave):
    with h5py.File(ave[0]) as file:
        audio, visual = file["audio_train"][:1577], file["visual_train"][:1577].astype(np.float64)
    assert audio.min() == 0
    assert 0.55 < (audio == 0).mean() < 0.65
    covariance = np.cov(visual, rowvar=False, bias=True)
    assert np.allclose(covariance, np.diag(np.diag(covariance)), atol=1e-3)
    assert np.diag(covariance).max() < 1 + 1e-5


def test_the_reader_finds_the_same_clips_with_their_official_validation_split(ave):
    path, written = ave
    found = open_data(path)
    for split in ("train", "valid", "test"):
        ours, theirs = found.rows(split), written.rows(split)
        theirs = theirs[np.argsort(written.labels[theirs], kind="stable")]
        assert np.array_equal(found.labels[ours], written.labels[theirs])
        for modality in ("audio", "visual"):
            assert np.array_equal(found.features[modality][ours], written.features[modality][theirs])


def test_a_rehearsal_can_be_trained_and_scored(ave):
    model = aadml.fit(ave[0], method="c-cca")
    assert 0.1 < aadml.evaluate(model, data=ave[0]).map_mean < 0.99
