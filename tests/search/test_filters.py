"""Conditions: they read the columns of items and do nothing else."""

import re
import sqlite3
import time
from contextlib import closing, suppress
from importlib.resources import files

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aadml.feature_extraction.ground.errors import InputError
from aadml.search import Index
from aadml.search.filters import matching
from aadml.search.store import Entry, Item, connect, reading
from tests.search.small_index import COLUMNS, FACTS, create, entry, matching_ids, read


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("label = 'cat'", ["a"]),
        ('label = "cat"', ["a"]),
        ("year > 1998", ["b", "a"]),
        ("speaker LIKE 'B%' OR id = 'b'", ["b", "c"]),
        ("audio LIKE '%c.wav'", ["c"]),
        ("length(speaker) = 3 AND year BETWEEN 5 AND 20 -- and a comment", ["c"]),
        ("number IN (SELECT number FROM item WHERE label = 'cat')", ["a"]),
        ("""item."label" IN ('cat') AND extra."speaker" IN ('ann')""", ["a"]),
        ("0", []),
    ],
)
def test_conditions(index, where, ids):
    assert matching_ids(index, where) == ids


@pytest.mark.parametrize(("clips", "labels"), [(20_000, 300), (40_000, 40_000)])
def test_classes_that_the_page_filters_are_compared_with_each_label_once(tmp_path, clips, labels):
    page = (files("aadml.search") / "page" / "browse.js").read_text()
    chosen = re.search('LABELS = "(.*)"', page)[1]

    def filtered(names):
        same, joined = (
            ", ".join(f"('{name}')" for name in names),
            " OR ".join(f"instr(l, '|{name}|')" for name in names),
        )
        return f"item.label IN (VALUES {same} UNION ALL SELECT label FROM ({chosen}) WHERE {joined})"

    few = ["a", "b|a", "ab", "", "c|b", "b"]
    create(tmp_path / "i", FACTS, {}, [Entry(Item(f"{n}", label=f"{x}"), b"", {}) for n, x in enumerate(few)])
    assert matching_ids(tmp_path / "i", filtered("ac")) == ["0", "1", "4"]
    create(tmp_path / "j", FACTS, {}, [Entry(Item(f"{n}", label=f"{n % labels}"), b"", {}) for n in range(clips)])
    with closing(connect(tmp_path / "j")) as database, reading(database, tmp_path / "j"):
        assert len(matching(database, filtered(range(40)), seconds=0.1)) == len(
            [n for n in range(clips) if n % labels < 40]
        )


@pytest.mark.parametrize("name", ['item."labl"', 'extra."labl"', "labl"])
def test_a_name_that_is_not_a_column_is_refused(index, name):
    with pytest.raises(InputError, match=r"no such column: .*labl; choose from id, split, label"):
        matching_ids(index, f"{name} = 'dog'")


def test_parameters_are_values_and_never_sql(index):
    assert matching_ids(index, "speaker = ?", ["bob"]) == ["c"]
    assert matching_ids(index, "speaker = ?", ["bob' OR '1' = '1"]) == []


HOSTILE = [
    "1); DROP TABLE item; --",
    "1) UNION SELECT value FROM meta --",
    "id = (SELECT value FROM meta)",
    "id = (SELECT content FROM vector_audio)",
    "id = (SELECT sql FROM sqlite_master)",
    "load_extension('x')",
    "length(zeroblob(1000000000)) > 1",
    "randomblob(10) = 1",
    "writefile('x', 'y')",
    "1 IN (WITH RECURSIVE a(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a) SELECT x FROM a)",
    "",
    "label =",
    "label = ?",
    "\0",
    "x" * 2001,
    "1 IN (SELECT 1 FROM pragma_table_info('item'))",
]


@pytest.mark.parametrize("where", HOSTILE)
def test_anything_but_reading_columns_is_refused_in_one_line(index, where):
    with pytest.raises(InputError, match=r"^where") as error:
        matching_ids(index, where)
    assert "\n" not in str(error.value).replace(where, "")
    assert read(index) == (["a", "b", "c"], [1, 2, 3])
    assert matching_ids(index, "id = 'a'") == ["a"]


def test_a_condition_that_would_take_for_ever_is_ended(index, monkeypatch):
    monkeypatch.setattr("aadml.search.filters.STEPS", 10)
    with pytest.raises(InputError, match="takes longer than 3e-06 s; simplify the condition"):
        matching_ids(
            index, "id IN (SELECT a.id FROM item a, item b, item c WHERE a.id || b.id || c.id LIKE '%abc')", seconds=0
        )


def test_a_condition_has_more_time_in_an_index_of_more_items(index, monkeypatch):
    monkeypatch.setattr("aadml.search.filters.STEPS", 1)
    monkeypatch.setattr("aadml.search.filters.SECONDS_PER_ITEM", 0.1)
    with pytest.raises(InputError, match=r"takes longer than 0.3 s; simplify the condition"):
        matching_ids(
            index, f"id IN (SELECT a.id FROM {', '.join(f'item {a}' for a in 'abcdefghijklmnopqrs')})", seconds=0.2
        )
    assert matching_ids(index, "split = 'test'", seconds=0) == ["b", "a", "c"]


def test_a_pattern_is_short_because_one_match_cannot_be_interrupted(index):
    assert matching_ids(index, f"id LIKE 'b{'b%' * 99}%' OR id = 'a'") == ["a"]
    where = f"id LIKE '%{'b%' * 100}'"
    with pytest.raises(InputError, match="pattern") as refused:
        matching_ids(index, where)
    assert str(refused.value).startswith(f"where {where[:80]!r}: the condition is invalid (")


def test_a_condition_has_up_to_two_thousand_characters_and_five_seconds(index):
    assert matching_ids(index, "id = 'a'" + " " * 1992) == ["a"]
    with Index(index) as opened:
        assert opened.filter_seconds == 5


def test_the_limits_of_a_condition_end_with_it(index):
    count = "SELECT count(*) FROM meta, item a, item b, item c, item d, item e"
    with closing(connect(index)) as database, reading(database, index):
        limits = (sqlite3.SQLITE_LIMIT_LENGTH, sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH)
        before = [*map(database.getlimit, limits)]
        assert matching(database, "id = 'a'", seconds=0.01).tolist() == [2]
        assert [*map(database.getlimit, limits)] == before
        until = time.thread_time() + 0.011
        while time.thread_time() < until:
            pass
        assert database.execute(count).fetchone() == (4 * 3**5,)


def grown(times):
    """An expression of SQL for the text of a hundred to the power of `times` letters."""
    return "replace(" * times + "'a'" + f", 'a', '{'a' * 100}')" * times


def test_a_condition_makes_texts_of_up_to_a_hundred_thousand_bytes(index):
    assert len(matching_ids(index, f"length({grown(2)} || {grown(1)}) = 10100")) == 3
    with pytest.raises(InputError, match="reads or creates a text of more than 100,000 bytes; simplify the condition"):
        matching_ids(index, f"length({grown(3)}) = 1000000")  # a million bytes, which SQLite alone would make


def test_a_condition_makes_no_long_text_and_the_limit_ends_with_it(index):
    long = grown(9)
    with closing(connect(index)) as database, reading(database, index):
        before = database.getlimit(sqlite3.SQLITE_LIMIT_LENGTH)
        with pytest.raises(
            InputError, match="reads or creates a text of more than 100,000 bytes; simplify the condition"
        ):
            matching(database, f"{long} = 'b'")
        assert database.getlimit(sqlite3.SQLITE_LIMIT_LENGTH) == before


@settings(max_examples=30)
@given(st.text(max_size=40))
def test_no_condition_writes_or_breaks_out(tmp_path_factory, where):
    path = tmp_path_factory.getbasetemp() / "fuzzed.index"
    if not path.exists():
        create(path, FACTS, COLUMNS, [entry("a", 1)])
    with suppress(InputError):
        matching_ids(path, where)
    assert read(path) == (["a"], [1])
