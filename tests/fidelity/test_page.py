"""The page of certificates names what the tests compare, and nothing else."""

from pathlib import Path

from certificates import CERTIFICATES

PAGE = Path(__file__).parents[2] / "docs" / "fidelity.md"


def rows_of(text):
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def test_every_certificate_has_its_row_and_no_other_stands_there():
    rows = rows_of(PAGE.read_text(encoding="utf-8").partition("\n## What differs on purpose")[0])
    expected = [[one.subject, one.source + " *" * one.by_hand, ", ".join(one.compared)] for one in CERTIFICATES]
    assert [row[:3] for row in rows] == expected
    assert [row[5] for row in rows] == [one.deviations for one in CERTIFICATES]


def test_every_repair_is_listed_beside_what_it_changes():
    text = PAGE.read_text(encoding="utf-8").partition("\n## What differs on purpose")[2].partition("\n## ")[0]
    expected = [[one.subject, name] for one in CERTIFICATES for name in one.repairs]
    assert [row[:2] for row in rows_of(text)] == expected


def test_the_errors_on_the_page_keep_their_limits():
    rows = rows_of(PAGE.read_text(encoding="utf-8").partition("\n## What differs on purpose")[0])
    assert all(float(error) <= float(limit) for _, _, _, error, limit, _ in rows)
