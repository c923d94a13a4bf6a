import csv

import h5py
import numpy as np
import pytest
import torch

from aadml.data.captions.captioned_sets import captioned_splits, is_captioned
from aadml.data.captions.cleaning import CLEANINGS
from aadml.data.captions.tables import read_caption_table
from aadml.data.reading import open_data
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.layers.word_pieces import train_vocabulary, word_piece_tokenizer
from tests.sound_files import noise, write_wav

FILES = {"AudioCaps_train": (49_274, 1), "AudioCaps_val": (494, 5), "AudioCaps_test": (957, 5),
         "Clotho_train": (3_839, 5), "Clotho_val": (1_045, 5)}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_the_published_tables_are_read_and_cleaned_without_loss(shared_data, name):
    files = read_caption_table(shared_data / "audio_text" / f"{name}.csv")
    clips, captions = FILES[name]
    assert len(files) == clips
    assert {len(file.captions) for file in files} == {captions}
    for clean in CLEANINGS.values():
        cleaned = [clean(text) for file in files for text in file.captions]
        assert len(cleaned) == clips * captions
        assert all(cleaned)


@pytest.mark.slow
def test_word_pieces_of_training_captions_cover_every_caption(shared_data):
    pytest.importorskip("tokenizers")
    clean = CLEANINGS["mei"]
    texts = {
        name: [clean(text) for file in read_caption_table(shared_data / "audio_text" / f"Clotho_{name}.csv")
               for text in file.captions]
        for name in ("train", "val")
    }  # fmt: skip
    tokenizer = word_piece_tokenizer(train_vocabulary(texts["train"], size=400))
    unknown = tokenizer.token_to_id("[UNK]")
    assert not any(unknown in encoded.ids for encoded in tokenizer.encode_batch(texts["train"]))
    held_out = [encoded.ids for encoded in tokenizer.encode_batch(texts["val"])]
    assert sum(ids.count(unknown) for ids in held_out) < 1e-3 * sum(map(len, held_out))


def write_table(path, header, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


@pytest.fixture
def clotho(tmp_path):
    """A small folder in Clotho's layout; one training file is missing, one is cut short."""
    five = [f"caption_{i}" for i in range(1, 6)]
    for split, count in [("development", 6), ("validation", 2), ("evaluation", 2)]:
        rows = [[f"a file, {i}.wav", *(f"Sound {i}, heard {j} times." for j in range(5))] for i in range(count)]
        write_table(tmp_path / f"clotho_captions_{split}.csv", ["file_name", *five], rows)
        for i in range(count):
            write_wav(tmp_path / split / f"a file, {i}.wav", noise(8000, i))
    (tmp_path / "development" / "a file, 2.wav").unlink()
    cut = tmp_path / "development" / "a file, 4.wav"
    cut.write_bytes(cut.read_bytes()[:5000])
    return tmp_path


def test_a_clotho_folder_gives_a_row_a_pair_and_names_what_is_missing(clotho):
    splits = captioned_splits(clotho)
    assert is_captioned(clotho)
    assert [len(splits[part]) for part in ("train", "valid", "test")] == [20, 10, 10]
    assert splits.train.labels.tolist() == sorted([0, 1, 2, 3] * 5)
    assert splits.train.class_names == tuple(f"a file, {i}.wav" for i in (0, 1, 3, 5))
    assert splits.train.ids[:6] == (*(f"a file, 0.wav#{j}" for j in range(1, 6)), "a file, 1.wav#1")
    assert splits.train["text"].batch(torch.tensor([5, 0])) == ["sound 1 heard 0 times", "sound 0 heard 0 times"]
    (note,) = splits.notes
    assert "2 of 6 clips" in note
    assert "a file, 2.wav (missing" in note
    assert "a file, 4.wav (corrupt: cut short" in note


def test_a_sound_whose_name_begins_with_a_space_is_found(clotho):
    file = clotho / "validation" / "a file, 1.wav"
    file.rename(file.with_name(" a file, 1.wav"))
    table = clotho / "clotho_captions_validation.csv"
    table.write_text(table.read_text().replace("a file, 1.wav", " a file, 1.wav"))
    splits = captioned_splits(clotho)
    assert splits.valid.class_names == ("a file, 0.wav", "a file, 1.wav")
    assert not [note for note in splits.notes if note.startswith("valid")]


def test_fewer_captions_a_clip_may_be_asked_for(clotho):
    splits = captioned_splits(clotho, captions=1, cleaning="spaces")
    assert len(splits.train) == 4
    assert splits.train["text"].batch(torch.tensor([3])) == ["Sound 5, heard 0 times."]


def test_captions_beyond_the_first_and_captions_without_a_word_are_named(clotho):
    table = clotho / "clotho_captions_validation.csv"
    rows = [["a file, 0.wav", "...", "Rain.", "!", "A bee", "hums", "Wind"], ["a file, 1.wav", "?", "", "", "", "", ""]]
    write_table(table, ["file_name", *(f"caption_{i}" for i in range(1, 7))], rows)
    splits = captioned_splits(clotho, captions=3)
    assert splits.valid["text"].texts == ("rain", "a bee", "hums")
    assert splits.valid.class_names == ("a file, 0.wav",), "a clip that nothing is said of is no clip"
    notes = [note for note in splits.notes if note.startswith("valid")]
    assert notes == [
        "valid: captions without a word were left out: a file, 0.wav#1 ('...'), a file, 0.wav#3 ('!'), a file, 1.wav#1 "
        "('?')",
        "valid: 1 captions beyond the first 3 of a clip were left out (method.captions)",
    ]
    write_table(table, ["file_name", "caption"], [["a file, 0.wav", "..."]])
    with pytest.raises(InputError, match="no clip of the split valid has sound and words"):
        captioned_splits(clotho)


def test_a_sound_file_in_two_splits_is_named(tmp_path):
    for split, name in (("train", "a.wav"), ("val", "b.wav"), ("test", "a.wav")):
        write_table(tmp_path / f"{split}.csv", ["file_name", "caption"], [[name, f"heard in {split}"]])
        write_wav(tmp_path / "audio" / name, noise(8000))
    (note,) = captioned_splits(tmp_path).notes
    assert note == f"train and test share sound files: 1 ({tmp_path / 'audio' / 'a.wav'})"


def test_audiocaps_is_read_in_both_of_its_layouts(tmp_path):
    for split in ("train", "val", "test"):
        write_table(tmp_path / "mei" / "csv_files" / f"{split}.csv", ["file_name", "caption"], [["Yab_.wav", "A bee"]])
        write_wav(tmp_path / "mei" / "waveforms" / split / "Yab_.wav", noise(8000))
        released = [["7", "ab_", "30", "A bee"], ["8", "ab_", "30", "A bee hums"], ["9", "-c", "0", "Rain"]]
        header = ["audiocap_id", "youtube_id", "start_time", "caption"]
        write_table(tmp_path / "released" / "dataset" / f"{split}.csv", header, released)
        write_wav(tmp_path / "released" / split / "ab_.wav", noise(8000))
        write_wav(tmp_path / "released" / split / "9.wav", noise(8000))
    mei, released = captioned_splits(tmp_path / "mei"), captioned_splits(tmp_path / "released")
    assert len(mei.train) == 1
    assert released.train.labels.tolist() == [0, 0, 1]
    assert not released.notes
    assert released.train["audio"].paths[1].endswith("9.wav")


def test_packed_files_are_read_row_by_row_without_their_padding(tmp_path):
    sound = np.random.default_rng(0).standard_normal((3, 640)).astype(np.float32)
    lengths = np.array([640, 300, 500], np.uint32)
    for split in ("train", "val", "test"):
        (tmp_path / "hdf5s" / split).mkdir(parents=True)
        with h5py.File(tmp_path / "hdf5s" / split / f"{split}.h5", "w") as file:
            file["audio_name"], file["audio_length"], file["waveform"] = [b"a", b"b", b"c"], lengths, sound
            five = [[f"caption {i} {j}" for j in range(5)] for i in range(3)]
            file["caption"] = ["one", "two", "three"] if split == "train" else five
    splits = captioned_splits(tmp_path)
    assert (len(splits.train), len(splits.test)) == (3, 15)
    batch = splits.train["audio"].batch(torch.tensor([1, 2, 1]))
    assert list(map(len, batch)) == [300, 500, 300]
    np.testing.assert_array_equal(batch[0], sound[1, :300])
    np.testing.assert_array_equal(splits.test["audio"].select(torch.tensor([14])).batch(torch.tensor([0]))[0],
                                  sound[2, :500])  # fmt: skip
    with pytest.raises(InputError, match="packed at 32000 Hz"):
        splits.train["audio"].at(44_100)


def test_a_manifest_with_caption_columns_is_read(tmp_path):
    header = ["id", "media", "label", "split", "caption_1", "caption_2"]
    rows = [[f"{s}{i}", f"{s}{i}.wav", "x", s, f"one {i}", "" if i else "two"]
            for s in ("train", "val", "test") for i in range(2)]  # fmt: skip
    write_table(tmp_path / "manifest.csv", header, rows)
    for row in rows:
        write_wav(tmp_path / row[1], noise(8000))
    splits = captioned_splits(tmp_path / "manifest.csv")
    assert splits.valid.labels.tolist() == [0, 0, 1]
    assert splits.valid["text"].texts == ("one 0", "two", "one 1")


@pytest.mark.parametrize("split", ["split,", ""])
def test_absent_splits_are_empty_where_not_all_are_needed(tmp_path, split):
    write_wav(tmp_path / "a.wav", noise(8000))
    cell = "test," if split else ""
    (tmp_path / "m.csv").write_text(f"id,media,{split}caption_1,caption_2\na,a.wav,{cell}one,two\n")
    with pytest.raises(InputError, match=r"has no captions of the split train \(splits with captions: test\)"):
        captioned_splits(tmp_path / "m.csv")
    splits = captioned_splits(tmp_path / "m.csv", complete=False)
    assert [len(splits[name]) for name in ("train", "valid", "test")] == [0, 0, 2]
    assert splits.train.modalities == ("audio", "text")
    assert splits.test["text"].texts == ("one", "two")
    assert splits.notes == ()
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="has no captions of the split train"):
        captioned_splits(tmp_path / "empty", complete=False)


def test_rows_of_a_manifest_with_the_same_sound_are_one_clip(tmp_path):
    header = ["id", "media", "split", "start", "end", "caption"]
    rows = [[f"{s}_{i}_{j}", tmp_path / f"{s}{i}.wav" if j else f"{s}{i}.wav", s, "", "", f"{s} {i} {j}"]
            for s in ("train", "valid", "test") for i in range(2) for j in range(3)]  # fmt: skip
    rows.append(["part", "train0.wav", "train", "0", "0.1", "a part"])
    for name in {row[1] for row in rows}:
        write_wav(tmp_path / name, noise(8000))
    write_table(tmp_path / "m.csv", header, rows)
    splits = captioned_splits(tmp_path / "m.csv")
    assert splits.train.labels.tolist() == [0, 0, 0, 1, 1, 1, 2]
    assert splits.train.class_names == ("train_0_0", "train_1_0", "part")
    assert splits.train["text"].texts[:4] == ("train 0 0", "train 0 1", "train 0 2", "train 1 0")
    assert splits.test.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert not splits.notes


def test_a_sound_file_under_two_paths_is_named(tmp_path):
    write_wav(tmp_path / "a.wav", noise(8000))
    write_wav(tmp_path / "b.wav", noise(8000))
    (tmp_path / "link").symlink_to(tmp_path)
    rows = [["1", "a.wav", "train", "x"], ["2", "b.wav", "valid", "y"], ["3", f"{tmp_path}/link/a.wav", "test", "z"]]
    write_table(tmp_path / "m.csv", ["id", "media", "split", "caption"], rows)
    (note,) = captioned_splits(tmp_path / "m.csv").notes
    assert note == f"train and test share sound files: 1 ({tmp_path / 'a.wav'})"


def test_what_cannot_be_read_is_said_in_one_line(tmp_path, clotho):
    cases = {tmp_path / "absent": "is not an existing folder", tmp_path / "empty": "has no captions of the split train"}
    (tmp_path / "empty").mkdir()
    for path, message in cases.items():
        with pytest.raises(InputError, match=message):
            captioned_splits(path)
    with pytest.raises(InputError, match="did you mean 'mei'"):
        captioned_splits(clotho, cleaning="mey")
    for file in (clotho / "validation").iterdir():
        file.unlink()
    with pytest.raises(
        InputError, match=r"none of the 2 sound files of the split valid can be read: a file, 0.wav \(missing"
    ):
        captioned_splits(clotho)


@pytest.mark.parametrize("name", ["none.csv", "none"])
def test_what_is_not_there_is_no_captioned_sound(tmp_path, name):
    assert not is_captioned(tmp_path / name)


def pack(path, names=("a", "b"), captions=(("one", "two"), ("three", "four")), rows=2):
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        file["audio_name"], file["waveform"] = list(names), np.zeros((rows, 9), np.float32)
        file["caption"] = np.asarray(captions, dtype=object) if isinstance(captions, tuple) else captions


def test_of_packed_files_that_are_there_twice_the_first_place_is_read(tmp_path):
    for split in ("train", "val", "test"):
        pack(tmp_path / "hdf5s" / f"{split}.h5")
        pack(tmp_path / f"{split}.h5", names=("c", "d"))
    assert captioned_splits(tmp_path).train.class_names == ("a", "b")
    assert is_captioned(tmp_path)
    for changes, problem in (
        ({"names": ["a"]}, r"1 names in 'audio_name', 2 rows in 'caption' and 2 rows in 'waveform'; store one of each"),
        ({"rows": 3}, r"2 names in 'audio_name', 2 rows in 'caption' and 3 rows in 'waveform'; store one of each"),
        ({"captions": np.zeros((2, 2))}, "cannot be read as captioned sound .*; store UTF-8 text in 'audio_name'"),
    ):
        pack(tmp_path / "hdf5s" / "val.h5", **changes)
        with pytest.raises(InputError, match=rf"val\.h5 (contains )?{problem}"):
            captioned_splits(tmp_path)


def test_split_feature_files_are_not_packed_files(tmp_path):
    content = synthetic(classes=2, train=8, valid=4, test=4, dimensions=(3, 4))
    for split in ("train", "valid", "test"):
        write_features(tmp_path / f"{split}.h5", content)
    assert not is_captioned(tmp_path)
    with pytest.raises(
        InputError, match=r"no known layout \(it contains test\.h5, train\.h5, valid\.h5\); pass a feature"
    ):
        open_data(tmp_path)
    for split in ("train", "val", "test"):
        pack(tmp_path / split / f"{split}.h5")
    (tmp_path / "hdf5s").mkdir()
    write_features(tmp_path / "hdf5s" / "train.h5", content)
    assert captioned_splits(tmp_path).train.class_names == ("a", "b")
    with h5py.File(tmp_path / "train" / "train.h5", "a") as file:
        del file["waveform"]
    with pytest.raises(InputError, match=r"train/train\.h5 contains no 'waveform'; pass a file with this key"):
        captioned_splits(tmp_path)


def test_two_tables_of_a_split_and_a_manifest_without_captions_are_refused(clotho, tmp_path):
    write_table(clotho / "a_test.csv", ["file_name", "caption"], [["a.wav", "b"]])
    with pytest.raises(
        InputError, match=r"has several tables of the split test \(a_test.csv, clotho_captions_evaluati"
    ):
        captioned_splits(clotho)
    (tmp_path / "m.csv").write_text("id,media,split\na,a.wav,train\n")
    with pytest.raises(InputError, match=r"m\.csv has no captions; add a column caption, or caption_1, caption_2"):
        captioned_splits(tmp_path / "m.csv")
    (tmp_path / "m.csv").write_text("id,media,split,caption_1,caption_2\na,a.wav,train,,x\nb,a.wav,test, ,\n")
    with pytest.raises(InputError, match="clip 'b' has no caption; add a caption, or remove the clip"):
        captioned_splits(tmp_path / "m.csv")
    (tmp_path / "a.txt").touch()
    with pytest.raises(InputError, match=r"a\.txt is not an existing folder or manifest; pass a folder or a manif"):
        captioned_splits(tmp_path / "a.txt")
    write_table(tmp_path / "part" / "val.csv", ["file_name", "caption"], [["a.wav", "b"]])
    with pytest.raises(
        InputError, match=r"the split train \(splits with captions: valid\); add captioned clips to this split"
    ):
        captioned_splits(tmp_path / "part")


def test_other_tables_beside_features_or_captions_are_no_caption_tables(tmp_path, clotho):
    folder = tmp_path / "features"
    for name in ("train", "a_train", "my_test"):
        write_table(folder / f"{name}.csv", ["id", "label"], [["a", "rain"]])
    (folder / "val.csv").mkdir()
    assert not is_captioned(folder)
    with pytest.raises(InputError, match=r"a_train\.csv: the columns id, label are not those of a caption table"):
        captioned_splits(folder)
    expected = captioned_splits(clotho).train.ids
    write_table(clotho / "a_train.csv", ["id", "label"], [["a", "rain"]])
    assert captioned_splits(clotho).train.ids == expected


def test_segments_of_a_recording_are_its_clips(tmp_path):
    write_wav(tmp_path / "a.wav", noise(64_000))
    rows = [
        ["x", "a.wav", "train", "0", "1", "a"],
        ["y", "a.wav", "val", "1", "2", "b"],
        ["z", "a.wav", "test", "", "", "c"],
    ]
    write_table(tmp_path / "m.csv", ["id", "media", "split", "start", "end", "caption"], rows)
    splits = captioned_splits(tmp_path / "m.csv")
    whole = splits.test["audio"].batch(torch.tensor([0]))[0]
    np.testing.assert_array_equal(splits.valid["audio"].batch(torch.tensor([0]))[0], whole[32_000:64_000])
    assert [len(part["audio"].batch(torch.tensor([0]))[0]) for part in (splits.train, splits.test)] == [32_000, 64_000]


def test_of_tables_in_several_folders_the_first_is_read(clotho):
    header, row = ["file_name", "caption"], ["a file, 1.wav", "other"]
    for folder, part in (("csv_files", "validation"), ("dataset", "evaluation"), ("dataset", "extra_dev")):
        write_table(clotho / folder / f"clotho_captions_{part}.csv", header, [row])
    splits = captioned_splits(clotho)
    assert [len(splits[part].class_names) for part in ("valid", "test")] == [2, 2]
    for part in ("validation", "evaluation"):
        (clotho / f"clotho_captions_{part}.csv").unlink()
    splits = captioned_splits(clotho)
    assert [splits[part]["text"].texts for part in ("valid", "test")] == [("other",), ("other",)]
