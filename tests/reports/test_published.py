from aadml.reports.published import data_sets, published, read_paper


def test_published_map_has_both_directions_and_their_mean():
    assert published("losses")["aa-triplet"]["AVE"] == {"audio_visual": 0.890, "visual_audio": 0.883, "mean": 0.887}
    assert published("methods")["video-adviser-lite"].keys() == {"VEGAS"}
    assert data_sets("methods") == data_sets("losses") == ["VEGAS", "AVE"]


def test_every_paper_is_one_file():
    assert all(read_paper(name)["title"] for name in ("aadml", "mei", "3cmlf", "xie"))
