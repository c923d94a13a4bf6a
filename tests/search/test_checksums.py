"""Every part of an index is verified: by its readers, by `verify`, and after each kind of change."""

import hashlib
import sqlite3
from contextlib import closing
from itertools import product

import numpy as np
import pytest
import torch

import aadml
from aadml.feature_extraction.ground.errors import DamagedFileError, InputError
from aadml.search import Index, checksums
from aadml.search.store import writing
from tests.search.small_index import COLUMNS, FACTS, change, create, entry, read


@pytest.fixture
def index(tmp_path):
    path = tmp_path / "clips.index"
    create(path, FACTS, COLUMNS, [entry("a", 1.0), entry("b", 2.0), entry("c", 3.0)])
    return path


def changed(path, *statements):
    with closing(sqlite3.connect(path)) as database, database:
        for statement in statements:
            database.execute(statement)


DAMAGES = {
    "a vector": "UPDATE vector_audio SET content = zeroblob(12) WHERE number = 2",
    "a vector that is gone": "DELETE FROM vector_audio WHERE number = 2",
    "a vector that is new": "INSERT INTO vector_audio VALUES (700, zeroblob(12))",
    "an item that is gone": "DELETE FROM item WHERE number = 3",
    "a table of columns that is gone": "DROP TABLE extra",
    "a fact": """UPDATE meta SET value = '{"generation": 1, "similarity": "dot"}' WHERE name = 'state'""",
    "a fact that is gone": "DELETE FROM meta WHERE name = 'encoder'",
    "a checksum": "UPDATE checksum SET value = x'00' WHERE part = 'vector_audio'",
    "a checksum that is gone": "DELETE FROM checksum WHERE part = 'vector_audio'",
    "all checksums": "DELETE FROM checksum",
    "the table of checksums": "DROP TABLE checksum",
    "the version": "PRAGMA user_version = 1",
    "the schema": "DROP INDEX item_label",
}


DAMAGES_OF_ITEMS = {
    "an id": "UPDATE item SET id = 'd' WHERE number = 2",
    "a path": "UPDATE item SET audio = 'e.wav' WHERE number = 2",
    "a digest": "UPDATE item SET digest = x'00' WHERE number = 2",
    "a further column": "UPDATE extra SET year = 2000 WHERE number = 2",
    "a checksum": "UPDATE checksum SET value = x'00' WHERE part = 'item'",
}
READERS = {
    "search": lambda index, _: index.nearest({"audio": torch.ones(1, 3)}, "audio", k=1),
    "condition": lambda index, _: index.nearest({"audio": torch.ones(1, 3)}, "audio", where="label = 'cat'"),
    "item": lambda index, _: index.item(2),
    "export": lambda index, folder: index.export(folder / "vectors"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_change_outside_aadml_is_refused_in_one_line_and_named_by_verify(index, damage):
    changed(index, DAMAGES[damage])
    with pytest.raises(
        InputError, match=r"clips.index cannot be read as an index \(it is damaged: .*\); build the index again$"
    ):
        Index(index)
    (named,) = aadml.verify(index)
    assert str(index) in named


@pytest.mark.parametrize("damage", DAMAGES_OF_ITEMS)
def test_items_that_were_changed_outside_aadml_are_refused_by_their_readers(index, tmp_path, damage):
    changed(index, DAMAGES_OF_ITEMS[damage])
    with Index(index) as opened:
        for read_items in (*READERS.values(), *READERS.values()):
            with pytest.raises(DamagedFileError, match=r"it is damaged: (item|extra|the table item)"):
                read_items(opened, tmp_path)
    (named,) = aadml.verify(index)
    assert str(index) in named


@pytest.mark.parametrize(
    "statement", [*DAMAGES_OF_ITEMS.values(), DAMAGES["a vector"], DAMAGES["a fact"], DAMAGES["an item that is gone"]]
)
def test_a_change_does_not_seal_earlier_damage(index, statement):
    changed(index, statement)
    with pytest.raises(DamagedFileError, match="damaged"):
        change(index, FACTS, COLUMNS, ["a"], [entry("d", 4.0)])
    assert aadml.verify(index)


@pytest.mark.parametrize(("number", "numbers"), [(255, "0 to 255"), (256, "256 to 511")])
def test_the_error_of_a_damaged_block_has_its_numbers(tmp_path, number, numbers):
    create(tmp_path / "i", FACTS, COLUMNS, [entry(f"clip{n:04}", n) for n in range(300)])
    changed(tmp_path / "i", f"UPDATE vector_audio SET content = zeroblob(12) WHERE number = {number}")
    with pytest.raises(DamagedFileError, match=f"it is damaged: vector_audio, numbers {numbers}\\)"):
        Index(tmp_path / "i")


def test_a_checksum_without_value_and_rows_is_damage(index):
    changed(
        index,
        "ALTER TABLE checksum RENAME TO former",
        "CREATE TABLE checksum (part, block, value)",
        "INSERT INTO checksum SELECT part, block, value FROM former UNION SELECT 'vector_audio', 99999, NULL",
        "DROP TABLE former",
    )
    with pytest.raises(InputError, match=r"cannot be read as an index \(it is damaged: "):
        Index(index)
    (named,) = aadml.verify(index)
    assert str(index) in named


def test_every_block_of_items_is_hashed_once(tmp_path, monkeypatch):
    path = tmp_path / "clips.index"
    create(path, FACTS, COLUMNS, [entry(f"clip{n:04}", n) for n in range(600)])
    hashed, digest = [], checksums._digest
    monkeypatch.setattr(checksums, "_digest", lambda rows: hashed.append(len(rows)) or digest(rows))
    with Index(path) as opened:
        assert sum(hashed) < 650  # facts and vectors
        hashed.clear()
        opened.item(300), opened.item(301)
        assert hashed == [256, 256]  # of items and their further columns
        hashed.clear()
        for read_items in (*READERS.values(), *READERS.values()):
            read_items(opened, tmp_path)
        assert sum(hashed) <= 3 * 600
    hashed.clear()
    assert aadml.verify(path) == []
    assert 1800 < sum(hashed) < 1850


def test_the_checksums_of_an_index_stay_the_same(index):
    def digest(text, *blobs):
        return hashlib.sha256(text.encode() + b"".join(blobs)).digest()

    with closing(sqlite3.connect(index)) as database:
        found = dict(database.execute("SELECT part, value FROM checksum"))
        statements = (
            "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name", "SELECT * FROM meta ORDER BY name",
            "SELECT part, count(*) FROM checksum WHERE part != 'facts' GROUP BY part ORDER BY part",
        )  # fmt: skip
        facts = [row for statement in statements for row in database.execute(statement)]
    vectors = [np.full(3, n, "<f4").tobytes() for n in (1, 2, 3)]
    items = [((n, c, "test", "dog", f"{c}.wav", None), 4) for n, c in ((1, "a"), (2, "b"), (3, "c"))]
    assert found == {
        "vector_audio": digest("[((1,), 12), ((2,), 12), ((3,), 12)]", *vectors),
        "item": digest(str(items), b"a1.0", b"b2.0", b"c3.0"),
        "extra": digest(str([(n, "ann", 1999) for n in (1, 2, 3)])),
        "facts": digest(ascii(facts)),
    }


def test_an_index_is_intact_after_every_kind_of_change(index):
    assert aadml.verify(index) == []
    change(index, FACTS, COLUMNS, ["a"], [entry("b", 5.0), entry("d", 4.0)])
    assert aadml.verify(index) == []
    assert read(index) == (["b", "c", "d"], [5, 3, 4])
    change(index, FACTS, {}, ["b", "c", "d"], [entry("e", 1.0)])
    assert aadml.verify(index) == []
    change(index, FACTS, COLUMNS, ["e"], [entry(f"clip{n:04}", n) for n in range(600)])
    assert aadml.verify(index) == []
    change(index, FACTS, COLUMNS, [f"clip{n:04}" for n in range(200, 590)], ())
    assert aadml.verify(index) == []
    assert len(read(index)[0]) == 210


def test_damage_is_not_sealed_by_an_update(timed, timed_features, tmp_path):
    Index.build(timed_features, tmp_path / "i").close()
    changed(tmp_path / "i", "UPDATE vector_audio SET content = zeroblob(24) WHERE number = 2")
    with pytest.raises(InputError, match="it is damaged: vector_audio"):
        aadml.index(timed_features, tmp_path / "i")
    assert aadml.verify(tmp_path / "i")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE moment_audio SET times = zeroblob(length(times))",
        "UPDATE moment_audio SET content = zeroblob(length(content))",
        "DELETE FROM moment_audio",
    ],
)
def test_the_moments_of_a_hit_are_verified(timed, timed_features, tmp_path, statement):
    Index.build(timed_features, tmp_path / "i", moments=True).close()
    assert aadml.verify(tmp_path / "i") == []
    changed(tmp_path / "i", statement)
    with Index(tmp_path / "i") as index, pytest.raises(InputError, match="damaged: moment_audio, number"):
        index.search(audio=timed.features["audio"][7], to="audio", k=3)
    assert aadml.verify(tmp_path / "i")


def test_no_wrong_byte_in_the_search_tree_of_moments_changes_a_result(timed, timed_features, tmp_path):
    def moments():
        with Index(tmp_path / "i") as index:
            return [hit.moment for hit in index.search(audio=timed.features["audio"][7], to="audio", k=90).hits]

    Index.build(timed_features, tmp_path / "i", moments=True).close()
    expected, whole = moments(), (tmp_path / "i").read_bytes()
    with closing(sqlite3.connect(tmp_path / "i")) as database:
        size = database.execute("PRAGMA page_size").fetchone()[0]
        page = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'moment_audio'").fetchone()[0]
    tree = range((page - 1) * size, page * size)
    assert whole[tree.start] == 5  # an interior page
    refused = 0
    for place, flipped in product([place for place in tree if whole[place]], (0x01, 0x04)):
        (tmp_path / "i").write_bytes(whole[:place] + bytes([whole[place] ^ flipped]) + whole[place + 1 :])
        try:
            assert moments() == expected, place - tree.start
        except DamagedFileError:
            refused += 1
    assert refused > 0


def test_a_damaged_sql_index_is_found(index):
    with closing(sqlite3.connect(index)) as database:
        size = database.execute("PRAGMA page_size").fetchone()[0]
        page = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'item_label'").fetchone()[0]
    data = bytearray(index.read_bytes())
    place = data.index(b"dog", (page - 1) * size)
    data[place] = ord("h")
    index.write_bytes(data)
    with Index(index) as opened, pytest.raises(DamagedFileError, match="damaged: the table item"):
        READERS["condition"](opened, index.parent)


def test_an_index_with_statistics_of_sqlite_is_read_and_updated(index):
    changed(index, "ANALYZE")
    assert aadml.verify(index) == []
    with Index(index) as opened:
        assert opened.item(2)[0].id == "b"
    change(index, FACTS, COLUMNS, ["a"], [entry("d", 4.0)])
    assert aadml.verify(index) == []


def test_an_index_of_the_second_edition_is_read_unverified_and_updated(index):
    changed(index, "DROP TABLE checksum", "PRAGMA user_version = 1")
    unverified = []
    assert aadml.verify(index, on_unverified=unverified.append) == []
    assert "has no checksums" in unverified[0]
    change(index, FACTS, COLUMNS, ["a"], [entry("d", 4.0)])
    assert read(index) == (["b", "c", "d"], [2, 3, 4])
    np.testing.assert_equal(len(Index(index)), 3)


def test_an_index_with_cells_of_an_earlier_version_is_searched_exactly_and_updated(index):
    with writing(index) as database:
        database.execute("""INSERT INTO meta VALUES ('approximate', '{"recall": 0.9, "generation": 1}')""")
        database.execute("CREATE TABLE cells (modality TEXT PRIMARY KEY, facts TEXT, centers BLOB, own BLOB)")
        database.execute("INSERT INTO cells VALUES ('audio', '{}', x'00', x'00')")
    with Index(index) as opened:
        found = opened.nearest({"audio": torch.ones(1, 3)}, "audio", k=3)
    assert ([hit.id for hit in found.hits], found.among) == (["a", "b", "c"], 3)
    change(index, FACTS, COLUMNS, ["a"], [entry("d", 4.0)])
    assert read(index) == (["b", "c", "d"], [2, 3, 4])
    assert aadml.verify(index) == []
    changed(index, "UPDATE cells SET centers = x'01'")
    assert "the metadata" in aadml.verify(index)[0]
