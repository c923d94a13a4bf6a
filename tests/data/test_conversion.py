from dataclasses import replace

import numpy as np
import pytest

from aadml.data.conversion import convert
from aadml.data.reading import open_data
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ("flat", "--layout flat: synthetic features cannot have this layout; pass --layout split-keys"),
        ("split-keys", "exists and is not overwritten"),
    ],
)
def test_another_layout_and_a_file_that_is_there_are_refused(tmp_path, layout, message):
    target = tmp_path / "AVE.h5"
    target.write_text("of the user")
    with pytest.raises(InputError, match=message):
        convert("synthetic:ave", target, layout=layout)
    assert target.read_text() == "of the user"


def test_an_imitation_of_the_papers_files_follows_the_options(tmp_path):
    notes = []
    content = convert(
        "synthetic:pairs", tmp_path / "p.h5", layout="split-keys", split="random:0.5/0/0.5", on_note=notes.append
    )
    assert content.features["audio"].min() == 0
    assert open_data(tmp_path / "p.h5").splits == tuple(sorted(content.splits, key=("train", "test").index))
    drawn = "the split was drawn at random (0.5/0/0.5, seed 0): 800 train, 0 valid, 800 test"
    assert {drawn, "drawn, like VGGish after its last ReLU"} <= set(notes)
    with pytest.raises(InputError, match="cannot be chosen for synthetic features; leave out views"):
        convert("synthetic:pairs", tmp_path / "q.h5", layout="split-keys", audio="x")


def test_a_division_is_a_note_and_a_seed_without_one_is_refused(tmp_path):
    source, target = tmp_path / "f.h5", tmp_path / "g.h5"
    write_features(source, synthetic(classes=2, train=16, valid=2, test=2, dimensions=(2, 3)))
    content = convert(source, target, split="random:0.5/0/0.5", seed=3)
    assert content.splits.count("train") == content.splits.count("test") == 10
    note = "the split was drawn at random (0.5/0/0.5, seed 3): 10 train, 0 valid, 10 test"
    assert [origin["notes"] for origin in content.provenance.values()] == [[note], [note]]
    assert read_features(target).splits == content.splits
    with pytest.raises(InputError, match="pass --split random:TRAIN/VALID/TEST"):
        convert(source, target, seed=3)


def test_a_division_keeps_recordings_whole_and_torn_recordings_are_noted(tmp_path):
    content = synthetic(classes=2, train=16, valid=2, test=22, dimensions=(2, 3))
    recordings = tuple(f"r{n // 4}" for n in range(40))
    write_features(tmp_path / "f.h5", replace(content, columns={"recording": recordings}))
    notes = []
    convert(tmp_path / "f.h5", tmp_path / "g.h5", on_note=notes.append)
    assert any("recordings have clips in both splits of train-test" in note for note in notes)
    notes.clear()
    divided = convert(tmp_path / "f.h5", tmp_path / "h.h5", split="random:0.5/0/0.5", on_note=notes.append)
    assert len(set(zip(recordings, divided.splits, strict=True))) == 10
    note = "the split was drawn at random (0.5/0/0.5, seed 0, no recording divided): 20 train, 0 valid, 20 test"
    assert [note for note in notes if "recording" in note and "random numbers" not in note] == [note]


def test_a_division_counts_each_label_of_a_clip_or_the_first_ones_where_only_these_are_kept(tmp_path, make_content):
    second = np.arange(40) < 20
    several = np.stack([np.ones(40), second], axis=1).astype(np.uint8)
    content = make_content([0] * 40, ["train"] * 40, all_labels=several, class_names=("a", "b"))
    write_features(tmp_path / "f.h5", content)
    for seed in range(3):
        halves = convert(tmp_path / "f.h5", tmp_path / "g.h5", split="random:0.5/0/0.5", seed=seed)
        assert sum(second[halves.rows("train")]) == sum(second[halves.rows("test")]) == 10
    first = convert(tmp_path / "f.h5", tmp_path / "h.h5", split="random:0.5/0/0.5", seed=2, first_label=True)
    write_features(tmp_path / "a.h5", replace(content, all_labels=None))
    assert first.splits == convert(tmp_path / "a.h5", tmp_path / "b.h5", split="random:0.5/0/0.5", seed=2).splits
    assert first.splits != halves.splits


def test_the_first_label_of_each_clip_and_its_classes_are_left(tmp_path, make_content):
    labels = [0, 0, 2, 2]
    several = np.asarray([[1, 1, 0], [1, 0, 0], [0, 1, 1], [0, 0, 1]], dtype=np.uint8)
    source = tmp_path / "f.h5"
    write_features(source, make_content(labels, ["train", "test"] * 2, all_labels=several))
    notes = []
    content = convert(source, tmp_path / "g.h5", first_label=True, on_note=notes.append)
    assert content.class_names == ("class 0", "class 2")
    assert content.labels.tolist() == [0, 0, 1, 1]
    assert content.all_labels is None
    assert "classes that are the first label of no clip were removed: class 1" in notes[0]


def test_steps_note_what_they_changed(tmp_path, make_content):
    source, notes = tmp_path / "f.h5", []
    content = make_content([0, 0, 1, 1, 2], ["train", "test", "train", "test", "train"])
    write_features(source, content)
    kept = convert(
        source, tmp_path / "g.h5", first_label=True, incomplete_classes="drop", drop_duplicates="test",
        on_note=notes.append,
    )  # fmt: skip
    assert notes[0] == "--first-label changed nothing: no clip has several labels"
    assert kept.class_names == ("class 0", "class 1")
    with pytest.raises(InputError, match=r"f.h5 is the input; pass another output"):
        convert(source, source)


def test_a_file_of_the_user_is_not_replaced_and_class_names_are_read(tmp_path, make_content):
    source, target = tmp_path / "f.npz", tmp_path / "g.h5"
    columns = {"label": np.asarray([4, 9, 4, 9]), "split": np.asarray(["train", "train", "test", "test"])}
    np.savez(source, audio=np.arange(8.0).reshape(4, 2), visual=np.arange(12.0).reshape(4, 3), **columns)
    (tmp_path / "names.txt").write_text("cat\ndog\n")
    assert convert(source, target, class_names=tmp_path / "names.txt").class_names == ("cat", "dog")
    assert convert(source, target).class_names == ("4", "9")  # a feature file is replaced
    target.write_text("of the user")
    with pytest.raises(InputError, match="is not a feature file"):
        convert(source, target)
    assert target.read_text() == "of the user"


def test_features_of_another_source_are_not_replaced(tmp_path):
    for name, offset in (("a", 0.0), ("b", 0.5)):
        np.savez(tmp_path / f"{name}.npz", audio=np.arange(8.0).reshape(4, 2) + offset, visual=np.eye(4) + offset)
    convert(tmp_path / "a.npz", tmp_path / "f.h5")
    before = (tmp_path / "f.h5").read_bytes()
    with pytest.raises(InputError, match=r"f\.h5 shares no vector with .*b\.npz, so this feature file is not"):
        convert(tmp_path / "b.npz", tmp_path / "f.h5")
    assert (tmp_path / "f.h5").read_bytes() == before
    convert(tmp_path / "a.npz", tmp_path / "f.h5", split="random:0.5/0/0.5", seed=1)  # the same source, other options
    assert (tmp_path / "f.h5").read_bytes() != before


def test_every_step_has_its_note(tmp_path, make_content):
    source, notes = tmp_path / "f.h5", []
    content = make_content([0, 0, 1, 1, 2, 0], ["train", "test", "train", "test", "train", "test"])
    features = {name: values.copy() for name, values in content.features.items()}
    for values in features.values():
        values[:] = np.random.default_rng(0).normal(size=values.shape)
        values[5] = values[0]
    write_features(source, make_content(content.labels.tolist(), content.splits, features=features))
    kept = convert(source, tmp_path / "g.h5", incomplete_classes="drop", drop_duplicates="test", on_note=notes.append)
    assert notes == [
        "1 test clips that are in two splits up to noise or encoding were left out",
        "incomplete classes were left out: 'class 2' has no test clips",
    ]
    assert kept.ids == ("clip 0", "clip 1", "clip 2", "clip 3")
    assert convert(source, tmp_path / "g.h5").ids == content.ids
