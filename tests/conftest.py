import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("aadml", deadline=None)
settings.load_profile("aadml")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real development data; tests that use it are skipped where it is absent."""
    folder = Path(os.environ.get("AADML_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("the development data folder is not here (set AADML_SHARED_DATA)")
    return folder
