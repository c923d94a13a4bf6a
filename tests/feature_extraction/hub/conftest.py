from pathlib import Path

import pytest

from tests.feature_extraction.hub import tiny


@pytest.fixture(scope="session")
def network(tmp_path_factory):
    """Give a function that writes a tiny network of a family, once, and returns its folder."""
    folder = tmp_path_factory.mktemp("networks")

    def written(name: str) -> Path:
        return tiny.written(name, folder)

    return written


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory):
    """Keep the register of folders, and the hub's cache, away from those of this machine."""
    place = tmp_path_factory.getbasetemp() / "cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AADML_CACHE", str(place))
        patch.setenv("HF_HUB_OFFLINE", "1")
        yield place
