"""Where a command may write: over an older output of its own kind, and over nothing else."""

import os
import shutil
import subprocess
import sys

import pytest

SMALL = {"embed": ".h5", "report": ".html", "convert": ".h5"}


def call(command, run, features, output):
    if command == "convert":
        return ["convert", features, output]
    return [command, run, *([features] if command == "embed" else []), "-o", output]


@pytest.mark.parametrize("command", SMALL)
def test_an_output_replaces_an_older_one_of_its_kind_alone(command, aadml, small_run, features, tmp_path):
    output = tmp_path / f"output{SMALL[command]}"
    output.touch()  # as mktemp leaves it
    for _ in range(2):
        code, _, err = aadml(*call(command, small_run, features, output))
        assert code == 0, err
    weights = small_run / "model.safetensors"
    copy = tmp_path / f"copy{SMALL[command]}"
    shutil.copy(weights, copy)
    for place in (weights, copy):
        before = place.read_bytes()
        code, _, err = aadml(*call(command, small_run, features, place))
        assert code == 2
        assert f"{place} exists and is not a" in err
        assert err.strip().count("\n") == 0
        assert place.read_bytes() == before


def test_embeddings_do_not_take_the_place_of_the_features(aadml, small_run, features):
    before = features.read_bytes()
    code, _, err = aadml("embed", small_run, features, "-o", features)
    assert (code, err) == (
        2,
        f"{features} exists and is not a file of embeddings, so the file is not overwritten; choose another output",
    )
    assert features.read_bytes() == before


@pytest.mark.parametrize("command", SMALL)
def test_a_place_where_no_file_can_be_is_refused_before_the_work(command, aadml, small_run, features, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for output, said in (
        (pipe, "is a device, a pipe or a socket"),
        (tmp_path, "is a folder"),
        (features / "under.h5", f"because {features} is not a folder"),
    ):
        code, _, err = aadml(*call(command, small_run, features, output))
        assert (code, said in err) == (2, True), err
    assert pipe.is_fifo()


@pytest.mark.parametrize("address", ["s3://bucket/new.h5", "https://host/new", "hf:name", "memory:/new.onnx"])
@pytest.mark.parametrize(
    "words",
    ["demo", "sample-data", "manifest MEDIA -o", "extract MANIFEST -o", "merge -o", "convert FEATURES",
     "train --data FEATURES --runs", "embed RUN FEATURES -o", "report RUN -o", "index FEATURES -o",
     "ablate --over proxy.k=1,2 --data FEATURES -o", "compare --methods cca --data FEATURES -o",
     "reproduce paper --ave FEATURES -o"],
)  # fmt: skip
def test_an_address_is_no_output(words, address, aadml, small_run, features, tmp_path, monkeypatch):
    (tmp_path / "media").mkdir()
    (tmp_path / "media" / "a.wav").touch()
    (tmp_path / "m.csv").write_text("id,media\na,media/a.wav\n")
    (tmp_path / "new").mkdir()
    monkeypatch.chdir(tmp_path / "new")
    places = {"MEDIA": tmp_path / "media", "MANIFEST": tmp_path / "m.csv", "FEATURES": features, "RUN": small_run}
    code, _, err = aadml(*(places.get(word, word) for word in words.split()), address)
    begins = address.partition("/")[0] if "/" in address else "hf:"
    assert (code, f"the output begins with {begins} like an address" in err) == (2, True), err
    assert list((tmp_path / "new").iterdir()) == []


def test_a_path_that_is_not_unicode_is_printed_as_its_bytes(tmp_path):
    media = tmp_path / "clips" / "dog"
    media.mkdir(parents=True)
    (media / "a.wav").touch()
    command = [sys.executable, "-m", "aadml", "manifest", "clips", "-o", b"\xff.csv"]
    environment = os.environ | {"PYTHONIOENCODING": "utf-8:strict"}  # as under en_US.UTF-8
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, b"\xff.csv\n"), ended.stderr
