import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aadml.feature_extraction.feature_file.content import PendingFit, Shard, Texts, Timeline
from tests.feature_extraction.contents import content, masked, same, timed, with_texts


def test_names_the_rows_of_a_split():
    assert content().rows("train").tolist() == [0, 3]
    assert content(splits=("test",) * 4).rows("train").tolist() == []


def test_finds_the_row_that_stands_at_a_moment():
    timeline = timed().sequences["audio"]
    assert timeline.rows_at(0, [0.0, 0.4, 0.5, 1.4, 1.5, 99]).tolist() == [-1, -1, 0, 0, 1, 1]
    assert timeline.rows_at(1, [0.0, 1.0]).tolist() == [-1, -1]
    assert timeline.rows_at(2, [0.0, 0.96, 1.0, 2.0]).tolist() == [2, 3, 3, 4]
    assert timeline.rows_at(3, np.arange(2) + 0.5).tolist() == [5, 5]
    with pytest.raises(ValueError, match="no times"):
        content().sequences["audio"].rows_at(0, [0.0])


def test_clips_are_chosen_with_their_masks():
    chosen = masked().select(np.array([2, 0]))
    assert chosen.has("audio").tolist() == [False, True]
    assert chosen.has("visual").tolist() == [True, True]


@given(st.lists(st.integers(0, 3), min_size=1), st.lists(st.integers(0, 3)))
def test_texts_follow_their_clips(rows, chosen):
    values = np.arange(len(rows), dtype=np.float32)[:, None]
    found = Texts.sorted(values, np.asarray(rows, dtype=np.int64)).select(np.asarray(chosen, dtype=np.int64))
    expected = [(place, number) for place, clip in enumerate(chosen) for number, row in enumerate(rows) if row == clip]
    assert list(zip(found.rows.tolist(), found.values[:, 0].tolist(), strict=True)) == expected
    first, there = found.first_of_each(len(chosen))
    assert there.tolist() == [clip in rows for clip in chosen]
    assert first[:, 0].tolist() == [rows.index(clip) if clip in rows else 0 for clip in chosen]


def test_a_selection_has_the_rows_of_its_clips_over_time():
    for timeline in (timed().sequences["audio"], content().sequences["audio"]):
        whole = Timeline(np.arange(6.0)[:, None], timeline.offsets, timeline.times)
        chosen = whole.select(np.array([3, 1, 2, 0]))
        assert chosen.values[:, 0].tolist() == [5, 2, 3, 4, 0, 1]
        assert chosen.offsets.tolist() == [0, 1, 1, 4, 6]
        times = None if timeline.times is None else timeline.times[[5, 2, 3, 4, 0, 1]]
        np.testing.assert_array_equal(chosen.times, times)
    assert whole.select(np.array([], np.int64)).offsets.tolist() == [0]


def test_a_selection_has_every_field_of_its_clips_and_no_shard():
    shard = Shard(0, 1, 4, "abc", rows=np.arange(4))
    fields = {"all_labels": np.eye(4, 2, dtype=np.uint8), "fingerprints": {"audio": np.arange(8).reshape(4, 2)}}
    whole = with_texts(shard=shard, **fields)
    chosen = whole.select(np.array([3, 0]))
    assert chosen.shard is None
    assert (chosen.ids, chosen.splits) == (("clip 3 é\n", "clip 0 é\n"), ("train", "train"))
    assert chosen.columns == {"caption_1": (" ", "a"), "speaker": ("", "")}
    assert chosen.labels.tolist() == [1, 0]
    assert chosen.all_labels.tolist() == [[0, 0], [1, 0]]
    assert chosen.fingerprints["audio"].tolist() == [[6, 7], [0, 1]]
    assert chosen.texts.rows.tolist() == [0, 0, 0, 1, 1]
    assert chosen.present["text"].tolist() == [True, True]
    np.testing.assert_array_equal(chosen.features["visual"], whole.features["visual"][[3, 0]])
    assert same(chosen.select(np.array([1, 0])), whole.select(np.array([0, 3])))


def test_notes_are_those_of_readers_and_on_random_untrained_and_missing_modalities():
    drawn, untrained = {"extractor": "synthetic"}, {"parameters": {"weights": "untrained"}}
    assert content().notes() == ()
    assert content(provenance={"audio": drawn, "visual": drawn | {"notes": ["is old"]}}).notes() == (
        "is old",
        "audio and visual are random numbers (synthetic), not features of recordings",
    )
    notes = with_texts(
        provenance={"audio": drawn, "visual": {"weights": "untrained"}, "text": untrained},
        present={"audio": np.ones(4, bool), "text": np.array([True, True, False, True])},
    ).notes()
    assert notes == (
        "audio is random numbers (synthetic), not features of recordings",
        "visual was computed by an untrained network (random weights)",
        "text was computed by an untrained network (random weights)",
        "1 of 4 clips have no text; these clips are masked, not left out",
        "2 of 4 clips have several texts, 6 in all",
    )


def test_a_part_of_a_job_has_no_fit_and_no_rows_over_time_by_default():
    shard = Shard(0, 2, 9, "abc", rows=np.arange(4))
    assert (shard.pending, shard.sequence, shard.failures) == ({}, False, ())
    assert not PendingFit("pca-whitening", 8).eight_bit
