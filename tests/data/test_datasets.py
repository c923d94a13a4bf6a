import importlib
import subprocess
import sys

import pytest

import aadml.data
from aadml.data import DATASETS
from aadml.data.layouts import LAYOUTS
from aadml.data.manifests import MANIFESTS


def test_every_layout_and_every_data_set_is_listed_once_with_a_line():
    assert set(DATASETS) == {"feature-file", "sample", *LAYOUTS, *MANIFESTS}
    assert all(entry.description for entry in DATASETS.listed())


@pytest.mark.parametrize("name", aadml.data.__all__)
def test_every_public_name_is_there(name):
    assert getattr(importlib.import_module("aadml.data"), name) is not None


def test_an_unknown_name_is_no_attribute():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        aadml.data.nothing  # noqa: B018


def test_sample_clips_do_not_wait_for_torch():
    code = "import sys; from aadml.data import SampleClips; print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
