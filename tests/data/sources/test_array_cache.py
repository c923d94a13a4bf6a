import numpy as np
import pytest

from aadml.data.sources.array_cache import ArrayCache


@pytest.mark.parametrize("content", [b"", b"\xff" * 40, b"no tensors", b"\x02" + bytes(7) + b"{}"])
def test_a_damaged_array_is_not_in_the_cache(content, tmp_path, monkeypatch):
    monkeypatch.setenv("AADML_CACHE", str(tmp_path))
    cache = ArrayCache(1 << 20)
    cache.add("a", np.arange(3.0))
    assert cache.get("a").tolist() == [0, 1, 2]
    (path,) = (tmp_path / "decoded").iterdir()
    path.write_bytes(content)
    assert cache.get("a") is None
    path.unlink()
    assert cache.get("a") is None


def test_threads_that_read_the_cache_do_not_share_the_parser_of_python(tmp_path, monkeypatch):
    """Python 3.11 fails now and then where two threads parse literals (python/cpython#106905), as npy headers are."""
    monkeypatch.setenv("AADML_CACHE", str(tmp_path))
    values = np.arange(6, dtype=np.uint8).reshape(3, 2).T
    ArrayCache(1 << 20).add("a", values)
    monkeypatch.setattr("ast.parse", lambda *_, **__: pytest.fail("parsed"))
    assert np.array_equal(ArrayCache(1 << 20).get("a"), values)
