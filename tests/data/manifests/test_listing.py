import os

import pytest

import aadml
from aadml.data.manifests import listing
from aadml.data.manifests.folder import folder
from aadml.feature_extraction.ground.errors import InputError
from tests.data.manifests.test_folder import tree


def test_what_is_left_aside_is_said(tmp_path):
    tree(tmp_path / "data", "cat/a.mp4", "cat/b.mp4", "dog/c.gif", "dog/notes", ".git/x.txt")
    tree(tmp_path / "far", "d.mp4")
    (tmp_path / "data" / "birds").symlink_to(tmp_path / "far")
    (tmp_path / "data" / "dog" / "d.mp4").symlink_to(tmp_path / "far" / "d.mp4")
    found = folder(tmp_path / "data")
    assert [entry.id for entry in found.entries] == ["a", "b", "d"]
    assert found.notes == (
        "links to folders are not followed (birds)",
        "files with other endings were left out (.gif 1, none 1)",
    )
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "cat").symlink_to(tmp_path / "data" / "cat")
    with pytest.raises(
        InputError, match=r"contains no media, and links to folders are not followed \(cat\); add sound"
    ):
        folder(tmp_path / "links")


def test_a_link_that_leads_nowhere_is_a_missing_file(tmp_path):
    tree(tmp_path, "cat/a.mp4", "cat/b.mp4")
    (tmp_path / "cat" / "c.mp4").symlink_to("nowhere")
    assert [entry.id for entry in folder(tmp_path).missing()] == ["c"]


def test_what_cannot_be_read_is_said_in_one_line(tmp_path, monkeypatch):
    tree(tmp_path, "cat/a.mp4", "cat/b.mp4", "dog/c.mp4")

    def denied(path, *_):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("aadml.data.manifests.listing.file_digest", denied)
    with pytest.raises(InputError, match=r"a\.mp4: cannot be read or written \(Permission denied\)"):
        aadml.manifest(tmp_path)
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: denied(path) if str(path).endswith("dog") else scandir(path))
    with pytest.raises(InputError, match=r"dog: cannot be read or written \(Permission denied\)"):
        aadml.manifest(tmp_path)


def test_pairs_that_share_a_file_through_other_pairs_have_one_source(tmp_path):
    pairs = ["a1", "b2", "c3", "b1", "d4"]
    clips = [listing.ListedClip(p, tmp_path / p[0], (), "", visual=tmp_path / p[1]) for p in pairs]
    source = str(tmp_path / "a")
    assert [clip.source for clip in listing.with_sources(clips)] == [source, source, "", source, ""]


def test_only_files_of_equal_size_are_read(tmp_path, monkeypatch):
    for name, text in (("a", "one"), ("b", "two"), ("c", "one"), ("d", "longer")):
        (tmp_path / name).write_text(text)
    read = []
    digest = listing.file_digest
    monkeypatch.setattr(listing, "file_digest", lambda file: read.append(file.name) or digest(file))
    equal = listing.equal_files([tmp_path / name for name in "abcde"])
    assert [file.name for file in equal] == ["a", "c"]
    assert len({*equal.values()}) == 1
    assert read == ["a", "b", "c"]
