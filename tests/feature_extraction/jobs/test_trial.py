"""An extractor that cannot work is reported before the first clip is decoded, and leaves nothing behind."""

import numpy as np
import pytest

import aadml
from aadml.feature_extraction.backbones import Extractor, mean_over_time
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.jobs.trial import try_out
from aadml.feature_extraction.media import Frames, Pictures, Sound, Text
from tests.feature_extraction.small_jobs import write_manifest

INPUTS = {
    "audio": [Sound(8000), Sound(8000, seconds=0.5)],
    "visual": [Frames(), Frames(2.0, 20, 30), Pictures(shortest=32, crop=(24, 24)), Pictures(patches=(16, 4))],
    "text": [Text()],
}


def own(modality="audio", inputs=None, **changes):
    def describe(clips):
        return [np.ones((2, 7), np.float32) for _ in clips]

    settings = {"prepare": np.asarray, "describe": describe, "pool": mean_over_time} | changes
    inputs = inputs or INPUTS[modality][0]
    return Extractor(name="mine:own", modality=modality, dimension=7, inputs=inputs, parameters={}, **settings)


def raising(clips):
    raise RuntimeError("no such layer\nmore")


@pytest.mark.parametrize(("modality", "inputs"), [(name, kind) for name, kinds in INPUTS.items() for kind in kinds])
def test_extractors_of_all_inputs_pass(modality, inputs):
    shapes = []
    try_out(own(modality, inputs, prepare=lambda clip: shapes.append((clip.shape, clip.dtype.name)) or clip))
    assert len(shapes) == 2
    assert all(shape[-1] == 3 for shape, _ in shapes) == (modality == "visual")
    assert {kind for _, kind in shapes} == {"float32" if modality == "audio" else "uint8"}


WRONG = {
    "an error": (raising, r"^mine:own: fails on a trial of noise \(RuntimeError: no such layer\); correct the"),
    "another width": (lambda clips: [np.ones((2, 9))] * len(clips), r"values of shape \(9,\) per clip, .* is 7"),
    "no time": (lambda clips: [np.ones(7)] * len(clips), r"returns shapes \[\(7,\), \(7,\)\] for 2 clips"),
    "too few clips": (lambda clips: [np.ones((2, 7))], r"returns shapes \[\(2, 7\)\] for 2 clips"),
    "no rows": (lambda clips: [np.ones((0, 7))] * len(clips), "t at least 1"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_work_is_an_error(case):
    describe, message = WRONG[case]
    with pytest.raises(InputError, match=message):
        try_out(own(describe=describe))


def test_a_fit_may_change_the_width_and_prepare_fails_single_clips():
    class Fit:
        arrays = transformation = None

    try_out(own(describe=lambda clips: [np.ones((2, 9))] * len(clips), fit=Fit()))
    try_out(own(prepare=raising))


def test_a_job_ends_before_it_begins(tmp_path, monkeypatch, collection):
    (tmp_path / "mine_of_trial.py").write_text(
        "import numpy as np\n"
        "from aadml.feature_extraction.backbones import Extractor\n"
        "from aadml.feature_extraction.media import Sound\n"
        "def build() -> Extractor:\n"
        "    return Extractor(name='x', modality='audio', dimension=7, inputs=Sound(8000), parameters={},\n"
        "                     prepare=np.asarray, describe=lambda clips: 1 / 0)\n"
    )
    write_manifest(tmp_path / "manifest.csv", [("a", str(collection / "clip 0.mp4"))])
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError, match="mine_of_trial:build: fails on a trial of noise"):
        aadml.extract(tmp_path / "manifest.csv", tmp_path / "f.h5", audio="mine_of_trial:build")
    assert [path for path in sorted(tmp_path.iterdir()) if path.name != "__pycache__"] == before


def test_the_output_is_checked_before_weights_are_downloaded(tmp_path, collection, monkeypatch):
    write_manifest(tmp_path / "manifest.csv", [("a", str(collection / "clip 0.mp4"))])
    (tmp_path / "f.h5").write_text("a letter")
    monkeypatch.setenv("AADML_MIRROR", "http://127.0.0.1:9")
    with pytest.raises(InputError, match="exists, is not a feature file"):
        aadml.extract(tmp_path / "manifest.csv", tmp_path / "f.h5", recipe="paper-pca")
