"""The page of certificates names what the tests compare, and nothing else."""

import csv
from collections import Counter
from pathlib import Path

from certificates import CERTIFICATES

from aadml.papers.fidelity import FIDELITY

PAGE = Path(__file__).parents[2] / "docs" / "fidelity.md"


def rows_of(text):
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def test_every_certificate_has_its_row_and_no_other_stands_there():
    rows = rows_of(PAGE.read_text(encoding="utf-8").partition("\n## The methods of table 1")[0])
    expected = [[one.subject, one.source + " *" * one.by_hand, ", ".join(one.compared)] for one in CERTIFICATES]
    assert [row[:3] for row in rows] == expected
    assert [row[5] for row in rows] == [one.deviations for one in CERTIFICATES]


def test_every_repair_is_listed_beside_what_it_changes():
    text = PAGE.read_text(encoding="utf-8").partition("\n## What differs on purpose")[2].partition("\n## ")[0]
    expected = [[one.subject, name] for one in CERTIFICATES for name in one.repairs]
    assert [row[:2] for row in rows_of(text)] == expected


def test_the_errors_on_the_page_keep_their_limits():
    rows = rows_of(PAGE.read_text(encoding="utf-8").partition("\n## The methods of table 1")[0])
    assert all(float(error) <= float(limit) for _, _, _, error, limit, _ in rows)


def test_what_a_row_of_the_paper_claims_is_certified():
    certified = {one.subject for one in CERTIFICATES}
    rows = {**FIDELITY.methods, **FIDELITY.losses}
    assert {subject for row in rows.values() for subject in row.held.values()} <= certified
    for name, row in rows.items():
        assert (row.kind == "certified") <= ({"loss", "gradient"} <= row.held.keys() or "network" in row.held), name
        one_of = [one for one in CERTIFICATES if one.subject in row.held.values()]
        assert (row.kind == "two implementations") <= all(one.by_hand for one in one_of), name


def test_every_method_of_table_1_has_its_row_of_parts():
    rows = rows_of(PAGE.read_text(encoding="utf-8").partition("\n## The methods of table 1\n")[2].partition("\n## ")[0])
    assert [row[0] for row in rows] == list(FIDELITY.methods)
    by_hand = {one.subject: one.by_hand for one in CERTIFICATES}
    for name, kind, *cells in rows:
        row = FIDELITY.methods[name]
        assert kind == row.kind
        held = [by_hand.get(row.held.get(part)) for part in FIDELITY.parts]
        assert cells[: len(held)] == [{None: "–", True: "second", False: "released"}[state] for state in held], name


def test_every_wrong_training_is_noticed():
    with (PAGE.parent / "lab" / "soak" / "training_mutations.csv").open(encoding="utf-8", newline="") as file:
        mutants = list(csv.DictReader(file))
    assert mutants
    assert [mutant for mutant in mutants if not mutant["caught by"]] == []
    counts = Counter(mutant["method"] for mutant in mutants)
    text = PAGE.read_text(encoding="utf-8")
    assert all(f" {count} of {count} |" in text for count in counts.values())
