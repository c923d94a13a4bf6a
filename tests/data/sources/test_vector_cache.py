import pytest
import torch
from safetensors.torch import save

from aadml.data.sources.vector_cache import VectorCache, open_vector_cache


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("AADML_CACHE", str(tmp_path))
    return open_vector_cache("a network")


def key(number):
    return bytes([number]) * 32


def test_vectors_are_read_to_the_last_bit_and_added_to(store):
    first, second = torch.randn(5), torch.randn(5)
    assert store.read() == {}
    store.add({key(1): first})
    store.add({key(2): second})
    vectors = store.read()
    assert vectors.keys() == {key(1), key(2)}
    assert torch.equal(vectors[key(1)], first)
    assert torch.equal(vectors[key(2)], second)


def test_another_network_has_another_file(store):
    assert open_vector_cache("another network").path != store.path
    assert open_vector_cache("a network").path == store.path


ONE_KEY_FOR_TWO = save({"keys": torch.zeros((1, 32), dtype=torch.uint8), "vectors": torch.ones(2, 3)})


@pytest.mark.parametrize("content", [b"", b"no safetensors", bytes(300), ONE_KEY_FOR_TWO])
def test_vectors_of_a_damaged_file_are_computed_again(store, content, caplog):
    store.add({key(1): torch.ones(2)})
    store.path.write_bytes(content)
    assert store.read() == {}
    assert "its vectors are computed again" in caplog.text
    store.add({key(3): torch.zeros(2)})
    assert store.read().keys() == {key(3)}


def test_a_place_that_cannot_be_written_costs_nothing_but_time(tmp_path, caplog):
    (tmp_path / "file").write_text("in the way")
    VectorCache(tmp_path / "file" / "vectors.safetensors").add({key(1): torch.ones(2)})
    assert "are not cached" in caplog.text
