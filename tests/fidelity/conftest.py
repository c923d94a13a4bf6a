import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # `certificates` is a package of these tests alone


@pytest.fixture(scope="session")
def references(shared_data):
    """The folder of what released code made of given numbers."""
    folder = shared_data / "references"
    if not folder.is_dir():
        pytest.skip("the reference tensors are not here")
    return folder
