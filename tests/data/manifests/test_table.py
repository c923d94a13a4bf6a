import itertools
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aadml.data.manifests.making import manifest
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.manifest import read_manifest


@pytest.fixture
def media(tmp_path):
    """Forty files, each of its own bytes, in two folders."""
    for number in range(40):
        path = tmp_path / "media" / f"{number}.mp4"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"clip {number}")
    return tmp_path


def written(folder, text, name="table.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def rows_of(path):
    return read_manifest(path).rows


def plain(folder, columns="filename,class", count=40, separator=","):
    lines = [columns.replace(",", separator)]
    lines += [separator.join((f"media/{number}.mp4", f"c{number % 4}")) for number in range(count)]
    return written(folder, "\n".join(lines))


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_any_separator_line_end_and_byte_order_mark_gives_one_manifest(media, separator, end, mark):
    lines = ["filename,class,note", *(f'media/{n}.mp4,c{n % 4},"a, b; c"' for n in range(40))]
    cells = [line.split(",", 2) for line in lines]
    table = written(media, mark + end.join(separator.join(row) for row in cells) + end)
    path = manifest(table, columns="media=filename,label=class", split="random:0.5/0.25/0.25")
    assert path == media / "table.manifest.csv"
    rows = rows_of(path)
    assert [row.id for row in rows] == [str(number) for number in range(40)]
    assert [row.label for row in rows] == [f"c{number % 4}" for number in range(40)]
    assert all(row.columns == {"note": "a, b; c"} for row in rows)
    assert Counter(row.split for row in rows) == {"train": 20, "valid": 10, "test": 10}


def test_without_a_split_the_default_shares_are_drawn_and_said(media):
    notes = []
    path = manifest(plain(media, "media,label"), on_note=notes.append)
    assert Counter(row.split for row in rows_of(path)) == {"train": 28, "valid": 4, "test": 8}
    assert "the split is drawn at random, seed 0: 0.7/0.1/0.2 wanted, 0.7/0.1/0.2 reached" in notes


def test_a_split_of_its_own_is_kept_and_another_column_can_be_named(media):
    lines = [
        "media,split,fold",
        *(f"media/{n}.mp4,{'dev' if n % 2 else 'Train'},{'test' if n < 9 else 'train'}" for n in range(40)),
    ]
    table = written(media, "\n".join(lines))
    assert Counter(row.split for row in rows_of(manifest(table))) == {"train": 20, "valid": 20}
    again = manifest(table, output=media / "m.csv", split="column:fold")
    assert Counter(row.split for row in rows_of(again)) == {"test": 9, "train": 31}
    assert read_manifest(again).class_names == ()


def test_a_column_that_may_be_the_label_is_named_where_there_is_none(media):
    hint = "no column is called label, so the clips have none; if it is 'Category': --columns label=Category"
    for options, said in (({}, True), ({"columns": "label=Category"}, False), ({"no_labels": True}, False)):
        manifest(plain(media, "media,Category"), on_note=(notes := []).append, output=media / "m.csv", **options)
        assert (hint in notes) == said


def test_several_labels_are_kept_or_the_first_of_them(media):
    text = "media,tags\nmedia/1.mp4,speech; dog\nmedia/2.mp4,dog\nmedia/3.mp4,a|b\n"
    options = {"columns": "label=tags", "split": "random:1/0/0", "on_note": (notes := []).append}
    table = written(media, text.replace("a|b", "cat"))
    path = manifest(table, **options, labels_separator=";")
    assert path.read_text().splitlines()[0] == "id,media,labels,split"
    assert [row.labels for row in rows_of(path)] == [("speech", "dog"), ("dog",), ("cat",)]
    assert any("1 clips have several labels" in note and "--first-label" in note for note in notes)
    first = manifest(table, **options, labels_separator=";", first_label=True, output=media / "first.csv")
    assert [row.labels for row in rows_of(first)] == [("speech",), ("dog",), ("cat",)]
    whole = manifest(table, **options, output=media / "whole.csv")
    assert [row.label for row in rows_of(whole)] == ["speech; dog", "dog", "cat"]
    with pytest.raises(InputError, match=r"the label 'a\|b' holds '\|'"):
        manifest(written(media, text), **options, labels_separator=";", output=media / "no.csv")


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
    assert any(f"no speaker divided: 0.6/0.2/0.2 wanted, {reached} reached" in note for note in notes)
    assert all(
        abs(counts[split] / 40 - share) < 0.1 for split, share in [("train", 0.6), ("valid", 0.2), ("test", 0.2)]
    )


@pytest.mark.parametrize("split", [None, "column:split"])
def test_a_seed_that_draws_nothing_is_refused(media, split):
    lines = [f"media/{number}.mp4,{('train', 'test')[number % 2]}" for number in range(40)]
    table = written(media, "\n".join(["media,split", *lines]))
    with pytest.raises(InputError, match="--seed 3: no split is drawn"):
        manifest(table, output=media / "m.csv", split=split, seed=3)
    assert not (media / "m.csv").exists()
    drawn = [
        rows_of(manifest(table, output=media / "m.csv", split="random:0.5/0.2/0.3", seed=seed)) for seed in (3, 3, 4)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


def test_equal_files_stay_in_one_split(media):
    for number in range(0, 40, 2):
        (media / "media" / f"{number + 1}.mp4").write_bytes((media / "media" / f"{number}.mp4").read_bytes())
    rows = rows_of(manifest(plain(media, "media,label"), split="random:0.5/0/0.5"))
    assert all(rows[number].split == rows[number + 1].split for number in range(0, 40, 2))


def test_sound_and_picture_may_be_two_files(media):
    table = written(media, "wav,png,class\nmedia/1.mp4,media/2.mp4,x\nmedia/3.mp4,media/4.mp4,y\n")
    path = manifest(table, columns="audio=wav,visual=png,label=class", split="random:1/0/0")
    assert path.read_text().splitlines()[:2] == ["id,audio,visual,label,split", "1,media/1.mp4,media/2.mp4,x,train"]


def test_missing_media_are_counted_and_left_out_only_if_asked(media):
    table = written(media, "media,label\nmedia/1.mp4,x\nmedia/none.mp4,x\nmedia/2.mp4,y\n")
    with pytest.raises(InputError, match=r"1 of 3 clips have no media file \(.*none\.mp4\); give --skip-missing"):
        manifest(table)
    assert not (media / "table.manifest.csv").exists()
    notes = []
    path = manifest(table, skip_missing=True, on_note=notes.append)
    assert [row.id for row in rows_of(path)] == ["1", "2"]
    assert any("1 of 3 clips have no media file and were left out" in note for note in notes)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("filename,class\na,b\n", {}, "name them: --columns media=filename,label=class"),
        ("media,label\na,b\n", {"columns": "label=clas"}, "has no column 'clas'; possible are media, label"),
        ("media,class\na,b\n", {"columns": "label=clas"}, "has no column 'clas'; did you mean 'class'?"),
        ("media,label\na,b\n", {"columns": "label"}, "write NEW=COLUMN"),
        ("file,x,media\na,b,c\n", {"columns": "media=file"}, "--columns media=file,old_media=media"),
        ("a,b\n1,2\n", {"columns": "media=a,media=b"}, "'media' is named twice"),
        ("media,media\na,b\n", {}, "column 'media' occurs twice"),
        ("media,a/b\na,b\n", {}, "cannot name a column"),
        ("media,label\na\n", {}, "line 2 has 1 cells"),
        ("media,label\na,b,c\n", {}, "line 2 has 3 cells"),
        ("media,label\n,b\n", {}, "line 2 name no media file"),
        ("media,label\na,b\nc,\n", {}, "line 3 have no label"),
        ("id,media\nx,a\ny,b\nx,c\n", {}, "id 'x' occurs in lines 2, 4"),
        ("media,label\na,x\na,y\n", {}, "lines 2, 3 name a file of another line"),
        ("media\n", {}, "a header but no rows"),
        ("", {}, "nothing in it"),
        ('media,label\n"a,b\n', {}, "is not CSV"),
        ("media,label\na,b\n".encode("utf-16"), {}, "is UTF-16"),
        ("media,label\na,b\n".encode("utf-16-be"), {}, "is UTF-16"),
        ("media,label\na,caf\xe9\n".encode("latin-1"), {}, "line 2: the cells are not UTF-8"),
    ],
)
def test_a_table_that_cannot_be_is_refused_in_one_line(tmp_path, text, options, message):
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        manifest(written(tmp_path, text), **options)
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": "random:0.9/0.2/0.2"}, "their sum must be 1"),
        ({"split": "half"}, "write random:TRAIN/VALID/TEST"),
        ({"split": "column:fold"}, "--split column:fold: no such column"),
        ({"split": "column:note"}, "40 of 40 cells name no split ('x' 40 times)"),
        ({"split_by": "speaker"}, "--split-by speaker: no such column; possible are note"),
        ({"split": "column:part", "split_by": "note", "columns": "part=split"}, "1 are divided between splits already"),
        ({"media": "none"}, "is not a folder of media"),
        ({"valid": 0.2}, "takes no such option"),
    ],
)
def test_splits_and_options_that_cannot_be_are_refused(media, options, message):
    lines = ["media,label,note,split", *(f"media/{n}.mp4,c{n % 4},x,{'test' if n % 2 else 'train'}" for n in range(40))]
    with pytest.raises(InputError, match=re.escape(message)):
        manifest(written(media, "\n".join(lines)), **options)


def test_nothing_of_the_users_is_overwritten(media):
    table = plain(media, "media,label")
    before = table.read_bytes()
    with pytest.raises(InputError, match="exists and is not a manifest"):
        manifest(table, output=table)
    manifest(table)
    with pytest.raises(InputError, match="exists; give --output"):
        manifest(table)
    manifest(table, output=media / "table.manifest.csv", seed=1)
    (media / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="exists and is not a manifest"):
        manifest(table, output=media / "notes.txt")
    assert table.read_bytes() == before
    with pytest.raises(InputError, match="is what is read"):
        manifest(media / "table.manifest.csv", output=media / "table.manifest.csv")


@pytest.mark.parametrize(
    ("files", "labels", "splits"),
    [
        (["a.mp4", "b.wav"], [(), ()], {"train"}),
        (["cat/a.mp4", "dog/b.wav", "loose.mp4"], [("cat",), ("dog",)], {"train"}),
        (["train/a.mp4", "test/b.wav"], [(), ()], {"train", "test"}),
        (
            ["train/cat/a.mp4", "val/cat/c.mp4", "test/dog/b.wav"],
            [("cat",), ("dog",), ("cat",)],
            {"train", "valid", "test"},
        ),
    ],
)
def test_a_folder_is_a_source_with_labels_or_without(tmp_path, files, labels, splits):
    for name in files:
        path = tmp_path / "clips" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    rule = None if len(splits) > 1 else "random:1/0/0"
    path = manifest(tmp_path / "clips", split=rule)
    assert path == tmp_path / "clips.manifest.csv"
    rows = rows_of(path)
    assert Counter(row.labels for row in rows) == Counter(labels)
    assert {row.split for row in rows} == splits
    bare = rows_of(manifest(tmp_path / "clips", split=rule, no_labels=True, output=tmp_path / "bare.csv"))
    assert len(bare) == len(files)
    assert not any(row.labels for row in bare)


def test_an_empty_folder_and_a_lone_name_are_refused(tmp_path):
    with pytest.raises(InputError, match="holds no media"):
        manifest(tmp_path)
    with pytest.raises(InputError, match="is the name of a data set; give its folder too"):
        manifest("ave")
    with pytest.raises(InputError, match="no such file or folder"):
        manifest(tmp_path / "none")


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8).map(str.strip).filter(bool)


@pytest.mark.slow
@given(rows=st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=5), separator=st.sampled_from(",;\t"))
def test_any_text_of_cells_comes_back(rows, separator, tmp_path_factory):
    folder = tmp_path_factory.mktemp("any")
    (folder / "a.mp4").touch()
    quoted = [separator.join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows]
    lines = [f"{number}{separator}a.mp4{separator}{row}" for number, row in enumerate(quoted)]
    table = written(folder, f"id{separator}media{separator}label{separator}note\n" + "\n".join(lines))
    found = rows_of(manifest(table, split="random:1/0/0"))
    assert [(row.label, row.columns["note"]) for row in found] == rows
    assert len(list(itertools.chain(found))) == len(rows)
