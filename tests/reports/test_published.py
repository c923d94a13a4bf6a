import pytest

from aadml.reports.published import data_set_of, published, read_paper


def test_published_map_has_both_directions_and_their_mean():
    assert published("losses")["aa-triplet"]["AVE"] == {"audio_visual": 0.890, "visual_audio": 0.883, "mean": 0.887}
    assert published("methods")["video-adviser-lite"].keys() == {"VEGAS"}


@pytest.mark.parametrize(
    ("name", "data_set"),
    [
        ("AVE.h5", "AVE"),
        ("folder/ave_vggish-128.h5", "AVE"),
        ("vegas", "VEGAS"),
        ("synthetic:ave", ""),
        ("waves.h5", ""),
        ("clips.ave", ""),
    ],
)
def test_published_map_is_of_data_with_the_name_of_the_data_set(name, data_set):
    assert data_set_of(name) == data_set


def test_every_paper_is_one_file():
    assert all(read_paper(name)["title"] for name in ("aadml", "mei", "3cmlf", "xie"))
