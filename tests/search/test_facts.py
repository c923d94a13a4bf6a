"""Metadata of an index, with paths relative if inside its folder."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from aadml.feature_extraction.ground.errors import DamagedFileError
from aadml.search.facts import located, near, read_facts


@pytest.mark.parametrize(
    ("path", "stored", "found"),
    [
        ("/a/b/c.h5", "b/c.h5", "/a/b/c.h5"),
        ("/a/b/../c.h5", "c.h5", "/a/c.h5"),
        ("/b/c.h5", "/b/c.h5", "/b/c.h5"),
        ("/a", ".", "/a"),
        ("synthetic:ave", "synthetic:ave", "synthetic:ave"),
    ],
)
def test_a_path_is_relative_to_the_folder_of_the_index_if_inside(path, stored, found):
    assert near(path, Path("/a")) == stored
    assert located(stored, Path("/a")) == found


def test_deeply_nested_metadata_are_damaged(tmp_path):
    with closing(sqlite3.connect(tmp_path / "i")) as database:
        database.execute("CREATE TABLE meta (name TEXT, value TEXT)")
        database.execute("INSERT INTO meta VALUES ('state', ?)", ("[" * 99_999,))
        with pytest.raises(DamagedFileError, match="the metadata of the index are damaged"):
            read_facts(database, tmp_path / "i")
