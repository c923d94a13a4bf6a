"""Players of a page: as many as fit."""

from hypothesis import given
from hypothesis import strategies as st

from aadml.reports.players import fitting
from aadml.reports.previews import Preview


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
