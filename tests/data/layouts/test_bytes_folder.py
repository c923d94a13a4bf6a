import numpy as np
import pytest

from aadml.data.reading import open_data
from aadml.feature_extraction.ground.errors import InputError


@pytest.fixture
def folder(tmp_path):
    generator = np.random.default_rng(0)
    for number in range(10):
        name = f"baby_cry_video_{number:05d}"
        for part, dimension in (("vgg", 128), ("inception", 1024)):
            (tmp_path / part).mkdir(exist_ok=True)
            np.save(
                tmp_path / part / f"{name}.npy", generator.integers(0, 256, (2 + number, dimension), dtype=np.uint8)
            )
        (tmp_path / "classes").mkdir(exist_ok=True)
        np.save(tmp_path / "classes" / f"{name}.npy", np.int64(number % 2))
        (tmp_path / "folds").mkdir(exist_ok=True)
        with (tmp_path / "folds" / f"fold{number % 5}.txt").open("a") as file:
            file.write(f"{name}\n")
    return tmp_path


def test_time_is_averaged_and_bytes_are_scaled(folder):
    content = open_data(folder)
    name = content.ids[3]
    raw = np.load(folder / "vgg" / f"{name}.npy").astype(float)
    assert np.allclose(content.features["audio"][3], (raw.mean(axis=0) - 128) / 256, atol=1e-7)
    assert content.features["visual"].shape == (10, 1024)
    assert [content.splits.count(split) for split in ("train", "test")] == [8, 2]


def test_a_folder_beside_the_folds_is_no_fold(folder):
    expected = open_data(folder).splits
    (folder / "folds" / ".ipynb_checkpoints").mkdir()
    assert open_data(folder).splits == expected


def test_the_last_fold_is_the_test_split(folder):
    content = open_data(folder)
    tests = [name for name, split in zip(content.ids, content.splits, strict=True) if split == "test"]
    assert sorted(tests) == ["baby_cry_video_00004", "baby_cry_video_00009"]


def test_incomplete_unlisted_and_doubled_clips_are_told(folder):
    (folder / "inception" / "baby_cry_video_00000.npy").unlink()
    (folder / "folds" / "fold1.txt").write_text("baby_cry_video_00006\nbaby_cry_video_00006\n")
    content = open_data(folder)
    assert len(content.ids) == 8
    notes = " ".join(content.provenance["audio"]["notes"])
    assert "1 of 9 ids were left out because a file is missing: baby_cry_video_00000" in notes
    assert "1 clips were left out because no fold lists them: baby_cry_video_00001" in notes
    assert "are in the folds more than once: baby_cry_video_00006" in notes


def test_a_missing_part_and_a_wrong_array_are_named(folder):
    np.save(folder / "vgg" / "baby_cry_video_00004.npy", np.zeros(3))
    with pytest.raises(InputError, match=r"baby_cry_video_00004\.npy has shape \(3,\)"):
        open_data(folder)
    (folder / "vgg" / "baby_cry_video_00004.npy").write_bytes(b"junk")
    with pytest.raises(InputError, match="cannot be read as npy"):
        open_data(folder)
    (folder / "folds").rename(folder / "other")
    with pytest.raises(InputError, match="contains no folder 'folds'"):
        open_data(folder)


def test_an_empty_class_unequal_widths_and_no_complete_clip_are_refused(folder):
    np.save(folder / "vgg" / "baby_cry_video_00003.npy", np.zeros((2, 127), np.uint8))
    with pytest.raises(InputError, match=r"00003.npy has 127 dimensions, but .*00000.npy has 128; store features of"):
        open_data(folder)
    np.save(folder / "vgg" / "baby_cry_video_00003.npy", np.zeros((2, 128), np.uint8))
    np.save(folder / "classes" / "baby_cry_video_00003.npy", np.zeros(0))
    with pytest.raises(InputError, match=r"00003.npy is empty; write the number of a class into the file"):
        open_data(folder)
    np.save(folder / "classes" / "baby_cry_video_00003.npy", np.eye(10)[3])
    with pytest.raises(InputError, match=r"00003.npy has 10 unequal values; write the number of one class"):
        open_data(folder)
    for path in (folder / "classes").iterdir():
        path.unlink()
    with pytest.raises(
        InputError,
        match=r"no id of the folds has a file in each of vgg, inception, classes .10 ids are incomplete.; add",
    ):
        open_data(folder)
