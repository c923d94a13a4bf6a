"""Manifests from tables that contain their media: the features are those of the CSV file of the same clips."""

import io
import json
import sys
import tarfile
import tempfile
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pytest

import aadml
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.foreign import media_tables, tables
from aadml.feature_extraction.ground.consent import consent_to
from aadml.feature_extraction.ground.errors import DamagedFileError, InputError
from aadml.feature_extraction.manifest import open_manifest
from tests.cli.conftest import run
from tests.sound_files import tone, write_wav

pa = pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="the extra parquet is not installed")

CLIPS = [("a", "dog", "train"), ("b", "dog", "train"), ("c", "cat", "train"), ("d", "cat", "test")]
NAMES = ["cat", "dog"]
MEDIA = (("audio", "wav"), ("image", "png"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Clips with a sound and a picture, and their manifest."""
    place = tmp_path_factory.mktemp("clips")
    lines = ["id,audio,visual,label,split,caption"]
    for number, (name, label, split) in enumerate(CLIPS):
        write_wav(place / f"{name}.wav", tone(300 + 100 * number, seconds=1.2))
        picture = np.random.default_rng(number).integers(0, 255, (24, 32, 3), dtype=np.uint8)
        cv2.imwrite(str(place / f"{name}.png"), picture)
        lines.append(f"{name},{name}.wav,{name}.png,{label},{split},a {label}")
    (place / "manifest.csv").write_text("\n".join(lines))
    return place


@pytest.fixture(scope="module")
def expected(folder, tmp_path_factory):
    path = tmp_path_factory.mktemp("expected") / "f.h5"
    aadml.extract(folder / "manifest.csv", path, workers=1)
    return read_features(path)


def media(folder, name, ending):
    return {"bytes": (folder / f"{name}.{ending}").read_bytes(), "path": f"{name}.{ending}"}


def rows(folder):
    return {
        "id": [name for name, _, _ in CLIPS],
        "audio": [media(folder, name, "wav") for name, _, _ in CLIPS],
        "image": [media(folder, name, "png") for name, _, _ in CLIPS],
        "label": [label for _, label, _ in CLIPS],
        "split": [split for _, _, split in CLIPS],
        "caption": [f"a {label}" for _, label, _ in CLIPS],
    }


def write_parquet(folder, path):
    pq.write_table(pa.table(rows(folder)), path)


def write_dataset(folder, path):
    """A data set as its users have it: media columns, class numbers and named splits."""
    datasets = pytest.importorskip("datasets", reason="the extra datasets is not installed")
    files = {kind: [str(folder / f"{name}.{end}") for name, *_ in CLIPS] for kind, end in MEDIA}
    table = rows(folder) | files | {"label": [NAMES.index(label) for _, label, _ in CLIPS]}
    features = datasets.Features(
        {name: datasets.Value("string") for name in ("id", "caption", "audio", "image")}
        | {"label": datasets.ClassLabel(names=NAMES)}
    )
    parts = {}
    for split in ("train", "test"):
        chosen = [n for n, (_, _, its) in enumerate(CLIPS) if its == split]
        part = {key: [table[key][n] for n in chosen] for key in features}
        made = datasets.Dataset.from_dict(part, features=features)
        made = made.cast_column("audio", datasets.Audio(decode=False))
        parts[split] = made.cast_column("image", datasets.Image(decode=False))
    datasets.DatasetDict(parts).save_to_disk(path)


def add(tar, name, data):
    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))


def write_tar(folder, path):
    with tarfile.open(path, "w") as tar:
        for name, label, split in CLIPS:
            for ending in ("wav", "png"):
                add(tar, f"{name}.{ending}", (folder / f"{name}.{ending}").read_bytes())
            add(tar, f"{name}.cls", label.encode())
            add(tar, f"{name}.json", json.dumps({"split": split, "caption": f"a {label}", "box": {}}).encode())


FORMS = {"a.parquet": write_parquet, "saved": write_dataset, "a.tar": write_tar}


def same(content, expected):
    assert content.ids == expected.ids
    assert content.splits == expected.splits
    np.testing.assert_array_equal(content.labels, expected.labels)
    assert content.class_names == expected.class_names
    assert content.columns["caption"] == expected.columns["caption"]
    for modality, values in expected.features.items():
        np.testing.assert_array_equal(content.features[modality], values)


@pytest.mark.parametrize("name", FORMS)
def test_media_in_a_table_have_the_features_of_their_files(name, folder, expected, tmp_path):
    FORMS[name](folder, tmp_path / name)
    code, _, message = run("extract", tmp_path / name, "-o", tmp_path / "f.h5", "--workers", "1")
    assert code == 0, message
    same(read_features(tmp_path / "f.h5"), expected)
    again = aadml.extract(tmp_path / name, tmp_path / "f.h5", workers=1)  # a later process has other temporary paths
    assert (again.reused, again.failures) == (4, ())


def test_a_data_set_of_the_hub_is_extracted_by_name(folder, expected, monkeypatch, tmp_path):
    datasets = pytest.importorskip("datasets", reason="the extra datasets is not installed")
    write_dataset(folder, tmp_path / "clips")
    monkeypatch.setattr(
        datasets, "load_dataset", lambda name, cache_dir: datasets.load_from_disk(tmp_path / name.split("/")[1])
    )
    aadml.extract("hf:org/clips", tmp_path / "f.h5", workers=1)
    same(read_features(tmp_path / "f.h5"), expected)


@pytest.mark.parametrize("name", ["manifest.csv", "a.tar", "a.parquet"])
def test_an_address_is_extracted_with_its_media(name, folder, expected, tmp_path):
    memory = pytest.importorskip("fsspec", reason="the extra datasets is not installed").filesystem("memory")
    place = f"/extracted-{name}"
    if name == "manifest.csv":
        for file in folder.iterdir():
            memory.pipe(f"{place}/{file.name}", file.read_bytes())
    else:
        FORMS[name](folder, tmp_path / name)
        memory.pipe(f"{place}/{name}", (tmp_path / name).read_bytes())
    aadml.extract(f"memory:/{place}/{name}", tmp_path / "f.h5", workers=1)
    same(read_features(tmp_path / "f.h5"), expected)


def test_the_manifest_of_an_inspected_file_may_be_a_table(folder, expected, monkeypatch, tmp_path):
    write_tar(folder, tmp_path / "a.tar")
    aadml.extract(tmp_path / "a.tar", tmp_path / "f.h5", workers=1)
    seen = []
    monkeypatch.setattr("aadml.data.inspection.recipes.recipe_matches", lambda _, rows: seen.append(rows) or ())
    assert run("inspect", tmp_path / "f.h5", "--media", tmp_path / "a.tar")[0] == 0
    assert [row.id for row in seen[0].rows] == [name for name, _, _ in CLIPS]


def test_an_address_of_a_manifest_needs_consent_and_its_files_stay_beside_it(folder, monkeypatch, tmp_path):
    fsspec = pytest.importorskip("fsspec", reason="the extra datasets is not installed")
    lines = ["id,media", "a,a.wav", "b,../b.wav", f"c,{folder}/c.wav", "d,gone.wav"]
    fsspec.filesystem("memory").pipe("/beside/m.csv", "\n".join(lines).encode())
    fsspec.filesystem("memory").pipe("/beside/a.wav", b"sound")
    with pytest.raises(InputError, match="was not opened, because the address comes from a file or a program"):
        open_manifest("memory://beside/m.csv")
    consent_to("memory://beside/m.csv")
    opened, original = [], fsspec.open
    monkeypatch.setattr(fsspec, "open", lambda address, mode: opened.append(address) or original(address, mode))
    manifest = open_manifest("memory://beside/m.csv")
    assert opened == ["memory://beside/m.csv", "memory://beside/a.wav", "memory://beside/gone.wav"]
    assert [Path(row.media["audio"]).exists() for row in manifest.rows] == [True, False, True, False]
    monkeypatch.setattr(fsspec, "open", lambda address, mode: unreachable(address) or original(address, mode))
    consent_to("memory://beside/o.csv")
    fsspec.filesystem("memory").pipe("/beside/o.csv", b"id,media\na,e.wav")
    with pytest.raises(InputError, match=r"^memory://beside/e.wav cannot be read \(denied\); check the address and"):
        open_manifest("memory://beside/o.csv")
    fsspec.filesystem("memory").pipe("/beside/n.csv", b"id,media\na,x::file:///etc/passwd")
    consent_to("memory://beside/n.csv")
    with pytest.raises(InputError, match=r"is not a supported address; pass an address of .*, without '::'"):
        open_manifest("memory://beside/n.csv")


@pytest.mark.parametrize("name", FORMS)
def test_a_table_of_media_is_not_read_as_features(name, folder, tmp_path):
    FORMS[name](folder, tmp_path / name)
    code, _, message = run("inspect", tmp_path / name)
    assert code == 2
    assert f"{name} contains media, not features; run `aadml extract {tmp_path / name} -o F.h5` first" in message


def test_a_csv_file_needs_no_optional_package(folder, monkeypatch):
    for name in ("pyarrow", "datasets", "fsspec", "huggingface_hub"):
        monkeypatch.setitem(sys.modules, name, None)
    assert len(open_manifest(folder / "manifest.csv").rows) == len(CLIPS)


def unreachable(address):
    if address.endswith("e.wav"):
        raise RuntimeError("denied")  # file systems have no common class of errors


def test_code_beside_a_manifest_at_an_address_is_not_imported(tmp_path):
    memory = pytest.importorskip("fsspec", reason="the extra datasets is not installed").filesystem("memory")
    memory.pipe("/code/m.csv", b"id,media\na,module_beside.py")
    memory.pipe("/code/module_beside.py", f"open({str(tmp_path / 'ran')!r}, 'w')\n".encode())
    with pytest.raises(InputError, match="module_beside"):
        aadml.extract("memory://code/m.csv", tmp_path / "f.h5", audio="module_beside:extractor", workers=1)
    assert not (tmp_path / "ran").exists()
    assert open_manifest("memory://code/m.csv").path == "memory://code/m.csv"


def opened_tar(tmp_path, files):
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        for name, data in files.items():
            add(tar, name, data)
    return open_manifest(tmp_path / "x.tar").rows


def test_names_of_a_tar_are_not_paths(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (row, other) = opened_tar(tmp_path, {"../../x.wav": b"1", "/etc/y.audio.w/v": b"2", "y.mp4": b"3", "y.mp3": b"4"})
    assert (row.id, Path(row.media["audio"]).read_bytes(), row.media["visual"]) == ("../../x", b"1", "")
    assert Path(other.media["audio"]).read_bytes() == b"4"
    assert Path(other.media["visual"]).read_bytes() == b"3"
    written = {path.parent for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".tar"}
    assert {place.parent for place in written} == {tmp_path}


def test_a_video_is_sound_and_picture_and_files_come_in_any_order(tmp_path):
    files = {"a.mp4": b"1", "b.mp4": b"2", "a.cls": b"dog", "b.speaker.txt": b"ann", "b.cls": b"cat"}
    first, second = opened_tar(tmp_path, files)
    assert first.media["audio"] == first.media["visual"] != second.media["audio"]
    assert (first.label, second.label, second.split) == ("dog", "cat", "test")
    assert (first.columns, second.columns) == ({"speaker": ""}, {"speaker": "ann"})


def test_rows_without_ids_are_numbered_and_lists_are_labels_or_captions(tmp_path):
    (tmp_path / "x.wav").write_bytes(b"sound")
    columns = {"audio": ["x.wav", None], "labels": [["b", "a"], []], "captions": [["one", "two"], ["three"]]}
    pq.write_table(pa.table(columns | {"embedding": [[1.0], [2.0]]}), tmp_path / "a.parquet")
    first, second = open_manifest(tmp_path / "a.parquet").rows
    assert (first.id, second.id) == ("000000", "000001")
    assert first.media == {
        "audio": str(tmp_path / "x.wav"), "visual": "", "text": "one", "text_2": "two",
    }  # fmt: skip
    assert (first.labels, second.labels, second.media["audio"]) == (("b", "a"), (), "")


def test_relative_paths_start_at_the_folder_of_the_table(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    pq.write_table(pa.table({"id": ["a"], "audio": ["a.wav"]}), tmp_path / "data" / "a.parquet")
    monkeypatch.chdir(tmp_path)
    (row,) = open_manifest("data/a.parquet").rows
    assert row.media["audio"] == str(tmp_path / "data" / "a.wav")


def opened_table(tmp_path, columns):
    pq.write_table(pa.table({"audio": ["x.wav"] * len(next(iter(columns.values())))} | columns), tmp_path / "a.parquet")
    return open_manifest(tmp_path / "a.parquet").rows


def texts(row):
    return [value for name, value in row.media.items() if name.startswith("text")]


@pytest.mark.parametrize("name", ["text", "caption", "captions"])
def test_captions_come_from_one_column(tmp_path, name):
    first, second = opened_table(tmp_path, {name: [["a", None, "b"], ["c"]], "tags": [["x"], ["y"]]})
    assert (texts(first), texts(second), first.columns["caption_1"]) == (["a", "b"], ["c"], "a")
    first, _ = opened_table(tmp_path, {"said": [["a", "b"], None]})
    assert texts(first) == ["a", "b"]
    first, _ = opened_table(tmp_path, {"caption_1": ["a", "b"], "tags": [["x"], ["y"]]})
    assert texts(first) == ["a"]
    (first,) = opened_table(tmp_path, {"said": [["a"]], "tags": [["x"]]})
    assert (texts(first), first.columns) == ([], {})
    with pytest.raises(InputError, match="the columns 'text' and 'captions' have lists of texts; rename the column of"):
        opened_table(tmp_path, {"text": [["a"]], "captions": [["x"]]})


def test_a_column_of_labels_with_an_empty_row_is_one_column(tmp_path):
    rows = opened_table(tmp_path, {"label": [["b", "a"], None, ["c", None]]})
    assert [row.labels for row in rows] == [("b", "a"), (), ("c",)]


def test_wrong_tables_end_in_one_line(tmp_path, monkeypatch):
    pq.write_table(pa.table({"id": ["a"], "audio": [[1.0, 2.0]]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="the column audio has values of type list, not media; pass a table with"):
        open_manifest(tmp_path / "a.parquet")
    with pytest.raises(DamagedFileError, match=r"a.json has 2,097,152 bytes, more than 1,048,576"):
        opened_tar(tmp_path, {"a.json": bytes(1 << 21)})
    with pytest.raises(DamagedFileError, match=r"x.tar cannot be read as a"):
        opened_tar(tmp_path, {"a.json": b"[1]"})
    with pytest.raises(InputError, match="has a header but no rows"):
        opened_tar(tmp_path, {"a.npy": b"1"})
    (tmp_path / "b.parquet").write_bytes(b"PAR1 not a table" * 9)
    code, _, message = run("extract", tmp_path / "b.parquet", "-o", tmp_path / "f.h5")
    assert (code, message.count("\n")) == (2, 0)
    assert "cannot be read as a table" in message
    monkeypatch.setattr(tables.shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(InputError, match=r"x.tar is too large for .*; set TMPDIR to a larger disk"):
        opened_tar(tmp_path, {"a.wav": b"1"})


def test_one_row_group_of_a_parquet_file_is_in_memory(tmp_path):
    count, size = 96, 1 << 20
    noise = np.random.default_rng(0).bytes(size)
    with pq.ParquetWriter(tmp_path / "a.parquet", pa.schema([("audio", pa.binary())])) as writer:
        for number in range(count):
            writer.write_table(pa.table({"audio": pa.array([number.to_bytes(2) + noise], pa.binary())}))
    pool = pa.default_memory_pool()
    most = Counter()
    original = tables.copy_of

    def watched(*arguments):
        most["bytes"] = max(most["bytes"], pool.bytes_allocated())
        original(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("aadml.feature_extraction.foreign.media_tables.copy_of", watched)
        assert len(open_manifest(tmp_path / "a.parquet").rows) == count
    assert 0 < most["bytes"] < 48 * size


def test_values_of_a_row_become_cells():
    names = ["cat", "dog"]
    row = {"id": "a", "text": None, "speed": 1.5, "captions": ["x", "y"], "more": [1], "label": 1}
    cells = {"id": "a", "text": "", "speed": "1.5", "captions": ["x", "y"], "label": "dog"}
    assert media_tables._values(row, names) == cells
    assert media_tables._values({"label": -1}, names) == {"label": ""}
    assert media_tables._values({"label": 0}, names) == {"label": "cat"}
    assert media_tables._values({"labels": [1, -1, 0]}, names) == {"labels": ["dog", "cat"]}
    assert media_tables._values({"label": ["a", None]}, []) == {"label": ["a"]}
    assert media_tables._values({"label": 3}, []) == {"label": "3"}
