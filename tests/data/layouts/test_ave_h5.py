import h5py
import numpy as np
import pytest

from aadml.data.reading import open_data
from aadml.feature_extraction.ground.errors import InputError

SPLITS = {"train": [0, 2, 4, 5], "val": [1], "test": [3]}


@pytest.fixture
def folder(tmp_path):
    generator = np.random.default_rng(0)
    arrays = {
        "audio_feature": generator.standard_normal((6, 10, 4)),
        "visual_feature": generator.standard_normal((6, 10, 7, 7, 5)).astype(np.float32),
        "labels": np.zeros((6, 10, 4), dtype=np.float32),
    }
    for clip, column in enumerate([0, 1, 2, 0, 3, 1]):
        arrays["labels"][clip, :6, 3] = 1
        arrays["labels"][clip, 6:, column] = 1
    for name, values in arrays.items():
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file["avadataset"] = values
    for name, rows in SPLITS.items():
        with h5py.File(tmp_path / f"{name}_order.h5", "w") as file:
            file["order"] = np.asarray(rows)
    return tmp_path


@pytest.mark.slow
def test_seconds_and_places_are_averaged_and_background_counts_only_alone(folder):
    content = open_data(folder)
    with h5py.File(folder / "visual_feature.h5") as file:
        wanted = np.stack([clip.reshape(-1, 5).mean(axis=0) for clip in file["avadataset"][()]])
    assert np.allclose(content.features["visual"], wanted, atol=1e-6)
    assert content.features["audio"].shape == (6, 4)
    assert content.class_names == ("column 0", "column 1", "column 2", "background")
    assert content.labels.tolist() == [0, 1, 2, 0, 3, 1]
    assert content.splits == ("train", "valid", "train", "test", "train", "train")
    assert set(content.provenance["audio"]["sources"]) == {"audio_feature.h5", "visual_feature.h5", "labels.h5"}


@pytest.mark.slow
def test_annotations_name_the_clips_and_the_classes(folder):
    names = ["Bark", "Bus", "Cat", "Bark", "Bark", "Bus"]
    videos = ["-a", "b", "c", "d", "e", "-a"]
    lines = [f"{name}&{video}&good&0&10\n" for name, video in zip(names, videos, strict=True)]
    (folder / "Annotations.txt").write_text("".join(lines))
    content = open_data(folder)
    assert content.class_names == ("Bark", "Bus", "Cat", "background")
    assert content.ids == ("-a@0", "b", "c", "d", "e", "-a@5")
    (folder / "Annotations.txt").write_text("".join(lines[:5]))
    content = open_data(folder)
    assert (content.ids[:2], content.class_names[0]) == (("0000", "0001"), "column 0")
    assert "Annotations.txt is not used, because it does not have one line per clip" in content.notes()


def test_orders_that_do_not_cover_the_clips_are_refused(folder):
    with h5py.File(folder / "test_order.h5", "w") as file:
        file["order"] = np.asarray([0])
    with pytest.raises(InputError, match="do not list each of the 6 clips once"):
        open_data(folder)


def test_a_missing_or_doubled_file_is_named(folder):
    (folder / "labels_noisy.h5").write_bytes((folder / "labels.h5").read_bytes())
    with pytest.raises(InputError, match=r"one file 'labels\*\.h5', but contains labels\.h5, labels_noisy\.h5; add"):
        open_data(folder)
    (folder / "labels_noisy.h5").unlink()
    (folder / "labels.h5").unlink()
    with pytest.raises(InputError, match="but contains no such file"):
        open_data(folder)


def test_files_of_another_shape_or_key_are_refused(folder):
    with h5py.File(folder / "labels.h5", "w") as file:
        file["avadataset"] = np.ones((5, 10, 4))
    with pytest.raises(InputError, match="rows"):
        open_data(folder)
    with h5py.File(folder / "labels.h5", "w") as file:
        file["other"] = np.ones(3)
    with pytest.raises(InputError, match=r"contains no 'avadataset'; pass a file with this key \(keys found: other\)"):
        open_data(folder)


@pytest.mark.parametrize(
    ("name", "values", "says"),
    [
        ("audio_feature", np.ones(6), "'avadataset' is of type float64 and shape .6,.; pass an array"),
        ("audio_feature", np.ones((6, 2), complex), "'avadataset' is of type complex128 and shape"),
        ("audio_feature", None, "'avadataset' is a group; pass an array"),
        ("audio_feature", np.ones((0, 3)), "contains no clips; pass AVE's files"),
        ("labels", np.ones((6, 10, 1)), r"the labels have fewer than two columns \(1\); pass two or more"),
        ("labels", np.full((6, 10, 4), -1.0), "the labels of a clip have the mean -1; pass two or more"),
        ("labels", np.full((6, 10, 4), np.nan), "the labels of a clip have the mean nan; pass two or more"),
    ],
)
def test_arrays_of_another_form_are_refused(folder, name, values, says):
    with h5py.File(folder / f"{name}.h5", "w") as file:
        if values is None:
            file.create_group("avadataset")
        else:
            file["avadataset"] = values
    with pytest.raises(InputError, match=says):
        open_data(folder)


def test_two_columns_suffice_and_clips_without_foreground_are_background(folder):
    with h5py.File(folder / "labels.h5", "w") as file:
        file["avadataset"] = np.stack([np.tile([foreground, 1.0], (10, 1)) for foreground in (0, 0.1, 1, 0, 0, 1)])
    content = open_data(folder)
    assert content.class_names == ("column 0", "background")
    assert content.labels.tolist() == [1, 0, 0, 1, 1, 0]


def test_the_background_clips_of_ave_are_read(shared_data):
    content = open_data(shared_data / "ave_vggish_background")
    assert content.features["audio"].shape == (178, 128)
    assert content.class_names == ("background",)
    assert set(content.splits) == {"train"}
