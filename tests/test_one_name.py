"""One import name: a folder `feature_extraction` of a user's own stands in nobody's way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features

ROOT = Path(__file__).parents[1]
SMALL = ["--set", "training.epochs=1", "--set", "network.hidden=[8]", "--set", "training.batch=20"]
LAUNCH = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "1", "--master-port", "0", "--standalone"]


@pytest.fixture
def clash(tmp_path):
    """A folder with features and a package `feature_extraction` that must never be imported."""
    (tmp_path / "feature_extraction").mkdir()
    (tmp_path / "feature_extraction" / "__init__.py").write_text(
        "raise RuntimeError('the user\\'s own was imported')\n"
    )
    write_features(
        tmp_path / "f.h5", synthetic(classes=3, train=60, valid=15, test=30, dimensions=(6, 8), difficulty=0.2)
    )
    return tmp_path


def started(folder, *words):
    return subprocess.run(
        [*map(str, words)], cwd=folder, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


WAYS = {
    "module": [sys.executable, "-m", "aadml", "inspect", "f.h5"],
    "command": [Path(sys.executable).parent / "aadml", "inspect", "f.h5"],
    "statement": [sys.executable, "-c", "import aadml; print(len(aadml.read('f.h5').train))"],
    "script": [sys.executable, "mine.py"],
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_starting_works_beside_a_foreign_package_of_that_name(clash, way):
    (clash / "mine.py").write_text("import aadml\nprint(len(aadml.read('f.h5').train))\n")
    done = started(clash, *WAYS[way])
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("launcher", [[sys.executable], LAUNCH], ids=["python", "torchrun"])
def test_trainings_and_their_workers_start_beside_it(clash, launcher):
    done = started(clash, *launcher, "-m", "aadml", "train", "--data", "f.h5", *SMALL)
    assert done.returncode == 0, done.stderr
    over = ["--over", "loss.margin=0.5,1.0", "--seeds", "1", "--workers", "2", *SMALL, "-o", "out"]
    done = started(clash, sys.executable, "-m", "aadml", "ablate", "--data", "f.h5", *over)
    assert done.returncode == 0, done.stderr
