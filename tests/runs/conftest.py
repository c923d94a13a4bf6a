"""Fixtures of runs: captioned tones, a small run, and files like its data."""

import csv
import shutil
from dataclasses import replace

import pytest

import aadml
from aadml.configuration.from_arguments import assemble
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from tests.runs.planted import plant
from tests.sound_files import tone, write_wav

CONTENT = synthetic(classes=3, train=30, valid=9, test=12, dimensions=(6, 8), difficulty=0.2)


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    """Thirty short tones with two captions each: 18 to train, 6 to validate, 6 to test."""
    return write_tones(tmp_path_factory.mktemp("tones"), train=18)


@pytest.fixture(scope="module")
def large_manifest(tmp_path_factory):
    """As `manifest`, with 34 tones to train: more pairs than a batch of 64."""
    return write_tones(tmp_path_factory.mktemp("tones"), train=34)


def write_tones(folder, *, train):
    rows = [["id", "media", "label", "split", "caption_1", "caption_2"]]
    for i in range(train + 12):
        write_wav(folder / f"{i}.wav", tone(200 + 150 * i))
        split = "train" if i < train else "valid" if i < train + 6 else "test"
        rows.append([f"t{i}", f"{i}.wav", "tone", split, f"Tone number {i}.", f"A tone, {i} of thirty"])
    with (folder / "manifest.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return folder / "manifest.csv"


@pytest.fixture(scope="module")
def random_model(tmp_path_factory):
    """A run and its data, which nobody changes."""
    place = tmp_path_factory.mktemp("opened")
    write_features(place / "own.h5", CONTENT)
    return aadml.fit(place / "own.h5", method="cca", settings={"method.dimension": 2}, runs=place / "runs")


@pytest.fixture
def random_run(random_model, tmp_path):
    return shutil.copytree(random_model.folder, tmp_path / "run")


@pytest.fixture
def other_file(tmp_path):
    """Write a feature file that is `CONTENT` but for some changes."""

    def other_file(**changes):
        write_features(tmp_path / "other.h5", replace(CONTENT, **changes))
        return tmp_path / "other.h5"

    return other_file


@pytest.fixture
def folder(tmp_path):
    plant(tmp_path / "run")
    return tmp_path / "run"


SMALL = {"network.hidden": [4], "training.batch": 15, "training.epochs": 1}


@pytest.fixture
def config(tmp_path):
    write_features(tmp_path / "f.h5", synthetic(classes=3, train=30, valid=9, test=9, dimensions=(6, 8)))

    def config(method="aadml", **changes):
        settings = changes if method != "aadml" else SMALL | changes
        return assemble(method=method, data=str(tmp_path / "f.h5"), settings=settings)

    return config
