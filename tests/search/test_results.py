"""Results of a search as JSON values."""

import json
from dataclasses import replace

import pytest

from aadml.cli.search import _lines
from aadml.search.best_moment import Moment
from aadml.search.calibration import Calibration, Curve
from aadml.search.results import Found, Hit
from aadml.search.store import Item


def found(probability=None, threshold=None, moment=None):
    item = Item("rain", {"audio": "rain.wav"}, "test", "weather", {"year": "1999"})
    hit = Hit(item, 7, 0.5, probability, {"audio": "rain.wav"}, moment)
    calibration = Calibration(("audio",), "visual", Curve("logistic"), "class", 40, 100, 0.1, 0.1, 0.9, threshold)
    return Found((hit,), ("audio",), "visual", 100, "cosine", None if probability is None else calibration)


@pytest.mark.parametrize(
    ("probability", "threshold", "nothing_fits"),
    [(None, None, None), (0.5, None, None), (0.5, 0.6, True), (0.6, 0.6, False), (0.7, 0.6, False)],
)
def test_nothing_fits_below_the_threshold(probability, threshold, nothing_fits):
    assert found(probability, threshold).nothing_fits is nothing_fits
    assert replace(found(probability, threshold), hits=()).nothing_fits is (None if threshold is None else True)
    worse = replace(found(probability, threshold), hits=found(probability, threshold).hits + found(0.1).hits)
    assert worse.nothing_fits is nothing_fits


def test_the_json_holds_facts_and_hits():
    content = json.loads(json.dumps(found(0.7, 0.6, Moment(1.5, 0.8)).to_json()))
    assert content == {
        "asked": ["audio"], "to": "visual", "among": 100, "looked_at": 100, "similarity": "cosine",
        "nothing_fits": False, "calibration": {"threshold": 0.6, "precision": 0.9, "clips": 40},
        "hits": [
            {"rank": 1, "id": "rain", "score": 0.5, "second_key": None, "probability": 0.7, "label": "weather",
             "split": "test", "columns": {"year": "1999"}, "range": None, "caption": None,
             "moment": {"seconds": 1.5, "score": 0.8}, "ranks": {},
             "media": {"audio": "rain.wav"}}
        ],
    }  # fmt: skip
    plain = found().to_json()
    assert plain["calibration"] is plain["hits"][0]["moment"] is None


@pytest.mark.parametrize(("columns", "time"), [({}, "at 1.5 s"), ({"start": "10", "end": "20"}, "at 11.5 s")])
def test_the_terminal_shows_the_time_of_a_moment_in_the_recording(columns, time):
    hit = replace(found(moment=Moment(1.5, 0.8)).hits[0], item=Item("rain", columns=columns))
    assert _lines(replace(found(), hits=(hit,)))[-1].endswith(time)


@pytest.mark.parametrize(
    ("columns", "shown", "values"),
    [
        ({"start": "10", "end": "20.5"}, "10.0-20.5 s", [10.0, 20.5]),
        ({"start": "10", "end": ""}, "10.0- s", [10.0, None]),
        ({"end": "3"}, "0.0-3.0 s", [0.0, 3.0]),
        ({"start": "May", "end": "June"}, "", None),
        ({}, "", None),
    ],
)
def test_a_hit_has_the_times_of_its_segment(columns, shown, values):
    (hit,) = (content := replace(found(), hits=(replace(found().hits[0], item=Item("a", columns=columns)),))).hits
    assert hit.range == shown
    assert content.hit_to_json(1)["range"] == values
