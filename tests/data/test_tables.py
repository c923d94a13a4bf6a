"""Tables of the ecosystem are read as data: Parquet, `datasets`, WebDataset tars, and addresses of `fsspec`."""

import bz2
import gzip
import io
import json
import lzma
import os
import re
import tarfile
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import aadml
from aadml.data.reading import open_data
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.foreign import tables
from aadml.feature_extraction.ground.consent import consent_to
from aadml.feature_extraction.ground.errors import DamagedFileError, InputError, MissingExtraError
from tests.cli.conftest import run

pa = pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="the extra parquet is not installed")


@pytest.fixture
def content(tmp_path):
    path = tmp_path / "clips.h5"
    write_features(path, synthetic(classes=3, train=12, valid=3, test=6, dimensions=(4, 5), difficulty=0.2))
    return open_data(path)


@pytest.fixture
def rows(content):
    """Columns of a table with the content of the feature file."""
    return {
        "id": list(content.ids),
        "label": [content.class_names[code] for code in content.labels],
        "split": list(content.splits),
        "audio": content.features["audio"].tolist(),
        "visual": content.features["visual"].tolist(),
    }


def write_tar(path, rows, leave_out=()):
    with tarfile.open(path, "w") as tar:
        for number, name in enumerate(rows["id"]):
            for modality in ("audio", "visual"):
                file = io.BytesIO()
                np.save(file, np.asarray(rows[modality][number], np.float32))
                add(tar, f"{name}.{modality}.npy", file.getvalue())
            add(tar, f"{name}.cls", rows["label"][number].encode())
            if name not in leave_out:
                add(tar, f"{name}.split.txt", rows["split"][number].encode())


def add(tar, name, data, kind=tarfile.REGTYPE):
    member = tarfile.TarInfo(name)
    member.size, member.type = len(data), kind
    tar.addfile(member, io.BytesIO(data))


def write_parquet(path, rows):
    pq.write_table(pa.table(rows), path)


def write_dataset(path, rows):
    datasets = pytest.importorskip("datasets", reason="the extra datasets is not installed")
    names = sorted(set(rows["label"]))
    features = datasets.Features(
        {
            "id": datasets.Value("string"),
            "label": datasets.ClassLabel(names=names),
            "audio": datasets.List(datasets.Value("float32"), 4),
            "visual": datasets.List(datasets.Value("float32")),
        }
    )
    parts = {}
    for split in ("train", "valid", "test"):
        chosen = [i for i, value in enumerate(rows["split"]) if value == split]
        part = {key: [rows[key][i] for i in chosen] for key in features}
        part["label"] = [names.index(label) for label in part["label"]]
        parts["validation" if split == "valid" else split] = datasets.Dataset.from_dict(part, features=features)
    datasets.DatasetDict(parts).save_to_disk(path)


def same(read, content):
    assert {*read.ids} == {*content.ids}
    order = [read.ids.index(name) for name in content.ids]
    assert [read.splits[row] for row in order] == list(content.splits)
    assert [read.class_names[read.labels[row]] for row in order] == [content.class_names[c] for c in content.labels]
    for modality, values in content.features.items():
        np.testing.assert_array_equal(read.features[modality][order], values)


@pytest.mark.parametrize(
    ("name", "write"), [("a.parquet", write_parquet), ("saved", write_dataset), ("a.tar", write_tar)]
)
def test_a_table_is_read_as_the_feature_file_of_its_content(name, write, rows, content, tmp_path):
    write(tmp_path / name, rows)
    read = open_data(tmp_path / name)
    same(read, content)
    assert read.provenance["audio"]["sources"]
    assert run("inspect", tmp_path / name)[0] == 0


def test_parquet_shards_of_named_splits_are_one_table(rows, content, tmp_path):
    for split in ("train", "valid", "test"):
        chosen = [i for i, value in enumerate(rows["split"]) if value == split]
        part = {key: [values[i] for i in chosen] for key, values in rows.items() if key != "split"}
        write_parquet(tmp_path / f"{split}-00000-of-00001.parquet", part)
    (tmp_path / "clips.h5").unlink()
    same(open_data(tmp_path), content)


def test_an_address_is_copied_and_read_by_every_entry(rows, content, tmp_path):
    fsspec = pytest.importorskip("fsspec", reason="the extra datasets is not installed")
    memory = fsspec.filesystem("memory")
    write_parquet(tmp_path / "a.parquet", rows)
    for name in ("a.parquet", "clips.h5"):
        memory.pipe(f"/bucket/{name}", (tmp_path / name).read_bytes())
        consent_to(f"memory://bucket/{name}")
        same(open_data(f"memory://bucket/{name}"), content)
        assert run("convert", f"memory://bucket/{name}", tmp_path / f"{name}.h5")[0] == 0
    model = aadml.fit(
        "memory://bucket/clips.h5", method="cca", settings={"method.dimension": 3}, runs=tmp_path / "runs"
    )
    assert aadml.evaluate(model, data="memory://bucket/a.parquet").map > 0
    consent_to("memory://bucket/no.h5")
    with pytest.raises(InputError, match=r"^memory://bucket/no.h5 cannot be read \(.*\); check the address"):
        open_data("memory://bucket/no.h5")


def test_a_data_set_of_the_hub_is_loaded_by_name(rows, content, tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets", reason="the extra datasets is not installed")
    write_dataset(tmp_path / "saved", rows)
    monkeypatch.setattr(
        datasets, "load_dataset", lambda name, cache_dir: datasets.load_from_disk(tmp_path / name.split("/")[1])
    )
    consent_to("hf:org/saved", "hf:org/no")
    same(open_data("hf:org/saved"), content)
    monkeypatch.chdir(tmp_path)
    for name in ("..", "../x", "/etc", "saved", "a/b/c", "-"):
        with pytest.raises(InputError, match=f"^hf:{name} is not the name of a data set on the hub; pass hf:"):
            open_data(f"hf:{name}")


@pytest.mark.parametrize(
    "address",
    ["reference://clips.parquet::/tmp/refs.json", "simplecache::memory://a.h5", "file:///etc/passwd", "hf:x://y"],
)
def test_an_address_of_another_protocol_or_a_chain_is_refused(address):
    consent_to(address)
    with pytest.raises(InputError, match=r"is not a supported address; pass an address of s3, .*, without '::'"):
        open_data(address)


def test_an_address_in_a_file_is_opened_only_with_consent(rows, tmp_path):
    memory = pytest.importorskip("fsspec", reason="the extra datasets is not installed").filesystem("memory")
    write_parquet(tmp_path / "a.parquet", rows)
    memory.pipe("/stored/a.parquet", (tmp_path / "a.parquet").read_bytes())
    config = tmp_path / "config.yaml"
    config.write_text("data: memory://stored/a.parquet\nmethod: {name: cca, dimension: 3}\n")
    train = ("train", "--config", config, "--runs", tmp_path / "runs")
    code, _, message = run(*train)
    assert code == 2
    assert "memory://stored/a.parquet was not opened, because the address comes from" in message
    assert run(*train, "--trust-code")[0] == 0
    (trained,) = (path.parent for path in (tmp_path / "runs").rglob("config.yaml"))
    code, _, message = run("evaluate", trained)
    assert (code, "was not opened" in message) == (2, True)
    assert run("evaluate", trained, "--data", "memory://stored/a.parquet")[0] == 0


def test_messages_leave_out_the_secrets_of_an_address(monkeypatch, rows, tmp_path):
    fsspec = pytest.importorskip("fsspec", reason="the extra datasets is not installed")
    address = "https://user:word@host/a.parquet?token=SECRET"
    consent_to(address)
    for text in (address, "404, at a.parquet?token=SECRET", "no access for user:word"):
        monkeypatch.setattr(fsspec, "open", lambda *_, text=text: raise_error(OSError(text)))
        with pytest.raises(InputError, match=r"^https://host/a.parquet cannot be read") as caught:
            open_data(address)
        assert not {word for word in ("SECRET", "word") if word in str(caught.value)}
    write_parquet(tmp_path / "a.parquet", rows)
    monkeypatch.setattr(fsspec, "open", lambda *_: (tmp_path / "a.parquet").open("rb"))
    assert len(open_data(address).ids) == len(rows["id"])


@pytest.mark.parametrize("problem", ["interrupted", "full"])
def test_a_failed_copy_leaves_no_folder(problem, monkeypatch, tmp_path):
    fsspec = pytest.importorskip("fsspec", reason="the extra datasets is not installed")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    address = f"memory://failed/{problem}.h5"
    consent_to(address)
    if problem == "full":  # the size is unknown, and the disk fills
        monkeypatch.setattr(fsspec, "open", lambda *_: io.BytesIO(bytes(9)))
        monkeypatch.setattr(tables.shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
        expected = pytest.raises(InputError, match=r"is too large for .*; set TMPDIR to a larger disk")
    else:
        monkeypatch.setattr(fsspec, "open", lambda *_: raise_error(KeyboardInterrupt()))
        expected = pytest.raises(KeyboardInterrupt)
    with expected:
        open_data(address)
    assert not list(tmp_path.iterdir())


def raise_error(error):
    raise error


def test_what_is_missing_or_damaged_ends_in_one_line(rows, tmp_path, monkeypatch):
    write_tar(tmp_path / "a.tar", rows, leave_out=[rows["id"][3]])
    with pytest.raises(InputError, match=f"clip '{rows['id'][3]}' has no split; store the same files for each clip"):
        open_data(tmp_path / "a.tar")
    for name in ("b.tar", "b.parquet"):
        (tmp_path / name).write_bytes(b"PAR1 not a table" * 9)
        with pytest.raises(DamagedFileError, match="cannot be read as a"):
            open_data(tmp_path / name)
    for values, problem in (([1.0], "lists of different lengths"), (None, "missing values or lists")):
        write_parquet(tmp_path / "c.parquet", {**rows, "audio": [values, *rows["audio"][1:]]})
        with pytest.raises(InputError, match=f"c.parquet: audio has .*{problem}"):
            open_data(tmp_path / "c.parquet")
    monkeypatch.setattr(tables, "optional", lambda module, user, extra: raise_missing(user, module, extra))
    with pytest.raises(MissingExtraError, match=r"pip install 'aadml\[parquet\]'"):
        open_data(tmp_path / "c.parquet")


@pytest.mark.parametrize("form", ["text", "dictionary", "numbers", "unsigned", "floats", "named"])
def test_a_missing_label_is_no_class(form, rows, tmp_path):
    numbers = [["0", "1", "2"].index(label[-1]) for label in rows["label"]]
    table = pa.table({name: values for name, values in rows.items() if name != "label"})
    kinds = {"numbers": pa.int64(), "unsigned": pa.uint8(), "floats": pa.float64(), "named": pa.int32()}
    values = [None, *(numbers if form in kinds else rows["label"])[1:]]
    labels = pa.array(values, kinds.get(form, pa.string()))
    table = table.append_column("label", labels.dictionary_encode() if form == "dictionary" else labels)
    if form == "named":
        stored = {"info": {"features": {"label": {"names": ["a", "b", "c"]}}}}
        table = table.replace_schema_metadata({"huggingface": json.dumps(stored)})
    pq.write_table(table, tmp_path / "a.parquet")
    content = open_data(tmp_path / "a.parquet")
    assert content.labels.tolist() == [-1, *numbers[1:]]
    names = {"text": sorted(set(rows["label"])), "dictionary": sorted(set(rows["label"])), "named": ["a", "b", "c"]}
    assert content.class_names == tuple(names.get(form, ["0", "1", "2"]))


def raise_missing(user, module, extra):
    raise MissingExtraError.of(user, module, extra)


def test_a_compressed_tar_that_grows_is_refused(tmp_path):
    with tarfile.open(tmp_path / "a.tgz", "w:gz") as tar:
        add(tar, "x.cls", bytes(1 << 27))
    with pytest.raises(DamagedFileError, match="it declares more than 67,108,864 bytes"):
        open_data(tmp_path / "a.tgz")


def test_headers_and_members_of_a_compressed_tar_are_limited(tmp_path):
    with tarfile.open(tmp_path / "a.tgz", "w:gz", format=tarfile.PAX_FORMAT) as tar:
        member = tarfile.TarInfo("x.cls")
        member.pax_headers = {"comment": "x" * (1 << 27)}
        tar.addfile(member, io.BytesIO(b""))
    with pytest.raises(DamagedFileError, match="it expands beyond 67,108,864 bytes"):
        open_data(tmp_path / "a.tgz")
    with tarfile.open(tmp_path / "b.tgz", "w:gz") as tar:
        for _ in range(20_000):
            tar.addfile(tarfile.TarInfo("x.cls"))
    with pytest.raises(DamagedFileError, match="it has more than 10,000 members"):
        open_data(tmp_path / "b.tgz")


@pytest.mark.parametrize("compression", ["gz", "bz2", "xz"])
def test_a_compressed_tar_is_read(compression, rows, content, tmp_path):
    write_tar(tmp_path / "plain.tar", rows)
    opener = {"gz": gzip, "bz2": bz2, "xz": lzma}[compression]
    (tmp_path / "a.tar").write_bytes(opener.compress((tmp_path / "plain.tar").read_bytes()))
    same(open_data(tmp_path / "a.tar"), content)
    (tmp_path / "a.tar").write_bytes((tmp_path / "a.tar").read_bytes()[:-40])
    with pytest.raises(DamagedFileError, match="cannot be read as a WebDataset tar"):
        open_data(tmp_path / "a.tar")


def test_rows_of_a_tar_belong_to_their_clips_in_any_order_of_files(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for name in ("x.cls", "y.cls", "y.audio.npy", "x.audio.npy"):
            file = io.BytesIO()
            np.save(file, np.full(2, ord(name[0])))
            add(tar, name, file.getvalue() if name.endswith("npy") else name[:1].encode())
    arrays = tables.table_arrays(tmp_path / "a.tar", ("id", "label", "audio"))
    assert arrays["id"].tolist() == arrays["label"].tolist() == [chr(value) for value in arrays["audio"][:, 0]]
    with tarfile.open(tmp_path / "a.tar", "a") as tar:
        file = io.BytesIO()
        np.save(file, np.ones(3))
        add(tar, "z.cls", b"z")
        add(tar, "z.audio.npy", file.getvalue())
    with pytest.raises(InputError, match=r"a.tar: audio has arrays of different shapes, \(2,\) and \(3,\); store one"):
        tables.table_arrays(tmp_path / "a.tar", ("audio",))


def test_names_of_columns_are_listed_without_rows_and_a_table_that_grows_is_refused(rows, tmp_path, monkeypatch):
    count = 10_000_000
    pq.write_table(pa.table({"id": pa.nulls(count, pa.string())}), tmp_path / "a.parquet")
    before = pa.total_allocated_bytes()
    assert tables.table_keys(tmp_path / "a.parquet") == ("id",)
    assert pa.total_allocated_bytes() - before < 1 << 20
    with pytest.raises(DamagedFileError, match="it declares 10,000,000 values, but stores"):
        tables.table_arrays(tmp_path / "a.parquet", ("id",))
    pq.write_table(pa.table({"id": ["x" * (1 << 17)] * 1500}), tmp_path / "b.parquet", compression="zstd")
    with pytest.raises(DamagedFileError, match="it expands beyond 67,108,864 bytes"):
        tables.table_arrays(tmp_path / "b.parquet", ("id",))
    texts = ["x" * (1 << 15), *(["y"] * 1500)]
    pq.write_table(pa.table({"id": texts, "other": texts}), tmp_path / "c.parquet", compression="zstd")
    with pytest.raises(InputError, match=r"c.parquet: id has 1,501 texts of up to 32,768 characters, .*; shorten"):
        tables.table_arrays(tmp_path / "c.parquet", ("id",))
    write_parquet(tmp_path / "d.parquet", rows)
    monkeypatch.setattr(tables, "_array", lambda column, place, limit: np.zeros(1))
    assert [*tables.table_arrays(tmp_path / "d.parquet", ("id", "absent"))] == ["id"]


def test_a_long_value_of_a_dictionary_is_repeated_in_few_rows_at_a_time(tmp_path):
    pq.write_table(pa.table({"id": ["x" * (1 << 20)] * 1000}), tmp_path / "a.parquet", compression="zstd")
    own, pool = pa.default_memory_pool(), pa.system_memory_pool()
    try:
        pa.set_memory_pool(pool)
        with pytest.raises(DamagedFileError, match="it expands beyond 67,108,864 bytes"):
            tables.table_arrays(tmp_path / "a.parquet", ("id",))
    finally:
        pa.set_memory_pool(own)
    assert 1 << 20 < pool.max_memory() < 1 << 28


@pytest.mark.parametrize("kind", ["values", "dictionary"])
def test_a_saved_data_set_with_compressed_values_is_refused(kind, rows, tmp_path):
    """28 kB of it can be 800 MB in memory."""
    write_dataset(tmp_path / "a", rows)
    assert tables.table_keys(tmp_path / "a")
    (file,) = (tmp_path / "a" / "train").glob("*.arrow")
    numbers = pa.array(["x" * 1000] * 1000)
    table = pa.table({"id": numbers.dictionary_encode() if kind == "dictionary" else numbers})
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    with pytest.raises(
        DamagedFileError, match=r"a cannot be read as a table \(data-00000-of-00001.arrow is compressed"
    ):
        open_data(tmp_path / "a")


def other_state(folder, **changed):
    place = folder / "train" / "state.json"
    place.write_text(json.dumps(json.loads(place.read_text()) | changed))


def other_splits(folder, *splits):
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": splits}))


def of_another_suffix(folder):
    (file,) = (folder / "train").glob("*.arrow")
    file.rename(file.with_name("data.bin"))
    other_state(folder, _data_files=[{"filename": "data.bin"}])


def read_twice(folder):
    other_state(folder, _data_files=[{"filename": "data-00000-of-00001.arrow"}] * 2)


def of_another_folder(folder):
    other_state(folder, _data_files=[{"filename": "../../private/test/data-00000-of-00001.arrow"}])


def of_an_absolute_path(folder):
    place = folder.parent / "private" / "test" / "data-00000-of-00001.arrow"
    other_state(folder, _data_files=[{"filename": str(place)}])


def split_of_another_folder(folder):
    other_splits(folder, "train", "../private/test")


def split_of_a_parent(folder):
    other_splits(folder, "train", "..")


def split_of_an_address(folder):
    other_splits(folder, "train", "simplecache::memory:")


def split_without_a_name(folder):
    other_splits(folder, "train", 3)


ESCAPES = {
    of_another_suffix: "state.json has 'data.bin' instead of the plain name",
    read_twice: "state.json has 'data-00000-of-00001.arrow' twice",
    of_another_folder: "state.json has '../../private/",
    of_an_absolute_path: "state.json has '/",
    split_of_another_folder: "dataset_dict.json has '../private/test' instead",
    split_of_a_parent: "dataset_dict.json has '..' instead",
    split_of_an_address: "dataset_dict.json has 'simplecache::memory:' instead",
    split_without_a_name: "dataset_dict.json has '3' instead",
}


@pytest.mark.parametrize("escape", ESCAPES, ids=lambda escape: escape.__name__)
def test_a_saved_data_set_of_other_files_than_its_own_is_refused(escape, rows, tmp_path, monkeypatch):
    for name in ("a", "private"):
        write_dataset(tmp_path / name, rows)
    assert tables.table_keys(tmp_path / "a")
    escape(tmp_path / "a")
    monkeypatch.setattr("datasets.load_from_disk", lambda _: pytest.fail("the files were read"))
    with pytest.raises(DamagedFileError, match=re.escape(ESCAPES[escape])) as refused:
        open_data(tmp_path / "a")
    assert "\n" not in str(refused.value)


def test_a_saved_data_set_of_one_split_is_checked(rows, tmp_path):
    write_dataset(tmp_path / "a", rows)
    assert "split" not in tables.table_keys(tmp_path / "a" / "train")
    of_another_suffix(tmp_path / "a")
    with pytest.raises(DamagedFileError, match=r"'data\.bin' instead of the plain name"):
        tables.table_keys(tmp_path / "a" / "train")


def test_damaged_tables_end_in_one_line(rows, tmp_path):
    clips = pa.table(rows)
    information = ({"info": {"features": []}}, {"info": {"features": {"label": []}}})
    for number, stored in enumerate([b"{", *(json.dumps(each).encode() for each in information)]):
        pq.write_table(clips.replace_schema_metadata({b"huggingface": stored}), tmp_path / f"{number}.parquet")
        with pytest.raises(DamagedFileError, match="parquet cannot be read as a table"):
            open_data(tmp_path / f"{number}.parquet")
    write_parquet(tmp_path / "binary.parquet", {**rows, "id": [b"\xff"] * len(rows["id"])})
    with pytest.raises(DamagedFileError, match="cannot be read as a table"):
        open_data(tmp_path / "binary.parquet")
    for name, label in (("train", pa.int64()), ("test", pa.int32())):
        (tmp_path / "shards").mkdir(exist_ok=True)
        write_parquet(tmp_path / f"shards/{name}.parquet", {"id": [name], "label": pa.array([1], label)})
    with pytest.raises(DamagedFileError, match="shards cannot be read as a table"):
        open_data(tmp_path / "shards")


def test_a_saved_data_set_without_splits_is_refused(tmp_path):
    pytest.importorskip("datasets", reason="the extra datasets is not installed")
    (tmp_path / "dataset_dict.json").write_text('{"splits": []}')
    with pytest.raises(InputError, match="has neither a split nor a file with rows; pass a complete copy"):
        open_data(tmp_path)


def test_the_suffix_of_a_table_may_be_upper_case(rows, content, tmp_path):
    write_parquet(tmp_path / "A.PARQUET", rows)
    same(open_data(tmp_path / "A.PARQUET"), content)


def test_links_in_a_tar_are_left_out_and_objects_refused(rows, tmp_path):
    write_tar(tmp_path / "a.tar", rows)
    with tarfile.open(tmp_path / "a.tar", "a") as tar:
        link = tarfile.TarInfo("x.audio.npy")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    assert "x" not in open_data(tmp_path / "a.tar").ids
    file = io.BytesIO()
    np.save(file, np.array([{}]), allow_pickle=True)
    with tarfile.open(tmp_path / "a.tar", "a") as tar:
        for name in ("audio.npy", "visual.npy", "cls", "split.txt"):
            add(tar, f"y.{name}", file.getvalue())
    with pytest.raises(InputError, match=r"audio\.npy of clip 'y' contains Python objects"):
        open_data(Path(tmp_path / "a.tar"))


def test_the_columns_of_parts_that_differ_are_listed(tmp_path):
    write_parquet(tmp_path / "test-0.parquet", {"id": ["a"], "label": ["x"]})
    write_parquet(tmp_path / "train-0.parquet", {"id": ["b"]})
    with pytest.raises(InputError, match="train has the columns id, but another part has id, label; store the same"):
        tables.table_keys(tmp_path)


def test_a_pipe_that_no_reader_opens_is_ignored(rows, tmp_path):
    write_parquet(tmp_path / "a.parquet", rows)
    (tmp_path / "media").mkdir()
    os.mkfifo(tmp_path / "media" / "agent.sock")
    assert open_data(tmp_path).ids == open_data(tmp_path / "a.parquet").ids


def test_a_pipe_in_a_folder_of_tables_is_refused(tmp_path):
    os.mkfifo(tmp_path / "a.parquet")
    with pytest.raises(DamagedFileError, match=r"cannot be read as a table \(a.parquet is a pipe\); pass a readable"):
        open_data(tmp_path)
