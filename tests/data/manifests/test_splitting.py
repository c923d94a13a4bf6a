import re
from collections import Counter

import pytest

from aadml.data.manifests.making import manifest
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.manifest import read_manifest
from tests.data.manifests.test_table import plain, rows_of, written


def test_without_a_split_the_default_shares_are_drawn_and_said(media):
    notes = []
    path = manifest(plain(media, "media,label"), on_note=notes.append)
    assert Counter(row.split for row in rows_of(path)) == {"train": 28, "valid": 4, "test": 8}
    assert (
        "the split is drawn at random (seed 0); shares of 0.7/0.1/0.2 were wanted, and 0.7/0.1/0.2 were reached"
        in notes
    )


def test_a_partly_filled_column_of_splits_is_refused_unless_all_splits_are_drawn(media):
    table = written(media, "media,fold\nmedia/1.mp4,train\nmedia/2.mp4,test\nmedia/3.mp4,\n")
    message = (
        r"^1 of 3 clips have a split other than train, valid, test \(clip '3' has ''\); correct the column, or draw "
        r"the splits of all clips: --split random:0\.7/0\.1/0\.2$"
    )
    with pytest.raises(InputError, match=message):
        manifest(table, output=media / "m.csv", columns="split=fold")
    assert not (media / "m.csv").exists()
    drawn = manifest(table, output=media / "m.csv", columns="split=fold", split="random:1/0/0")
    assert {row.split for row in rows_of(drawn)} == {"train"}


def test_a_split_of_its_own_is_kept_and_another_column_can_be_renamed(media):
    lines = [
        "media,split,fold",
        *(f"media/{n}.mp4,{'dev' if n % 2 else 'Train'},{'test' if n < 9 else 'Validation '}" for n in range(40)),
    ]
    table = written(media, "\n".join(lines))
    assert Counter(row.split for row in rows_of(manifest(table))) == {"train": 20, "valid": 20}
    again = manifest(table, output=media / "m.csv", columns="split=fold,old_split=split")
    assert Counter(row.split for row in rows_of(again)) == {"test": 9, "valid": 31}
    assert read_manifest(again).class_names == ()


def test_speakers_are_never_divided_and_the_shares_are_said(media):
    lines = ["media,label,speaker", *(f"media/{n}.mp4,c{n % 4},s{n % 9}" for n in range(40))]
    notes = []
    path = manifest(
        written(media, "\n".join(lines)), split="random:0.6/0.2/0.2", split_by="speaker", on_note=notes.append
    )
    splits = {}
    for row in rows_of(path):
        splits.setdefault(row.columns["speaker"], set()).add(row.split)
    assert all(len(found) == 1 for found in splits.values())
    counts = Counter(row.split for row in rows_of(path))
    reached = "/".join(f"{counts[split] / 40:.3g}" for split in ("train", "valid", "test"))
    assert any(
        f"no speaker is divided); shares of 0.6/0.2/0.2 were wanted, and {reached} were reached" in note
        for note in notes
    )
    assert all(
        abs(counts[split] / 40 - share) < 0.1 for split, share in [("train", 0.6), ("valid", 0.2), ("test", 0.2)]
    )


def test_equal_files_stay_in_one_split(media):
    for number in range(0, 40, 2):
        (media / "media" / f"{number + 1}.mp4").write_bytes((media / "media" / f"{number}.mp4").read_bytes())
    rows = rows_of(manifest(plain(media, "media,label"), split="random:0.5/0/0.5"))
    assert all(rows[number].split == rows[number + 1].split for number in range(0, 40, 2))


@pytest.mark.parametrize("copied", [False, True])
def test_a_picture_of_several_sounds_stays_in_one_split(tmp_path, copied):
    rows, pictures = [], {}
    for clip in range(10):
        for number in range(5):
            sound, picture = tmp_path / f"{clip}_{number}.wav", f"{clip}_{number}.jpg" if copied else f"{clip}.jpg"
            sound.write_text(f"sound {clip}_{number}")
            (tmp_path / picture).write_text(f"picture {clip}")
            rows.append(f"{sound.name},{picture}\n")
    table = written(tmp_path, "audio,visual\n" + "".join(rows))
    for row in rows_of(manifest(table, on_note=(notes := []).append)):
        pictures.setdefault(row.id.partition("_")[0], set()).add(row.split)
    assert all(len(splits) == 1 for splits in pictures.values())
    shown = "0_0.wav+0_0.jpg = 0_1.wav+0_1.jpg" if copied else "0_0.wav+0.jpg = 0_1.wav+0.jpg"
    assert any(note.startswith(f"recordings in more than one row: 10 ({shown}") for note in notes)
    assert "recordings shared by train-test: 0" in notes


@pytest.mark.parametrize(
    ("split", "options", "message"),
    [
        ("dev,x,y", {}, "2 of 3 clips have a split other than train, valid, test (clip '2' has 'x'); correct the"),
        ("test,x,x", {"split": "column:note"}, "or name a column of splits with --columns split=COLUMN"),
        ("test,dev,train", {"split": "test"}, "--split test is not a division; write random:TRAIN/VALID/TEST, as in"),
        ("test,dev,train", {"split_by": "note"}, "--split-by note: clips with the value 'b' are in several splits"),
    ],
)  # fmt: skip
def test_words_and_rules_that_are_not_splits_are_refused(media, split, options, message):
    rows = zip((1, 2, 3), split.split(","), "abb", strict=True)
    table = written(media, "media,split,note\n" + "".join(f"media/{n}.mp4,{word},{note}\n" for n, word, note in rows))
    with pytest.raises(InputError, match=re.escape(message)):
        manifest(table, **options)


def test_empty_cells_form_no_group(media):
    rows = "".join(f"media/{n}.mp4,{('Train ', 'TEST')[n % 2]},{'' if n < 4 else f's{n}'}\n" for n in range(8))
    table = written(media, "media,split,speaker\n" + rows)
    made = manifest(table, split_by="speaker")
    assert [row.split for row in rows_of(made)] == ["train", "test"] * 4
