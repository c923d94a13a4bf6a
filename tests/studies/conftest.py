from types import SimpleNamespace

import pytest

from aadml.studies import sweep_parts
from tests.small_training import base, features

__all__ = ["base", "features"]


@pytest.fixture
def of_ave(monkeypatch):
    """The environment of runs that are planted: on a file of AVE, with a note."""
    data = SimpleNamespace(name="folder/ave.h5", notes=["a note on the data."])
    environment = SimpleNamespace(data=data, clips={"train": 9, "test": 3})
    monkeypatch.setattr(sweep_parts, "read_environment", lambda folder: environment)
