"""`aadml index` and `aadml search` as a person calls them."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from aadml.data.sample_clips import sample_data


def test_from_features_to_hits(aadml, features, small_run, tmp_path):
    place = tmp_path / "clips.index"
    code, out, err = aadml("index", features, "-o", place, "--model", small_run)
    assert code == 0, err
    assert out.strip() == f"{place}: 105 clips (105 audio, 105 visual): 105 new, 0 changed, 0 removed"
    code, out, _ = aadml("index", features, "-o", place)
    assert (code, out.strip()) == (0, f"{place}: 105 clips (105 audio, 105 visual): 0 new, 0 changed, 0 removed")
    code, out, _ = aadml("search", place, "--export", tmp_path / "vectors")
    assert code == 0
    assert np.load(out.splitlines()[0]).shape[0] == 105


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "nothing was passed; pass exactly one of"),
        (["--to", "visual"], "nothing was passed; pass exactly one of"),
        (
            ["--audio", "a.wav", "--visual", "b.png", "--to", "visual"],
            "audio and visual were passed together; pass exactly one",
        ),
        (["--audio", "no such.wav", "--to", "audio"], "no such.wav does not exist"),
        (["--text", "rain", "--to", "visual"], "does not compare words with"),
        (["--audio", "a.wav", "--to", "visual"], "built without a model"),
        (["--audio", "a.wav"], "the modality to search is missing; choose `to` from audio, visual"),
    ],
)
def test_a_wrong_question_is_one_line(aadml, features, tmp_path, arguments, says):
    assert aadml("index", features, "-o", tmp_path / "i")[0] == 0
    code, _, err = aadml("search", tmp_path / "i", *arguments)
    assert code == 2
    assert says in err


def test_what_is_no_index_is_refused(aadml, features, tmp_path):
    for place in (features, tmp_path / "none", tmp_path):
        code, _, err = aadml("search", place, "--audio", "x.wav", "--to", "audio")
        assert code == 2
        assert str(place) in err
    before = features.read_bytes()
    code, _, err = aadml("index", features, "-o", features)
    assert code == 2
    assert features.read_bytes() == before
    assert aadml("index", tmp_path / "nothing", "-o", tmp_path / "i")[0] == 2
    assert aadml("index", features, "-o", tmp_path)[0] == 2


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    return sample_data(tmp_path_factory.mktemp("samples"), clips=20, seconds=0.5).parent / "clips"


@pytest.mark.slow
def test_a_flat_folder_is_asked_with_files(aadml, clips, tmp_path):
    code, _, err = aadml("index", clips, "-o", tmp_path / "i", "--workers", "2")
    assert code == 0, err
    asked = sorted(clips.glob("*.mp4"))[3]
    for option, to in (("--audio", "audio"), ("--visual", "visual"), ("--clip", "visual")):
        code, out, _ = aadml("search", tmp_path / "i", option, asked, "--to", to, "-k", "3", "--json")
        found = json.loads(out)
        assert code == 0
        assert found["among"] == 20
        assert [hit["rank"] for hit in found["hits"]] == [1, 2, 3]
        assert found["hits"][0]["id"] == asked.name
        assert found["hits"][0]["media"][to] == str(asked)
    code, out, _ = aadml("search", tmp_path / "i", "--audio", asked, "--to", "audio", "--where", "id LIKE '%1%'")
    assert code == 0
    assert asked.name in out


@pytest.mark.slow
def test_killed_ten_times_nothing_is_lost_and_nothing_twice():
    program = Path(__file__).parents[2] / "scripts" / "soak" / "index_kills.py"
    done = subprocess.run(
        [sys.executable, program, "10", "100"], capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert done.stdout.startswith("10 kills of `aadml index` (")
    assert ": 0 wrong; " in done.stdout
