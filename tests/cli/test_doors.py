"""Losses, methods, proxies and the rest from outside: named as module:name, or brought by an installed package."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from aadml.data.sample_clips import sample_data

SMALL = ["--set", "network.hidden=[8]", "--set", "training.batch=20", "--set", "training.learning_rate=0.01"]

OWN = '''
"""A user's own loss and what else there is, beside the data."""

import torch

from aadml.comparison import Comparison, Terms
from aadml.methods.untrained.random_vectors import random_vectors
from aadml.protocols.protocol import Protocol
from aadml.proxies.identity import Identity
from aadml.selections.all_pairs import everything


def halfway(comparison: Comparison, *, margin: float = 0.5) -> Terms:
    """Hinge of the cosines of the farthest positive and the nearest negative."""
    cosine = comparison.cosine
    positive = cosine.masked_fill(~comparison.positives, torch.inf).amin(1)
    negative = cosine.masked_fill(~comparison.negatives, -torch.inf).amax(1)
    possible = comparison.positives.any(1) & comparison.negatives.any(1)
    cost = torch.where(possible, negative - positive + margin, 0.0).clamp_min(0)
    return Terms(cost, (cost > 0).long(), possible.long())


def drawn(context, settings, *, dimension: int = 4):
    """Draw vectors."""
    return random_vectors(context, settings, dimension=dimension)


def widely(comparison, generator):
    """Keep everything."""
    return everything(comparison, generator)


class Unchanged(Identity):
    """Be oneself."""


DROP_FIRST = Protocol()
"""Nothing but a name."""

broken = 3
'''

EXTRACTOR = '''
import numpy as np

from aadml.feature_extraction.backbones import Extractor
from aadml.feature_extraction.media import Sound


def loudness(sound):
    """(samples,) -> (1, 2)"""
    return np.array([[np.abs(sound).mean(), sound.std()]], dtype=np.float32)


def loud(*, rate: int = 8000):
    """Say how loud a clip is."""
    return Extractor("own-loud", "audio", 2, Sound(rate), {"rate": rate}, loudness)
'''


@pytest.fixture
def away(tmp_path, monkeypatch):
    """Work in a folder that is not that of the data, where nothing from outside was imported yet."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "away").mkdir()
    monkeypatch.chdir(tmp_path / "away")
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("own_")]:
        del sys.modules[name]


@pytest.fixture
def beside(away, features):
    (features.parent / "own_parts.py").write_text(OWN)
    return features


@pytest.mark.slow
def test_a_loss_in_a_file_beside_the_data_runs_in_worker_processes(aadml, beside, tmp_path):
    out = tmp_path / "out"
    code, _, err = aadml(
        "ablate", "--data", beside, "--over", "loss=own_parts:halfway,aa-own_parts:halfway,triplet", "--seeds", 1,
        "--max-epochs", 2, "--workers", 2, *SMALL, "-o", out,
    )  # fmt: skip
    assert code == 0, err
    rows = (out / "results.csv").read_text()
    assert "own_parts:halfway" in rows
    assert "aa-own_parts:halfway" in rows
    assert len(list((out / "runs").glob("*/evaluation.json"))) == 3


@pytest.mark.slow
def test_a_run_with_a_loss_from_outside_is_read_by_another_process_elsewhere(aadml, beside, tmp_path):
    setting = ["--loss", "own_parts:halfway", "--set", "loss.margin=0.4", "--epochs", 1, "--runs", tmp_path / "runs"]
    code, out, err = aadml("train", "--data", beside, *setting, *SMALL)
    assert code == 0, err
    run = out.strip().splitlines()[-1]
    (tmp_path / "elsewhere").mkdir()
    again = subprocess.run(
        [sys.executable, "-c", "from aadml.cli import main; main()", "evaluate", run, "--json"],
        capture_output=True, text=True, cwd=tmp_path / "elsewhere", env=environment(),
    )  # fmt: skip
    assert again.returncode == 0, again.stderr
    stored = json.loads((Path(run) / "evaluation.json").read_text())
    assert json.loads(again.stdout)["map_mean"] == pytest.approx(stored["map_mean"])


@pytest.mark.parametrize(
    "setting",
    [
        ["--method", "own_parts:drawn", "--set", "method.dimension=3"],
        ["--set", "selection=own_parts:widely", *SMALL],
        ["--set", "proxy=own_parts:Unchanged", *SMALL],
        ["--set", "label_loss=aadml.losses.label_losses:ce", *SMALL],
    ],
    ids=["method", "selection", "proxy", "label-loss"],
)
def test_other_parts_from_outside_train(aadml, beside, tmp_path, setting):
    code, _, err = aadml("train", "--data", beside, *setting, "--epochs", 1, "--runs", tmp_path / "runs")
    assert code == 0, err


def test_a_method_and_a_loss_from_outside_stand_in_a_comparison(aadml, beside, tmp_path):
    code, _, err = aadml(
        "compare", "--data", beside, "--methods", "own_parts:drawn", "--losses", "own_parts:halfway", "--no-controls",
        "--seeds", 1, "--max-epochs", 1, "--set", "network.hidden=[8]", "--workers", 0, "-o", tmp_path / "out",
    )  # fmt: skip
    assert code == 0, err
    assert "own_parts:halfway" in (tmp_path / "out" / "losses.csv").read_text()


def test_a_protocol_from_outside_is_named_with_the_numbers(aadml, beside, tmp_path):
    code, out, err = aadml("train", "--data", beside, "--epochs", 1, "--runs", tmp_path / "runs", *SMALL)
    assert code == 0, err
    run = out.strip().splitlines()[-1]
    code, out, err = aadml("evaluate", run, "--protocol", "own_parts:DROP_FIRST", "--json")
    assert code == 0, err
    assert json.loads(out)["protocol"] == "own_parts:DROP_FIRST"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (["--loss", "own_absent:loss"], "loss own_absent:loss: there is no module 'own_absent'"),
        (["--loss", "own_parts:absent"], "does not define 'absent', but defines "),
        (["--method", "own_raises:method"], "method own_raises:method: the module cannot be imported (ValueError: no"),
        (["--set", "proxy.name=own_parts:absent"], "proxy own_parts:absent: "),
        (["--set", "selection=own_parts:absent"], "selection own_parts:absent: "),
        (["--loss", "own_parts:halfway", "--set", "loss.margn=1"], "did you mean 'margin'?"),
    ],
)
def test_a_wrong_door_ends_in_one_line_and_leaves_nothing(aadml, beside, tmp_path, setting, message):
    (beside.parent / "own_raises.py").write_text("raise ValueError('no')\n")
    code, _, err = aadml("train", "--data", beside, *setting, *SMALL, "--runs", tmp_path / "runs")
    assert code == 2
    assert message in err
    assert "\n" not in err.strip()
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_an_extractor_beside_the_manifest_works_in_decoding_processes(aadml, away, tmp_path):
    clips = tmp_path / "clips"
    sample_data(clips, clips=10, seconds=1.0, workers=1)
    (clips / "own_sound.py").write_text(EXTRACTOR)
    job = ["extract", clips / "manifest.csv", "-o", tmp_path / "loud.h5", "--visual", "none", "--workers", 2]
    code, _, err = aadml(*job, "--audio", "own_sound:loud", "--set", "audio.rate=16000")
    assert code == 0, err
    code, out, _ = aadml("inspect", tmp_path / "loud.h5")
    assert "own_sound:loud" in out
    code, _, err = aadml(*job, "--audio", "own_sound:lood")
    assert (code, "does not define 'lood'" in err) == (2, True)


def environment(*folders):
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root), *map(str, folders), os.environ.get("PYTHONPATH", "")])
    return os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}


@pytest.fixture
def installed(tmp_path):
    """Make a wheel with entry points, and install it: a pure wheel is installed by unpacking it."""
    info = "own_package-1.2.dist-info"
    groups = {"aadml.losses": "halfway", "aadml.methods": "drawn", "aadml.selections": "widely",
              "aadml.proxies": "Unchanged", "aadml.protocols": "DROP_FIRST"}  # fmt: skip
    points = "".join(f"[{group}]\nown-{name.lower()} = own_package.parts:{name}\n" for group, name in groups.items())
    points += "[aadml.extractors]\nown-loud = own_package.sound:loud\n"
    files = {
        "own_package/__init__.py": "",
        "own_package/parts.py": OWN,
        "own_package/sound.py": EXTRACTOR,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: own-package\nVersion: 1.2\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": points,
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    wheel = tmp_path / "own_package-1.2-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    target = tmp_path / "target"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


@pytest.mark.slow
def test_an_installed_package_enters_by_its_entry_points(installed, features, tmp_path):
    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-c", "from aadml.cli import main; main()", *map(str, arguments)],
            capture_output=True, text=True, cwd=tmp_path, env=environment(installed),
        )  # fmt: skip

    for kind in ("losses", "methods", "selections", "proxies", "protocols", "extractors"):
        found = json.loads(run("list", kind, "--json").stdout)
        own = {name: entry for name, entry in found.items() if name.startswith("own-")}
        assert len(own) == 1, kind
        for entry in own.values():
            assert entry["from"] == "own-package 1.2"
            assert entry["description"]
    assert "[own_package.parts:halfway of own-package 1.2]" in run("list", "losses").stdout
    grid = ["--over", "loss=own-halfway,aa-own-halfway", "--seeds", 1, "--max-epochs", 1, "--workers", 2, *SMALL]
    done = run("ablate", "--data", features, *grid, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "own-halfway" in (tmp_path / "out" / "results.csv").read_text()
    wrong = run("train", "--data", features, "--loss", "own-halfwy")
    assert (wrong.returncode, "did you mean 'own-halfway'?" in wrong.stderr) == (2, True)
