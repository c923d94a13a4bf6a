import subprocess
import sys

from aadml.data.datasets import DATASETS
from aadml.data.layouts import LAYOUTS
from aadml.data.manifests import MANIFESTS


def test_every_layout_and_every_data_set_is_listed_once_with_a_line():
    assert set(DATASETS) == {"feature-file", "sample", *LAYOUTS, *MANIFESTS}
    assert all(entry.description for entry in DATASETS.listed())


def test_sample_clips_do_not_wait_for_torch():
    code = "import sys; from aadml.data.sample_clips import SampleClips; print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
