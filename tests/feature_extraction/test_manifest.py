import os
import re
from math import inf

import pytest

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.manifest import read_manifest


def written(tmp_path, text, name="manifest.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_reads_rows_in_order_with_media_beside_the_manifest(tmp_path):
    path = written(tmp_path, "id,media,label,split,speaker\na,x/1.mp4,dog,train,ann\nb,-2.mp4,cat,test,\n")
    manifest = read_manifest(path)
    assert [row.id for row in manifest.rows] == ["a", "b"]
    assert manifest.rows[0].media == {"audio": str(tmp_path / "x/1.mp4"), "visual": str(tmp_path / "x/1.mp4")}
    assert manifest.rows[1].media["audio"] == str(tmp_path / "-2.mp4")
    assert [row.columns for row in manifest.rows] == [{"speaker": "ann"}, {"speaker": ""}]
    assert manifest.class_names == ("cat", "dog")


def test_reads_two_files_a_clip(tmp_path):
    path = written(tmp_path, "label,split,id,audio,visual\ndog,train,a,/far/1.wav,1.png\n")
    assert read_manifest(path).rows[0].media == {"audio": "/far/1.wav", "visual": str(tmp_path / "1.png")}


def test_reads_val_as_valid_whatever_its_case(tmp_path):
    path = written(tmp_path, "id,media,label,split\na,1,x,val\nb,1,x,Valid\nc,1,x,TEST\nd,1,x,validation\n")
    assert [row.split for row in read_manifest(path).rows] == ["valid", "valid", "test", "valid"]


def test_orders_integer_labels_as_numbers_and_others_as_text(tmp_path):
    integers = written(tmp_path, "id,media,label,split\na,1,10,train\nb,1,9,train\nc,1,-2,train\n")
    assert read_manifest(integers).class_names == ("-2", "9", "10")
    mixed = written(tmp_path, "id,media,label,split\na,1,10,train\nb,1,9,train\nc,1,--2,train\n")
    assert read_manifest(mixed).class_names == ("--2", "10", "9")


@pytest.mark.parametrize("column", ["label", "labels"])
def test_labels_that_are_minus_one_or_empty_are_not_a_class(tmp_path, column):
    path = written(tmp_path, f"id,media,{column},split\na,1,3,train\nb,1,-1,train\nc,1,,train\n")
    manifest = read_manifest(path)
    assert (manifest.class_names, [row.labels for row in manifest.rows]) == (("3",), [("3",), (), ()])


def test_reads_quoted_newlines_a_byte_order_mark_and_windows_lines(tmp_path):
    path = written(tmp_path, b'\xef\xbb\xbfid,media,label,split\r\n"a\nb","1\n2.mp4",x,train\r\n')
    row = read_manifest(path).rows[0]
    assert row.id == "a\nb"
    assert row.media["audio"] == str(tmp_path / "1\n2.mp4")


def test_keeps_media_names_that_are_not_utf8(tmp_path):
    path = written(tmp_path, b"id,media,label,split\na,\xff\xfe.mp4,x,train\n")
    assert os.fsencode(read_manifest(path).rows[0].media["visual"]) == os.fsencode(tmp_path) + b"/\xff\xfe.mp4"


def test_an_empty_cell_names_no_file(tmp_path):
    path = written(tmp_path, "id,media,label,split\na,,x,train\n")
    assert read_manifest(path).rows[0].media == {"audio": "", "visual": ""}


@pytest.mark.parametrize("modality", ["audio", "visual"])
def test_a_manifest_of_sounds_or_of_pictures_alone_needs_no_column_of_the_other(tmp_path, modality):
    row = read_manifest(written(tmp_path, f"id,{modality},label,split\na,1.wav,x,train\n")).rows[0]
    assert row.media == {"audio": "", "visual": ""} | {modality: str(tmp_path / "1.wav")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the first line is missing or empty; write the columns id,media,label,split"),
        ("\nid,media\na,1\n", "the first line is missing or empty"),
        ("id,media,label,split\n", "has a header but no rows"),
        (
            "id,label\na,x\n",
            "column 'media' is missing (columns found: id, label); pass a manifest with the columns id,",
        ),
        ("id;media;label;split\na;1;x;train\n", "column 'id' is missing"),
        ("id,id,media,label,split\na,a,1,x,train\n", "column 'id' occurs 2 times; rename or"),
        ("id,id,id,media\na,a,a,1\n", "column 'id' occurs 3 times"),
        (
            "id,media,audio,label,split\na,1,1,x,train\n",
            "has the column 'media' and also 'audio' or 'visual'; remove 'media', or",
        ),
        ("id,media,label,split,a/b\na,1,x,train,\n", "'a/b' cannot be the name of a column"),
        ("id,media,label,split,\na,1,x,train,\n", "'' cannot be the name of a column"),
        ("id,media,label,split\na,1,x\n", "line 2 has 3 cells, but the header has 4"),
        ("id,media,label,split\n,1,x,train\n", "line 2: the id is empty"),
        ("id,media,label,split\na,1,x,exam\n", "line 2: the split is 'exam', not one of train, valid, test"),
        ("id,media,label,split\na,1,x,train\nb,1,x,test\na,2,x,train\n", "id 'a' occurs in lines 2, 4; correct"),
        ("id,media\n" + "a,1\n" * 6, "id 'a' occurs in lines 2, 3, 4, 5; correct"),
        ("id,media\na\0,1\n", "line 2: the id contains a zero byte"),
        ("id,media,note\na,1,\0\n", "line 2: the note contains a zero byte"),
        ("id,media\na,1\0\n", "line 2: a path or text of the clip contains a zero byte"),
        ("id,media,..\na,1,x\n", "'..' cannot be the name of a column; use a name in UTF-8 that has no '/' and is"),
        (",".join(f"c{n}" for n in range(14)), f"(columns found: {', '.join(f'c{n}' for n in range(12))}); pass a man"),
        (b"id,media,label,split\n\xff,1,x,train\n", r"line 2: the id '\udcff' is not UTF-8"),
        (b"id,media,label,split\na,1,\xff,train\n", "line 2: the label"),
        ('id,media,label,split\n"a"b,1,x,train\n', "line 2 is not CSV"),
        ('id,media,label,split\n"a,1,x,train\n', "is not CSV"),
    ],
)
def test_says_what_is_wrong_and_where(tmp_path, text, message):
    with pytest.raises(InputError, match=re.escape(message)):
        read_manifest(written(tmp_path, text))


def test_counts_the_problems_it_does_not_name(tmp_path):
    split = "s" * 90
    for count, more in ((5, ""), (6, "; and 1 more"), (9, "; and 4 more")):
        path = written(tmp_path, "id,media,label,split\n" + "".join(f"{n},1,x,{split}\n" for n in range(count)))
        with pytest.raises(InputError) as caught:
            read_manifest(path)
        lines = "; ".join(f"line {n}: the split is '{split[:80]}', not one of train, valid, test" for n in range(2, 7))
        assert str(caught.value) == f"{path}: {lines}{more}; correct the manifest"


def test_refuses_a_folder_and_a_missing_file(tmp_path):
    with pytest.raises(InputError, match="a folder; pass a manifest \\(a CSV file"):
        read_manifest(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        read_manifest(tmp_path / "none.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(InputError, match="is a pipe; pass a manifest"):
        read_manifest(tmp_path / "pipe.csv")


def test_clips_need_no_labels_and_may_have_several(tmp_path):
    none = read_manifest(written(tmp_path, "id,media,split\na,1,train\nb,2,test\n"))
    assert ([row.label for row in none.rows], none.class_names) == (["", ""], ())
    several = read_manifest(written(tmp_path, "id,media,labels,split\na,1,dog| cat |dog,train\nb,2,owl,test\n"))
    assert [row.labels for row in several.rows] == [("dog", "cat"), ("owl",)]
    assert [row.label for row in several.rows] == ["dog", "owl"]
    assert several.class_names == ("cat", "dog", "owl")
    assert several.has_several_labels
    assert not read_manifest(written(tmp_path, "id,media,label,split\na,1,dog|cat,train\n")).has_several_labels


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,media,label,labels,split\na,1,x,x,train\n", "has both 'label' and 'labels'"),
        ("id;media;split\na;1;train\n", "or convert this table with `aadml manifest`"),
    ],
)
def test_labels_that_cannot_be_are_refused(tmp_path, text, message):
    with pytest.raises(InputError, match=re.escape(message)):
        read_manifest(written(tmp_path, text))


@pytest.mark.parametrize("column", ["label", "labels"])
def test_a_clip_whose_label_is_empty_has_none(tmp_path, column):
    manifest = read_manifest(
        written(tmp_path, f"id,media,{column},split\na,1,dog,train\nb,2, ,train\nc,3,cat,test\nd,4, dog ,test\n")
    )
    assert manifest.class_names == ("cat", "dog")
    assert [row.labels for row in manifest.rows] == [("dog",), (), ("cat",), ("dog",)]


def test_without_a_column_of_splits_all_clips_are_test_clips(tmp_path):
    assert [row.split for row in read_manifest(written(tmp_path, "id,media\na,1\nb,2\n")).rows] == ["test", "test"]


def test_start_and_end_cut_a_segment_of_a_named_recording(tmp_path):
    lines = ["id,media,label,split,start,end", "a,x.mp4,,train,1.5,3", "b,y.mp4,,test,,2", "c,x.mp4,,test,4,"]
    path = written(tmp_path, "\n".join([*lines, "d,y.mp4,,test,,"]))
    rows = read_manifest(path).rows
    assert [(row.segment.start, row.segment.end) for row in rows] == [(1.5, 3), (0, 2), (4, inf), (0, inf)]
    assert [row.columns["recording"] for row in rows] == ["a", "b", "a", "b"]
    assert rows[3].segment.is_whole
    path = written(tmp_path, "id,media,label,split,start,recording\na,x.mp4,,train,1.5,mine\n")
    assert read_manifest(path).rows[0].columns == {"start": "1.5", "recording": "mine"}
    lines = ["id,media,split,start,recording", "a,x.mp4,train,0,", "b,x.mp4,train,1,mine", "c,x.mp4,test,2,"]
    lines += ["d,y.mp4,train,0,yours", "e,y.mp4,train,1,"]
    rows = read_manifest(written(tmp_path, "\n".join(lines))).rows
    assert [row.columns["recording"] for row in rows] == ["a", "mine", "a", "yours", "yours"]
    assert "recording" not in read_manifest(written(tmp_path, "id,media,label,split\na,1,x,train\n")).rows[0].columns


def test_rows_of_one_file_are_one_recording(tmp_path):
    lines = [
        "id,audio,visual,caption",
        "a,x.wav,,rain",
        "b,y.wav,,wind",
        "c,x.wav,,drops",
        "d,,,no sound",
        "e,,,no file",
    ]
    rows = read_manifest(written(tmp_path, "\n".join(lines))).rows
    assert [row.columns["recording"] for row in rows] == ["a", "b", "a", "d", "e"]
    rows = read_manifest(written(tmp_path, "\n".join([*lines[:3], *lines[4:]]))).rows
    assert all("recording" not in row.columns for row in rows)


@pytest.mark.parametrize(
    ("start", "end", "problem"),
    [
        ("5", "5", "the end '5' is not after the start '5'"),
        ("5", "4.9", "the end '4.9' is not after the start '5'"),
        ("", "0", "the end '0' is not after the start '0'"),
        ("-1", "2", "the start '-1' is not a number of seconds from 0 to 1e\\+09"),
        ("0", "00:10", "the end '00:10' is not a number of seconds"),
        ("nan", "", "the start 'nan' is not a number"),
        ("1", "inf", "the end 'inf' is not a number"),
        ("1_0", "", "the start '1_0' is not a number"),
        ("٣", "", "the start '٣' is not a number"),
    ],
)
def test_a_segment_that_is_none_is_refused(tmp_path, start, end, problem):
    path = written(tmp_path, f"id,media,label,split,start,end\na,x.mp4,,train,{start},{end}\n")
    with pytest.raises(InputError, match=f"line 2: {problem}"):
        read_manifest(path)


def test_a_path_that_no_file_system_can_hold_is_an_input_error():
    with pytest.raises(InputError, match=r"cannot be read \(File name too long\)"):
        read_manifest("x" * 5000)


def test_captions_are_texts_of_a_clip_and_no_files(tmp_path):
    text = "id,media,caption_1,caption_2,caption_3,note\na,1.mp4,one, ,three,n\nb,,,,,\nc,2.mp4,,two,,\n"
    manifest = read_manifest(written(tmp_path, text))
    texts = [{name: value for name, value in row.media.items() if "text" in name} for row in manifest.rows]
    assert texts == [{"text": "one", "text_2": "three"}, {"text": ""}, {"text": "two"}]
    assert [row.files for row in manifest.rows] == [(f"{tmp_path}/1.mp4",) * 2, (), (f"{tmp_path}/2.mp4",) * 2]
    assert manifest.further_texts == ("text_2",)
    assert manifest.rows[0].columns == {"caption_1": "one", "caption_2": " ", "caption_3": "three", "note": "n"}
    plain = read_manifest(written(tmp_path, "id,media,caption,caption_2\na,1,x,y\n"))
    assert (plain.rows[0].media["text"], plain.rows[0].media["text_2"]) == ("x", "y")
    gap = read_manifest(written(tmp_path, "id,media,caption_10,caption_3,caption_1\na,1,z,y,x\n"))
    assert list(gap.rows[0].media.values())[2:] == ["x", "y", "z"]
    single = read_manifest(written(tmp_path, "id,media,caption_1,text\na,1,x,y\n"))
    assert (single.rows[0].media["text"], single.further_texts) == ("y", ())
    alone = read_manifest(written(tmp_path, "id,audio,visual,caption_1\na,,,x\n"))
    assert alone.rows[0].media == {"audio": "", "visual": "", "text": "x"}
