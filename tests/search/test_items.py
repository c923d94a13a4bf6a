"""Readers of an index: items, vectors and facts, and errors where these are damaged."""

import os
import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from aadml.feature_extraction.ground.errors import DamagedFileError, InputError
from aadml.search.best_moment import MomentVectors, read_moments
from aadml.search.captions import known_items
from aadml.search.facts import read_facts
from aadml.search.items import galleries_of, items_of, labels_of, vectors_of
from aadml.search.store import CAPTION_COLUMNS, Entry, Item, connect, reading
from aadml.search.vector_maps import vector_map
from tests.search.small_index import COLUMNS, FACTS, change, create, entry, read


def test_what_is_written_is_read_in_the_order_of_the_ids(index):
    assert read(index) == (["a", "b", "c"], [1, 2, 3])
    with closing(connect(index)) as database:
        assert read_facts(database, index) == FACTS
        assert known_items(database).digests == {"a": b"a1", "b": b"b2", "c": b"c3"}
        (item,) = items_of(database, [1])
        assert item == Item("b", {"audio": "b.wav"}, "test", "dog", {"speaker": "ann", "year": "1999"})
        assert vectors_of(database, "visual") is None
        with pytest.raises(InputError, match="clip number 77 is not in this index"):
            list(items_of(database, [77]))


def test_names_of_files_may_be_any_bytes(tmp_path):
    name = os.fsdecode(b"caf\xe9.wav")
    create(tmp_path / "i", FACTS, {}, [Entry(Item("x", {"audio": name}), b"", {})])
    with closing(connect(tmp_path / "i")) as database:
        assert next(items_of(database, [1])).media == {"audio": name}


def test_columns_may_have_any_name(tmp_path):
    name = 'a "b" -- ;'
    create(tmp_path / "i", FACTS, {name: "TEXT"}, [Entry(Item("x", {}, "", "", {name: "v"}), b"", {})])
    with closing(connect(tmp_path / "i")) as database:
        assert next(items_of(database, [1])).columns == {name: "v"}


@pytest.mark.parametrize("content", ["x'00'", "x''", "'twelve bytes'"])
@pytest.mark.parametrize("where", ["number = 2", "number > 0"])
def test_vectors_that_are_none_are_called_damaged(index, content, where):
    with closing(sqlite3.connect(index)) as database:
        database.execute(f"UPDATE vector_audio SET content = {content} WHERE {where}")
        database.commit()
    with pytest.raises(InputError, match="damaged"):
        read(index)


@pytest.mark.parametrize("number", ["NULL", "'two'", "x'00'"])
def test_vectors_without_a_number_are_damage(index, number):
    with closing(sqlite3.connect(index)) as database:
        database.execute("DROP TABLE vector_audio")
        database.execute("CREATE TABLE vector_audio (number, content BLOB NOT NULL)")
        database.execute(f"INSERT INTO vector_audio VALUES ({number}, zeroblob(12))")
        database.commit()
    with closing(connect(index)) as database, pytest.raises(InputError, match="damaged"), reading(database, index):
        vectors_of(database, "audio")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_damage(index, value):
    moments = MomentVectors(np.array([0.0, 1.0]), np.array([[1, 2, 3], [4, 5, value]], dtype=np.float32))
    change(index, FACTS, COLUMNS, [], [replace(entry("b"), moments={"audio": moments})])
    said = pytest.raises(DamagedFileError, match="damaged: moment_audio, number 4 contains NaN or infinity")
    with closing(connect(index)) as database, said, reading(database, index):
        read_moments(database, "audio", [4])
    change(index, FACTS, COLUMNS, [], [entry("b", value)])
    with pytest.raises(DamagedFileError, match="damaged: the vectors of audio contain NaN or infinity"):
        read(index)


def test_an_unknown_similarity_is_damage(index):
    said = pytest.raises(DamagedFileError, match="damaged: the similarity 'likeness' is unknown")
    with closing(connect(index)) as database, said, reading(database, index):
        galleries_of(database, "likeness")


@pytest.mark.parametrize("rows", [[(1, bytes(12))], [(1, bytes(12)), (2, bytes(12)), (4, bytes(12))]])
def test_rows_of_other_items_are_damage(index, monkeypatch, rows):
    monkeypatch.setattr("aadml.search.items.verified_rows", lambda *_: [rows])
    with closing(connect(index)) as database, pytest.raises(InputError, match="damaged"), reading(database, index):
        vectors_of(database, "audio")


@pytest.mark.parametrize("value", ["CAST(x'ff' AS TEXT)", "'{'", "x'ff'"])
def test_facts_that_are_none_are_called_damaged(index, value):
    with closing(sqlite3.connect(index)) as database:
        database.execute(f"UPDATE meta SET value = {value}")
        database.commit()
    said = pytest.raises(InputError, match=r"damaged|cannot be read")
    with closing(connect(index)) as database, said, reading(database, index):
        read_facts(database, index)


@pytest.mark.parametrize(
    "content", ["x''", "x'0000000001'", "zeroblob(8 + 4 * (number != 2))", "iif(number = 2, 'twelve bytes', content)"]
)
def test_vectors_of_an_index_without_checksums_have_equally_many_whole_numbers(index, content):
    with closing(sqlite3.connect(index)) as database:
        database.execute("DROP TABLE checksum")
        database.execute("PRAGMA user_version = 1")
        database.execute(f"UPDATE vector_audio SET content = {content}")
        database.commit()
    with pytest.raises(InputError, match="damaged: the audio vectors"):
        read(index)


@pytest.mark.parametrize(
    ("statement", "read_values"),
    [
        *((f"UPDATE {place} = {value}", lambda database: list(items_of(database, [1])))
          for place, values in {
              "item SET id": ("x'00'",), "item SET label": ("x'00'",), "item SET split": ("x'00'",),
              "item SET audio": ("5", "1.5"), "item SET visual": ("5",), "extra SET caption_text": ("x'00'",),
              "extra SET caption_number": ("'abc'", "'-1'", "1.5", "x'31'", f"'{'9' * 5000}'"),
          }.items() for value in values),
        ("UPDATE item SET label = x'00'", labels_of),
        ("UPDATE item SET label = x'00'", lambda database: vector_map(database, "audio")),
        ("UPDATE vector_audio SET content = 'text'", lambda database: vector_map(database, "audio")),
        ("UPDATE vector_audio SET content = x'000000'", lambda database: vector_map(database, "audio")),
        ("CREATE TABLE map_audio (number, content); INSERT INTO map_audio VALUES (1, 5)",
         lambda database: vector_map(database, "audio")),
        ("CREATE TABLE map_audio (number, content); INSERT INTO map_audio VALUES (1, x'ffffffff00000000')",
         lambda database: vector_map(database, "audio")),
        ("INSERT INTO moment_audio VALUES (1, 5, x'00000000')", lambda database: read_moments(database, "audio", [1])),
        ("INSERT INTO moment_audio VALUES (1, zeroblob(8), 5)", lambda database: read_moments(database, "audio", [1])),
    ],
)  # fmt: skip
def test_a_value_of_a_wrong_type_is_refused_in_one_line(tmp_path, statement, read_values):
    path = tmp_path / "i"
    vector = {"audio": np.ones(3, dtype=np.float32)}
    create(path, FACTS, dict.fromkeys(CAPTION_COLUMNS, "TEXT"), [Entry(Item("x"), b"", vector)])
    with closing(sqlite3.connect(path)) as database:  # an index of version 1 has no checksums
        database.executescript(f"DROP TABLE checksum; PRAGMA user_version = 1; {statement}")
    with (
        closing(connect(path)) as database,
        pytest.raises(DamagedFileError, match=r"cannot be read as an index \(it is damaged: .*\); build") as error,
        reading(database, path),
    ):
        read_values(database)
    assert "\n" not in str(error.value)
