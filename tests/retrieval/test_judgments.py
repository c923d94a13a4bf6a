"""Files of judgments, as a table and as TREC's qrels: what is read, and what is refused by its line."""

import csv

import pytest

from aadml.comparison.relevance import OWN
from aadml.feature_extraction.ground.errors import InputError
from aadml.retrieval.judgments import judgment_notes, read_judgments, relevance_name

EXPECTED = {"q1": {"a": 2.0, "b": 0.5}, "q2": {}}


@pytest.mark.parametrize(
    "text",
    [
        "query,item,grade\nq1,a,2\nq1,b,0.5\n\nq1,c,0\nq2,a,-1\n",
        '"Query","item", "grade"\n"q1","a","2"\n"q1","b",0.5\n"q1","c","0"\n"q2","a","-1"\n',
        "q1 0 a 2\nq1\t0\tb 0.5\n\nq1 0 c 0\nq2 0 a -1\n",
    ],
)
def test_judgments_above_zero_are_relevant(tmp_path, text):
    path = tmp_path / "judged"
    path.write_text(text)
    assert read_judgments(path).grades == EXPECTED


@pytest.mark.parametrize("grade", ["nan", "inf", "-inf", "much", "", "1e39", "1e-50"])
def test_a_grade_that_is_no_finite_number_is_refused_by_its_line(tmp_path, grade):
    path = tmp_path / "judged.csv"
    path.write_text(f"query,item,grade\nq1,a,1\nq1,b,{grade}\n")
    with pytest.raises(InputError, match="line 3 is not a judgment"):
        read_judgments(path)


def test_a_stray_quote_before_many_lines_is_refused(tmp_path):
    path = tmp_path / "judged.csv"
    path.write_text('query,item,grade\nq1,"a,1\n' + "q1,b,1\n" * 40_000)
    before = csv.field_size_limit(131_072)  # other code of the process may have raised Python's default
    try:
        with pytest.raises(
            InputError, match=r"judged\.csv is not a CSV file \(field larger than .*\); remove unpaired"
        ):
            read_judgments(path)
    finally:
        csv.field_size_limit(before)


def test_an_item_that_is_judged_again_is_refused_by_its_line(tmp_path):
    path = tmp_path / "qrels"
    path.write_text("q1 0 a 1\nq2 0 a 1\nq1 0 a 2\n")
    with pytest.raises(InputError, match="line 3 judges item 'a' for query 'q1' again"):
        read_judgments(path)


def test_judged_ids_without_clips_are_named(tmp_path):
    path = tmp_path / "qrels"
    path.write_text("a 0 c 1\na 0 z 1\nb 0 d 2\ny 0 d 1\n")
    judged = read_judgments(path)
    assert judgment_notes(judged, "abcd") == ["2 of 6 judged ids are not ids of the clips (y, z)"]
    assert judgment_notes(judged, "abcdyz") == judgment_notes(OWN, "a") == []


def test_names_of_rules_stay_and_paths_become_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert relevance_name(None) is None
    assert relevance_name("own") == "own"
    assert relevance_name("judged.csv") == str(tmp_path / "judged.csv")
