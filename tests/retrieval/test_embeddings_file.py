import h5py
import numpy as np
import pytest
import torch

from aadml.feature_extraction.feature_file.columns import TEXT_ROW
from aadml.feature_extraction.ground.errors import InputError
from aadml.retrieval.embeddings_file import read_embeddings

AUDIO = np.arange(8.0).reshape(4, 2)


def arrays(**changes):
    return {"audio": AUDIO, "visual": AUDIO + 1, "label": np.array([7, 3, 7, 5])} | changes


def test_an_npz_file_is_read_whole_where_it_names_no_split(tmp_path):
    np.savez(tmp_path / "e.npz", **arrays())
    found, split = read_embeddings(tmp_path / "e.npz")
    assert split == "all"
    assert found.labels.tolist() == [2, 0, 2, 1]
    assert found.class_names == ("3", "5", "7")
    assert found.ids == ("0", "1", "2", "3")
    assert torch.equal(found.vectors["visual"], torch.from_numpy(AUDIO + 1).float())
    assert found.similarity == "cosine"


def test_an_hdf5_file_is_read_with_its_names_its_split_and_its_similarity(tmp_path):
    with h5py.File(tmp_path / "e.h5", "w") as file:
        for key, value in arrays(label=np.array([1, 0, 1, 0])).items():
            file[key] = value
        text = h5py.string_dtype()
        file.create_dataset("id", data=["a", "b", "c", "ä"], dtype=text)
        file.create_dataset("split", data=["val", "test", "test", "train"], dtype=text)
        file.create_dataset("class_names", data=["rain", "dog"], dtype=text)
        file.attrs["similarity"] = "dot"
    found, split = read_embeddings(tmp_path / "e.h5")
    assert (split, found.ids, found.similarity, found.class_names) == ("test", ("b", "c"), "dot", ("rain", "dog"))
    assert found.labels.tolist() == [0, 1]
    assert read_embeddings(tmp_path / "e.h5", "valid")[0].ids == ("a",)
    found, split = read_embeddings(tmp_path / "e.h5", "val")
    assert (split, found.ids) == ("valid", ("a",))
    with pytest.raises(InputError, match="no clips of the split 'dev0'; choose from test, train, valid"):
        read_embeddings(tmp_path / "e.h5", "dev0")


@pytest.mark.parametrize("ending", ["npz", "h5"])
def test_columns_in_the_plural_are_read_and_what_is_left_out_is_named(tmp_path, ending):
    place, said = tmp_path / f"e.{ending}", []
    columns = {"audio": AUDIO, "visual": AUDIO + 1, "labels": np.array([7, 3, 7, 5]), "ids": np.array(list(b"wxyz")),
               "splits": np.array([b"test", b"train", b"test", b"test"]), "pca": AUDIO}  # fmt: skip
    if ending == "npz":
        np.savez(place, **columns)
    else:
        with h5py.File(place, "w") as file:
            for key, values in columns.items():
                file[key] = values
    found, split = read_embeddings(place, None, said.append)
    assert (split, found.class_names, found.ids) == ("test", ("3", "5", "7"), ("119", "121", "122"))
    assert said == [
        f"{place}: arrays with unknown names were ignored (pca); to read an array as a modality, add its name to "
        "'modalities'"
    ]


def test_a_file_of_other_modalities_is_refused_with_all_that_it_has(tmp_path):
    np.savez(tmp_path / "e.npz", audio=AUDIO, video=AUDIO, label=np.arange(4))
    with pytest.raises(
        InputError, match=r"has fewer than two modalities \(its arrays: audio, label, video\); store at least two"
    ):
        read_embeddings(tmp_path / "e.npz")


def test_labels_stay_positions_among_the_class_names_even_where_a_class_has_no_clip(tmp_path):
    np.savez(tmp_path / "e.npz", **arrays(label=np.array([2, 0, 2, 0]), class_names=np.array(["rain", "dog", "car"])))
    found = read_embeddings(tmp_path / "e.npz")[0]
    assert found.labels.tolist() == [2, 0, 2, 0]
    assert found.class_names == ("rain", "dog", "car")


def test_no_rows_are_refused(tmp_path):
    np.savez(tmp_path / "e.npz", audio=AUDIO[:0], visual=AUDIO[:0], label=np.arange(0))
    with pytest.raises(InputError, match="audio has type float64 and shape"):
        read_embeddings(tmp_path / "e.npz")


@pytest.mark.parametrize("label", [np.array(["x", "y", "x", "z"]), np.array([[0.0], [1], [0], [2]])])
def test_labels_may_be_text_or_a_column_of_whole_numbers(tmp_path, label):
    np.savez(tmp_path / "e.npz", **arrays(label=label))
    assert read_embeddings(tmp_path / "e.npz")[0].labels.tolist() == [0, 1, 0, 2]


@pytest.mark.parametrize("label", [np.array([7, -1, 7, -1]), np.array(["7", "", "7", "-1"])])
def test_labels_that_are_minus_one_or_empty_are_not_a_class(tmp_path, label):
    np.savez(tmp_path / "e.npz", **arrays(label=label))
    notes = []
    embeddings, _ = read_embeddings(tmp_path / "e.npz", None, notes.append)
    assert (embeddings.labels.tolist(), embeddings.class_names) == ([0, -1, 0, -1], ("7",))
    assert notes == [f"{tmp_path / 'e.npz'}: 2 of 4 clips have the label -1 or an empty label, which is not a class"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"audio": AUDIO * np.nan}, "the audio vectors contain NaN"),
        ({"audio": AUDIO[:, 0]}, r"audio has type float64 and shape \(4,\); pass numbers of shape \(n, d\)"),
        ({"audio": AUDIO.astype(str)}, "audio has .* pass numbers"),
        ({"audio": AUDIO[:3]}, "4 visual rows, but 3 audio rows"),
        ({"visual": AUDIO[:3]}, "3 visual rows, but 4 audio rows"),
        ({"label": np.arange(3)}, r"label has shape \(3,\); pass an array of shape \(4,\)"),
        (
            {"label": np.array([0.5, 1, 2, 3])},
            r"label contains 0.5, which is not a whole number up to 2\*\*53; pass integers",
        ),
        ({"label": np.array([1e19, 2e19, 1, 2])}, r"label contains 1e\+19, which is not a whole number up to"),
        ({"id": np.array(["a", "b", "a", "c"])}, r"id contains 'a' 2 times"),
        ({"class_names": np.array(["x"] * 8)}, r"class_names contains 'x' 8 times"),
        ({"audio": AUDIO.astype(complex)}, r"audio has type complex128 and shape"),
        ({"label": np.array([1, 2, 3, {}], dtype=object)}, "array 'label' contains Python objects"),
        ({"id": np.array(["a"])}, "id has shape"),
    ],
)
def test_what_is_malformed_is_refused_with_the_name_of_the_file(tmp_path, changes, message):
    np.savez(tmp_path / "e.npz", **arrays(**changes))
    with pytest.raises(InputError, match=f"(?s)e.npz.*{message}"):
        read_embeddings(tmp_path / "e.npz")


def test_what_is_missing_is_named(tmp_path):
    np.savez(tmp_path / "e.npz", audio=AUDIO, label=np.arange(4))
    with pytest.raises(InputError, match=r"\(its arrays: audio, label\); store at least two"):
        read_embeddings(tmp_path / "e.npz")
    with pytest.raises(InputError, match="does not exist"):
        read_embeddings(tmp_path / "absent.npz")
    with pytest.raises(InputError, match="is a folder"):
        read_embeddings(tmp_path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 broken", b"\x89HDF\r\n\x1a\n broken", b"text"])
def test_a_damaged_file_is_refused(tmp_path, content):
    (tmp_path / "e.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"cannot be read as (npz|HDF5)"):
        read_embeddings(tmp_path / "e.npz")


def test_a_truncated_archive_is_refused(tmp_path):
    np.savez(tmp_path / "whole.npz", **arrays())
    whole = (tmp_path / "whole.npz").read_bytes()
    (tmp_path / "e.npz").write_bytes(whole[:300] + bytes(200) + whole[500:])
    with pytest.raises(InputError, match=r"e\.npz"):
        read_embeddings(tmp_path / "e.npz")


def test_a_group_in_place_of_an_array_is_refused(tmp_path):
    with h5py.File(tmp_path / "e.h5", "w") as file:
        file.create_group("audio")
    with pytest.raises(InputError, match=r"e\.h5.*'audio' is a group"):
        read_embeddings(tmp_path / "e.h5")


def test_a_clip_with_several_captions_stands_in_several_rows(tmp_path):
    np.savez(tmp_path / "e.npz", audio=AUDIO, text=AUDIO, label=np.arange(4) // 2, id=np.array(["a", "a", "b", "b"]))
    assert read_embeddings(tmp_path / "e.npz")[0].ids == ("a", "a", "b", "b")


@pytest.mark.parametrize("rows", [[0.0, 0.0, 1.0, 1.0], [0, 0, 1], [0, 0, 1, 2]])
def test_rows_of_captions_that_cannot_be_are_refused(tmp_path, rows):
    np.savez(tmp_path / "e.npz", **{"audio": AUDIO[:2], "text": AUDIO, TEXT_ROW: np.array(rows)})
    with pytest.raises(InputError, match=f"{TEXT_ROW} contains .*, but must contain 4 clip numbers from 0 to 1"):
        read_embeddings(tmp_path / "e.npz")


def test_captions_of_another_number_of_clips_are_refused(tmp_path):
    np.savez(tmp_path / "e.npz", audio=AUDIO, text=np.stack([AUDIO[:3], AUDIO[:3]], axis=1))
    with pytest.raises(InputError, match="'text' has 3 rows, but there are 4 clips"):
        read_embeddings(tmp_path / "e.npz")


@pytest.mark.parametrize("kind", ["npz", "h5"])
def test_modalities_of_other_names_and_masks_are_read(tmp_path, kind):
    flow = (AUDIO + 2).astype(np.float32)
    flow[1] = np.nan  # whatever stands where nothing is
    given = arrays(flow=flow, flow_present=np.array([True, False, True, True]), other=AUDIO)
    given |= {"modalities": np.array(["audio", "flow"]), "split": np.array(["train", "test", "test", "test"])}
    path = tmp_path / f"e.{kind}"
    if kind == "npz":
        np.savez(path, **given)
    else:
        with h5py.File(path, "w") as file:
            for key, value in given.items():
                file[key] = value.astype(object) if value.dtype.kind == "U" else value
    found, _ = read_embeddings(path)
    assert list(found.vectors) == ["audio", "visual", "flow"]
    assert found.present["flow"].tolist() == [False, True, True]
    assert torch.equal(found.vectors["flow"][1:], torch.from_numpy(flow[2:]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"audio_present": np.array([True])},
            r"audio_present has shape \(1,\); pass an array of shape \(4,\), one value per row",
        ),
        ({"audio_present": np.array([0, 1, 2, 1])}, "audio_present contains 2; pass booleans, or zeros and ones"),
        ({"modalities": np.array(["a b"])}, "'a b' cannot be the name of a modality"),
    ],
)
def test_wrong_masks_and_names_are_refused(tmp_path, changes, message):
    np.savez(tmp_path / "e.npz", **arrays(**changes))
    with pytest.raises(InputError, match=message):
        read_embeddings(tmp_path / "e.npz")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.h5", b"", r"cannot be read as HDF5 \(it is empty\)"),
        ("words.h5", b"a,b", r"cannot be read as HDF5 \(it is a file of another kind\)"),
    ],
)
def test_a_file_of_another_kind_is_refused_in_plain_words(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=f"{name} {message}"):
        read_embeddings(tmp_path / name)


def test_features_given_for_embeddings_are_refused_by_name(tmp_path):
    np.savez(tmp_path / "f.npz", audio=np.ones((4, 3)), visual=np.ones((4, 5)))
    with pytest.raises(
        InputError,
        match=r"f\.npz: audio has 3 dimensions, visual has 5 dimensions, so the modalities do not share a space",
    ):
        read_embeddings(tmp_path / "f.npz")


@pytest.mark.parametrize("key", ["id", "class_names"])
def test_strings_that_are_not_utf_8_are_refused(tmp_path, key):
    words = np.array([b"bl\xe4u", b"b", b"c", b"d", b"e", b"f", b"g", b"h"])
    np.savez(tmp_path / "e.npz", **arrays(**{key: words[:4] if key == "id" else words}))
    with pytest.raises(InputError, match=rf"e\.npz: {key} contains strings that are not UTF-8"):
        read_embeddings(tmp_path / "e.npz")
