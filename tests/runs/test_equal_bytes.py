"""The same words give the same weights to the byte: command line and Python, in memory and in a run folder."""

import random

import pytest
import torch
from click.testing import CliRunner

import aadml
from aadml.cli import cli
from aadml.data.sample_clips import sample_data
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.losses import LOSSES
from aadml.methods import METHODS
from aadml.objective.recipes import RECIPES

LOSS_NAMES = [prefix + name for name in dict.fromkeys([*LOSSES, *RECIPES]) for prefix in ("", "aa-")]
CAPTIONED = ("audio-text", "3cmlf", "xie")
UNTRAINED = "zero-shot"  # learns nothing, and takes features of the towers of one model alone
JOBS = [("method", name) for name in METHODS if name not in (*CAPTIONED, UNTRAINED)] + [
    ("loss", name) for name in LOSS_NAMES
]
SAMPLE = random.Random(0).sample(JOBS, 15)
"""What the default suite takes; all of them are slow."""

EPOCHLESS = ("cca", "kcca", "c-cca", "tnn-c-cca", "random")
FEW = {"method.dimension": 3}
SETTINGS = {
    "cca": FEW,
    "c-cca": FEW,
    "tnn-c-cca": FEW,
    "c-dcca": {"training.batch": 60, "method.outputs": 3} | FEW,
    "kcca": {},
    "random": {},
    "pairs": {"training.batch": 20, "training.criterion": "map"},
}
CAPTION_SETTINGS = {
    "audio-text": {"method.audio": "cnn10", "method.audio_width": 4, "method.text_dimension": 32},
    "3cmlf": {"method.ancillary_epochs": 1, "method.dedupe": False},
    "xie": {},
}


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    """Features without a validation split, so that one is drawn."""
    path = tmp_path_factory.mktemp("features") / "features.h5"
    write_features(path, synthetic(classes=3, train=60, valid=0, test=15, dimensions=(6, 8), difficulty=0.2))
    return path


def arguments_of(kind, name):
    settings = {"training.batch": 20} if kind == "method" else {"training.batch": 20, "network.hidden": [16]}
    settings = SETTINGS.get(name, settings)
    return {kind: name, "settings": settings} | ({} if name in EPOCHLESS else {"epochs": 2})


def trained_by_command(data, runs, words):
    """Train on the command line; return the tensors of the run's model file."""
    line = ["train", "--data", str(data), "--runs", str(runs)]
    for key, value in words.items():
        if key != "settings":
            line += [f"--{key}", str(value)]
    for key, value in words["settings"].items():
        line += ["--set", f"{key}={value}"]
    result = CliRunner().invoke(cli, line)
    assert result.exit_code == 0, result.output + str(result.exception)
    return tensors_of(aadml.load(result.stdout.splitlines()[-1]))


def tensors_of(model):
    found = {f"method.{key}": value for key, value in model.method.state().items()}
    return found | {f"inputs.{key}": value for key, value in model.scaling.state().items()}


def check_equal(found, wanted):
    assert sorted(found) == sorted(wanted)
    for key, value in wanted.items():
        assert found[key].dtype == value.dtype
        assert torch.equal(found[key], value), key


def check_python(data, folder, words, **reading):
    wanted = trained_by_command(data, folder / "command", words)
    check_equal(tensors_of(aadml.fit(data, **words)), wanted)
    check_equal(tensors_of(aadml.fit(aadml.read(data, **reading), **words)), wanted)
    in_a_run = aadml.fit(str(data), runs=folder / "python", **words)
    check_equal(tensors_of(in_a_run), wanted)
    check_equal(tensors_of(aadml.load(in_a_run.folder)), wanted)


@pytest.mark.parametrize(("kind", "name"), SAMPLE)
def test_a_sample_of_methods_and_losses_gives_equal_bytes(features, tmp_path, kind, name):
    words = arguments_of(kind, name)
    wanted = trained_by_command(features, tmp_path, words)
    check_equal(tensors_of(aadml.fit(aadml.read(features), **words)), wanted)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), JOBS)
def test_every_method_and_loss_gives_equal_bytes(features, tmp_path, kind, name):
    check_python(features, tmp_path, arguments_of(kind, name))


@pytest.mark.slow
@pytest.mark.parametrize("name", CAPTIONED)
def test_methods_of_captioned_sound_give_equal_bytes(tmp_path, name):
    manifest = sample_data(tmp_path / "clips", clips=40, seconds=0.5)
    config = {"config": name.replace("-", "_")}
    cleaning = {"cleaning": "xie"} if name == "xie" else {}
    check_python(
        manifest, tmp_path, {"method": name, "settings": CAPTION_SETTINGS[name], "epochs": 1} | config, **cleaning
    )


def test_what_the_names_stand_for_is_resolved_below_both(features, tmp_path):
    """Recipes, prefixes, shipped configs, scaling and seeds."""
    settings = {"inputs.scaling": "standard", "network.hidden": [16], "training.batch": 20}
    words = {"config": "recommended", "loss": "aa-hard-triplet", "k": 2, "seed": 3, "epochs": 2, "settings": settings}
    wanted = trained_by_command(features, tmp_path, words)
    check_equal(tensors_of(aadml.fit(features, **words)), wanted)
    check_equal(tensors_of(aadml.fit(aadml.read(features, seed=3), **words)), wanted)
    lines = [f"{key}={value}" for key, value in settings.items()]
    check_equal(tensors_of(aadml.fit(features, **words | {"settings": lines})), wanted)


def test_another_seed_gives_other_bytes(features):
    words = arguments_of("loss", "triplet")
    one, other = (tensors_of(aadml.fit(features, seed=seed, **words)) for seed in (0, 1))
    assert any(not torch.equal(one[key], other[key]) for key in one)
