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
    "audio": {Sound(8000): [(16_000,), (24_000,)], Sound(8000, seconds=0.5): [(4000,)] * 2},
    "visual": {
        Frames(): [(2, 96, 128, 3), (3, 96, 128, 3)],
        Frames(2.0, 20, 30): [(4, 20, 30, 3), (6, 20, 30, 3)],
        Frames(limit=2): [(2, 96, 128, 3)] * 2,
        Pictures(shortest=32, crop=(24, 24)): [(2, 24, 24, 3), (3, 24, 24, 3)],
        Pictures(patches=(16, 4)): [(2, 32, 32, 3), (3, 32, 32, 3)],
    },
    "text": {Text(): [(11,)] * 2},
}


def own(modality="audio", inputs=None, **changes):
    def describe(clips):
        return [np.ones((2, 7), np.float32) for _ in clips]

    settings = {"prepare": np.asarray, "describe": describe, "pool": mean_over_time, "parameters": {}} | changes
    inputs = inputs or next(iter(INPUTS[modality]))
    return Extractor(**{"name": "mine:own", "modality": modality, "dimension": 7, "inputs": inputs, **settings})


def raising(clips):
    raise RuntimeError("no such layer\nmore")


CLIPS = []


def noting(clip):
    CLIPS.append(clip)
    return clip


@pytest.mark.parametrize(("modality", "inputs"), [(name, kind) for name, kinds in INPUTS.items() for kind in kinds])
def test_extractors_of_all_inputs_pass(modality, inputs):
    CLIPS.clear()
    try_out(own(modality, inputs, prepare=noting))
    clips = CLIPS[:]
    assert [clip.shape for clip in clips] == INPUTS[modality][inputs]
    assert {clip.dtype.name for clip in clips} == {"float32" if modality == "audio" else "uint8"}
    if type(inputs) in (Sound, Frames):
        ends = (min(float(clip.min()) for clip in clips), max(float(clip.max()) for clip in clips))
        assert ends == pytest.approx((-0.5, 0.5) if modality == "audio" else (0, 255), abs=0.01)
    try_out(own(modality, inputs, prepare=noting))
    assert all(np.array_equal(*pair) for pair in zip(clips, CLIPS[2:], strict=True))


def test_noise_has_the_least_length_of_the_extractor():
    CLIPS.clear()
    try_out(own(minimum_seconds=2.5, prepare=noting))
    assert [len(clip) for clip in CLIPS] == [20_000, 24_000]


WRONG = {
    "an error": (raising, r"^mine:own fails in a trial run on noise \(RuntimeError: no such layer\); correct the"),
    "another width": (
        lambda clips: [np.ones((2, 9))] * len(clips),
        r"^mine:own returns values of shape \(9,\) per clip, but its dimension is 7; set the dimension to that",
    ),
    "no time": (lambda clips: [np.ones(7)] * len(clips), r"^mine:own returns shapes \[\(7,\), \(7,\)\] for 2 clips"),
    "too few clips": (lambda clips: [np.ones((2, 7))], r"returns shapes \[\(2, 7\)\] for 2 clips"),
    "no rows": (lambda clips: [np.ones((0, 7))] * len(clips), "t at least 1"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_work_is_an_error(case):
    describe, message = WRONG[case]
    with pytest.raises(InputError, match=message):
        try_out(own(describe=describe))


DEFECTIVE = {
    "prepare returns a list": (
        {"prepare": list},
        "^mine:own: prepare returns list, not an array; return NumPy arrays$",
    ),
    "describe returns lists": (
        {"describe": lambda clips: [[[1.0] * 7]] * len(clips)},
        "^mine:own: describe returns list, not an array; return NumPy arrays$",
    ),
    "pool fails": (
        {"pool": raising},
        r"^mine:own fails in a trial run on noise \(RuntimeError: no such layer\); correct",
    ),
    "numbers of NumPy": (
        {"parameters": {"bands": np.int64(2)}},
        r"^mine:own: its parameters cannot be stored as JSON \(Object of type int64 is not JSON serializable\); pass",
    ),
    "a dimension of NumPy": ({"dimension": np.int64(7)}, "^mine:own: its parameters cannot be stored as JSON"),
    "about": ({"about": {"path": b"x"}}, "^mine:own: its parameters cannot be stored as JSON"),
    "a lambda": ({"prepare": lambda clip: clip}, "^mine:own: its prepare cannot be sent to a decoding process"),
}


@pytest.mark.parametrize("case", DEFECTIVE)
def test_defects_are_reported_before_a_job(case):
    changes, message = DEFECTIVE[case]
    with pytest.raises(InputError, match=message):
        try_out(own(**changes))


def test_a_fit_may_change_the_width_and_prepare_fails_single_clips():
    class Fit:
        arrays = transformation = None

    try_out(own(describe=lambda clips: [np.ones((2, 9))] * len(clips), fit=Fit()))
    try_out(own(prepare=raising))


def test_a_pool_of_another_width_excludes_features_over_time(tmp_path):
    class Fit:
        arrays = transformation = None

    def pooled(rows):
        return np.concatenate([rows.mean(axis=0), rows.std(axis=0)])

    extractor = own(dimension=14, pool=pooled)
    try_out(extractor)
    message = r"^mine:own pools features of shape \(2, 7\) to shape \(14,\), but features over time need the width"
    with pytest.raises(
        InputError, match=f"{message} of the pooled features; extract without sequence, or use another pool$"
    ):
        try_out(extractor, sequence=True)
    with pytest.raises(InputError, match=f"{message} of the pooled features; build the extractor without fit, or"):
        try_out(own(pool=pooled, fit=Fit()))
    try_out(own(), sequence=True)


def test_a_job_ends_before_it_begins(tmp_path, monkeypatch, collection):
    (tmp_path / "mine_of_trial.py").write_text(
        "import numpy as np\n"
        "from aadml.feature_extraction.backbones import Extractor\n"
        "from aadml.feature_extraction.media import Sound\n"
        "def build() -> Extractor:\n"
        "    return Extractor(name='x', modality='audio', dimension=7, inputs=Sound(8000), parameters={},\n"
        "                     prepare=np.asarray, describe=lambda clips: 1 / 0)\n"
        "def prepared(clip): return np.ones((3, 4), np.float32)\n"
        "def pooled(rows): return np.ones(8, np.float32)\n"
        "def wide() -> Extractor:\n"
        "    return Extractor(name='x', modality='audio', dimension=8, inputs=Sound(8000), parameters={},\n"
        "                     prepare=prepared, pool=pooled)\n"
    )
    write_manifest(tmp_path / "manifest.csv", [("a", str(collection / "clip 0.mp4"))])
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError, match="mine_of_trial:build fails in a trial run on noise"):
        aadml.extract(tmp_path / "manifest.csv", tmp_path / "f.h5", audio="mine_of_trial:build")
    with pytest.raises(InputError, match="mine_of_trial:wide pools features of shape"):
        aadml.extract(tmp_path / "manifest.csv", tmp_path / "f.h5", audio="mine_of_trial:wide", sequence=True)
    assert [path for path in sorted(tmp_path.iterdir()) if path.name != "__pycache__"] == before


def test_the_output_is_checked_before_weights_are_downloaded(tmp_path, collection, monkeypatch):
    write_manifest(tmp_path / "manifest.csv", [("a", str(collection / "clip 0.mp4"))])
    (tmp_path / "f.h5").write_text("a letter")
    monkeypatch.setenv("AADML_MIRROR", "http://127.0.0.1:9")
    with pytest.raises(InputError, match="exists and is not a feature file"):
        aadml.extract(tmp_path / "manifest.csv", tmp_path / "f.h5", recipe="paper-pca")
