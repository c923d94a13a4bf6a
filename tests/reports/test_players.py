"""Players of a page: as many as fit."""

import re

from hypothesis import given
from hypothesis import strategies as st

from aadml.feature_extraction.ground.segment import WHOLE, Segment
from aadml.feature_extraction.media.inputs import REASONS
from aadml.reports import players
from aadml.reports.players import Players, fitting
from aadml.reports.previews import Preview, PreviewSource


def total(previews):
    return sum(len(preview.media) + len(preview.picture) for preview in previews)


sizes = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 90)), max_size=12)


@given(sizes, st.integers(0, 600))
def test_a_page_holds_what_there_is_room_for(lengths, room):
    given = [Preview("video/mp4" if m else "", "m" * m, "p" * p, "corrupt") for p, m in lengths]
    kept = fitting(given, room)
    assert total(kept) <= room
    assert total(given) > room or kept == given
    for before, after in zip(given, kept, strict=True):
        assert after.picture in ("", before.picture)
        assert (after.type, after.media) in (("", ""), (before.type, before.media))
        assert after.reason == before.reason
    if sum(len(one.picture) for one in given) <= room:
        assert [one.picture for one in kept] == [one.picture for one in given]


def test_a_window_plays_its_part_of_the_recording(tmp_path, monkeypatch):
    (tmp_path / "manifest.csv").write_text("id,media,label,split,start,end\na,a.wav,,test,,\nb,a.wav,,test,3,4\n")
    sources = []
    monkeypatch.setattr(players, "make_previews", lambda wanted, **_: sources.extend(wanted) or [Preview()] * 3)
    found = players.find_media(tmp_path / "manifest.csv", None)
    played = players.make_players(found, ["a@1.0-2.5", "b", "a", "c", "c@0.0-1.0"], 1000)
    assert list(played.previews) == ["a@1.0-2.5", "b", "a"]
    path = str(tmp_path / "a.wav")
    segments = [Segment(1.0, 2.5), Segment(3.0, 4.0), WHOLE]
    assert sources == [PreviewSource(path, path, segment) for segment in segments]


def test_clips_whose_player_does_not_fit_are_counted(monkeypatch):
    previews = [Preview("audio/mp4", "m" * size, "") for size in (5, 50)] + [Preview(reason="missing")]
    monkeypatch.setattr(players, "make_previews", lambda sources, **_: previews[: len(sources)])
    media = {clip: PreviewSource("", f"{clip}.wav") for clip in "abc"}
    played = players.make_players(media, "abc", 20)
    assert [preview.media for preview in played.previews.values()] == ["mmmmm", "", ""]
    assert played.left_out == 1
    assert played.notes() == [
        "A player contains the first 5 s of a clip, with sound, at reduced quality. It plays sound and picture, but "
        "the model embeds only the named modality.",
        "1 of 3 clips have no player: the page would be too large.",
        f"1 of 3 clips could not be read completely: {REASONS['missing']}.",
    ]
    assert played.media() == [("audio/mp4", "mmmmm", ""), ("", "", ""), ("", "", "")]
    twice = Players(dict.fromkeys("ab", previews[0]), 0)
    numbers = [re.findall('data-preview="([0-9]*)"', twice.show(clip)) for clip in "abc"]
    assert numbers == [["0"], ["1"], []]
    assert players.make_players(media, "a", 5).left_out == 0  # just fits
    assert Players({}, 0).notes() == []
    lost = {clip: Preview(reason=reason) for clip, reason in zip("abc", ("missing", "corrupt", "corrupt"), strict=True)}
    assert Players(lost, 0).notes()[1:] == [
        f"{count} of 3 clips could not be read completely: {REASONS[reason]}."
        for count, reason in ((2, "corrupt"), (1, "missing"))
    ]


def test_media_are_those_of_the_manifest_beside_the_features(tmp_path, monkeypatch):
    (tmp_path / "manifest.csv").write_text("id,media,label,split\na,a.wav,,test\n")
    found = players.find_media(None, str(tmp_path / "features.h5"))
    assert found == players.find_media(tmp_path / "manifest.csv", None)
    assert list(found) == ["a"]
    monkeypatch.chdir(tmp_path)
    assert players.find_media(None, "synthetic:ave") == {}
    assert players.find_media(None, None) == players.find_media(None, str(tmp_path / "none" / "features.h5")) == {}
    (tmp_path / "manifest.csv").write_text("mine")
    assert players.find_media(None, str(tmp_path / "features.h5")) == {}
