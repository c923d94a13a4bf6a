import itertools
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aadml.data.manifests.making import manifest
from aadml.data.manifests.table import read_table
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.segment import Segment
from aadml.feature_extraction.manifest import read_manifest


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


def test_a_column_that_may_be_the_label_is_named_where_there_is_none(media):
    hint = "no column is named label, so clips have no labels; if 'Category' has labels, pass --columns label=Category"
    for options, said in (({}, True), ({"columns": "label=Category"}, False), ({"no_labels": True}, False)):
        manifest(plain(media, "media,Category"), on_note=(notes := []).append, output=media / "m.csv", **options)
        assert (hint in notes) == said


def test_without_labels_a_table_may_have_two_columns_of_labels(media):
    table = written(media, "media,label,labels\nmedia/1.mp4,a,a|b\n")
    assert [row.labels for row in rows_of(manifest(table, no_labels=True))] == [()]


@pytest.mark.parametrize(("column", "separator"), [("label", None), ("labels", None), ("label", "|")])
def test_an_empty_label_and_the_label_minus_one_are_not_classes(media, column, separator):
    text = f"media,{column}\nmedia/1.mp4,\nmedia/2.mp4,-1\nmedia/3.mp4,dog\n"
    path = manifest(
        written(media, text), split="random:1/0/0", labels_separator=separator, on_note=(notes := []).append
    )
    assert [row.labels for row in rows_of(path)] == [(), (), ("dog",)]
    assert "2 of 3 clips have the label -1 or an empty label, which is not a class" in notes
    assert notes[0].startswith("3 clips, 1 classes")


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
    with pytest.raises(InputError, match=r"the label 'a\|b' contains '\|'"):
        manifest(written(media, text), **options, labels_separator=";", output=media / "no.csv")


def test_sound_and_picture_may_be_two_files(media):
    table = written(media, "wav,png,class\nmedia/1.mp4,media/2.mp4,x\nmedia/3.mp4,media/4.mp4,y\n")
    path = manifest(table, columns="audio=wav,visual=png,label=class", split="random:1/0/0")
    assert path.read_text().splitlines()[:2] == ["id,audio,visual,label,split", "1,media/1.mp4,media/2.mp4,x,train"]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("filename,class\na,b\n", {}, "name the column of media files with --columns media=filename,label=class"),
        ("id,media,audio\na,a.mp4,a.wav\n", {}, "has both 'media' and 'audio'; rename one of the two columns"),
        ("file,visual\na,b\n", {"columns": "media=file"}, "has both 'media' and 'visual'"),
        ("media,label,labels\na,b,c|d\n", {}, "has both 'label' and 'labels'; rename one of the two"),
        ("media,label\na,b\n", {"columns": "label=clas"}, "has no column 'clas'; choose from media, label"),
        ("media,class\na,b\n", {"columns": "label=clas"}, "has no column 'clas'; did you mean 'class'?"),
        ("media,label\na,b\n", {"columns": "label"}, "does not have the form NEW=COLUMN"),
        ("file,x,media\na,b,c\n", {"columns": "media=file"}, "--columns media=file,old_media=media"),
        ("a,b\n1,2\n", {"columns": "media=a,media=b"}, "the new name 'media' occurs twice"),
        ("media,media\na,b\n", {}, "the first line contains 'media' 2 times; write each name once"),
        ("media,a/b\na,b\n", {}, "cannot name a column"),
        ("media,label\na\n", {}, "line 2 has 1 cells"),
        ("media,label\na,b,c\n", {}, "line 2 has 3 cells"),
        ("media,label\n,b\n", {}, "no media file in line 2"),
        (
            "media,label\na,\nc,-1\n",
            {},
            "the labels of all clips are empty or -1; fill in the cells, or pass --no-labels",
        ),
        ("id,media\nx,a\ny,b\nx,c\n", {}, "id 'x' occurs in lines 2, 4"),
        ("media,label\na,x\na,y\n", {}, "lines 2, 3 share media files"),
        ("id,media\nx,a\nx,b\ny,c\ny,d\n", {}, "id 'x' occurs in lines 2, 3, and 1 more ids are repeated; make each"),
        ("id,media\n,a\nx,b\n", {}, "has no id in line 2; fill in the cells"),
        ("a,b\n1,2\n", {}, "(its columns are a, b); name the column of media files with --columns media=COLUMN,"),
        ("File Name,b\n1,2\n", {}, "name the column of media files with --columns media=File Name"),
        ("audio,b\n1,2\n", {}, "has no column 'media'"),
        ("media,..\na,b\n", {}, "'..' cannot name a column of a manifest"),
        ("media,a\x01\na,b\n", {}, "'a\\x01' cannot name a column of a manifest"),
        ("media,,label\na,x,b\n", {}, "line 2 has 3 cells, but the first line has 3 cells with 2 names"),
        ("a,b,c\n", {"header": "media,label"}, "line 1 has 3 cells, but the header has 2 cells with 2 names"),
        ("media\n", {}, "a header but no rows"),
        ("", {}, "contains no rows"),
        ('media,label\n"a,b\n', {}, "is not CSV"),
        (f"media,{'x' * 140_000}\na,b\n", {}, "line 1 is not CSV (field larger than field limit (131072)); correct"),
        ("media,label\na,b\n".encode("utf-16"), {}, "is UTF-16"),
        ("media,label\na,b\n".encode("utf-16-be"), {}, "is UTF-16"),
        ("media,label\na,caf\xe9\n".encode("latin-1"), {}, "the cells in line 2 are not UTF-8"),
    ],
)
def test_a_table_that_cannot_be_is_refused_in_one_line(tmp_path, text, options, message):
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        manifest(written(tmp_path, text), **options)
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_cells_with_any_line_end_are_read_back(media):
    cells = ["a\rb", "a\nb", "a\r\nb", "a"]
    lines = [f'media/{number}.mp4,"{cell}"' for number, cell in enumerate(cells)]
    path = manifest(written(media, "media,note\n" + "\n".join(lines)), split="random:1/0/0")
    assert [row.columns["note"] for row in rows_of(path)] == cells
    assert path.read_bytes().endswith(b"3,media/3.mp4,train,a\n")


def test_a_first_line_may_be_longer_than_the_largest_cell(tmp_path):
    names = ["media", *(f"column_{number}" for number in range(12_000))]
    assert read_table(written(tmp_path, ";".join(names) + "\n" + ";".join("x" for _ in names)))[0] == names


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": 15}, "table: columns has type int; pass text"),
        ({"media": 15}, "media has type int; pass the path of a folder"),
        ({"folds": float("-inf")}, "folds has type float; pass the path of a folder"),
        ({"clock_limit": "9" * 10}, "--clock-limit: '9"),
        ({"clock_limit": "9" * 9}, "clock_limit"),
    ],
)
def test_an_option_of_another_type_is_refused(tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        manifest(plain(tmp_path), **options)


def test_the_columns_of_a_table_are_copied_and_its_notes_are_complete(media):
    table = written(media, "clip,File,class,more\na,media/1.mp4,x,1,,\nb,media/1.mp4,y,2\nc,media/2.mp4,y,\n")
    options = {"columns": "id=clip,media=File,label=class", "split": "random:1/0/0", "on_note": (notes := []).append}
    assert manifest(table, **options).read_text().splitlines() == [
        "id,media,label,split,more", "a,media/1.mp4,x,train,1", "b,media/1.mp4,y,train,2", "c,media/2.mp4,y,train,",
    ]  # fmt: skip
    assert notes == [
        "3 clips, 2 classes (3 train, 0 valid, 0 test)",
        *(f"column '{old}' is read as '{new}'" for old, new in (("clip", "id"), ("File", "media"), ("class", "label"))),
        "the split is drawn at random (seed 0); shares of 1/0/0 were wanted, and 1/0/0 were reached",
        "missing media files: 0",
        "recordings in more than one row: 1 (1.mp4)",
        *(f"recordings shared by {pair}: 0" for pair in ("train-valid", "train-test", "valid-test")),
    ]


def test_a_table_without_a_header_and_files_named_by_its_cells(media):
    lines = ["# made by hand", "aa, 1, dog, train", 'bb, 2.0, "cat, wild", test', "cc, 3, dog, train"]
    table = written(media, "\n".join(lines))
    for name in ("aa_000001.mp4", "deep/bb_000002.mp4", "cc_000003.mkv"):
        (media / "media" / name).parent.mkdir(exist_ok=True)
        (media / "media" / name).write_text(name)
    form = {"header": "id,start,label,split", "comment": "#", "media": media / "media"}
    rows = rows_of(manifest(table, **form, media_name="{id}_{start:06d}"))
    assert [(row.id, row.label, row.split, row.columns) for row in rows] == [
        (name, label, split, {"video_start": start}) for name, label, split, start in [
            ("aa", "dog", "train", "1"), ("bb", "cat, wild", "test", "2.0"), ("cc", "dog", "train", "3")
        ]
    ]  # fmt: skip
    assert [row.media["audio"] for row in rows] == [
        str(media / "media" / name) for name in ("aa_000001.mp4", "deep/bb_000002.mp4", "cc_000003.mkv")
    ]


@pytest.mark.parametrize(
    ("header", "columns", "template"),
    [
        ("id,start,end,old", "", "{id}_{start:06d}.mp4"),
        ("id,start,end,old", "", "{id}_{end}"),
        ("id,t,end,old", "start=t", "{id}_{t}"),
        ("id,t,end,old", "start=t", "{id}_{start:03d}"),
        ("id,t,end,start", "start=t,old=start", "{id}_{start:03d}"),
    ],
)
def test_clips_whose_names_contain_their_times_are_not_cut_again(media, header, columns, template):
    table = written(media, f"{header},label\naa,1,11,5,dog\n")
    for name in ("aa_000001.mp4", "aa_11.mp4", "aa_1.mp4", "aa_001.mp4"):
        (media / "media" / name).write_text(name)
    rows = rows_of(manifest(table, columns=columns, media_name=template))
    assert [(row.segment, row.columns) for row in rows] == [
        (Segment(), {"video_start": "1", "video_end": "11", "old": "5"})
    ]


def test_times_beside_names_without_times_cut_the_media(media):
    rows = rows_of(manifest(written(media, "id,start,label\n1,3,dog\n"), media_name="{id}"))
    assert [row.segment for row in rows] == [Segment(start=3.0)]


def test_times_of_cut_clips_do_not_replace_another_column(media):
    table = written(media, "id,start,video_start,label\n1,1,2,dog\n")
    with pytest.raises(InputError, match="so 'start' is written as 'video_start', which exists already; rename"):
        manifest(table, media_name="{start}")


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{idd}.mp4", "there is no column 'idd'; did you mean 'id'?"),
        ("{label:06d}.mp4", "'c0' in column 'label' is not a number; correct the cell, or write {label}"),
        ("{id!r}.mp4", "there is no column 'id!r'"),
        ("{id:s}.mp4", "has a brace outside of a field"),
        ("{id.__class__}", "there is no column 'id.__class__'"),
        ("{id:>999999999}", "has a brace outside of a field"),
        ("{id}.mp4", "media files are missing for 40 of 40 clips"),
    ],
)
def test_a_template_that_cannot_be_is_refused(media, template, message):
    table = plain(media, "id,label")
    with pytest.raises(InputError, match=re.escape(message)):
        manifest(table, media_name=template)


def test_a_template_beside_a_column_of_files_is_refused(media):
    with pytest.raises(InputError, match="has the column 'media', so --media-name does not apply; leave out"):
        manifest(plain(media, "media,label"), media_name="{media}")


@pytest.mark.parametrize("part", ["media", "media=", "=filename", "="])
def test_a_column_without_two_names_is_refused(tmp_path, part):
    with pytest.raises(InputError, match=f"--columns {part} does not have the form NEW=COLUMN; write, for example"):
        manifest(plain(tmp_path), columns=part)
