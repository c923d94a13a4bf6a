import numpy as np
import pytest

from aadml.data.sources.array_cache import ArrayCache
from aadml.feature_extraction.media import decoding


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


def test_an_array_of_other_decoders_is_not_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AADML_CACHE", str(tmp_path))
    cache, versions = ArrayCache(1 << 20), decoding.decoder_versions()
    cache.add("a", np.arange(3.0))
    assert versions.keys() >= {"av", "opencv", "libavcodec"}
    for library in versions:
        with monkeypatch.context() as patch:
            patch.setattr(decoding, "decoder_versions", lambda name=library: {**versions, name: "0"})
            assert cache.get("a") is None
    assert cache.get("a") is not None


def test_threads_that_read_the_cache_do_not_share_the_parser_of_python(tmp_path, monkeypatch):
    """Python 3.11 fails now and then where two threads parse literals (python/cpython#106905), as npy headers are."""
    monkeypatch.setenv("AADML_CACHE", str(tmp_path))
    values = np.arange(6, dtype=np.uint8).reshape(3, 2).T
    ArrayCache(1 << 20).add("a", values)
    monkeypatch.setattr("ast.parse", lambda *_, **__: pytest.fail("parsed"))
    assert np.array_equal(ArrayCache(1 << 20).get("a"), values)


def test_the_cache_stays_within_its_budget_and_warns_if_it_cannot_be_written(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("AADML_CACHE", str(tmp_path))
    ArrayCache(1 << 20).add("a", np.arange(3.0))
    (path,) = (tmp_path / "decoded").iterdir()
    size = path.stat().st_size
    for budget, kept in ((2 * size - 1, False), (2 * size, True)):
        ArrayCache(budget).add("b", np.arange(3.0))
        assert (ArrayCache(0).get("b") is not None) == kept
    cache = ArrayCache(4 * size - 1)
    cache.add("c", np.arange(3.0))
    cache.add("d", np.arange(3.0))
    assert cache.get("c") is not None
    assert cache.get("d") is None
    monkeypatch.setenv("AADML_CACHE", "/proc/nowhere")
    ArrayCache(1 << 20).add("e", np.arange(3.0))
    assert "decoded media are not cached (" in caplog.text
    assert "set AADML_CACHE to a folder that can be written" in caplog.text


def test_temporary_files_of_other_processes_do_not_count(tmp_path, monkeypatch):
    monkeypatch.setenv("AADML_CACHE", str(tmp_path))
    ArrayCache(10**6).add("a", np.arange(3.0))
    folder = next(tmp_path.rglob("decoded"))
    (folder / ".0.12345678.partial.safetensors").symlink_to(folder / "renamed meanwhile")
    ArrayCache(10**6).add("b", np.arange(3.0))
    assert ArrayCache(10**6).get("b") is not None
