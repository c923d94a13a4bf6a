"""The store: what is written is read, a reader sees one state, a condition reads and nothing else."""

import os
import sqlite3
import threading
from contextlib import closing, suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aadml.feature_extraction.ground.errors import InputError
from aadml.search.filters import matching
from aadml.search.items import digests_of, items_of, meta_of, vectors_of
from aadml.search.store import Entry, Item, change, columns_of, connect, create, only_writer, reading

COLUMNS = {"speaker": "TEXT", "year": "NUMERIC"}


def entry(name, value=0.0, *, label="dog", speaker="ann", year="1999", media=None):
    vector = np.full(3, value, dtype=np.float32)
    item = Item(name, media or {"audio": f"{name}.wav"}, "test", label, {"speaker": speaker, "year": year})
    return Entry(item, f"{name}{value}".encode(), {"audio": vector})


@pytest.fixture
def index(tmp_path):
    path = tmp_path / "clips.index"
    entries = [entry("b", 2), entry("a", 1, label="cat", year="2005"), entry("c", 3, speaker="bob", year="10")]
    create(path, {"source": {"kind": "test"}}, COLUMNS, entries)
    return path


def read(path):
    with closing(connect(path)) as database, reading(database, path):
        found = vectors_of(database, "audio")
        items = [] if found is None else list(items_of(database, found[0].tolist()))
        return [item.id for item in items], None if found is None else found[1][:, 0].tolist()


def asked(path, where, parameters=(), **seconds):
    with closing(connect(path)) as database, reading(database, path):
        return [item.id for item in items_of(database, matching(database, where, parameters, **seconds).tolist())]


def test_what_is_written_is_read_in_the_order_of_the_ids(index):
    assert read(index) == (["a", "b", "c"], [1, 2, 3])
    with closing(connect(index)) as database:
        assert meta_of(database) == {"source": {"kind": "test"}}
        assert digests_of(database) == {"a": b"a1", "b": b"b2", "c": b"c3"}
        (item,) = items_of(database, [1])
        assert item == Item("b", {"audio": "b.wav"}, "test", "dog", {"speaker": "ann", "year": "1999"})
        assert vectors_of(database, "visual") is None
        with pytest.raises(InputError, match="clip number 77 is not in this index"):
            list(items_of(database, [77]))


def test_a_number_that_is_missing_meets_no_comparison_and_leaves_the_others_numbers(tmp_path):
    years = {"a": "9", "b": "", "c": "10", "d": "2005"}
    columns = columns_of({"year": list(years.values()), "none": ["", "", "", ""]})
    assert columns == {"year": "NUMERIC", "none": "TEXT"}
    path = tmp_path / "clips.index"
    items = [Item(name, columns={"year": year, "none": ""}) for name, year in years.items()]
    create(path, {}, columns, [Entry(item, b"", {}) for item in items])
    assert asked(path, "year > 9") == ["c", "d"]
    assert asked(path, "year < 2000") == ["a", "c"]
    assert asked(path, "year IS NULL AND none = ''") == ["b"]
    with closing(connect(path)) as database:
        assert [item.columns["year"] for item in items_of(database, [1, 2, 3, 4])] == list(years.values())


def test_at_rest_an_index_is_one_file(index):
    change(index, {}, COLUMNS, ["a"], [entry("d", 4), entry("b", 5)])
    assert read(index) == (["b", "c", "d"], [5, 3, 4])
    assert [path.name for path in index.parent.iterdir()] == ["clips.index"]


def test_a_change_of_columns_renews_them(index):
    entries = [Entry(Item(name, {}, "", "", {"place": name * 2}), b"", {}) for name in "abc"]
    change(index, {}, {"place": "TEXT"}, [], entries)
    assert asked(index, "place = 'bb'") == ["b"]
    with pytest.raises(InputError, match=r"no such column: year; there are id, split, label, audio, visual, place"):
        asked(index, "year = 1")
    change(index, {}, {}, [], [Entry(Item("a"), b"", {})])
    assert asked(index, "id < 'b'") == ["a"]


def test_names_of_files_may_be_any_bytes(tmp_path):
    name = os.fsdecode(b"caf\xe9.wav")
    create(tmp_path / "i", {}, {}, [Entry(Item("x", {"audio": name}), b"", {})])
    with closing(connect(tmp_path / "i")) as database:
        assert next(items_of(database, [1])).media == {"audio": name}


def test_a_failed_change_changes_nothing(index):
    def broken():
        yield entry("z", 9)
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        change(index, {}, COLUMNS, ["a"], broken())
    assert read(index) == (["a", "b", "c"], [1, 2, 3])


def test_a_reader_sees_one_state_while_a_change_is_written(index):
    with closing(connect(index)) as database, reading(database, index):
        before = digests_of(database)
        writer = threading.Thread(target=change, args=(index, {}, COLUMNS, ["a", "b"], [entry("d", 4)]))
        writer.start()
        writer.join(timeout=30)
        assert not writer.is_alive()
        assert digests_of(database) == before
        assert vectors_of(database, "audio")[1][:, 0].tolist() == [1, 2, 3]
    assert read(index) == (["c", "d"], [3, 4])


def test_a_second_writer_is_refused_in_one_line_until_the_first_is_gone(index):
    with (
        only_writer(index),
        pytest.raises(InputError, match="another process is updating this index"),
        only_writer(index),
    ):
        raise AssertionError("two writers")
    with only_writer(index):
        assert index.with_name("clips.index.work").is_dir()


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
        ("0", []),
    ],
)
def test_conditions(index, where, ids):
    assert asked(index, where) == ids


def test_parameters_are_values_and_never_sql(index):
    assert asked(index, "speaker = ?", ["bob"]) == ["c"]
    assert asked(index, "speaker = ?", ["bob' OR '1' = '1"]) == []


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
    "x" * 3000,
    "1 IN (SELECT 1 FROM pragma_table_info('item'))",
]


@pytest.mark.parametrize("where", HOSTILE)
def test_anything_but_reading_columns_is_refused_in_one_line(index, where):
    with pytest.raises(InputError, match="--where") as error:
        asked(index, where)
    assert "\n" not in str(error.value).replace(where, "")
    assert read(index) == (["a", "b", "c"], [1, 2, 3])
    assert asked(index, "id = 'a'") == ["a"]


def test_a_condition_that_would_take_for_ever_is_ended(index, monkeypatch):
    monkeypatch.setattr("aadml.search.filters.STEPS", 10)
    with pytest.raises(InputError, match="takes longer than 0 s; simplify it"):
        asked(
            index, "id IN (SELECT a.id FROM item a, item b, item c WHERE a.id || b.id || c.id LIKE '%abc')", seconds=0
        )


def test_a_condition_makes_no_long_text_and_the_limit_ends_with_it(index):
    long = "replace(" * 9 + "id || 'a'" + f", 'a', '{'a' * 99}')" * 9
    with closing(connect(index)) as database, reading(database, index):
        before = database.getlimit(sqlite3.SQLITE_LIMIT_LENGTH)
        with pytest.raises(InputError, match="reads or creates a text of more than 100,000 bytes; simplify it"):
            matching(database, f"{long} = 'b'")
        assert database.getlimit(sqlite3.SQLITE_LIMIT_LENGTH) == before


@settings(max_examples=30)
@given(st.text(max_size=40))
def test_no_condition_writes_or_breaks_out(tmp_path_factory, where):
    path = tmp_path_factory.getbasetemp() / "fuzzed.index"
    if not path.exists():
        create(path, {}, COLUMNS, [entry("a", 1)])
    with suppress(InputError):
        asked(path, where)
    assert read(path) == (["a"], [1])


def test_columns_that_sql_cannot_tell_apart_are_refused():
    assert columns_of({"a b": ["x"], 'q"': ["1", "20.5"], "z": ["007"]}) == {
        "a b": "TEXT",
        'q"': "NUMERIC",
        "z": "TEXT",
    }
    for names in (["Label"], ["rowid"], ["x", "X"]):
        with pytest.raises(InputError, match="rename it"):
            columns_of({name: ["v"] for name in names})


def test_columns_may_have_any_name(tmp_path):
    name = 'a "b" -- ;'
    create(tmp_path / "i", {}, {name: "TEXT"}, [Entry(Item("x", {}, "", "", {name: "v"}), b"", {})])
    with closing(connect(tmp_path / "i")) as database:
        assert next(items_of(database, [1])).columns == {name: "v"}


def test_what_is_no_index_is_refused(tmp_path, index):
    (tmp_path / "text").write_text("hello " * 100)
    (tmp_path / "empty").write_bytes(b"")
    with closing(sqlite3.connect(tmp_path / "other")) as database:
        database.execute("CREATE TABLE a (b)")
    for name in ("text", "empty", "other"):
        with pytest.raises(InputError, match=r"cannot be read as an index|is not an index"):
            connect(tmp_path / name)
    with pytest.raises(InputError, match="no such index"):
        connect(tmp_path / "none")
    with closing(sqlite3.connect(index)) as database:
        database.execute("PRAGMA user_version = 9")
    with pytest.raises(InputError, match="version 9, but this aadml reads version 1"):
        connect(index)


def test_an_index_in_a_folder_that_cannot_be_written_is_read(index, monkeypatch):
    monkeypatch.setattr("aadml.search.store.os.access", lambda *_: False)
    assert read(index) == (["a", "b", "c"], [1, 2, 3])


@pytest.mark.parametrize("content", ["x'00'", "x''", "'twelve bytes'"])
@pytest.mark.parametrize("where", ["number = 2", "number > 0"])
def test_vectors_that_are_none_are_called_damaged(index, content, where):
    with closing(sqlite3.connect(index)) as database:
        database.execute(f"UPDATE vector_audio SET content = {content} WHERE {where}")
        database.commit()
    with pytest.raises(InputError, match="damaged"):
        read(index)


@pytest.mark.parametrize("value", ["CAST(x'ff' AS TEXT)", "'{'", "x'ff'"])
def test_facts_that_are_none_are_called_damaged(index, value):
    with closing(sqlite3.connect(index)) as database:
        database.execute(f"UPDATE meta SET value = {value}")
        database.commit()
    said = pytest.raises(InputError, match=r"damaged|cannot be read")
    with closing(connect(index)) as database, said, reading(database, index):
        meta_of(database)


def test_a_length_beyond_the_memory_is_one_line(index):
    said = pytest.raises(InputError, match="damaged, or larger than the memory")
    with closing(connect(index)) as database, said, reading(database, index):
        raise MemoryError


def test_a_full_disk_is_said_to_be_one(tmp_path, monkeypatch):
    opened = sqlite3.connect

    def small(*words, **options):
        database = opened(*words, **options)
        database.execute("PRAGMA max_page_count = 1")
        return database

    monkeypatch.setattr(sqlite3, "connect", small)
    with pytest.raises(InputError, match=r"clips\.index: cannot be written \(database or disk is full\); free some"):
        create(tmp_path / "clips.index", {"source": {"kind": "test"}}, COLUMNS, [entry("a")])
    assert not list(tmp_path.iterdir())
