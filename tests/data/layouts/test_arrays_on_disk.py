import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from aadml.data.layouts.arrays_on_disk import assemble, matrix, read_class_names, recode
from aadml.data.layouts.layout import LayoutArrays
from aadml.feature_extraction.ground.errors import InputError


@given(arrays(np.int64, st.integers(1, 30), elements=st.integers(-1000, 1000).filter(lambda n: n != -1)))
def test_recoded_labels_name_the_original_values_again(labels):
    codes, names = recode(labels, "labels")
    assert [int(names[code]) for code in codes] == labels.tolist()
    assert list(map(int, names)) == sorted(set(labels.tolist()))
    for same in (labels[:, None], labels.astype(np.float64), labels.astype(str), labels.astype("S8")):
        again, names_again = recode(same, "labels")
        assert again.tolist() == codes.tolist()
        assert names_again == names


def test_one_hot_rows_are_columns_and_empty_columns_are_no_classes():
    codes, names = recode(np.eye(5)[[4, 1, 1]], "labels")
    assert codes.tolist() == [1, 0, 0]
    assert names == ("1", "4")


@pytest.mark.parametrize(
    "labels",
    [
        np.asarray([7, -1, 3, -1]),
        np.asarray([[7.0], [-1], [3], [-1]]),
        np.asarray(["7", "", "3", "-1"]),
        np.asarray([b"7", b" ", b"3", b"-1\0"], dtype=object),
    ],
)
def test_labels_that_are_minus_one_or_empty_are_not_a_class(tmp_path, labels):
    codes, names = recode(labels, "labels")
    assert (codes.tolist(), names) == ([1, -1, 0, -1], ("3", "7"))
    content = assembled(tmp_path, labels=labels[:3])
    assert (content.labels.tolist(), content.class_names) == ([1, -1, 0], ("3", "7"))
    assert content.notes() == ("1 of 3 clips have the label -1 or an empty label, which is not a class",)
    assert assembled(tmp_path, ("three", "seven"), labels=labels[:3]).class_names == ("three", "seven")


def test_words_are_classes_in_alphabetic_order():
    codes, names = recode(np.asarray([b"dog", b"cat\0", b"dog"], dtype=object), "labels")
    assert codes.tolist() == [1, 0, 1]
    assert names == ("cat", "dog")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.asarray([0.5, 1.0]), "contain 0.5, which is not a whole number"),
        (
            np.asarray([np.nan, 1.0]),
            "contain nan, which is not a whole number .* text, with -1 or empty text for a clip without a label",
        ),
        (np.asarray([1e19, 2e19]), r"contain 1e\+19, which is not a whole number up to 2\*\*53"),
        (np.asarray([[1, 1, 0]]), "row 0 has 2 classes"),
        (np.asarray([[0, 0, 0]]), "row 0 has 0 classes"),
        (np.asarray([[0, 2, 0]]), "contain '2', which is neither 0 nor 1; pass one-hot rows"),
        (np.zeros((2, 2, 2)), "shape"),
        (np.asarray(3), "shape"),
        (np.asarray([1j]), "whole numbers or text"),
    ],
)
def test_labels_that_are_no_classes_are_refused(labels, message):
    with pytest.raises(InputError, match=message):
        recode(labels, "labels")


@pytest.mark.parametrize("values", [np.zeros(3), np.zeros((2, 2, 2)), np.asarray([["a"]])])
def test_features_of_another_shape_or_type_are_refused(values):
    with pytest.raises(InputError, match="audio"):
        matrix(values, "audio")


def assembled(tmp_path, names=None, **changes):
    (tmp_path / "source").write_text("x")
    parts = {
        "features": {"audio": np.ones((3, 2)), "visual": np.ones((3, 4), dtype=np.uint8)},
        "labels": np.asarray([7, 2, 7]),
        "splits": ["train", "train", "test"],
    }
    return assemble(tmp_path / "source", "some-layout", LayoutArrays(**parts | changes), names)


def test_what_is_assembled_says_where_it_comes_from(tmp_path):
    content = assembled(tmp_path)
    assert content.ids == ("train-00000", "train-00001", "test-00000")
    assert content.features["visual"].dtype == np.float32
    assert content.class_names == ("2", "7")
    assert content.provenance["audio"]["layout"] == "some-layout"
    assert content.provenance["audio"]["sources"]["source"].startswith("2d711642b726b044")  # SHA-256 of "x"


def test_class_names_stand_in_the_order_of_the_values_or_are_indexed_by_them(tmp_path):
    assert assembled(tmp_path, ("two", "seven")).class_names == ("two", "seven")
    assert assembled(tmp_path, tuple("abcdefgh")).class_names == ("c", "h")
    with pytest.raises(InputError, match="there are 3 class names for 2 classes"):
        assembled(tmp_path, tuple("abc"))


def test_labels_that_are_text_keep_their_names(tmp_path):
    labels = np.asarray(["dog", "cat", ""])
    for names in (("dog", "cat"), ("owl", "cat", "dog")):
        content = assembled(tmp_path, names, labels=labels)
        assert (content.class_names, content.labels.tolist()) == (("cat", "dog"), [1, 0, -1])
    with pytest.raises(InputError, match=r"the labels are text, but .* lacks the label 'cat'; leave out --class-names"):
        assembled(tmp_path, ("dog", "owl"), labels=labels)
    assert assembled(tmp_path, ("two", "seven"), labels=np.asarray(["7", "2", "7"])).class_names == ("two", "seven")
    assert assembled(tmp_path, labels=labels, class_names=("kitten", "puppy")).class_names == ("kitten", "puppy")


def test_class_names_that_are_counted_from_0_are_noted_where_no_label_is_0(tmp_path):
    note = "no label is 0, and class names are counted from 0: label 2 is 'c'"
    eye, names = np.eye(8)[[7, 2, 7]], tuple("abcdefgh")
    for labels, notes in (([7, 2, 7], [note]), ([7, 0, 7], []), (eye, [])):
        content = assembled(tmp_path, names, labels=np.asarray(labels))
        assert content.provenance["audio"]["notes"] == notes
    assert assembled(tmp_path, ("two", "seven")).provenance["audio"]["notes"] == []


def test_class_names_for_clips_without_labels_are_refused(tmp_path):
    with pytest.raises(InputError, match="there are 3 class names for 0 classes"):
        assembled(tmp_path, tuple("abc"), labels=None)


def test_positions_among_class_names_may_be_unlabelled(tmp_path):
    parts = {"class_names": ("dog", "cat", "bird"), "positional": True}
    content = assembled(tmp_path, labels=np.asarray([2, -1, 0]), **parts)
    assert content.labels.tolist() == [1, -1, 0]
    assert content.class_names == ("dog", "bird")
    assert assembled(tmp_path, labels=np.zeros((3, 1), int), class_names=("dog",), positional=True).class_names == (
        "dog",
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": np.asarray([1, 2])}, r"/label is int64 \(2,\), but must be int64 \(3,\)"),
        ({"features": {"audio": np.full((3, 2), np.nan)}}, "row 0 contains NaN"),
        ({"features": {"audio": np.full((3, 2), 1e300)}}, "row 0 contains NaN or infinity"),
        ({"features": {"audio": np.ones((2, 2))}}, r"float32 \(2, 2\), but must be float32 \(3, d\)"),
        ({"features": {"audio": np.ones((3, 0))}}, r"float32 \(3, 0\), but must be float32 \(3, d\)"),
    ],
)
def test_parts_that_contradict_each_other_are_refused(tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        assembled(tmp_path, **changes)


def test_class_names_are_read_one_a_line(tmp_path):
    path = tmp_path / "names.txt"
    path.write_text("\ufeffbaby cry\n\n Säge \n", encoding="utf-8")
    assert read_class_names(path) == ("baby cry", "Säge")


@pytest.mark.parametrize(
    ("text", "message"), [(b"", "no class names"), (b"a\na\n", "write each name once"), (b"\xff", "cannot be read")]
)
def test_a_list_of_class_names_that_is_none_is_refused(tmp_path, text, message):
    path = tmp_path / "names.txt"
    path.write_bytes(text)
    with pytest.raises(InputError, match=message):
        read_class_names(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_class_names(tmp_path / "absent.txt")


def test_the_values_of_classes_are_shortened(tmp_path):
    labels = np.arange(100, 121)
    features = {"audio": np.ones((21, 2))}
    values = ", ".join(map(str, range(100, 121)))[:80]
    with pytest.raises(
        InputError, match=rf"there are 3 class names for 21 classes \(values {values}\); pass one name per"
    ):
        assembled(tmp_path, tuple("abc"), labels=labels, features=features, splits=["train"] * 21)
