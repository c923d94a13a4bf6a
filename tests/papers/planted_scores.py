"""Scores of runs that nobody trained, for tables and figures of a paper."""

import numpy as np

from aadml.configuration.config import resolve
from aadml.papers.fidelity import FIDELITY, READINGS
from aadml.papers.rows import PaperRuns
from aadml.papers.tables import Group
from aadml.retrieval.record import DirectionRecord, EvaluationRecord, PerQuery, ScopeCurve
from aadml.studies.comparison_rows import ComparisonRow
from aadml.studies.grid import Cell
from aadml.studies.results import CellScores, RunScores

QUERIES = ["a", "b"]


def row(table, item, name=""):
    """A row of a table, whose cell has the name of the item or another one."""
    return ComparisonRow(table, item, "", Cell(name or item, resolve({"method": "cca", "data": "x"}), {}), {})


def scores(of, maps, epochs=(), scope=()):
    """Scores of a row: a run for each MAP, the same in both directions, with the same log and precision at each K."""
    return CellScores(of.cell, {seed: _run(value, epochs, dict(scope)) for seed, value in enumerate(maps)})


def group(scored, *, draws=None, leaks=None, neighbors=None, data_set="ave"):
    """Results of rows (row -> scores) on a data set; those of further draws are in `draws` alone."""
    further = [id(one) for rows in (draws or {}).values() for one in rows]
    rows = {
        table: tuple(one for one, _ in scored if one.table == table and id(one) not in further)
        for table in ("methods", "losses")
    }
    readings = tuple(one for one in rows["methods"] if one.item in FIDELITY.readings)
    methods = tuple(one for one in rows["methods"] if one.item not in READINGS)
    runs = PaperRuns(data_set, methods, rows["losses"], readings, neighbors or {}, draws or {})
    return Group(runs, {of.cell.name: found for of, found in scored}, leaks or {}, "about", "about draws")


def _run(value, epochs, scope):
    curve = ScopeCurve(list(scope), list(scope.values()), [], [])
    direction = DirectionRecord(
        map=value, map_bounds=[0.0, 1.0], map_interval=[0.0, 1.0], chance=0.1, tie_rate=0.0, queries=2,
        queries_without_relevant=0, gallery=2, scope=curve, by_class={},
        per_query=PerQuery(QUERIES, [value, value]), figures={},
    )  # fmt: skip
    record = EvaluationRecord(
        protocol="inductive", split="test", similarity="cosine", chance=0.1, tie_rate=0.0,
        directions={"audio-visual": direction, "visual-audio": direction}, map_mean=value, label="cca", seed=0,
        seconds=1.5, parameters=7, epochs=3, steps=12, train_map=0.7, verdicts=[],
    )  # fmt: skip
    return RunScores(record, list(epochs), tuple(QUERIES), np.array([value, value]))
