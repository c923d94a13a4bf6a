"""Export of vectors as NumPy files and as Parquet."""

import ast
from pathlib import Path

import numpy as np
import pytest

from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.search import Index
from aadml.search.store import Entry, Item
from tests.search.small_index import FACTS, create


def test_vectors_are_exported(features, tmp_path):
    with Index.build(features, tmp_path / "i") as index:
        written = index.export(tmp_path / "out")
        assert [path.name for path in written] == [
            "out.audio.npy", "out.audio.ids.txt", "out.visual.npy", "out.visual.ids.txt"
        ]  # fmt: skip
        values, ids = np.load(written[0]), written[1].read_text().splitlines()
        assert ids == sorted(read_features(features).ids)
        assert values.shape == (90, 6)


def test_vectors_are_exported_as_parquet_with_all_columns(features, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed (extra parquet)")
    with Index.build(features, tmp_path / "i") as index:
        written = index.export(tmp_path / "out", kind="parquet")
        rows = parquet.read_table(written[1]).to_pylist()
        stored = read_features(features)
        assert [path.name for path in written] == ["out.audio.parquet", "out.visual.parquet"]
        assert list(rows[0]) == ["id", "split", "label", "speaker", "vector"]
        assert [row["id"] for row in rows] == sorted(stored.ids)
        values = np.load(index.export(tmp_path / "out")[2])
        np.testing.assert_array_equal(np.asarray([row["vector"] for row in rows], dtype=np.float32), values)
        with pytest.raises(InputError, match="choose npy or parquet"):
            index.export(tmp_path / "out", kind="csv")


def test_a_column_with_the_name_of_the_vectors_is_not_exported(tmp_path):
    pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed (extra parquet)")
    clip = Entry(Item("a\\b\nc", columns={"vector": "x"}), b"", {"audio": np.ones(3)})
    create(tmp_path / "i", FACTS, {"vector": "TEXT"}, [clip])
    with Index(tmp_path / "i") as index:
        with pytest.raises(InputError, match="the index has a column 'vector', but the vectors are written under"):
            index.export(tmp_path / "out", kind="parquet")
        assert index.export(tmp_path / "out")[1].read_text() == "a\\\\b\\nc\n"  # a line for each clip


def test_each_id_of_an_export_is_one_line_that_python_literals_read(tmp_path):
    names = sorted(f"a{mark}'b" for mark in map(chr, (*range(1, 0x2100), 0x1F600)))
    clips = [Entry(Item(name), b"", {"audio": np.ones(3)}) for name in names]
    create(tmp_path / "i", FACTS, {}, clips)
    with Index(tmp_path / "i") as index:
        lines = index.export(tmp_path / "out")[1].read_text(encoding="utf-8")
    assert [ast.literal_eval(f'"""{line}"""') for line in lines.splitlines()] == names
    assert lines.count("\n") == len(names)


@pytest.mark.parametrize(("name", "kind"), [("npy", "npy"), ("ids.txt", "npy"), ("parquet", "parquet")])
def test_vectors_are_not_exported_through_a_link(features, tmp_path, name, kind):
    if kind == "parquet":
        pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed (extra parquet)")
    (tmp_path / f"out.audio.{name}").symlink_to(tmp_path / "mine")
    with Index.build(features, tmp_path / "i") as index, pytest.raises(InputError, match=f"{name} is a symbolic link"):
        index.export(tmp_path / "out", kind=kind)
    assert {path.name for path in tmp_path.iterdir()} == {"i", f"out.audio.{name}"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *[(name, b"mine") for name in ("npy", "ids.txt", "parquet")],
        ("parquet", b"PAR1" + bytes(40) + b"\x14\0\0\0PAR1"),  # with a damaged footer
        ("parquet", None),
    ],
    ids=["npy", "ids.txt", "parquet", "damaged.parquet", "other.parquet"],
)
def test_files_other_than_earlier_exports_are_not_replaced(features, tmp_path, name, content):
    kind, mine = "parquet" if name == "parquet" else "npy", tmp_path / f"out.visual.{name}"
    if kind == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed (extra parquet)")
    if content is None:
        parquet.write_table(pytest.importorskip("pyarrow").table({"mine": [1]}), mine)
    else:
        mine.write_bytes(content)
    before = mine.read_bytes()
    with Index.build(features, tmp_path / "i") as index:
        with pytest.raises(InputError, match=f"out.visual.{name} exists and is not an export"):
            index.export(tmp_path / "out", kind=kind)
        assert mine.read_bytes() == before
        mine.unlink()
        index.export(tmp_path / "out", kind=kind)
        again = index.export(tmp_path / "out", kind=kind)
    assert mine in again


def test_an_export_that_was_killed_between_its_files_is_repeated(features, tmp_path, monkeypatch):
    rename, renamed = Path.replace, []

    def killed(file, target):
        if renamed:
            raise KeyboardInterrupt
        renamed.append(rename(file, target))

    with Index.build(features, tmp_path / "i") as index:
        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", killed)
            with pytest.raises(KeyboardInterrupt):
                index.export(tmp_path / "out")
        assert len([*tmp_path.glob("out.*")]) == 1
        vectors, ids, *_ = index.export(tmp_path / "out")
    assert len(np.load(vectors)) == len(ids.read_text().splitlines()) == 90
