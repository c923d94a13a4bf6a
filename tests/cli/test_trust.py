"""Names in files from strangers: nothing of theirs is imported without consent, and embedding needs none."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

import aadml as face
from aadml.data.sample_clips import sample_data
from aadml.feature_extraction.ground import consent, import_paths
from aadml.feature_extraction.ground.checksummed_json import seal
from aadml.feature_extraction.ground.errors import UntrustedCodeError
from aadml.search.index import Index
from tests.edited_hdf5 import edited

SMALL = {"network.hidden": [8], "training.batch": 20, "training.epochs": 1}
OWN = '''
import torch
from torch import nn

from aadml.comparison import Terms
from aadml.losses.triplet import triplet
from aadml.methods.untrained.random_vectors import random_vectors
from aadml.proxies.anchor_aware import AnchorAware


class Mine(nn.Module):
    """A loss with weights."""

    def __init__(self, dimension: int, *, margin: float = 0.5) -> None:
        super().__init__()
        self.scale, self.margin = nn.Parameter(torch.ones(dimension)), margin

    def forward(self, comparison):
        terms = triplet(comparison, margin=self.margin)
        return Terms(terms.total * self.scale.mean(), terms.active, terms.possible)


def label(vectors, labels):
    """A label loss."""
    return torch.nn.functional.cross_entropy(vectors, labels)


class Proxy(AnchorAware):
    """A proxy with weights."""


def drawn(context, settings, *, dimension: int = 4):
    """Draw vectors."""
    return random_vectors(context, settings, dimension=dimension)


def relevant(ranking):
    """Number of relevant items."""
    return ranking.relevant
'''
PLANTED = "raise RuntimeError('planted code ran')\n"


@pytest.fixture
def away(tmp_path, monkeypatch):
    """Work in an empty folder, with nothing from outside imported yet."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(import_paths, "_beside", {})
    folder = tmp_path / "away"
    folder.mkdir()
    monkeypatch.chdir(folder)
    yield folder
    for name in [name for name in sys.modules if name.startswith("own_of_trust") or name.startswith("planted")]:
        del sys.modules[name]


def trained(features, folder, **choices):
    """Train a model with parts of one's own, which lie beside the data, and save it."""
    (features.parent / "own_of_trust.py").write_text(OWN)
    settings = {**SMALL, **choices.pop("settings", {})}
    model = face.fit(features, settings={k: v for k, v in settings.items() if v is not None}, **choices)
    return model.save(folder)


def elsewhere(program, folder):
    """Run Python where the modules of the training are missing."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=folder, check=False,
        env={"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


PARTS = {
    "loss": {"loss": "own_of_trust:Mine"},
    "proxy": {"loss": "triplet", "settings": {"proxy": "own_of_trust:Proxy", "proxy.k": 1}},
    "label loss": {"settings": {"label_loss": "own_of_trust:label"}},
}


@pytest.mark.parametrize("part", PARTS)
def test_a_model_trained_with_parts_of_ones_own_embeds_where_they_are_missing(features, away, part):
    folder = trained(features, away / "model", **PARTS[part])
    empty = away / "elsewhere"
    empty.mkdir()
    shutil.copy(features, empty / "f.h5")
    program = (
        "import aadml, sys; model = aadml.load('../model'); aadml.embed(model, 'f.h5', 'e.h5');"
        "aadml.evaluate('../model', data='f.h5'); model.save('again');"
        "print('own_of_trust' in sys.modules)"
    )
    code, out, err = elsewhere(program, empty)
    assert (code, out.strip()) == (0, "False"), err
    face.embed(face.load(folder, trust_code=True), features, away / "here.h5")
    with h5py.File(empty / "e.h5") as there, h5py.File(away / "here.h5") as here:
        for modality in ("audio", "visual"):
            np.testing.assert_array_equal(there[modality], here[modality])
    saved, again = (place / "model.safetensors" for place in (folder, empty / "again"))
    assert saved.read_bytes() == again.read_bytes(), "weights of parts that were left out are saved again"


@pytest.mark.parametrize(
    "part",
    [
        ["--loss", "own-mine"],
        ["--set", "proxy=own-proxy", "--set", "proxy.k=1"],
        ["--criterion", "own_of_trust:relevant"],
        ["--criterion", "own-relevant"],
    ],
)
def test_a_run_with_entries_of_ones_own_is_read_where_they_are_missing(aadml, features, away, monkeypatch, part):
    (away / "own-1.0.dist-info").mkdir()
    groups = {"losses": "Mine", "proxies": "Proxy", "metrics": "relevant"}
    points = [f"[aadml.{group}]\nown-{name.lower()} = own_of_trust:{name}\n" for group, name in groups.items()]
    (away / "own-1.0.dist-info" / "entry_points.txt").write_text("".join(points))
    (away / "own_of_trust.py").write_text(OWN)
    small = [argument for key, value in SMALL.items() for argument in ("--set", f"{key}={value}")]
    with monkeypatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path, str(away)])
        code, out, err = aadml("train", "--data", features, *part, *small, "--runs", "runs")
        assert code == 0, err
    del sys.modules["own_of_trust"]
    run = out.splitlines()[-1]
    for command in (["embed", run, features, "-o", "e.h5"], ["evaluate", run], ["report", run], ["audit", run]):
        code, _, err = aadml(*command)
        assert code == 0, err
    assert "own_of_trust" not in sys.modules


def test_a_model_of_ones_own_method_is_refused_in_one_line_without_consent(features, away):
    settings = {"method.dimension": 3, **dict.fromkeys(SMALL)}
    folder = trained(features, away / "model", method="own_of_trust:drawn", settings=settings)
    code, _, err = elsewhere("from aadml.cli import main; main()", folder.parent)
    program = f"import sys; sys.argv = ['aadml', 'embed', 'model', {str(features)!r}, '-o', 'e.h5']\n"
    code, _, err = elsewhere(program + "from aadml.cli import main; main()", folder.parent)
    assert code == 2
    assert err.strip().count("\n") == 0
    assert "model/model.json names method own_of_trust:drawn" in err
    assert "--trust-code" in err
    beside = shutil.copy(features.parent / "own_of_trust.py", folder.parent)
    program = program.replace("'-o'", "'--trust-code', '-o'")
    code, _, err = elsewhere(program + "from aadml.cli import main; main()", Path(beside).parent)
    assert code == 0, err


def reseal(path, change):
    """Change a sealed file as a stranger would: its checksum fits again."""
    content = json.loads(path.read_text())
    change(content)
    path.write_bytes(seal({key: value for key, value in content.items() if key != "checksum"}))


@pytest.mark.parametrize("section", ["loss", "label_loss", "selection", "proxy", "readout"])
def test_a_planted_section_of_a_model_is_not_imported(aadml, features, away, section):
    face.fit(features, settings=SMALL).save(away / "model")
    (away / "planted.py").write_text(PLANTED)

    def plant(content):
        content["facts"]["method"]["arguments"][section] = {"name": "planted:f"}

    reseal(away / "model" / "model.json", plant)
    code, _, err = aadml("embed", "model", features, "-o", "e.h5")
    assert code == 0, err
    assert "planted" not in sys.modules
    assert str(away) not in sys.path


def test_a_planted_extractor_of_a_feature_file_is_not_imported(aadml, features, away):
    copy = shutil.copy(features, away / "f.h5")
    (away / "planted.py").write_text(f"def f(**options): {PLANTED}")
    with edited(copy) as file:
        origin = {"extractor": "planted:f", "parameters": {}}
        file["audio"].attrs["provenance"] = json.dumps(origin)
    Index.build(copy, "f.index").close()
    clips = sample_data(away / "clips", clips=10, seconds=0.5, workers=1)
    sound = next((clips.parent / "clips").glob("*.mp4"))
    code, _, err = aadml("search", "f.index", "--audio", sound, "--to", "audio")
    assert code == 2
    assert "f.index names audio extractor planted:f" in err
    assert "planted" not in sys.modules
    with pytest.raises(UntrustedCodeError):
        face.fit(copy, settings=SMALL).embed(audio=str(sound))
    with pytest.raises(RuntimeError, match="planted code ran"):
        aadml("search", "f.index", "--audio", sound, "--to", "audio", "--trust-code")


def test_a_planted_config_needs_consent_and_what_is_typed_does_not(aadml, features, away):
    (features.parent / "own_of_trust.py").write_text(OWN)
    (away / "c.yaml").write_text("loss: own_of_trust:Mine\nnetwork: {hidden: [8]}\ntraining: {batch: 20, epochs: 1}\n")
    command = ["train", "--data", features, "--config", "c.yaml", "--runs", "runs"]
    code, _, err = aadml(*command)
    assert (code, err.partition(",")[0]) == (2, "c.yaml names loss own_of_trust:Mine")
    assert not Path("runs").exists()
    code, _, err = aadml(*command, "--trust-code")
    assert code == 0, err
    code, _, err = aadml(*command, "--loss", "own_of_trust:Mine")
    assert code == 0, err


@pytest.mark.slow
def test_resuming_a_run_that_names_outside_code_needs_consent(aadml, features, away):
    (features.parent / "own_of_trust.py").write_text(OWN)

    class StoppedError(Exception):
        pass

    def stop(record):
        raise StoppedError

    with pytest.raises(StoppedError):
        face.fit(
            features, loss="own_of_trust:Mine", settings=SMALL | {"training.epochs": 2}, runs="runs", on_epoch=stop
        )
    (run,) = Path("runs").iterdir()
    program = "import aadml; aadml.resume({!r}{})"
    code, _, err = elsewhere(program.format(str(run), ""), away)
    assert code == 1
    assert f"{run} names loss own_of_trust:Mine" in err
    code, _, err = elsewhere(program.format(str(run), ", trust_code=True"), features.parent)
    assert "RuntimeError" not in err
    done = subprocess.run(
        [sys.executable, "-m", "aadml", "train", "--resume", str(run), "--trust-code"],
        capture_output=True, text=True, check=False, cwd=away,
        env={"PYTHONPATH": f"{Path(__file__).parents[2]}", "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_workers_inherit_consent(aadml, features, away):
    (features.parent / "own_of_trust.py").write_text(OWN)
    (away / "c.yaml").write_text("loss: own_of_trust:Mine\nnetwork: {hidden: [8]}\ntraining: {batch: 20, epochs: 1}\n")
    grid = ["ablate", "--data", features, "--config", "c.yaml", "--over", "loss.margin=0.5,1.0", "--seeds", 1]
    code, _, err = aadml(*grid, "--workers", 2, "-o", "out", "--trust-code")
    assert code == 0, err
    assert len(list(Path("out/runs").glob("*/evaluation.json"))) == 2


EXTRACTOR = '''
from dataclasses import replace

from aadml.feature_extraction.backbones.descriptors import log_mel


def f():
    """Log-mel under another name."""
    return replace(log_mel(), name="mine")
'''


@pytest.fixture
def named(away, monkeypatch):
    """A feature file whose sound was described by an extractor of one's own, and a clip; consent is forgotten."""
    (away / "planted_of_trust.py").write_text(EXTRACTOR)
    clips = sample_data(away / "clips", clips=60, seconds=0.5, workers=1)
    face.extract(clips, away / "own.h5", audio="planted_of_trust:f", visual="hog-color", workers=1)
    monkeypatch.setattr(consent, "_names", set())
    return away / "own.h5", str(next((clips.parent / "clips").glob("*.mp4")))


def test_consent_is_kept_by_what_was_opened_and_by_nothing_else(named):
    features, sound = named
    choices = {"method": "cca", "settings": {"method.dimension": 2}}
    trained = face.fit(features, **choices, trust_code=True)
    assert trained.embed(audio=sound).shape == (2,)
    trained.save("model")
    Index.build(features, "own.index", model="model").close()
    loaded = face.load("model", trust_code=True)
    assert loaded.embed(audio=sound).shape == (2,)
    with Index("own.index", trust_code=True) as index:
        assert index.search(audio=sound, to="audio").hits
    with Index("own.index", model=loaded) as index:
        assert index.search(audio=sound, to="audio").hits
    with pytest.raises(UntrustedCodeError, match=r"model\.json names audio extractor planted_of_trust:f"):
        face.load("model").embed(audio=sound)
    with pytest.raises(UntrustedCodeError), Index("own.index") as index:
        index.search(audio=sound, to="audio")


def test_an_extractor_that_is_typed_for_an_index_needs_no_consent(named):
    Index.build("clips/manifest.csv", "typed.index", audio="planted_of_trust:f", workers=1).close()
    assert Path("typed.index").is_file()


@pytest.mark.parametrize("data", ["synthetic:ave", "--data=synthetic:ave"])
def test_a_made_up_data_set_is_no_consent_to_a_module_of_its_name(aadml, away, data):
    (away / "synthetic.py").write_text(PLANTED)
    (away / "c.yaml").write_text("loss: synthetic:ave\n")
    words = [data] if data.startswith("--") else ["--data", data]
    code, _, err = aadml("train", *words, "--config", "c.yaml", "--runs", "runs")
    assert (code, err.partition(",")[0]) == (2, "c.yaml names loss synthetic:ave")
    assert "synthetic" not in sys.modules
