import pytest

from aadml.data.captions.tables import read_caption_table
from aadml.feature_extraction.ground.errors import InputError


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,words\na,b\n", "its columns are name, words"),
        ("file_name,caption\na.wav\n", "line 2 has 1 cells"),
        ("file_name,caption\na.wav,\n", "line 2 has no caption"),
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
