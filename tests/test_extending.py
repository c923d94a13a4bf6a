"""The examples of docs/extending.md run as written."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.contracts import expected
from aadml.feature_extraction.ground.import_paths import imported

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
SECTIONS = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
MODULES = dict(re.findall(r"```python\n# (my_\w+\.py)\n(.*?)```", PAGE, flags=re.DOTALL))


@pytest.fixture
def folder(tmp_path):
    """Folder with a feature file and all modules of the page."""
    features = synthetic(classes=3, train=60, valid=15, test=30, dimensions=(6, 8), difficulty=0.2)
    write_features(tmp_path / "features.h5", features)
    for name, text in MODULES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("section", SECTIONS, ids=[section.split("\n")[0] for section in SECTIONS])
def test_an_example_runs(folder, section):
    (commands,) = re.findall(r"```sh\n(.*?)```", section, flags=re.DOTALL)
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}",
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        ["bash", "-e", "-c", commands], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_examples_are_short():
    assert (len(MODULES), len(SECTIONS)) == (8, 7)  # a layout and a data set are in one section
    assert all(len(text.splitlines()) <= 40 for text in MODULES.values())


def test_the_table_has_the_signatures_of_the_contracts():
    rows = re.findall(r"^\| [\w ]+ \| `(aadml[\w.]+)` \| (.*?) \|$", PAGE, flags=re.MULTILINE)
    assert len(rows) == 11
    for place, signature in rows[:-2]:  # the others are constants
        arguments = expected(imported(":".join(place.rsplit(".", 1)))).split(" -> ")[0]
        assert signature.lstrip("`").startswith(arguments), place
