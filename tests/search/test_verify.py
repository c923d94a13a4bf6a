"""`aadml verify`: every kind of file, intact, damaged, truncated or without checksums."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

import aadml
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ledger.ledger import open_ledger
from aadml.feature_extraction.ledger.records import Record
from tests.edited_hdf5 import edited
from tests.feature_extraction.contents import content
from tests.search.small_index import COLUMNS, FACTS, create, entry

FILES = Path(__file__).parents[1] / "second_edition" / "files"


@pytest.fixture
def features(tmp_path):
    write_features(tmp_path / "f.h5", content())
    return tmp_path / "f.h5"


def flipped(path, place):
    data = bytearray(path.read_bytes())
    data[place] ^= 4
    path.write_bytes(data)


@pytest.mark.parametrize("place", [600, 3000, -200, -60, -20, -1])
def test_a_flipped_bit_of_a_feature_file_is_refused_and_named(features, place):
    assert aadml.verify(features) == []
    flipped(features, place)
    with pytest.raises(InputError, match=r"f.h5:? (the file )?(is damaged|cannot be read|the checksums are damaged)"):
        read_features(features)
    (named,) = aadml.verify(features)
    assert str(features) in named


def test_a_feature_file_without_its_checksums_is_damaged(features):
    features.write_bytes(features.read_bytes()[:-30])
    with pytest.raises(InputError, match="its checksums are missing"):
        read_features(features)
    assert aadml.verify(features)


def test_a_changed_file_is_damaged_until_its_mark_is_removed(features):
    with h5py.File(features, "r+") as file:
        file["visual"][0, 0] = 3.0
    with pytest.raises(InputError, match="its checksums are missing"):
        read_features(features)
    with edited(features):
        pass
    assert read_features(features).features["visual"][0, 0] == 3.0


@pytest.mark.parametrize("name", ["extracted.h5", "embeddings.h5", "clips.index", "part.0-of-2.h5"])
def test_files_of_the_second_edition_are_unverified(name):
    unverified = []
    assert aadml.verify(FILES / name, on_unverified=unverified.append) == []
    assert unverified == [
        f"{FILES / name} is readable, but has no checksums (another program or an earlier version wrote it)"
    ]


def test_a_ledger_names_its_damaged_lines_and_values(tmp_path):
    with open_ledger(tmp_path / "out.work") as ledger:
        for number in range(3):
            ledger.append(Record(f"clip{number}", "audio", "s", "c", (1,)), np.full(4, number, dtype=np.float32))
    assert aadml.verify(tmp_path / "out.work") == []
    flipped(tmp_path / "out.work" / "values.f32", 20)
    (values,) = aadml.verify(tmp_path / "out.work")
    assert "the audio values of clip 'clip1' do not match" in values
    flipped(tmp_path / "out.work" / "records.jsonl", 40)
    line, _ = aadml.verify(tmp_path / "out.work")
    assert "records.jsonl: line 1 does not match" in line
    with (tmp_path / "out.work" / "records.jsonl").open("ab") as file:
        file.write(b"an unfinished line")
    assert len(aadml.verify(tmp_path / "out.work")) == 2


@pytest.fixture(params=["feature file", "index", "extracted.h5", "embeddings.h5", "clips.index", "part.0-of-2.h5"])
def content_of_a_kind(request, tmp_path):
    if request.param == "feature file":
        write_features(tmp_path / "whole", content())
    elif request.param == "index":
        create(tmp_path / "whole", FACTS, COLUMNS, [entry(f"clip {n}") for n in range(300)])
    else:
        return (FILES / request.param).read_bytes()
    return (tmp_path / "whole").read_bytes()


@pytest.mark.parametrize("share", [0, 0.01, 0.3, 0.6, 0.9])
def test_a_truncated_file_is_listed(content_of_a_kind, tmp_path, share):
    (tmp_path / "file").write_bytes(content_of_a_kind[: int(share * len(content_of_a_kind))])
    (named,) = aadml.verify(tmp_path / "file")
    assert str(tmp_path / "file") in named


def test_a_file_of_another_kind_is_not_damaged_in_a_folder_of_that_name(tmp_path):
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "text").write_text("hello")
    with pytest.raises(InputError, match="a file of another kind"):
        aadml.verify(tmp_path / "damaged" / "text")


def test_an_error_of_the_disk_is_listed_and_a_missing_permission_is_raised(features, monkeypatch):
    def failing(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "preadv", failing)
    code = errno.EIO
    (named,) = aadml.verify(features)
    assert "f.h5 cannot be read (Input/output error); restore the file" in named
    code = errno.EACCES
    with pytest.raises(InputError, match=r"f.h5 cannot be read \(Permission denied\)"):
        aadml.verify(features)


def test_every_block_is_read_once(tmp_path, monkeypatch):
    many = content(features={"audio": np.ones((4, 500_000), np.float32)}, sequences={}, fitted={})
    write_features(tmp_path / "f.h5", many)
    sizes, preadv = [], os.preadv
    monkeypatch.setattr(os, "preadv", lambda *words: sizes.append(preadv(*words)) or sizes[-1])
    assert aadml.verify(tmp_path / "f.h5") == []
    assert sum(sizes) < 1.1 * (tmp_path / "f.h5").stat().st_size


@pytest.mark.parametrize("path", ["none", "text", "a" * 300, "\ud800", "a\0b"])
def test_what_is_no_file_of_aadml_is_one_line(tmp_path, path):
    (tmp_path / "text").write_text("hello")
    with pytest.raises(InputError) as caught:
        aadml.verify(f"{tmp_path}/{path}")
    assert len(str(caught.value).splitlines()) == 1
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("place", [100, 5000, 200_000])
def test_a_process_that_refused_a_damaged_file_ends_well(tmp_path, place):
    many = content(features={"audio": np.ones((4, 20_000), np.float32)}, sequences={}, fitted={})
    write_features(tmp_path / "f.h5", many)
    flipped(tmp_path / "f.h5", place)
    program = """
import sys
from aadml.feature_extraction.feature_file.reading import read_features
try:
    read_features(sys.argv[1])
except ValueError as error:
    kept = error
    print(error)
"""
    ended = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "f.h5"], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "f.h5" in ended.stdout


def test_a_folder_of_another_kind_is_refused_with_the_kinds_that_are_checked(tmp_path):
    with pytest.raises(InputError, match=r"is not a run or a model; pass the folder of .*OUTPUT\.work"):
        aadml.verify(tmp_path)
