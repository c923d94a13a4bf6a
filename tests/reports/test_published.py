import pytest

from aadml.reports.published import PAPER, data_set_of


def test_published_map_has_both_directions_and_their_mean():
    assert PAPER.published["losses"]["aa-triplet"]["AVE"]._asdict() == {
        "audio_visual": 0.890, "visual_audio": 0.883, "mean": 0.887,
    }  # fmt: skip
    assert PAPER.published["methods"]["video-adviser-lite"].keys() == {"VEGAS"}


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
