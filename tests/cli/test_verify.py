"""What `aadml verify` prints, and its exit status."""

import json
import os

import h5py
import numpy as np
import pytest


def test_an_intact_file_a_damaged_one_and_one_of_another_program(aadml, features, tmp_path):
    assert aadml("verify", features) == (0, f"{features}: every file matches its checksum\n", "")
    features.write_bytes(features.read_bytes()[:-30])
    code, out, _ = aadml("verify", features, "--json")
    assert code == 1
    shown = json.loads(out)
    assert shown["whole"] is False
    assert "its checksums are missing" in shown["damaged"][0]
    with h5py.File(tmp_path / "foreign.h5", "w") as file:
        file["audio"] = np.zeros((3, 2))
    code, out, _ = aadml("verify", tmp_path / "foreign.h5")
    assert code == 0
    assert "is readable, but has no checksums" in out
    assert json.loads(aadml("verify", tmp_path / "foreign.h5", "--json")[1])["verified"] is False


@pytest.mark.parametrize(
    "name", ["manifest.json", "metrics.jsonl", "evaluation.json", "model.safetensors", "README.md"]
)
def test_a_pipe_in_a_run_is_not_read(aadml, small_run, name):
    (small_run / name).unlink()
    os.mkfifo(small_run / name)
    code, out, err = aadml("verify", small_run)
    assert code != 0
    assert f"{name} cannot be read (it is a pipe)" in out + err or "manifest.json is missing" in out
    assert aadml("train", "--resume", small_run)[0] in (0, 2)
