"""The page of the reproduction of the AADML paper."""

from aadml.papers.fidelity import FIDELITY
from aadml.papers.page import _most, _table
from aadml.reports import page
from aadml.reports.tables import Table
from aadml.studies.sweep_parts import StudyPart
from tests.papers.planted_scores import group, row, scores


def test_the_leak_with_the_largest_mean_jump_is_named_for_each_table_that_has_jumps():
    columns = ("protocol", "mean jump")
    tables = {
        "table-1-ave": Table(columns, (("no leak", 0.5),)),
        "table-1-ave-leaks": Table(columns, (("legacy:one", 0.25), ("legacy:two", 0.125))),
        "table-3-leaks": Table(columns, ()),
    }
    assert _most(StudyPart("Table 1: methods", "", tables=tables), group([])) == [
        "Table 1 on AVE: the leak legacy:one increases MAP most, by 0.250 on average."
    ]


def test_a_table_names_what_each_row_is_and_has_a_block_of_the_readings():
    rows = [row("methods", name) for name in ("cca", "aadml", "paper-r1")]
    content = _table("table-1-ave", "Table 1", group([(of, scores(of, [0.4])) for of in rows]))
    assert [line[1] for line in content.tables["table-1-ave"].rows][:2] == ["certified", "this project's reading (R6)"]
    readings = content.tables["table-1-ave-readings"]
    assert [line[:2] for line in readings.rows] == [(name, FIDELITY.readings[name]) for name in ("aadml", "paper-r1")]
    for words in (*(FIDELITY.kinds[kind] for kind in ("certified", "this project's reading")), "Agrees in network"):
        assert page.text(words) in content.content
    assert content.content.count("Readings of Equation 7") == 1
