"""Fusion of the results of a query in several modalities."""

import pytest

from aadml.search.calibration import Calibration
from aadml.search.fusion import fused
from aadml.search.results import Found, Hit
from aadml.search.store import CAPTION_COLUMNS, Item


def results(to, ids, chances=None, calibration=None):
    hits = (
        Hit(Item(name), n, 1.0, None if chances is None else chances[n], {to: f"{name}.x"}, second_key=0.5)
        for n, name in enumerate(ids)
    )
    return Found(tuple(hits), ("text",), to, len(ids), "cosine", calibration)


def test_ranks_are_fused_by_clip_and_ties_are_ordered_by_id():
    found = fused([results("audio", ["a", "b", "c"]), results("visual", ["c", "d", "b"])], 3)
    assert [hit.id for hit in found.hits] == ["c", "b", "a"]
    assert found.hits[0].score == pytest.approx(1 / 61 + 1 / 63)
    assert list(found.hits[0].ranks.items()) == [("visual", 1), ("audio", 3)]
    assert found.hits[0].media == {"visual": "c.x"}
    assert found.uncalibrated
    assert [hit.second_key for hit in found.hits] == [None] * 3, "fused hits of equal score are ordered by id"


def test_a_clip_has_the_rank_of_its_best_caption():
    captions = [
        Hit(Item(f"a#{n}", columns=dict(zip(CAPTION_COLUMNS, ("a", str(n), "rain"), strict=True))), n, 1.0, None, {})
        for n in (2, 1)
    ]
    text = Found(tuple(captions), ("text",), "text", 2, "cosine")
    (hit,) = fused([results("audio", ["a"]), text], 5).hits
    assert hit.ranks == {"audio": 1, "text": 1}
    assert hit.score == pytest.approx(2 / 61)


def test_captions_of_one_clip_do_not_lower_the_ranks_of_other_clips():
    names = [("a", n) for n in range(1, 6)] + [("b", 1)]
    captions = [
        Hit(Item(f"{clip}#{n}", columns=dict(zip(CAPTION_COLUMNS, (clip, str(n), ""), strict=True))), n, 1.0, None, {})
        for clip, n in names
    ]
    text = Found(tuple(captions), ("text",), "text", 6, "cosine")
    assert [hit.ranks for hit in fused([results("visual", ["b", "a"]), text], 5).hits] == [
        {"text": 1, "visual": 2}, {"visual": 1, "text": 2}
    ]  # fmt: skip


def test_probabilities_replace_ranks_if_every_modality_has_them():
    calibration = object.__new__(Calibration)
    sound = results("audio", ["a", "b"], [0.4, 0.3], calibration)
    found = fused([sound, results("visual", ["b", "c"], [0.9, 0.2], calibration)], 9)
    assert [(hit.id, hit.probability) for hit in found.hits] == [("b", 0.9), ("a", 0.4), ("c", 0.2)]
    assert (found.similarity, found.uncalibrated) == ("probability", "")
    assert fused([sound, results("visual", ["b"])], 9).similarity == "reciprocal rank"
