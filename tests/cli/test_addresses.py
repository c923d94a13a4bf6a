"""Addresses of data: user, query and fragment are in no file that is shared, and in no output."""

import stat

import pytest

import aadml
from aadml.feature_extraction.foreign.tables import shown_address
from aadml.feature_extraction.ground.atomic import write_bytes
from aadml.runs.tracking import TRACKERS
from tests.cli.conftest import run, sets

ADDRESS = "memory://user:SECRET@host/clips.h5?sig=SECRET#SECRET"


@pytest.fixture
def address(features, monkeypatch, tmp_path):
    """The address of a feature file, in a new current folder."""
    fsspec = pytest.importorskip("fsspec", reason="the extra datasets is not installed")
    with fsspec.open(ADDRESS, "wb") as file:
        file.write(features.read_bytes())
    (tmp_path / "new").mkdir()
    monkeypatch.chdir(tmp_path / "new")
    return ADDRESS


def train(address, folder):
    code, _, err = run("train", "--data", address, "--method", "cca", "--set", "method.dimension=3", "--runs", folder)
    assert code == 0, err
    return next(folder.iterdir())


def secret_files(folder):
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and b"SECRET" in path.read_bytes()]


def test_secrets_are_only_in_the_private_config_of_the_run(address, tmp_path):
    folder = train(address, tmp_path / "new" / "runs")
    aadml.load(folder).save("saved")
    for words in [
        ("evaluate", folder), ("evaluate", folder, "--data", address), ("report", folder),
        ("report", folder, "--data", address), ("audit", folder, "--data", address), ("inspect", address),
        ("embed", folder, address, "-o", "e.h5"), ("convert", address, "c.h5"), ("index", address, "-o", "i"),
        ("index", address, "-o", "m", "--model", folder, "--calibrate", address),
        ("index", address, "-o", "m", "--model", folder), ("train", "--resume", folder),
    ]:  # fmt: skip
        code, *output = run(*words)
        assert code == 0, (words, output)
        assert "SECRET" not in "".join(output), words
    assert secret_files(tmp_path / "new") == [folder / "config.yaml"]
    assert stat.S_IMODE((folder / "config.yaml").stat().st_mode) == 0o600
    assert "- data: clips.h5 (" in (folder / "README.md").read_text()
    assert aadml.Index("i").source == "memory://host/clips.h5"


def test_a_config_without_secrets_is_as_readable_as_other_files(own_run):
    modes = {path.stat().st_mode for path in own_run.iterdir() if path.is_file()}
    assert len(modes) == 1


def test_refusals_do_not_show_secrets(address, tmp_path):
    folder = train(address, tmp_path / "new" / "runs")
    assert run("index", address, "-o", "i")[0] == 0
    with_other = address.replace("host", "other")
    for words in [
        ("evaluate", folder, "--cluster", "x"), ("evaluate", folder, "--data", address, "--cluster", "x"),
        ("index", address, "-o", "j", "--moments"), ("inspect", with_other), ("embed", folder, with_other, "-o", "e"),
        ("index", with_other, "-o", "i"), ("inspect", "http://[x/y?sig=SECRET"),
        *((word, address) for word in ("verify", "status", "audit", "report", "search", "manifest", "evaluate")),
        ("merge", address, "x.h5", "-o", "y.h5"), ("embed", address, "c.h5", "-o", "e"), ("train", "--resume", address),
        ("export", folder, "-o", address), ("evaluate", "--embeddings", address), ("index", "c.h5", "-o", address),
        ("train", "--data", address, "--config", address), ("index", address, "-o", "j", "--model", address),
    ]:  # fmt: skip
        code, *output = run(*words)
        assert code == 2, words
        assert "SECRET" not in "".join(output), (words, output)


@pytest.mark.slow
def test_studies_and_trackers_do_not_keep_secrets(address, tmp_path, monkeypatch):
    logged = {}
    monkeypatch.setitem(TRACKERS, "own", lambda name, config, closing: logged.update(config) or (lambda *_: None))
    aadml.fit(address, method="cca", settings={"method.dimension": 3}, track="own")
    assert logged["data"] == "memory://host/clips.h5"
    over = ("--over", "training.optimizer=adam,sgd", "--seeds", 1, "--max-epochs", 1)
    code, *output = run("ablate", "--data", address, *over, "-o", "study", "--workers", 0, *sets())
    assert code == 0, output
    assert "SECRET" not in "".join(output)
    assert {path.name for path in secret_files(tmp_path / "new")} == {"config.yaml"}


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("https://u:p@h:1/x?y#z", "https://h:1/x"), ("hf:org/name", "hf:org/name"), ("s3://b/a b", "s3://b/a b"),
        ("a#1?x@y.h5", "a#1?x@y.h5"), ("http://[x/y?z", "http://[x/y"), ("http://h/x?y://z", "http://h/x"),
    ],
)  # fmt: skip
def test_an_address_is_shown_without_user_query_and_fragment(source, shown):
    assert shown_address(source) == shown


def test_a_private_file_is_its_owners_alone(tmp_path):
    write_bytes(tmp_path / "f", b"", private=True)
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o600
