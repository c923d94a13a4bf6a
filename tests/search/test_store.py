"""The store: what is written is read, a reader sees one state, a condition reads and nothing else."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from aadml.feature_extraction.ground.errors import DamagedFileError, InputError, InUseError
from aadml.search import store
from aadml.search.browsing import browse
from aadml.search.captions import known_items
from aadml.search.filters import searchable_columns
from aadml.search.items import items_of, vectors_of
from aadml.search.store import Entry, Item, columns_of, connect, only_writer, reading
from tests.search.small_index import COLUMNS, FACTS, change, create, entry, matching_ids, read


def test_a_number_that_is_missing_meets_no_comparison_and_leaves_the_others_numbers(tmp_path):
    years = {"a": "9", "b": "", "c": "10", "d": "2005"}
    columns = columns_of({"year": list(years.values()), "none": ["", "", "", ""]})
    assert columns == {"year": "NUMERIC", "none": "TEXT"}
    path = tmp_path / "clips.index"
    items = [Item(name, columns={"year": year, "none": ""}) for name, year in years.items()]
    create(path, FACTS, columns, [Entry(item, b"", {}) for item in items])
    assert matching_ids(path, "year > 9") == ["c", "d"]
    assert matching_ids(path, "year < 2000") == ["a", "c"]
    assert matching_ids(path, "year IS NULL AND none = ''") == ["b"]
    with closing(connect(path)) as database:
        assert [item.columns["year"] for item in items_of(database, [1, 2, 3, 4])] == list(years.values())


@pytest.mark.parametrize(
    ("texts", "kept"),
    [(["1.10", "2.0", ""], True), (["-0", "1"], True), (["0.00001", "1"], True), (["1", "2.5", "-3", ""], False)],
)
def test_numbers_keep_their_texts_and_compare_as_numbers(tmp_path, texts, kept):
    columns = columns_of({"version": texts, "other": ["x"] * len(texts)})
    assert list(columns) == ["version", *(["#text version"] if kept else []), "other"]
    path = tmp_path / "clips.index"
    items = [Item(f"{n}", columns={"version": text, "other": "x"}) for n, text in enumerate(texts)]
    create(path, FACTS, columns, [Entry(item, b"", {}) for item in items])
    with closing(connect(path)) as database:
        assert list(items_of(database, range(1, len(texts) + 1))) == items
        counts = browse(database, None, 0, 9).counts["version"]
        assert searchable_columns(database)[5:] == ["version", "other"]
    assert set(counts) == {*texts} - {""}
    for number, text in enumerate(texts):
        assert not text or str(number) in matching_ids(path, f"version >= {float(text)}")
        assert not text or matching_ids(path, f"version = '{text}'") == [str(number)]
    assert matching_ids(path, "version > 10") == []


def test_texts_of_the_same_number_are_counted_together_and_a_condition_can_find_one_of_them(tmp_path):
    path, texts = tmp_path / "clips.index", ["1.1", "1.10", "1.10"]
    items = [Item(f"{n}", columns={"version": text}) for n, text in enumerate(texts)]
    create(path, FACTS, columns_of({"version": texts}), [Entry(item, b"", {}) for item in items])
    with closing(connect(path)) as database:
        assert browse(database, None, 0, 9).counts["version"] == {"1.1": 3}
    assert matching_ids(path, "version = '1.10'") == ["0", "1", "2"]
    assert matching_ids(path, "\"#text version\" = '1.10'") == ["1", "2"]


def test_at_rest_an_index_is_one_file(index):
    change(index, FACTS, COLUMNS, ["a"], [entry("d", 4), entry("b", 5)])
    assert read(index) == (["b", "c", "d"], [5, 3, 4])
    assert [path.name for path in index.parent.iterdir()] == ["clips.index"]


def test_a_change_of_columns_renews_them(index):
    entries = [Entry(Item(name, {}, "", "", {"place": name * 2}), b"", {}) for name in "abc"]
    change(index, FACTS, {"place": "TEXT"}, [], entries)
    assert matching_ids(index, "place = 'bb'") == ["b"]
    with pytest.raises(InputError, match=r"no such column: year; choose from id, split, label, audio, visual, place"):
        matching_ids(index, "year = 1")
    change(index, FACTS, {}, [], [Entry(Item("a"), b"", {})])
    assert matching_ids(index, "id < 'b'") == ["a"]


def test_a_change_of_the_order_of_columns_keeps_the_values_with_their_columns(index):
    change(
        index, FACTS, dict(reversed(COLUMNS.items())), [], [entry(name, speaker="bob", year="2001") for name in "abc"]
    )
    with closing(connect(index)) as database:
        assert [list(item.columns.items()) for item in items_of(database, [4, 5, 6])] == [
            [("year", "2001"), ("speaker", "bob")]
        ] * 3
    assert matching_ids(index, "speaker = 'bob' AND year > 2000") == ["a", "b", "c"]


def test_a_failed_change_changes_nothing(index):
    def broken():
        yield entry("z", 9)
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        change(index, FACTS, COLUMNS, ["a"], broken())
    assert read(index) == (["a", "b", "c"], [1, 2, 3])


def test_a_reader_sees_one_state_while_a_change_is_written(index):
    with closing(connect(index)) as database, reading(database, index):
        before = known_items(database)
        writer = threading.Thread(target=change, args=(index, FACTS, COLUMNS, ["a", "b"], [entry("d", 4)]))
        writer.start()
        writer.join(timeout=30)
        assert not writer.is_alive()
        assert known_items(database) == before
        assert vectors_of(database, "audio")[1][:, 0].tolist() == [1, 2, 3]
    assert read(index) == (["c", "d"], [3, 4])


def test_a_second_writer_is_refused_in_one_line_until_the_first_is_gone(index):
    with (
        only_writer(index),
        pytest.raises(InputError, match="another process is updating this index"),
        only_writer(index),
    ):
        raise AssertionError("two writers")
    left = index.with_name(".clips.abcd_123.partial.index")  # by a build that was killed
    left.write_bytes(b"half")
    with only_writer(index):
        assert index.with_name("clips.index.work").is_dir()
        assert not left.exists()


def test_a_write_protected_index_is_not_replaced(index, monkeypatch):
    before = index.read_bytes()
    monkeypatch.setattr(os, "access", lambda path, _: path != index)  # root may write a file of mode 0444
    with pytest.raises(InputError, match=r"clips\.index is write-protected; change its"):
        change(index, FACTS, COLUMNS, ["a"], [])
    assert (index.read_bytes(), [path.name for path in index.parent.iterdir()]) == (before, [index.name])


def test_a_writer_by_a_link_locks_the_target_of_the_link(index, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.index"
    link.symlink_to(index)
    with only_writer(link) as work, pytest.raises(InUseError), only_writer(index):
        raise AssertionError("two writers")
    assert work == index.with_name("clips.index.work")


def test_a_lock_that_its_holder_removed_does_not_count(index, monkeypatch):
    @contextmanager
    def locked(handle, lock_file, busy):
        shutil.rmtree(lock_file.parent)
        yield

    monkeypatch.setattr(store, "locked", locked)
    with pytest.raises(InUseError, match="another process is updating this index"), only_writer(index):
        raise AssertionError("a third process may hold a new lock")


def test_a_refused_writer_does_not_remove_the_lock_of_another_writer(index, monkeypatch):
    work = index.with_name("clips.index.work")

    @contextmanager
    def locked(handle, lock_file, busy):
        raise InUseError(busy)
        yield

    monkeypatch.setattr(store, "locked", locked)
    with pytest.raises(InUseError), only_writer(index):
        pass
    assert (work / "lock").exists()


def test_columns_that_sql_cannot_tell_apart_are_refused():
    assert columns_of({"a b": ["x"], 'q"': ["1", "20.5"], "z": ["007"]}) == {
        "a b": "TEXT",
        'q"': "NUMERIC",
        "z": "TEXT",
    }
    captions = {"caption_of": ["7"], "caption_number": ["2"], "caption_text": ["1999"]}
    assert columns_of(captions) == {"caption_of": "TEXT", "caption_number": "NUMERIC", "caption_text": "TEXT"}
    for names, user in (
        (["Label"], "the index"),
        (["rowid"], "the index"),
        (["#text x"], "the index"),
        (["x", "X"], "the column 'x'"),
    ):
        with pytest.raises(InputError, match=f"'{names[-1]}': {user} uses this name too .*; rename"):
            columns_of({name: ["v"] for name in names})


def test_what_is_no_index_is_refused(tmp_path, index):
    (tmp_path / "text").write_text("hello " * 100)
    (tmp_path / "empty").write_bytes(b"")
    with closing(sqlite3.connect(tmp_path / "other")) as database:
        database.execute("CREATE TABLE a (b)")
    with closing(sqlite3.connect(tmp_path / "old")) as database:
        database.execute(f"PRAGMA application_id = {store.APPLICATION}")
        database.execute("CREATE TABLE a (b)")
    with pytest.raises(InputError, match="version 0, but this aadml reads versions 1 and 2"):
        connect(tmp_path / "old")
    for name in ("text", "empty", "other"):
        with pytest.raises(InputError, match=r"cannot be read as an index|is not an index"):
            connect(tmp_path / name)
    with pytest.raises(InputError, match="does not exist; build the index"):
        connect(tmp_path / "none")
    with closing(sqlite3.connect(index)) as database:
        database.execute("PRAGMA user_version = 9")
    with pytest.raises(InputError, match="version 9, but this aadml reads versions 1 and 2"):
        connect(index)


def test_a_reader_only_reads_the_file_of_an_index(index):
    other = index.with_name("other.index")
    create(other, FACTS, COLUMNS, [entry("new", 7)])
    with closing(sqlite3.connect(other)) as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        database.execute("PRAGMA journal_mode = WAL")  # as in earlier versions
        database.execute("UPDATE item SET id = 'other'")
        database.commit()
        log = index.with_name("other.index-wal").read_bytes()
    index.with_name("clips.index-wal").write_bytes(log)
    before = sorted(index.parent.iterdir())
    assert read(index) == (["a", "b", "c"], [1, 2, 3])
    with closing(connect(index)) as database, pytest.raises(sqlite3.OperationalError, match="readonly"):
        database.execute("UPDATE item SET id = 'b'")
    assert sorted(index.parent.iterdir()) == before


@pytest.mark.parametrize(
    ("code", "kind", "says"),
    [
        (sqlite3.SQLITE_CANTOPEN | 2 << 8, InputError, r"cannot be opened or written \(why\); check the permissions"),
        (sqlite3.SQLITE_READONLY, InputError, r"cannot be opened or written \(why\); check the permissions of the"),
        (sqlite3.SQLITE_FULL, InputError, r"cannot be written \(why\); free some space or choose another path"),
        (sqlite3.SQLITE_NOTADB, DamagedFileError, r"cannot be read as an index \(why\); build the index again"),
        (None, DamagedFileError, r"cannot be read as an index \(why\); build the index again"),
    ],
)
def test_an_error_of_sqlite_states_what_to_do(index, code, kind, says):
    error = sqlite3.OperationalError("why")
    if code is not None:
        error.sqlite_errorcode = code
    with closing(connect(index)) as database, pytest.raises(InputError, match=says) as caught, reading(database, index):
        raise error
    assert type(caught.value) is kind


def test_what_cannot_be_opened_or_locked_is_refused(tmp_path):
    with pytest.raises(InputError, match="is not a file; pass the file of an index"):
        connect(tmp_path)
    with pytest.raises(InputError, match=r"i.work cannot be written \(.*\); choose"), only_writer(Path("/proc/no/i")):
        pass


def test_a_length_beyond_the_memory_is_one_line(index):
    said = pytest.raises(InputError, match="damaged or larger than the memory")
    with closing(connect(index)) as database, said, reading(database, index):
        raise MemoryError


def test_a_full_disk_is_said_to_be_one(tmp_path, monkeypatch):
    opened = sqlite3.connect

    def small(*words, **options):
        database = opened(*words, **options)
        database.execute("PRAGMA max_page_count = 1")
        return database

    monkeypatch.setattr(sqlite3, "connect", small)
    with pytest.raises(InputError, match=r"clips\.index cannot be written \(database or disk is full\); free some"):
        create(tmp_path / "clips.index", FACTS, COLUMNS, [entry("a")])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["lock", "vectors.sqlite", ""])
def test_the_work_folder_of_an_index_has_no_links(index, tmp_path, name):
    victim, work = tmp_path / "mine", index.with_name("clips.index.work")
    link = work / name if name else work
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(victim)  # dangling
    with pytest.raises(InputError, match=f"{link.name} is a symbolic link"), only_writer(index):
        raise AssertionError("opened")
    assert not victim.exists()
    assert link.is_symlink()


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS number FROM n"


@pytest.mark.parametrize(
    "statement",
    [
        f"DROP TABLE item; CREATE VIEW item AS {ENDLESS}",
        "DROP TABLE vector_audio; CREATE VIEW vector_audio AS SELECT number, zeroblob(400000000) AS content FROM item",
        f"CREATE TRIGGER t AFTER INSERT ON item BEGIN INSERT INTO meta {ENDLESS}; END",
        "DROP TABLE vector_text; CREATE VIRTUAL TABLE vector_text USING fts5(content)",
        "ALTER TABLE item ADD COLUMN content AS (zeroblob(400000000))",
        "CREATE TABLE cells (number CHECK (length(zeroblob(number))))",
        "CREATE TABLE cells (number DEFAULT (zeroblob(400000000)))",
        "CREATE INDEX extra_7 ON item (hex(label))",
        'CREATE INDEX extra_7 ON item ("hex"("label"))',
        'CREATE INDEX extra_7 ON item ("hex" /* */ ("label"))',
        "CREATE INDEX extra_7 ON item (label) WHERE label = 0",
    ],
)
def test_an_index_with_statements_of_its_own_is_refused(index, statement):
    with closing(sqlite3.connect(index)) as database:
        database.executescript(statement)
    with pytest.raises(
        DamagedFileError, match=r"cannot be read as an index \(it is damaged: '\w+' is not a plain table\)"
    ):
        connect(index)


def test_columns_may_have_the_names_of_statements(index):
    columns = dict.fromkeys(("check", "as", "a (b)", 'x""y" (', "select", "VIEW", "'"), "TEXT")
    change(index, FACTS, columns, ["a", "b", "c"], [Entry(Item("d", columns=columns), b"", {})])
    with closing(connect(index)) as database:
        assert next(items_of(database, [1])).columns == columns


def test_a_removed_index_does_not_change_the_next_index(index):
    with closing(connect(index)) as server, reading(server, index):
        before = known_items(server)
        change(index, FACTS, COLUMNS, ["a"], [entry("d", 4)])
        index.unlink()
        create(index, FACTS, COLUMNS, [entry("new", 7)])
        assert read(index) == (["new"], [7])
        assert known_items(server) == before


KILLED = """
import os, signal, sys
from contextlib import closing
from pathlib import Path

from aadml.feature_extraction.ground import atomic
from aadml.search.captions import known_items
from aadml.search.store import connect, reading
from tests.search.small_index import COLUMNS, FACTS, change, create, entry

path, moment = Path(sys.argv[1]), sys.argv[2]

def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def entries():
    yield entry("d", 4)
    if moment == "items":
        kill()

if moment == "rename":
    atomic.flush_to_disk = kill
with closing(connect(path)) as server, reading(server, path):
    known_items(server)
    change(path, FACTS, COLUMNS, ["a"], entries())
    kill()
"""


@pytest.mark.parametrize("moment", ["items", "rename", "end"])
def test_after_a_kill_another_index_can_be_moved_over_an_index(index, moment):
    other = index.with_name("other.index")
    create(other, FACTS, COLUMNS, [entry("new", 7)])
    killed = subprocess.run([sys.executable, "-c", KILLED, index, moment], cwd=Path(__file__).parents[2], check=False)
    assert killed.returncode == -signal.SIGKILL
    copy = Path(shutil.copy(index, index.with_name("copy.index")))
    assert read(copy) == ((["b", "c", "d"], [2, 3, 4]) if moment == "end" else (["a", "b", "c"], [1, 2, 3]))
    copy.unlink()
    other.replace(index)
    assert read(index) == (["new"], [7])
    with only_writer(index):
        change(index, FACTS, COLUMNS, [], [entry("x", 8)])
    assert read(index) == (["new", "x"], [7, 8])
    assert list(index.parent.iterdir()) == [index]


def test_an_index_whose_log_was_left_by_an_earlier_version_is_refused(index, tmp_path):
    link, log = tmp_path / "link", index.with_name("clips.index-wal")
    link.symlink_to(index)
    with closing(sqlite3.connect(index)) as server:
        server.execute("PRAGMA journal_mode = WAL")
        server.executescript("CREATE TABLE a (b); DROP TABLE a")
        content = log.read_bytes()
        for path in (index, link):
            with pytest.raises(InputError, match=r"index-wal contains changes .* an earlier version of aadml; open"):
                connect(path)
    assert not log.exists()
    connect(index).close()
    log.write_bytes(b"")
    change(index, FACTS, COLUMNS, ["a"], [entry("d", 4)])
    assert read(index) == (["b", "c", "d"], [2, 3, 4])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clips.index", "link"]
    log.write_bytes(content)
    with closing(connect(index)):
        pass  # a log beside an index of this version belongs to another file


def test_the_log_of_the_target_of_a_link_is_removed(index, tmp_path):
    (tmp_path / "link").symlink_to(index)
    index.unlink()
    index.with_name(f"{index.name}-wal").write_bytes(b"of another file")
    create(tmp_path / "link", FACTS, COLUMNS, [entry("new", 7)])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clips.index", "link"]
