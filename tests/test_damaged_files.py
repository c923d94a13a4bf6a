"""Every reader of arrays: whichever byte is wrong, it reads something or says in one line that it cannot."""

import gzip
import io
import tarfile
import warnings
import zipfile

import h5py
import numpy as np
import pytest
import safetensors.torch
import torch

from aadml.data.reading import open_data
from aadml.feature_extraction.foreign.hdf5 import hdf5_arrays, hdf5_keys
from aadml.feature_extraction.foreign.numpy_files import npz_arrays, npz_keys
from aadml.feature_extraction.frontends.whitening import youtube8m_whitening
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.weights import tensor_files
from aadml.feature_extraction.weights.tensor_files import read_tensors
from aadml.retrieval.embeddings_file import read_embeddings

ARRAYS = {"audio": np.arange(8.0).reshape(4, 2), "visual": np.ones((4, 2)), "label": np.arange(4)}
WHITENING = {"mean": np.zeros(2), "eigenvals": np.ones(2), "eigenvecs": np.eye(2)}


def packed(path):
    np.savez_compressed(path, **ARRAYS)


def plain(path):
    np.savez(path, **ARRAYS)


def weights(path):
    torch.save({"a": torch.ones(2)}, path)


def safe_weights(path):
    safetensors.torch.save_file({"a": torch.ones(2)}, path)


def matrices(path):
    with gzip.GzipFile(path, "wb", mtime=0) as zipped, tarfile.open(fileobj=zipped, mode="w") as archive:
        for name, values in WHITENING.items():
            content = io.BytesIO()
            np.save(content, values)
            member = tarfile.TarInfo(f"{name}.npy")
            member.size = content.tell()
            content.seek(0)
            archive.addfile(member, content)


def whitening(path):
    return youtube8m_whitening(path, 2)


def views(path):
    np.savez(path, **{f"{name}_{part}": np.ones((2, 2)) for name in "xy" for part in ("train", "test")},
             label_train=np.arange(2), label_test=np.arange(2))  # fmt: skip


READERS = {
    "data": ("f.npz", views, lambda path: open_data(path, audio="x", visual="y")),
    "npz keys": ("f.npz", packed, npz_keys),
    "npz arrays": ("f.npz", packed, npz_arrays),
    "embeddings": ("f.npz", packed, read_embeddings),
    "weights in npz": ("f.npz", packed, read_tensors),
    "weights of torch": ("f.pth", weights, read_tensors),
    "weights in safetensors": ("f.safetensors", safe_weights, read_tensors),
    "matrices": ("f.tgz", matrices, whitening),
}


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_a_wrong_byte_anywhere_is_one_line_or_another_number(tmp_path, reader):
    name, write, read = READERS[reader]
    path = tmp_path / name
    write(path)
    read(path)
    whole, messages = path.read_bytes(), []
    every = reader in ("npz arrays", "matrices")  # the others stand on the same readers
    for at in range(0, len(whole), 1 if every else 5):
        for flipped in (0x01, 0xFF) if every else (0xFF,):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ flipped]) + whole[at + 1 :])
            with warnings.catch_warnings(action="ignore"):  # a wrong number may be a wrong type
                try:
                    read(path)
                except InputError as error:
                    messages.append(str(error))
    assert messages
    assert not [message for message in messages if "\n" in message]


def test_a_wrong_byte_in_an_array_of_a_folder_is_told_with_its_file(tmp_path):
    for part in ("vgg", "inception", "classes", "folds"):
        (tmp_path / part).mkdir()
    for part in ("vgg", "inception"):
        np.save(tmp_path / part / "a.npy", np.zeros((2, 3), np.uint8))
    np.save(tmp_path / "classes" / "a.npy", np.int64(1))
    for fold in (1, 2):
        (tmp_path / "folds" / f"fold{fold}.txt").write_text("a\n" if fold == 1 else "")
    path = tmp_path / "vgg" / "a.npy"
    whole, refused = path.read_bytes(), 0
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            open_data(tmp_path)
        except InputError as error:
            refused += "vgg/a.npy" in str(error)
    assert refused > 40  # the header; a wrong byte of the array is another number


def failing(*given, **options):
    raise OSError(5, "Input/output error")


FAILING = {
    "npz keys": ("f.npz", plain, npz_keys, (zipfile, "ZipFile")),
    "npz arrays": ("f.npz", plain, npz_arrays, (zipfile, "ZipFile")),
    "embeddings": ("f.npz", plain, read_embeddings, (zipfile, "ZipFile")),
    "weights in npz": ("f.npz", plain, read_tensors, (zipfile, "ZipFile")),
    "weights of torch": ("f.pth", weights, read_tensors, (torch, "load")),
    "weights in safetensors": ("f.safetensors", safe_weights, read_tensors, (tensor_files, "load_file")),
    "HDF5 keys": ("f.h5", lambda path: h5py.File(path, "w").close(), hdf5_keys, (h5py, "File")),
    "HDF5 arrays": ("f.h5", lambda path: h5py.File(path, "w").close(), lambda p: hdf5_arrays(p, ()), (h5py, "File")),
    "matrices": ("f.tgz", matrices, whitening, (tarfile, "open")),
}


@pytest.mark.usefixtures("looks_in_processes")
@pytest.mark.parametrize("reader", FAILING)
def test_a_disk_that_fails_is_one_line_too(tmp_path, monkeypatch, reader):
    name, write, read, (module, function) = FAILING[reader]
    write(tmp_path / name)
    monkeypatch.setattr(module, function, failing)
    with pytest.raises(InputError, match=rf"{name}.*Input/output error"):
        read(tmp_path / name)
