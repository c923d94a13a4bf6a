"""The npz that `aadml evaluate` takes, `aadml train` takes too."""

from dataclasses import replace

import h5py
import numpy as np
import pytest

import aadml
from aadml.data.reading import open_data
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError


@pytest.fixture
def written(tmp_path):
    """An npz of columns, with changes; None leaves a column out."""
    content = synthetic(classes=3, train=60, valid=15, test=30, dimensions=(6, 8), difficulty=0.2)
    names = np.asarray(content.class_names)
    columns = {**content.features, "label": names[content.labels], "split": np.asarray(content.splits)}

    def write(**changes):
        path = tmp_path / "views.npz"
        np.savez(path, **{key: value for key, value in {**columns, **changes}.items() if value is not None})
        return path, content

    return write


def test_a_row_is_a_clip(written):
    path, content = written(id=np.asarray([f"clip {i}" for i in range(105)]))
    found = open_data(path)
    for modality, values in content.features.items():
        np.testing.assert_array_equal(found.features[modality], values)
    assert found.ids[3] == "clip 3"
    assert (found.splits, found.class_names) == (content.splits, content.class_names)
    np.testing.assert_array_equal(found.labels, content.labels)


def test_it_is_trained_on_and_evaluated_as_it_is(written):
    path, _ = written()
    model = aadml.fit(path, method="cca", settings={"method.dimension": 3})
    assert model.facts.features == {"audio": {}, "visual": {}}
    assert model.evaluation["directions"]["audio-visual"]["queries"] == 30
    same_width, _ = written(visual=np.load(path)["audio"])
    assert aadml.evaluate(embeddings=same_width).split == "test"


def test_hdf5_with_the_same_keys_is_the_same(written, tmp_path):
    path, _ = written()
    with np.load(path) as arrays, h5py.File(tmp_path / "f.h5", "w") as file:
        for name, values in arrays.items():
            text = h5py.string_dtype() if values.dtype.kind == "U" else None
            file.create_dataset(name, data=values.tolist() if text else values, dtype=text)
    found, wanted = open_data(tmp_path / "f.h5"), open_data(path)
    assert (found.ids, found.splits, found.class_names) == (wanted.ids, wanted.splits, wanted.class_names)
    np.testing.assert_array_equal(found.features["visual"], wanted.features["visual"])


def test_what_embed_writes_is_trained_on(written, tmp_path):
    path, content = written()
    model = aadml.fit(path, method="cca", settings={"method.dimension": 3})
    aadml.embed(model, path, tmp_path / "e.h5")
    found = open_data(tmp_path / "e.h5")
    assert (found.splits, found.class_names) == (content.splits, content.class_names)
    assert found.features["audio"].shape == (105, 3)


@pytest.mark.parametrize(
    "other",
    [np.array([[0], [0, 1], [1], [0]], object), np.eye(4, 2, dtype=np.uint8)[::-1], np.array("x"), np.zeros(4)],
    ids=["lists of different lengths", "marks that contradict the label", "a text", "numbers"],
)
def test_another_array_named_labels_is_left_out(tmp_path, other):
    numbers = np.arange(8, dtype=np.float32).reshape(4, 2)
    own = {"label": np.array([0, 0, 1, 1]), "class_names": np.array(["a", "b"]), "labels": other}
    np.savez(tmp_path / "f.npz", audio=numbers, visual=numbers, split=np.array(["train"] * 3 + ["test"]), **own)
    content = open_data(tmp_path / "f.npz")
    assert (content.labels.tolist(), content.all_labels) == ([0, 0, 1, 1], None)


def test_class_names_without_a_dimension_are_an_error_or_a_name(tmp_path):
    numbers = np.zeros((2, 2), np.float32)
    own = {"label": np.zeros(2, int), "class_names": np.array("a"), "labels": np.ones((2, 1), int)}
    np.savez(tmp_path / "f.npz", audio=numbers, visual=numbers + 1, split=np.array(["train", "test"]), **own)
    assert open_data(tmp_path / "f.npz").class_names == ("a",)


def test_all_classes_of_a_clip_are_read_from_what_embed_writes(tmp_path):
    content = synthetic(classes=3, train=30, valid=9, test=12, dimensions=(6, 8))
    marks = np.zeros((51, 4), np.uint8)
    marks[np.arange(51), content.labels + 1] = 1
    marks[::4, 1:] = 1
    marks[5] = 0
    several = {"labels": np.where(marks.any(1), marks.argmax(1), -1), "all_labels": marks}
    write_features(tmp_path / "f.h5", replace(content, class_names=("unused", "a", "b", "c"), **several))
    aadml.embed(aadml.fit(tmp_path / "f.h5", method="random"), tmp_path / "f.h5", tmp_path / "e.h5")
    found = aadml.convert(tmp_path / "e.h5", tmp_path / "g.h5")
    assert found.class_names == ("a", "b", "c")
    np.testing.assert_array_equal(found.all_labels, marks[:, 1:])
    np.testing.assert_array_equal(found.labels, np.maximum(several["labels"] - 1, -1))
    assert not any("left out" in note for note in found.notes())
    counts = aadml.inspect(tmp_path / "f.h5").classes
    assert aadml.inspect(tmp_path / "e.h5").classes == {name: counts[name] for name in "abc"}
    assert open_data(tmp_path / "e.h5", class_names=("x", "y", "z")).class_names == ("x", "y", "z")


def test_names_of_classes_and_text_are_read_as_evaluate_reads_them(written):
    codes = np.tile(np.asarray([0, 2, 3]), 35)
    path, _ = written(label=codes, class_names=np.asarray(["cat", "none", "dog", "owl"]), text=np.ones((105, 4)))
    found = open_data(path)
    assert found.class_names == ("cat", "dog", "owl")
    assert found.features["text"].shape == (105, 4)
    path, _ = written(visual=None, text=np.ones((105, 4)))
    assert list(open_data(path).features) == ["audio", "text"]


def test_several_texts_a_clip_are_read_in_both_ways(written):
    values = np.random.default_rng(0).normal(size=(105, 2, 4)).astype(np.float32)
    path, _ = written(text=values)
    found = open_data(path)
    np.testing.assert_array_equal(found.features["text"], values[:, 0])
    order = np.random.default_rng(1).permutation(208)  # the last clip has none
    path, _ = written(text=values.reshape(-1, 4)[order], text_row=np.repeat(np.arange(105), 2)[order])
    again = open_data(path)
    assert again.has("text").tolist() == [True] * 104 + [False]
    assert sorted(again.texts.values[again.texts.rows == 3].tolist()) == sorted(values[3].tolist())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"split": None, "label": np.arange(105) % 3},
            "has no 'split'; add an array or column of this name with train, valid or test per clip, or draw splits",
        ),
        ({"text": np.ones((90, 2, 4))}, "'text' has 90 rows, but there are 105 clips"),
        ({"text": np.ones((90, 4)), "text_row": np.full(90, 105)}, "but must contain 90 clip numbers from 0 to 104"),
        ({"text": np.ones((90, 4)), "text_row": np.arange(89)}, "but must contain 90 clip numbers from 0 to 104"),
        ({"audio": None, "visual": None}, r"contains no modality, but .* \(arrays: label, split\)"),
        (
            {"visual": None, "image": np.ones((105, 8))},
            r"contains only the modality audio.* `aadml convert .*s\.npz F\.h5 --visual image`",
        ),
        (
            {"split": np.asarray(["train"] * 104 + ["holdout"])},
            "'holdout' in row 104 is not a split",
        ),
        ({"split": np.asarray(["train"] * 104)}, "104"),
        ({"label": np.zeros(3, np.int64)}, "3"),
        ({"audio": None}, "audio"),
        ({"label": np.asarray([{}] * 105, dtype=object)}, "npz"),
    ],
)
def test_what_contradicts_itself_is_refused(written, changes, message):
    path, _ = written(**changes)
    with pytest.raises(InputError, match=message):
        open_data(path, layout="columns")


def test_views_that_are_not_named_get_advice_that_exists(tmp_path):
    views = {"x": np.ones((4, 2)), "y": np.ones((4, 3)), "label": np.arange(4) % 2}
    np.savez(tmp_path / "v.npz", **{f"{name}_{part}": v for name, v in views.items() for part in ("train", "test")})
    with pytest.raises(
        InputError,
        match=r"the name of a view for audio \(its views are x, y\); .* `aadml convert .*v\.npz F\.h5 --audio VIEW",
    ):
        aadml.fit(tmp_path / "v.npz", method="cca")


@pytest.mark.parametrize("named", ["listed", "by option"])
def test_arrays_of_other_names_are_modalities_where_they_are_named_and_else_said_to_be_left_out(written, named):
    pose = np.ones((105, 3), dtype=np.float32)
    there = np.arange(105) % 5 > 0
    pose[~there] = np.nan
    listed = np.array(["pose"]) if named == "listed" else None
    path, content = written(pose=pose, pose_present=there, rest=pose, modalities=listed)
    found = open_data(path, views={} if named == "listed" else {"pose": "pose"})
    assert tuple(found.features) == ("audio", "visual", "pose")
    assert found.present["pose"].tolist() == there.tolist()
    assert (found.features["pose"][~there] == 0).all()
    assert (found.features["pose"][there] == 1).all()
    assert any("left out: rest" in note for note in found.notes())
    assert any("21 of 105 clips have no pose; these clips are masked" in note for note in found.notes())
    assert content.features["audio"].shape == found.features["audio"].shape


@pytest.mark.parametrize("wrong", [np.ones(3, bool), np.full(105, 2), np.full((105, 1), True)])
def test_a_mask_that_is_none_is_refused(written, wrong):
    path, _ = written(audio_present=wrong)
    with pytest.raises(InputError, match="audio_present"):
        open_data(path)


def test_columns_in_the_plural_are_the_same_columns(written):
    path, content = written(id=np.asarray([f"clip {i}" for i in range(105)]))
    with np.load(path) as arrays:
        wanted, columns = open_data(path), dict(arrays)
    many = {f"{key}s": columns[key] for key in ("label", "split", "id")}
    path, _ = written(label=None, split=None, **many)
    found = open_data(path)
    assert (found.ids, found.splits, found.class_names) == (wanted.ids, content.splits, content.class_names)
    np.testing.assert_array_equal(found.labels, content.labels)
    path, _ = written(labels=np.zeros(105))
    found = open_data(path)
    np.testing.assert_array_equal(found.labels, content.labels)
    assert any("left out: labels" in note for note in found.notes())


def test_clips_without_a_label_are_of_no_class_where_labels_are_positions(tmp_path):
    vectors, names = np.eye(6, dtype=np.float32), np.array(["bark", "never", "rain"])
    path = tmp_path / "e.npz"
    np.savez(path, audio=vectors, visual=vectors, label=np.array([-1, 2, 0, -1, 0, 2]), split=np.array(["train"] * 6),
             class_names=names)  # fmt: skip
    content = open_data(path)
    assert content.class_names == ("bark", "rain")
    assert content.labels.tolist() == [-1, 1, 0, -1, 0, 1]


def test_names_of_classes_go_with_one_hot_labels_too(tmp_path):
    vectors = np.eye(6, dtype=np.float32)
    np.savez(tmp_path / "e.npz", audio=vectors, visual=vectors, label=np.eye(3, dtype=np.int64)[[0, 1, 2, 2, 1, 0]],
             split=np.array(["train"] * 6), class_names=np.array(["bark", "horn", "rain"]))  # fmt: skip
    content = open_data(tmp_path / "e.npz")
    assert content.class_names == ("bark", "horn", "rain")
    assert content.labels.tolist() == [0, 1, 2, 2, 1, 0]


def captioned(**changes):
    """Four rows of three clips, of which the second has two texts."""
    ids, audio = np.asarray(["b", "a", "a", "c"]), np.asarray([[0, 1], [1, 2], [1, 2], [3, 0]], np.float32)
    columns = {
        "id": ids, "audio": audio, "text": np.arange(12, dtype=np.float32).reshape(4, 3),
        "label": np.asarray([1, 0, 0, 1]), "split": np.asarray(["train", "test", "test", "train"]),
    }  # fmt: skip
    return {**columns, **changes}


def test_rows_of_one_id_are_a_clip_with_several_texts(tmp_path):
    np.savez(tmp_path / "f.npz", **captioned())
    found = open_data(tmp_path / "f.npz")
    assert (found.ids, found.splits) == (("b", "a", "c"), ("train", "test", "train"))
    assert found.features["audio"].tolist() == [[0, 1], [1, 2], [3, 0]]
    assert found.features["text"].tolist() == [[0, 1, 2], [3, 4, 5], [9, 10, 11]]
    assert (found.texts.rows.tolist(), found.texts.values.tolist()) == ([0, 1, 1, 2], captioned()["text"].tolist())
    assert [found.class_names[label] for label in found.labels] == ["1", "0", "1"]
    present = {"audio_present": np.asarray([1, 0, 0, 1], bool), "text_present": np.asarray([1, 1, 0, 1], bool)}
    audio = np.asarray([[0, 1], [5, 5], [7, 7], [3, 0]], np.float32)  # values of absent rows may differ
    np.savez(tmp_path / "f.npz", **captioned(**present, audio=audio))
    found = open_data(tmp_path / "f.npz")
    assert found.present["audio"].tolist() == [True, False, True]
    assert "text" not in found.present


@pytest.mark.parametrize("kind", ["S", "O"])
def test_ids_in_bytes_are_utf_8(tmp_path, kind):
    names = np.asarray([name.encode() for name in ("b", "\u00e9", "\u00e9", "c")], dtype=kind)
    with h5py.File(tmp_path / "f.h5", "w") as file:
        for name, values in captioned(split=[b"train", b"test", b"test", b"train"], id=names).items():
            file[name] = values
    assert open_data(tmp_path / "f.h5").ids == ("b", "\u00e9", "c")


@pytest.mark.parametrize(
    "changes",
    [
        {"audio": np.asarray([[0, 1], [1, 2], [1, 3], [3, 0]], np.float32)},
        {"label": np.asarray([1, 0, 1, 1])},
        {"split": np.asarray(["train", "test", "train", "train"])},
        {"text_present": np.asarray([0, 0, 0, 0], bool)},
    ],
    ids=["audio", "label", "split", "no text"],
)
def test_rows_of_one_id_that_differ_in_more_than_the_text_are_refused(tmp_path, changes):
    np.savez(tmp_path / "f.npz", **captioned(**changes))
    with pytest.raises(InputError):
        open_data(tmp_path / "f.npz")


def test_at_most_thirty_arrays_of_a_file_are_named(tmp_path):
    arrays = {f"a{number:02d}": np.ones((2, 3)) for number in range(31)}
    np.savez(tmp_path / "f.npz", audio=np.ones((2, 3)), label=np.arange(2), **arrays)
    named = ", ".join(["audio", "label", *list(arrays)[:28]])
    with pytest.raises(
        InputError,
        match=rf"contains only the modality audio, .* needed \(arrays: {named}\); rename an array to visual, or",
    ):
        open_data(tmp_path / "f.npz", layout="columns")
