"""Small trainings give what `scripts/soak/equality record` wrote: a seeded sample, and how results are compared."""

import json
import random
import re

import pytest
from equality import RECORD, compute, counts, differences, entries, machine

RECORDED = json.loads(RECORD.read_text(encoding="utf-8"))
QUICK = [name for name in RECORDED["results"] if name.startswith(("method", "loss"))]
SAMPLE = random.Random(0).sample(sorted(set(QUICK) - {"method audio-text", "method 3cmlf", "method xie"}), 5)
"""What the default suite takes; all of them by `scripts/soak/equality check`."""


@pytest.mark.parametrize("name", SAMPLE)
def test_a_small_training_gives_what_was_recorded(name, monkeypatch):
    monkeypatch.setenv("AADML_CACHE", "")  # is set by `compute`, and restored
    result = compute(name)[1]
    exact = RECORDED["machine"] == machine()
    assert not list(differences(RECORDED["results"][name], result, exact=exact, place=name))


def test_everything_that_trains_is_recorded():
    results = RECORDED["results"]
    assert entries().keys() == results.keys()
    assert RECORDED["counts"] == counts(results)
    trained = [result for result in results.values() if "tensors" in result]
    assert len(trained) >= 60
    assert all(result["audit"] and result["evaluation"]["directions"] for result in trained)


def test_the_results_of_different_losses_differ():
    results = RECORDED["results"]
    contents = [tuple(sorted(results[name]["tensors"].values())) for name in results if name.startswith("loss")]
    assert len(contents) == len(set(contents))


@pytest.mark.parametrize(
    ("current", "exact", "message"),
    [
        ({"a": 0.5, "b": ["x"], "tensors": {"w": "h1", "v": "h2"}}, True, None),
        ({"a": 0.5000001, "b": ["x"], "tensors": {"w": "h1", "v": "h2"}}, True, "run/a: 0.5 was recorded"),
        ({"a": 0.5000001, "b": ["x"], "tensors": {"w": "h9", "v": "h2"}}, False, None),
        ({"a": 0.501, "b": ["x"], "tensors": {}}, False, "run/a: 0.5 was recorded, 0.501 is computed"),
        ({"a": 0.5, "b": ["y"], "tensors": {}}, False, "run/b/0: 'x' was recorded, 'y' is computed"),
        ({"a": 0.5, "b": [], "tensors": {}}, False, r"run/b: \['x'\] was recorded, \[\] is computed"),
        ({"b": ["x"], "tensors": {}}, False, "run/a: is gone"),
        ({"a": 0.5, "b": ["x"], "c": 1, "tensors": {}}, False, "run/c: is new"),
        ({"a": 0.5, "b": ["x"], "tensors": {"w": "h9", "v": "h2"}}, True, "1 of 2 tensors differ: w"),
        ({"a": 0.5, "b": ["x"], "tensors": {"u": "h1", "v": "h2"}}, True, "contents are equal, and names differ: w"),
    ],
)
def test_differences_are_listed(current, exact, message):
    recorded = {"a": 0.5, "b": ["x"], "tensors": {"w": "h1", "v": "h2"}}
    messages = list(differences(recorded, current, exact=exact, place="run"))
    assert len(messages) == (message is not None)
    assert all(re.search(message, text) for text in messages)
