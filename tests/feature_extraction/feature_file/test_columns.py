import numpy as np
import pytest

from aadml.feature_extraction.feature_file.columns import read_columns, written_as
from aadml.feature_extraction.ground.errors import InputError

AUDIO = np.ones((3, 2), np.float32)


def columns(tmp_path, named=None, **arrays):
    np.savez(tmp_path / "c.npz", **arrays)
    return read_columns(tmp_path / "c.npz", named)


def test_usual_plural_listed_and_named_keys_are_read_and_others_are_left(tmp_path):
    found = columns(
        tmp_path, {"flow": "raft"}, audio=AUDIO, labels=np.arange(3), modalities=np.array(["pose"]), pose=AUDIO,
        raft=AUDIO, raft_present=np.array([True, False, True]), more=AUDIO,
    )  # fmt: skip
    assert sorted(found.features) == ["audio", "flow", "pose"]
    assert found.beside["label"].tolist() == [0, 1, 2]
    assert found.present["flow"].tolist() == [True, False, True]
    assert found.left == ["more"]


def test_a_missing_named_key_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"contains no 'raft'; pass a file with this key .keys found: audio"):
        columns(tmp_path, {"flow": "raft"}, audio=AUDIO)


@pytest.mark.parametrize("value", [np.array(1.0), np.array("clip.wav")])
def test_a_modality_of_a_single_value_is_refused(tmp_path, value):
    with pytest.raises(InputError, match=r"c\.npz: 'visual' is a single value, but must have one row per clip; write"):
        columns(tmp_path, audio=AUDIO, visual=value)


def test_the_singular_key_is_preferred():
    assert [written_as("label", keys) for keys in (["label", "labels"], ["labels"], [])] == ["label", "labels", "label"]
    assert written_as("audio", ["audios"]) == "audio"


def test_several_texts_are_those_of_a_third_axis_or_of_text_row(tmp_path):
    texts, rows = columns(tmp_path, text=np.arange(30.0).reshape(3, 2, 5)).several_texts(3)
    assert texts.tolist() == np.arange(30.0).reshape(6, 5).tolist()
    assert rows.tolist() == [0, 0, 1, 1, 2, 2]
    texts, rows = columns(tmp_path, text=AUDIO, text_row=np.array([0, 0, 1])).several_texts(2)
    assert rows.tolist() == [0, 0, 1]
    assert columns(tmp_path, text=AUDIO).several_texts(3) is None
    assert columns(tmp_path, audio=AUDIO, text_row=np.arange(3)).several_texts(3) is None
    for wrong, given in (
        (np.array([0, 0, 2]), "int64 (3,) from 0 to 2"),
        (np.zeros(3), "float64 (3,)"),
        (np.arange(2), "int64 (2,)"),
    ):
        with pytest.raises(InputError) as caught:
            columns(tmp_path, text=AUDIO, text_row=wrong).several_texts(2)
        assert str(caught.value) == (
            f"{tmp_path / 'c.npz'}: text_row contains {given}, but must contain 3 clip numbers from 0 to 1, one for "
            "each text; correct these numbers"
        )
    for clips in (2, 4):
        with pytest.raises(
            InputError, match=rf"c\.npz: 'text' has 3 rows, but there are {clips} clips; store the texts"
        ):
            columns(tmp_path, text=np.ones((3, 2, 5))).several_texts(clips)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([0, 1, -1], True),
        ([[0], [1], [1]], True),
        ([0, 2, 1], False),
        ([0.0, 1.0, 1.0], False),
        ([-2, 0, 1], False),
        ([[0, 1], [1, 0], [1, 1]], False),
        (np.zeros(0, int), False),
    ],
)
def test_labels_are_positions_only_where_all_of_them_can_be(tmp_path, labels, expected):
    found = columns(tmp_path, audio=AUDIO, label=np.asarray(labels), class_names=np.array(["a", "b"]))
    assert found.labels_are_positions() is expected
    assert not columns(tmp_path, audio=AUDIO, label=np.asarray(labels)).labels_are_positions()
    assert not columns(tmp_path, audio=AUDIO, class_names=np.array(["a", "b"])).labels_are_positions()


def test_a_listed_name_that_cannot_be_a_modality_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"c\.npz: modalities: 'Pose' cannot be the name of a modality"):
        columns(tmp_path, audio=AUDIO, modalities=np.array(["flow", "Pose"]))
