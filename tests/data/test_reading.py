import io
import pickle

import h5py
import numpy as np
import pytest

from aadml.data.ave import AVE15
from aadml.data.layouts import LAYOUTS
from aadml.data.reading import open_data
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file import write_features
from aadml.feature_extraction.ground.errors import InputError


def test_the_feature_file_comes_back_as_it_was_written(tmp_path):
    content = synthetic(classes=3, train=9, valid=3, test=6, dimensions=(2, 3))
    write_features(tmp_path / "f.h5", content)
    again = open_data(tmp_path / "f.h5")
    assert again.ids == content.ids
    assert np.array_equal(again.features["visual"], content.features["visual"])


def test_split_keys_are_recognized(write_h5, split_keys):
    content = open_data(write_h5(**split_keys))
    assert content.splits == ("train",) * 12 + ("test",) * 6
    assert content.class_names == ("3", "5", "9")
    assert content.labels[:4].tolist() == [2, 0, 1, 2]
    assert np.array_equal(content.features["audio"][12:], split_keys["audio_test"].astype(np.float32))
    assert content.features["visual"].shape == (18, 7)


@pytest.mark.parametrize("part", ["valid", "val"])
def test_a_validation_part_is_read_where_there_is_one(write_h5, split_keys, part):
    more = {f"{name}_{part}": split_keys[f"{name}_test"] for name in ("audio", "visual", "lab")}
    content = open_data(write_h5(**split_keys, **more))
    assert content.splits.count("valid") == 6


@pytest.mark.parametrize("form", ["column", "one-hot", "mixed"])
def test_labels_may_be_a_column_or_one_hot(write_h5, split_keys, form):
    plain = open_data(write_h5("plain.h5", **split_keys))
    for part in ("train", "test"):
        labels = split_keys[f"lab_{part}"]
        if form == "column" or (form == "mixed" and part == "test"):
            split_keys[f"lab_{part}"] = labels[:, None].astype(np.float32)
        elif form == "one-hot":
            split_keys[f"lab_{part}"] = np.eye(10, dtype=np.int8)[labels]
    assert open_data(write_h5(**split_keys)).labels.tolist() == plain.labels.tolist()


@pytest.mark.parametrize("key", ["audio_train", "visual_test", "lab_train"])
def test_a_missing_key_is_named_with_the_keys_found(write_h5, split_keys, key):
    del split_keys[key]
    with pytest.raises(InputError, match=rf"holds no '{key}'; keys found: .*visual_train|lab_test"):
        open_data(write_h5(**split_keys))


@pytest.mark.parametrize(
    ("key", "change", "message"),
    [
        ("lab_test", lambda v: v[:-1], "'audio_test' has 6 rows, but 'lab_test' has 5"),
        ("visual_train", lambda v: v[:-1], "'visual_train' has 11"),
        ("audio_test", lambda v: v[:, :-1], r"'audio_train' has shape \(12, 4\), but 'audio_test' has \(6, 3\)"),
        ("audio_train", lambda v: v * np.nan, "row 0 holds NaN"),
        ("audio_train", lambda v: v.astype("S4"), "numbers are needed|must agree"),
        ("lab_train", lambda v: np.float64(3), "must agree"),
        ("lab_train", lambda v: v + 0.5, "fractions"),
        ("audio_train", lambda v: v[:0], "has 0|rows"),
    ],
)
def test_split_keys_that_contradict_each_other_are_refused(write_h5, split_keys, key, change, message):
    split_keys[key] = change(split_keys[key])
    with pytest.raises(InputError, match=message):
        open_data(write_h5(**split_keys))


def flat(**changes):
    return {
        "audio_feat": np.ones((4, 2)),
        "visual_feat": np.ones((4, 3)),
        "Label_ID": np.asarray([1, 0, 1, 0]),
        "Train_test": np.asarray([b"1", b"1", b"0", b"0"]),
    } | changes


@pytest.mark.parametrize("key", ["Train_test", "Split"])
@pytest.mark.parametrize(
    "words", [np.asarray([b"1", b"1", b"0", b"0"]), np.asarray([[1], [1], [0], [0]]), np.asarray([1.0, 1.0, 0.0, 0.0])]
)
def test_the_flat_layout_is_recognized(write_h5, key, words):
    arrays = flat()
    del arrays["Train_test"]
    content = open_data(write_h5(**arrays, **{key: words}))
    assert content.splits == ("train", "train", "test", "test")
    assert {m: v.shape[1] for m, v in content.features.items()} == {"audio": 2, "visual": 3}


def test_the_flat_layout_reads_variable_text(write_h5):
    words = np.asarray(["1", "valid", "0", "0"], dtype=object)
    assert open_data(write_h5(**flat(Train_test=words))).splits == ("train", "valid", "test", "test")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"Train_test": np.asarray([b"2", b"1", b"0", b"0"])}, "'2' in row 0 is not a split"),
        ({"Train_test": np.zeros((4, 2))}, "one word a clip"),
        ({"Label_ID": np.asarray([1, 0])}, "'Label_ID' has 2"),
    ],
)
def test_flat_data_that_contradicts_itself_is_refused(write_h5, changes, message):
    with pytest.raises(InputError, match=message):
        open_data(write_h5(**flat(**changes)))


def test_the_flat_layout_without_a_split_names_both_possible_keys(write_h5):
    arrays = flat()
    del arrays["Train_test"]
    with pytest.raises(InputError, match="holds no 'Train_test or Split'; keys found: Label_ID, audio_feat"):
        open_data(write_h5(**arrays))


def test_an_embedding_dump_is_all_test_and_says_what_it_took_for_what(write_h5):
    path = write_h5(featN1=np.ones((3, 2)), featN2=np.ones((3, 5)), testLs=np.asarray([1, 2, 1]))
    content = open_data(path)
    assert content.splits == ("test",) * 3
    assert content.features["audio"].shape == (3, 2)
    assert "does not say" in content.provenance["audio"]["notes"][0]
    assert open_data(path, audio="featN2", visual="featN1").features["audio"].shape == (3, 5)


def views(tmp_path, **changes):
    arrays = {
        f"{name}_{part}": np.ones((n, d)) for part, n in (("train", 4), ("test", 2)) for name, d in (("x", 2), ("y", 3))
    }
    arrays |= {"label_train": np.asarray([1, 2, 1, 2]), "label_test": np.asarray([1, 2])}
    np.savez(tmp_path / "views.npz", **arrays | changes)
    return tmp_path / "views.npz"


def test_two_views_of_an_npz_stand_for_audio_and_visual(tmp_path):
    content = open_data(views(tmp_path), audio="y", visual="x")
    assert {m: v.shape for m, v in content.features.items()} == {"audio": (6, 3), "visual": (6, 2)}
    assert content.splits == ("train",) * 4 + ("test",) * 2
    assert content.class_names == ("1", "2")


def test_labels_of_views_may_be_in_the_plural(tmp_path):
    with np.load(views(tmp_path)) as arrays:
        np.savez(tmp_path / "many.npz", **{key.replace("label", "labels"): values for key, values in arrays.items()})
    content = open_data(tmp_path / "many.npz", audio="y", visual="x")
    assert content.labels.tolist() == [0, 1, 0, 1, 0, 1]
    assert not any("left out" in note for note in content.notes())


@pytest.mark.parametrize("chosen", [{}, {"audio": "x"}, {"audio": "x", "visual": "z"}])
def test_views_that_are_not_named_are_listed(tmp_path, chosen):
    with pytest.raises(InputError, match=r"--audio VIEW and --visual VIEW to `aadml convert .*`, .*the views are x, y"):
        open_data(views(tmp_path), **chosen)


def test_pickled_arrays_are_never_loaded(tmp_path):
    with pytest.raises(InputError, match="cannot be read as npz"):
        open_data(views(tmp_path, x_train=np.asarray([{}, 1], dtype=object)), audio="x", visual="y")


def test_the_last_189_train_rows_of_the_papers_ave_file_are_its_validation_split(write_h5):
    generator = np.random.default_rng(0)
    counts = np.asarray(list(AVE15.values()))
    order = generator.permutation(15) + 1  # any numbers may stand for the classes
    blocks = {part: np.repeat(order, counts[:, number]) for number, part in enumerate(("train", "valid", "test"))}
    labels = {"train": np.concatenate([blocks["train"], blocks["valid"]]), "test": blocks["test"]}
    arrays = {f"lab_{part}": values for part, values in labels.items()}
    for part, values in labels.items():
        arrays |= {f"{name}_{part}": generator.standard_normal((len(values), 2)) for name in ("audio", "visual")}
    content = open_data(write_h5(**arrays))
    assert [content.splits.count(split) for split in ("train", "valid", "test")] == [1577, 189, 189]
    assert set(content.rows("valid")) == set(range(1577, 1766))
    assert any("official validation" in note for note in content.provenance["audio"]["notes"])

    arrays["lab_train"] = generator.permutation(arrays["lab_train"])
    assert "valid" not in open_data(write_h5("shuffled.h5", **arrays)).splits


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_named_for_something_else_is_refused_in_one_line(write_h5, tmp_path, layout):
    path = tmp_path if LAYOUTS[layout].kind != "folder" else write_h5(other=np.ones(3))
    with pytest.raises(InputError):
        open_data(path, layout=layout)
    with pytest.raises(InputError, match="no such file or folder"):
        open_data(tmp_path / "absent", layout=layout)


def test_what_is_no_data_is_refused_with_what_is_possible(write_h5, tmp_path):
    (tmp_path / "empty.h5").touch()
    (tmp_path / "text.h5").write_text("not data")
    (tmp_path / "folder").mkdir()
    (tmp_path / "manifest.csv").write_text("id,media,label,split")
    (tmp_path / "pickle.npz").write_bytes(pickle.dumps([1]))
    cases = {
        "empty.h5": "is empty",
        "text.h5": "neither HDF5 nor npz",
        "manifest.csv": "run `aadml extract",
        "pickle.npz": "neither HDF5 nor npz",
        "folder": "no known layout; found in it: nothing",
        "absent.h5": "no such file",
    }
    for name, message in cases.items():
        with pytest.raises(InputError, match=message):
            open_data(tmp_path / name)
    with pytest.raises(InputError, match="no known layout; found in it: other; possible are a feature file"):
        open_data(write_h5(other=np.ones(3)))
    with pytest.raises(InputError, match="did you mean 'flat'"):
        open_data(write_h5(other=np.ones(3)), layout="flt")


def test_what_is_something_else_is_named_with_what_to_do(tmp_path):
    (tmp_path / "clips" / "dog").mkdir(parents=True)
    (tmp_path / "clips" / "dog" / "a.MP4").write_bytes(b"a video")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "model.json").write_text("{}")
    (tmp_path / "captioned").mkdir()
    (tmp_path / "captioned" / "clotho_captions_development.csv").write_text("file_name,caption_1\na.wav,a bee\n")
    for name, message in {
        "captioned": "holds sound and captions, not features; `aadml train --method audio-text --data",
        "clips": f"holds media, not features; `aadml manifest {tmp_path / 'clips'}` lists",
        "clips/dog/a.MP4": f"is media, not features; `aadml manifest {tmp_path / 'clips' / 'dog'}` lists",
        "run": f"is a model, not features; `aadml evaluate {tmp_path / 'run'} --data F.h5`",
    }.items():
        with pytest.raises(InputError) as refused:
            open_data(tmp_path / name)
        assert str(refused.value).startswith(f"{tmp_path / name}: {message}")


def test_a_damaged_file_is_refused(write_h5, split_keys, tmp_path):
    whole = write_h5(**split_keys).read_bytes()
    (tmp_path / "cut.h5").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="cannot be read as HDF5"):
        open_data(tmp_path / "cut.h5")
    archive = io.BytesIO()
    np.savez(archive, label_train=np.ones(3))
    (tmp_path / "cut.npz").write_bytes(archive.getvalue()[:60])
    with pytest.raises(InputError):
        open_data(tmp_path / "cut.npz")


def test_groups_in_the_place_of_arrays_are_refused(write_h5, split_keys):
    path = write_h5(**split_keys)
    with h5py.File(path, "a") as file:
        del file["lab_train"]
        file.create_group("lab_train")
    with pytest.raises(InputError, match="'lab_train' is a group; an array is needed"):
        open_data(path)


def test_real_views_are_read(shared_data):
    content = open_data(shared_data / "uci_digits_views" / "uci_digits_views.npz", audio="fourier", visual="pixels")
    assert [content.splits.count(split) for split in ("train", "test")] == [1500, 500]
    assert content.class_names == tuple(str(number) for number in range(1, 11))
    content = open_data(shared_data / "mosi_utterances" / "mosi_utterances.npz", audio="audio", visual="video")
    assert np.bincount(content.labels[content.rows("test")]).tolist() == [285, 467]


def test_two_arrays_of_any_name_are_the_modalities_that_they_are_named_for(tmp_path):
    generator = np.random.default_rng(0)
    a, v = (generator.standard_normal((20, d)).astype(np.float32) for d in (3, 4))
    np.savez(tmp_path / "x.npz", a=a, v=v)
    content = open_data(tmp_path / "x.npz", audio="a", visual="v", undivided=True)
    assert np.array_equal(content.features["audio"], a)
    assert np.array_equal(content.features["visual"], v)
    assert content.class_names == ()
    with pytest.raises(InputError, match=r"has no 'split'.*--split random:0\.7/0\.1/0\.2"):
        open_data(tmp_path / "x.npz", audio="a", visual="v")
    with pytest.raises(InputError):
        open_data(tmp_path / "x.npz", audio="a", visual="w", undivided=True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"audio": "x"}, "a feature file has no views to choose; audio=x given"),
        ({"views": ["flow=raft"]}, "a feature file has no views to choose; flow=raft given"),
        ({"test_fold": 2}, "a feature file has no test fold to choose; 2 given"),
    ],
)
def test_what_a_feature_file_does_not_follow_is_refused(tmp_path, options, said):
    write_features(tmp_path / "f.h5", synthetic(classes=3, train=9, valid=3, test=6, dimensions=(2, 3)))
    with pytest.raises(InputError, match=said):
        open_data(tmp_path / "f.h5", **options)


@pytest.mark.parametrize("options", [{"layout": "flat"}, {"audio": "x"}, {"test_fold": 1}, {"class_names": ("a",)}])
def test_drawn_features_leave_nothing_to_choose(options):
    with pytest.raises(InputError, match=r"^synthetic:pairs: drawn features have no .* to choose; .* given$"):
        open_data("synthetic:pairs", **options)


def test_what_a_layout_does_not_follow_is_refused(write_h5, split_keys):
    place = write_h5(**split_keys)
    for options, said in (
        ({"audio": "x"}, "no views to choose; audio=x"),
        ({"test_fold": 2}, "no test fold to choose"),
    ):
        with pytest.raises(InputError, match=f"the layout split-keys has {said}"):
            open_data(place, **options)
