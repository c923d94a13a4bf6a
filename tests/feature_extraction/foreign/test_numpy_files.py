"""NumPy's and PyTorch's files from strangers, and manifests: one line, nothing allocated that is not there."""

import io
import json
import os
import tarfile
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aadml.data.reading import open_data
from aadml.feature_extraction.foreign.numpy_files import npy_array, npz_arrays, npz_keys, refuse_zip_bomb
from aadml.feature_extraction.foreign.tables import table_arrays
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.manifest import read_manifest
from aadml.feature_extraction.weights.tensor_files import read_tensors
from aadml.retrieval.embeddings_file import read_embeddings

ARRAYS = {
    "audio": np.arange(12.0).reshape(4, 3),
    "turned": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "label": np.array([0, 1, 1, 0]),
    "name": np.array(["a", "bc"]),
    "none": np.zeros((0, 3)),
    "scalar": np.float64(3),
}


def npy(shape, kind="<f8", content=b""):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": shape})
    return file.getvalue() + content


def archive(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in members:
            file.writestr(name, content)
    return path


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_gives_back_what_numpy_wrote(tmp_path, save):
    save(tmp_path / "a.npz", **ARRAYS)
    found = npz_arrays(tmp_path / "a.npz")
    assert found.keys() == ARRAYS.keys()
    for key, array in ARRAYS.items():
        np.testing.assert_array_equal(found[key], array)
        assert found[key].dtype == np.asarray(array).dtype
        np.save(tmp_path / "a.npy", array)
        np.testing.assert_array_equal(npy_array(tmp_path / "a.npy"), array)
    assert npz_keys(tmp_path / "a.npz") == tuple(ARRAYS)
    assert npz_arrays(tmp_path / "a.npz", ("label", "absent")).keys() == {"label"}


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([("a.npy", npy((10**12,)))], "it declares float64 (1000000000000,), but stores 0 bytes"),
        ([("a.npy", npy((4,), content=bytes(24)))], "it declares float64 (4,), but stores 24 bytes"),
        ([("a.npy", npy((-4, -1), content=bytes(32)))], "it declares float64 (-4, -1)"),
        ([("a.npy", b"\x93NUMPY\x01\x00\x10\x00" + b"(" * 16)], "cannot be read as npz"),
        ([("a.npy", b"")], "cannot be read as npz"),
        ([("a.npy", npy((1,), content=bytes(8)))] * 2, "it has 2 members with 1 names"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_what_was_made_to_harm_is_answered_by_one_line(tmp_path, members, message):
    path = archive(tmp_path / "a.npz", members)
    with pytest.raises(InputError) as caught:
        npz_arrays(path)
    assert str(caught.value).startswith(f"{path} cannot be read as npz (")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_array_of_objects_is_named_with_its_remedy(tmp_path):
    labels = np.array(["dog", "cat"], dtype=object)  # as pandas holds text
    np.savez(tmp_path / "a.npz", audio=np.ones((2, 3)), label=labels)
    np.save(tmp_path / "a.npy", labels)
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        tar.add(tmp_path / "a.npy", "7.label.npy")
    for file, read, subject in (
        ("a.npz", npz_arrays, ": array 'label'"),
        ("a.npy", npy_array, ""),
        ("a.tar", table_arrays, ": label.npy of clip '7'"),
    ):
        with pytest.raises(InputError) as caught:
            read(tmp_path / file, *([["label"]] if read is table_arrays else []))
        assert str(caught.value) == (
            f"{tmp_path / file}{subject} contains Python objects, which are never loaded; save text or numbers, for "
            "example with values.astype(str), or with column.to_numpy(str) in pandas"
        )
    assert npz_arrays(tmp_path / "a.npz", ["audio"]).keys() == {"audio"}


@pytest.mark.parametrize("read", [npz_arrays, npz_keys, read_tensors, open_data, read_embeddings])
def test_a_bomb_is_not_unpacked(tmp_path, read):
    path = archive(tmp_path / "a.npz", [("label.npy", bytes(2**27))], zipfile.ZIP_DEFLATED)
    with pytest.raises(InputError, match=r"it declares 134,217,728 bytes, but stores 1[0-9,]+"):
        read(path)


def test_tensors_that_are_not_there_are_not_made(tmp_path):
    torch.save({"a": torch.zeros(1).expand(10**12)}, tmp_path / "a.pth")
    with pytest.raises(
        InputError, match=r"a has shape \(1000000000000,\), which needs more data than the file contains"
    ):
        read_tensors(tmp_path / "a.pth")
    np.savez(tmp_path / "a.npz", a=np.array(["text"]))
    with pytest.raises(InputError, match=r"a has type <U4, which PyTorch does not read"):
        read_tensors(tmp_path / "a.npz")


@pytest.mark.parametrize(
    "header",
    [
        {"a": {"dtype": "F32", "shape": [10**12], "data_offsets": [0, 16]}},
        {"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 10**12]}},
        {"a": {"dtype": "F32", "shape": [-4], "data_offsets": [0, 16]}},
        {"a": {"dtype": "F32", "shape": [2**63, 2], "data_offsets": [0, 16]}},
        {"a": {"dtype": "Q7", "shape": [4], "data_offsets": [0, 16]}},
        {"a": 3},
        [],
    ],
)
def test_a_safetensors_file_that_lies_is_refused(tmp_path, header):
    text = json.dumps(header).encode()
    (tmp_path / "a.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(16))
    with pytest.raises(InputError, match="is not a complete safetensors file"):
        read_tensors(tmp_path / "a.safetensors")


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 3000), st.binary(min_size=1, max_size=40))
def test_damage_anywhere_is_answered(tmp_path, start, noise):
    whole = tmp_path / "whole.npz"
    if not whole.exists():
        np.savez_compressed(whole, **ARRAYS)
    content = bytearray(whole.read_bytes())
    start %= len(content)
    content[start : start + len(noise)] = noise
    (tmp_path / "a.npz").write_bytes(content)
    try:
        found = npz_arrays(tmp_path / "a.npz")
    except InputError as error:
        found = str(error)
    assert isinstance(found, dict) or (found.startswith(str(tmp_path / "a.npz")) and "\n" not in found)


def test_what_is_no_file_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    for path in (tmp_path / "pipe.npz", tmp_path / "none.npz", f"{tmp_path}/a\0b"):
        for read in (npz_arrays, npy_array, open_data, read_embeddings, read_manifest):
            with pytest.raises(
                InputError, match=r"does not exist|contains a zero byte|is a pipe; pass a|is a device or a pipe"
            ):
                read(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a,b\0c.mp4,x,train", "a path or text of the clip contains a zero byte"),
        ("a\0,b.mp4,x,train", "the id contains a zero byte"),
    ],
)
def test_a_manifest_with_zero_bytes_is_refused(tmp_path, line, message):
    (tmp_path / "m.csv").write_text(f"id,media,label,split\n{line}\n")
    with pytest.raises(InputError, match=message):
        read_manifest(tmp_path / "m.csv")


def test_labels_of_many_digits_are_names(tmp_path):
    number = "1" * 5000
    (tmp_path / "m.csv").write_text(f"id,media,label,split\na,a.mp4,{number},train\nb,b.mp4,2,test\n")
    assert read_manifest(tmp_path / "m.csv").class_names == (number, "2")


@pytest.mark.parametrize(
    ("name", "message"),
    [("a.npy", "a.npy does not exist; check the path"), ("a\0b.npy", r"a\\x00b.npy' contains a zero byte")],
)
def test_an_absent_file_is_named_without_its_zero_bytes(name, message):
    with pytest.raises(InputError, match=message):
        npy_array(name)


def test_a_folder_is_not_a_file(tmp_path):
    with pytest.raises(InputError, match="is a folder; pass an npy or npz file"):
        npy_array(tmp_path)


def test_an_archive_may_declare_200_times_its_size_in_ten_thousand_members():
    def problem(count=1, stored=1, declared=1, size=20_000, names=None):
        members = [
            SimpleNamespace(filename=str(n % (names or count)), compress_size=stored, file_size=declared)
            for n in range(count)
        ]
        try:
            refuse_zip_bomb(SimpleNamespace(infolist=lambda: members), size)
        except ValueError as error:
            return str(error)
        return None

    assert problem(10_000) is problem(stored=20_000) is problem(declared=1 << 26) is None
    assert problem(declared=200_000_000, size=1_000_000) is None
    assert problem(10_001) == "it has 10,001 members with 10,001 names"
    assert problem(2, names=1) == "it has 2 members with 1 names"
    assert problem(stored=20_001) == "its members overlap"
    assert problem(declared=(1 << 26) + 1) == "it declares 67,108,865 bytes, but stores 20,000"
    assert problem(declared=200_000_001, size=1_000_000) == "it declares 200,000,001 bytes, but stores 1,000,000"
