"""Paths in an index: relative if inside its folder."""

from pathlib import Path

import pytest

from aadml.search.facts import located, near


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
