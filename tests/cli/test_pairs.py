"""The session of a person who has arrays of pairs, without labels and splits."""

import json

import numpy as np
import pytest

from tests.cli.conftest import run, sets


@pytest.fixture
def pairs(tmp_path):
    generator = np.random.default_rng(0)
    audio = generator.normal(size=(120, 6)).astype(np.float32)
    text = np.stack([audio @ generator.normal(size=(6, 5)) for _ in range(2)], axis=1)
    np.savez(tmp_path / "pairs.npz", audio=audio, text=text.astype(np.float32))
    return tmp_path / "pairs.npz"


@pytest.mark.slow
def test_pairs_are_trained_on_scored_embedded_and_indexed_without_a_conversion(pairs, tmp_path):
    runs = tmp_path / "runs"
    code, out, err = run("train", "--data", pairs, "--epochs", 1, "--runs", runs, *sets())
    assert code == 0, err
    assert "drawn at random (0.7/0.1/0.2, seed 0): 84 train, 12 valid, 24 test" in err
    trained = out.strip().splitlines()[-1]
    scores = json.loads(run("evaluate", trained, "--json")[1])
    assert (scores["split"], scores["protocol"]) == ("test", "inductive")
    for command in (("embed", trained, pairs, "-o", tmp_path / "E.h5"), ("audit", trained),
                    ("compare", "--data", pairs, "--methods", "cca", "--seeds", 1, "--workers", 0, "-o",
                     tmp_path / "out", "--set", "method.dimension=4")):  # fmt: skip
        code, _, err = run(*command)
        assert code == 0, err
    code, out, err = run("index", pairs, "-o", tmp_path / "i", "--model", trained, "--json")
    assert code == 0, err
    assert json.loads(out)["vectors"] == {"audio": 120, "text": 240}
    assert run("convert", pairs, tmp_path / "F.h5")[0] == 0
    assert run("convert", pairs, tmp_path / "G.h5", "--split", "random:0.7/0.1/0.2")[0] == 0
    assert (tmp_path / "F.h5").read_bytes() == (tmp_path / "G.h5").read_bytes()


def test_pairs_with_labels_need_a_split(pairs, tmp_path):
    np.savez(pairs, **np.load(pairs), label=np.arange(120) % 3)
    code, _, err = run("train", "--data", pairs, "--runs", tmp_path / "runs")
    assert code == 2
    assert "F.h5 --split random:0.7/0.1/0.2" in err
