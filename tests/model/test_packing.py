"""Tensors and facts are packed into equal bytes, and incomplete bytes are refused."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save

from aadml.feature_extraction.ground.errors import DamagedFileError
from aadml.methods.training.session import Checkpoint
from aadml.model.packing import pack_tensors, unpack_tensors


def test_equal_content_has_equal_bytes_and_comes_back():
    tensors = {"b": torch.arange(6.0).reshape(2, 3).T, "a": torch.zeros(0, 2)}
    data = pack_tensors(Checkpoint(tensors, {"epoch": 3, "label": "x"}))
    assert data == pack_tensors(Checkpoint(dict(reversed(tensors.items())), {"label": "x", "epoch": 3}))
    unpacked = unpack_tensors(data, Path("weights"))
    assert unpacked.facts == {"epoch": 3, "label": "x"}
    assert unpacked.tensors.keys() == tensors.keys()
    assert all(torch.equal(unpacked.tensors[name], tensor) for name, tensor in tensors.items())


@pytest.mark.parametrize("data", [
    b"", b"no safetensors", pack_tensors(Checkpoint({"a": torch.ones(3)}))[:-1],
    (99_999).to_bytes(8, "little") + b"[" * 99_999, save({"a": torch.ones(3)}, {"facts": "[" * 99_999}),
], ids=["empty", "other", "cut", "deep header", "deep facts"])  # fmt: skip
def test_incomplete_bytes_are_refused_with_their_place(data):
    with pytest.raises(DamagedFileError, match="weights is not a complete safetensors file"):
        unpack_tensors(data, Path("weights"))
