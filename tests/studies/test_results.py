import json
from dataclasses import replace

import numpy as np
import pytest

from aadml.configuration.config import resolve
from aadml.retrieval.record import DirectionRecord, EvaluationRecord, PerUnit, ScopeCurve
from aadml.retrieval.significance import Difference, paired_t, seeds_and_clips
from aadml.runs.manifest import EVALUATION
from aadml.runs.store import new_run
from aadml.studies import results
from aadml.studies.grid import Cell
from aadml.studies.job import Job
from aadml.studies.results import (
    TWO_SEEDS,
    CellScores,
    difference,
    differences,
    directions_of,
    how_tested,
    in_words,
    mean_map,
    read_run,
)


def direction(values):
    return DirectionRecord(
        map=float(np.mean(values)), map_bounds=[0.0, 1.0], map_interval=[0.0, 1.0], chance=0.1, tie_rate=0.0,
        queries=len(values), queries_without_relevant=0, gallery=9, scope=ScopeCurve([], [], [], []), by_class={},
        figures={("recall_at", "5"): float(np.max(values))},
    )  # fmt: skip


def run(folder, first, second, ids=None):
    """Write the evaluation of a run with values of clips in two directions, and read its scores."""
    directions = {name: direction(values) for name, values in (("audio-visual", first), ("visual-audio", second))}
    names = ids or [f"clip{i}" for i in range(len(first))]
    record = EvaluationRecord(
        protocol="inductive", split="test", similarity="cosine", chance=0.1, tie_rate=0.0, directions=directions,
        map_mean=float(np.mean([one.map for one in directions.values()])), label="cca", seed=0, seconds=1.5,
        parameters=7, verdicts=[], per_unit=PerUnit(names, np.mean([first, second], axis=0).tolist()),
    )  # fmt: skip
    with new_run(folder) as store:
        store.commit({EVALUATION: json.dumps(record.to_json()).encode()})
    return read_run(Job(folder, resolve({"method": "cca", "data": "x"})))


def cell(name, runs):
    return CellScores(Cell(name, resolve({"method": "cca", "data": "x"})), dict(enumerate(runs)))


def test_the_values_of_clips_are_read(tmp_path):
    scores = run(tmp_path / "a", [0.2, 0.4, 0.9], [0.6, 0.0, 0.1])
    assert scores.units == ("clip0", "clip1", "clip2")
    np.testing.assert_allclose(scores.values, [0.4, 0.2, 0.5])


def test_values_of_captions_are_replaced_by_values_of_clips(tmp_path, monkeypatch):
    run(tmp_path, [0.2] * 10, [0.6] * 10)  # more units than clips in the gallery
    job = Job(tmp_path, resolve({"method": "audio-text", "data": "x"}))
    monkeypatch.setattr(results, "add_unit_values", lambda folder, config: PerUnit([folder.name], [0.5]))
    assert read_run(job).units == (tmp_path.name,)
    assert len(read_run(Job(tmp_path, resolve({"method": "cca", "data": "x"}))).units) == 10


def test_directions_are_those_of_all_cells(tmp_path):
    first = run(tmp_path / "a", [0.2, 0.4], [0.6, 0.0])
    directions = {"audio-text": first.record.directions["audio-visual"]}
    other = replace(first, record=replace(first.record, directions=directions))
    cells = {"none": cell("none", []), "one": cell("one", [first]), "other": cell("other", [other])}
    assert directions_of(cells) == ["audio-visual", "visual-audio", "audio-text"]
    assert cells["one"].over_seeds("map", "audio-text") is None
    assert cells["other"].over_seeds("map", "audio-text").mean == pytest.approx(0.3)


def test_differences_are_those_of_seeds_and_clips(tmp_path):
    generator = np.random.default_rng(0)
    first, second = generator.random((2, 3, 20))
    one = cell("one", [run(tmp_path / f"one{s}", row, row) for s, row in enumerate(first)])
    other = cell("other", [run(tmp_path / f"other{s}", row, row) for s, row in enumerate(second)])
    expected = seeds_and_clips(first, second)
    assert difference(one, other) == expected
    corrected = differences({"one": one, "other": other}, [("one", "other"), ("other", "one")])
    assert corrected["one", "other"].p == pytest.approx(min(1, 2 * expected.p))


def test_only_seeds_are_compared_where_each_asks_other_queries(tmp_path):
    def several(name, figures):
        ids = [[f"{s}{i}" for i in range(2)] for s in range(3)]
        return cell(name, [run(tmp_path / f"{name}{s}", [f, f], [f, f], ids[s]) for s, f in enumerate(figures)])

    found = difference(several("one", [0.5, 0.6, 0.8]), several("other", [0.4, 0.4, 0.7]))
    assert found == paired_t([0.5, 0.6, 0.8], [0.4, 0.4, 0.7])
    assert found.over == "seeds"


def test_seeds_that_one_side_lacks_are_left_out_and_none_in_common_is_no_difference(tmp_path):
    runs = [run(tmp_path / f"r{s}", [0.1 * s, 0.2], [0.3, 0.4]) for s in range(3)]
    one = cell("one", runs)
    fewer = CellScores(one.cell, {1: runs[1]}, {0: "failed"})
    assert difference(one, fewer).over == "one seed"
    assert difference(one, CellScores(one.cell, {})) is None
    other = CellScores(one.cell, {1: run(tmp_path / "of other clips", [0.3, 0.3], [0.3, 0.3], ["x", "y"])})
    alone = difference(one, other)
    assert (alone.mean, alone.over) == (pytest.approx((0.15 + 0.35) / 2 - 0.3), "one seed")
    assert np.isnan([alone.p, alone.error]).all()
    assert one.over_seeds("map").count == 3
    assert one.over_seeds("map", "audio-visual").mean == pytest.approx(np.mean([0.1, 0.15, 0.2]))
    assert one.over_seeds("recall@5").mean == pytest.approx(np.mean([(0.2 + 0.4) / 2] * 3))
    assert one.over_seeds("recall@3") is None
    assert [one.cost(name) for name in ("seconds", "parameters", "seeds")] == ["1.5", 7, 3]
    assert CellScores(one.cell, {}).over_seeds("map") is None


def test_differences_in_words():
    assert (
        in_words(Difference(0.0123, 0.004, 0.0301, "both", 0.004, 0.0206, 0.6))
        == "+0.012 [+0.004, +0.021] (p = 0.030)*"
    )
    assert (
        in_words(Difference(-0.00001, 0.001, 0.9, "both", -0.002, 0.002, 0.01))
        == "+0.000 [-0.002, +0.002] (p = 0.900)≈"
    )
    assert (
        in_words(Difference(-0.5, 0.004, 0.0001, "both", -0.51, -0.49, 1.0)) == "-0.500 [-0.510, -0.490] (p < 0.001)*"
    )
    assert in_words(Difference(0.1, 0.4, 0.9, "both", -5.0, 5.2, 0.9)) == "+0.100 [-1.000, +1.000] (p = 0.900)"
    assert in_words(Difference(0.1, 0.4, 0.001, "both", 0.0, 0.2, 0.9)).partition("] ")[2] == "(p = 0.001)*"
    assert in_words(None) == ""


def test_the_mean_is_named_after_the_directions_it_is_of(tmp_path):
    pair = cell("a", [run(tmp_path / "a", [0.5, 0.4], [0.3, 0.2])])
    assert mean_map([pair, cell("failed", [])]) == "MAP, mean of both directions"
    record = pair.runs[0].record
    six = replace(record, directions={str(n): record.directions["audio-visual"] for n in range(6)})
    three = cell("b", [replace(pair.runs[0], record=six)])
    assert mean_map([cell("failed", []), three]) == "MAP, mean of all 6 directions"


def test_one_seed_gets_no_star_however_much_differs(tmp_path):
    generator = np.random.default_rng(0)
    high, low = generator.random(200) / 2 + 0.5, generator.random(200) / 2
    one, other = (cell(name, [run(tmp_path / name, values, values)]) for name, values in (("a", high), ("b", low)))
    found = differences({"a": one, "b": other}, [("a", "b")])
    assert in_words(found["a", "b"]).endswith(" (one seed: not tested)")
    assert "*" not in in_words(found["a", "b"])
    assert how_tested(list(found.values())) == [
        "Differences of the mean MAP are not tested, as no pair has two common finished seeds."
    ]


def test_p_is_said_to_be_corrected_where_several_are_compared():
    one = Difference(0.0123, 0.004, 0.0301, "both", 0.004, 0.0206, 0.6)
    (alone,), (several,) = how_tested([one]), how_tested([one, one])
    assert alone.startswith(
        "Differences of the mean MAP [95 % interval] are paired over seeds and test clips. The mark * is"
    )
    assert ". Intervals and p are corrected for 2 comparisons (Holm). The mark * is significance at 5 %" in several
    untested = replace(one, over="one seed", p=float("nan"))
    (mixed,) = how_tested([untested, replace(one, over="seeds"), one])
    assert (
        " over seeds and test clips and seeds (their test clips differ). Intervals and p are corrected for 2" in mixed
    )
    assert how_tested([]) == []


def test_two_seeds_are_called_too_few():
    two, five = (replace(Difference(0.01, 0.004, 0.3, "both", 0.0, 0.02, 0.6), seeds=seeds) for seeds in (2, 5))
    assert how_tested([five, two])[1:] == [TWO_SEEDS]
    assert how_tested([five])[1:] == []
