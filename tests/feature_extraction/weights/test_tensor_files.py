import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.file_content import sha256
from aadml.feature_extraction.weights.tensor_files import check_state, read_tensors, write_tensors

STATE = {"a.weight": torch.arange(6.0).reshape(2, 3), "a.bias": torch.tensor([1.5]), "count": torch.tensor(3)}


def assert_state(tensors):
    assert tensors.keys() == STATE.keys()
    assert all(torch.equal(tensors[name], tensor) for name, tensor in STATE.items())


def test_every_format_gives_back_the_same_tensors(tmp_path):
    write_tensors(tmp_path / "own.safetensors", STATE)
    torch.save(STATE, tmp_path / "new.pth")
    torch.save(STATE, tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    torch.save({"module." + name: tensor for name, tensor in STATE.items()}, tmp_path / "parallel.pt")
    np.savez(tmp_path / "numpy.npz", **{name: tensor.numpy() for name, tensor in STATE.items()})
    for file in ("own.safetensors", "new.pth", "old.pth", "parallel.pt", "numpy.npz"):
        assert_state(read_tensors(tmp_path / file))


def test_wrappers_and_what_lies_beside_the_weights_are_taken_off(tmp_path):
    numpy_state = {name: tensor.numpy() for name, tensor in STATE.items()}
    torch.save({"iteration": 5, "model": STATE, "sampler": {"indexes": np.arange(3)}}, tmp_path / "panns.pth")
    torch.save({"epoch": 1, "state_dict": numpy_state, "best": np.float64(0.5)}, tmp_path / "arrays.pth")
    assert_state(read_tensors(tmp_path / "panns.pth"))
    assert_state(read_tensors(tmp_path / "arrays.pth"))


class Harmful:
    def __reduce__(self):
        return (Path.touch, (Path("harm"),))


def test_nothing_but_tensors_is_ever_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"a": torch.ones(1), "b": Harmful()}, "harmful.pth")
    np.savez("harmful.npz", a=np.array([Harmful()], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="contains data other than tensors"):
        read_tensors(Path("harmful.pth"))
    with pytest.raises(InputError, match="contains Python objects, which are never loaded"):
        read_tensors(Path("harmful.npz"))
    assert not Path("harm").exists()


@pytest.mark.parametrize("name", ["own.safetensors", "new.pth", "numpy.npz"])
def test_a_file_cut_short_is_one_line(tmp_path, name):
    write_tensors(tmp_path / "own.safetensors", STATE)
    torch.save(STATE, tmp_path / "new.pth")
    np.savez(tmp_path / "numpy.npz", **{key: tensor.numpy() for key, tensor in STATE.items()})
    whole = (tmp_path / name).read_bytes()
    for length in (0, 1, 10, len(whole) // 2, len(whole) - 1):
        (tmp_path / name).write_bytes(whole[:length])
        with pytest.raises(InputError) as caught:
            read_tensors(tmp_path / name)
        assert "\n" not in str(caught.value)


def test_other_content_is_refused_by_what_it_is(tmp_path):
    torch.save([1, 2], tmp_path / "list.pth")
    torch.save({"epoch": 3}, tmp_path / "empty.pth")
    torch.save({}, tmp_path / "none.pth")
    torch.save({"a": torch.ones(2).to_sparse()}, tmp_path / "sparse.pth")
    for file, message in (
        ("list.pth", "contains an object of type list; pass a state dict"),
        ("empty.pth", r"contains no tensors \(keys found: epoch\)"),
        ("none.pth", r"contains no tensors \(keys found: none\)"),
        ("sparse.pth", "a is a tensor of layout torch.sparse_coo on the device cpu; save dense tensors on the CPU"),
        ("absent.pth", "is not a file"),
        (".", "is not a file"),
    ):
        with pytest.raises(InputError, match=message):
            read_tensors(tmp_path / file)


def test_what_was_converted_is_kept_and_read_the_next_time(tmp_path):
    torch.save(STATE, tmp_path / "state.pth")
    kept = tmp_path / "cache" / "kept.safetensors"
    assert_state(read_tensors(tmp_path / "state.pth", cache=kept))
    assert_state(read_tensors(kept))
    write_tensors(kept, {"marked": torch.ones(1)})
    kept.with_name("kept.safetensors.sha256").write_text(sha256(kept))
    assert read_tensors(tmp_path / "state.pth", cache=kept).keys() == {"marked"}


@pytest.mark.parametrize("name", ["kept.safetensors", "kept.safetensors.sha256"])
@pytest.mark.parametrize("harm", ["a flipped bit", "no file"])
def test_a_converted_copy_of_another_checksum_is_converted_again(tmp_path, name, harm):
    torch.save(STATE, tmp_path / "state.pth")
    read_tensors(tmp_path / "state.pth", cache=tmp_path / "kept.safetensors")
    before, place = {path: path.read_bytes() for path in tmp_path.iterdir()}, tmp_path / name
    if harm == "no file":
        place.unlink()
    else:
        place.write_bytes(before[place][:-1] + bytes([before[place][-1] ^ 1]))
    assert_state(read_tensors(tmp_path / "state.pth", cache=tmp_path / "kept.safetensors"))
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_an_unchecked_copy_is_read_if_it_cannot_be_replaced(tmp_path, monkeypatch):
    torch.save(STATE, tmp_path / "state.pth")
    kept = tmp_path / "cache" / "kept.safetensors"
    write_tensors(kept, {"marked": torch.ones(1)})
    monkeypatch.setattr(os, "access", lambda path, mode: path != kept.parent)
    assert read_tensors(tmp_path / "state.pth", cache=kept).keys() == {"marked"}
    monkeypatch.undo()
    assert_state(read_tensors(tmp_path / "state.pth", cache=kept))


def test_checkpoints_are_tensors_too(tmp_path):
    folder = Path(__file__).with_name("checkpoints")
    tensors = read_tensors(folder / "version1.ckpt")
    assert torch.equal(tensors["net/conv1/weights"], torch.arange(24.0).reshape(2, 3, 4) - 5)


def test_the_checksum_is_of_the_content_wherever_it_lies(tmp_path):
    (tmp_path / "file").write_bytes(b"abc")
    assert sha256(tmp_path / "file") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    folder = tmp_path / "model" / "variables"
    folder.mkdir(parents=True)
    (folder / "x").write_bytes(b"1")
    before = sha256(tmp_path / "model")
    shutil.copytree(tmp_path / "model", tmp_path / "elsewhere")
    assert sha256(tmp_path / "elsewhere") == before
    (folder / "x").write_bytes(b"2")
    assert sha256(tmp_path / "model") != before


def test_a_converted_copy_that_is_damaged_or_cannot_be_kept_costs_its_conversion(tmp_path, caplog):
    torch.save(STATE, tmp_path / "state.pth")
    kept = tmp_path / "kept.safetensors"
    kept.write_bytes(b"cut short")
    assert_state(read_tensors(tmp_path / "state.pth", cache=kept))
    assert_state(read_tensors(kept))
    (tmp_path / "file").touch()
    assert_state(read_tensors(tmp_path / "state.pth", cache=tmp_path / "file" / "kept.safetensors"))
    assert "is not cached" in caplog.text


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({}, r"Toy weights: tensor a is missing \(mismatched tensors: 2; tensors in the file: 0\); pass a weight file"),
        ({"a": torch.zeros(2), "b": torch.zeros(1), "c": torch.zeros(1)}, "c is not a tensor of this network"),
        ({"a": torch.zeros(3), "b": torch.zeros(1)}, r"a has shape \(3,\) instead of \(2,\)"),
    ],
)
def test_tensors_of_another_network_are_an_error_with_the_first_of_them(state, message):
    expected = {"a": torch.zeros(2), "b": torch.zeros(1)}
    check_state(expected, expected, "Toy")
    with pytest.raises(InputError, match=message):
        check_state(state, expected, "Toy")
