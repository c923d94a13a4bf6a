"""The page of the reproduction of the AADML paper."""

from aadml.papers.page import _most
from aadml.reports.tables import Table
from aadml.studies.sweep_parts import StudyPart
from tests.papers.planted_scores import group


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
