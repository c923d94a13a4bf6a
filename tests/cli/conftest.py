import shutil

import numpy as np
import pytest
from click.testing import CliRunner

from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features

SMALL = ("network.hidden=[16]", "training.batch=20", "training.learning_rate=0.01")


@pytest.fixture
def features(tmp_path):
    """A small feature file of three classes that are easy to tell apart."""
    return written(tmp_path / "features.h5")


def written(path):
    write_features(path, synthetic(classes=3, train=60, valid=15, test=30, dimensions=(6, 8), difficulty=0.2))
    return path


@pytest.fixture
def aadml():
    """Run the command line in this process; returns (exit code, stdout, stderr)."""
    return run


def run(*arguments):
    from aadml.cli import cli

    result = CliRunner().invoke(cli, [str(argument) for argument in arguments], catch_exceptions=True)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        from aadml.feature_extraction.ground.errors import InputError

        if not isinstance(result.exception, InputError):
            raise result.exception
        return 2, result.stdout, str(result.exception)
    return result.exit_code, result.stdout, result.stderr


def trained(features, runs):
    code, out, err = run("train", "--data", features, "--epochs", "2", "--runs", runs, *sets())
    assert code == 0, err
    return runs / out.strip().splitlines()[-1].rsplit("/", 1)[-1]


@pytest.fixture
def own_run(features, tmp_path):
    """A finished run of two epochs on `features`."""
    return trained(features, tmp_path / "runs")


@pytest.fixture(scope="session")
def first_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("first")
    return trained(written(folder / "features.h5"), folder / "runs")


@pytest.fixture
def small_run(first_run, tmp_path):
    """A copy of a finished run of two epochs on a file like `features`, which no test changes."""
    return shutil.copytree(first_run, tmp_path / "runs" / first_run.name)


def sets(*more):
    return [part for setting in (*SMALL, *more) for part in ("--set", setting)]


@pytest.fixture
def generator():
    return np.random.default_rng(0)
