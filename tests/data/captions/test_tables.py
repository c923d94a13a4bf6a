import pytest

from aadml.data.captions.tables import CaptionedFile, read_caption_table
from aadml.feature_extraction.ground.errors import InputError


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,words\na,b\n", "the columns name, words are not those of a caption table"),
        ("file_name,caption\na.wav\n", "line 2 has 1 cells"),
        ("file_name,caption\na.wav,\n", "line 2 has no caption; fill in the cells"),
        ("youtube_id,caption\na,b\nc,\n", "line 3 has no caption; fill in the cells"),
        ("file_name,caption\n,b\n,\n,\na.wav,\n", "line 2 has no file name, line 5 has no caption; fill in the cells"),
        ("file_name,caption\n" + ",x\n" * 5, "line 6 has no file name; fill in the cells"),
        ("file_name,caption\n" + ",x\n" * 7, "line 6 has no file name, and 2 more cells are empty; fill in the cells"),
        ("name,caption\na,b\n", "name, caption are not those of a caption table; rename the columns to file_name,"),
        ("file_name,caption\na.wav,x\na.wav,y\n", "the column 'file_name' contains 'a.wav' 2 times"),
        ("file_name,caption\na.wav,caf\xe9\n", "is not UTF-8"),
        ("file_name,caption\n", "a header but no rows"),
        ("file_name,caption_1,caption_1\na.wav,x,y\n", "'caption_1' 2 times"),
    ],
)
def test_tables_in_error_are_refused_with_their_line(tmp_path, text, message):
    (tmp_path / "t.csv").write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=message):
        read_caption_table(tmp_path / "t.csv")


def test_captions_are_in_the_order_of_their_numbers_and_a_clip_has_the_names_of_downloaders(tmp_path):
    (tmp_path / "t.csv").write_text("caption_10,file_name,caption_2,caption_0,caption\nd,a.wav,,x,b\n")
    assert read_caption_table(tmp_path / "t.csv") == (CaptionedFile("a.wav", ("b", "d")),)
    lines = ["7,ab,30,A bee", "8,ab,30,It hums", "9,ab,5,Rain", ",cd,1,Wind"]
    (tmp_path / "t.csv").write_text("\n".join(["audiocap_id,youtube_id,start_time,caption", *lines]))
    with pytest.raises(InputError, match=r"the column 'file_name' contains 'Yab\.wav' 2 times"):
        read_caption_table(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("\n".join(["audiocap_id,youtube_id,start_time,caption", *lines[:2], lines[3]]))
    names = ("ab.wav", "ab_30.wav", "ab_30000.wav", "7.wav", "8.wav")
    assert read_caption_table(tmp_path / "t.csv") == (
        CaptionedFile("Yab.wav", ("A bee", "It hums"), names),
        CaptionedFile("Ycd.wav", ("Wind",), ("cd.wav", "cd_1.wav", "cd_1000.wav")),
    )
