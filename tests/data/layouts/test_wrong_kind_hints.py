import pytest

from aadml.data.reading import open_data
from aadml.feature_extraction.ground.errors import InputError


def test_what_is_something_else_is_named_with_what_to_do(tmp_path):
    (tmp_path / "clips" / "dog").mkdir(parents=True)
    (tmp_path / "clips" / "dog" / "a.MP4").write_bytes(b"a video")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "model.json").write_text("{}")
    (tmp_path / "captioned").mkdir()
    (tmp_path / "captioned" / "clotho_captions_development.csv").write_text("file_name,caption_1\na.wav,a bee\n")
    for name, message in {
        "captioned": "contains sound and captions, not features; `aadml train --method audio-text --data",
        "clips": f"contains media, not features; `aadml manifest {tmp_path / 'clips'}` lists",
        "clips/dog/a.MP4": f"is media, not features; `aadml manifest {tmp_path / 'clips' / 'dog'}` lists",
        "run": f"is a model, not features; pass features, or use the model: `aadml embed {tmp_path / 'run'} F.h5`",
    }.items():
        with pytest.raises(InputError) as refused:
            open_data(tmp_path / name)
        assert str(refused.value).startswith(f"{tmp_path / name} {message}")


@pytest.mark.parametrize(
    "text", [b"filename,caption\na.wav,rain\n", "file_name,caption\na.wav,rain\n".encode("utf-16")]
)
def test_a_table_beside_media_is_perhaps_a_table_of_captions(text, tmp_path):
    (tmp_path / "a.wav").touch()
    (tmp_path / "train.csv").write_bytes(text)
    hint = r"; if train\.csv has captions, save the table as CSV in UTF-8 with the columns file_name,caption$"
    with pytest.raises(InputError, match=hint):
        open_data(tmp_path)
