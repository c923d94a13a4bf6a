"""What every extractor must hold, present and future, as it comes: with its default options."""

import json
import pickle
import subprocess
import sys
from functools import cache, partial

import numpy as np
import pytest

from feature_extraction.backbones import EXTRACTORS, extractor, options_of
from feature_extraction.ground.errors import InputError
from feature_extraction.ground.options import schema
from feature_extraction.media import Frames, Sound

ABSENT = {"vggish-hub": "its model comes from TensorFlow Hub; tests of its own give it one"}
MODALITY = {name: modality for modality, table in EXTRACTORS.items() for name in table.places}
EVERY = sorted(MODALITY)
HERE = sorted(set(EVERY) - set(ABSENT))


@cache
def built(name):
    """An extractor as it comes; a network is untrained."""
    modality = MODALITY[name]
    untrained = {"weights": "untrained"} if "weights" in options_of(name, modality) else {}
    return extractor(name, modality, untrained)


def clip(name, seed=0, seconds=1.3):
    """A decoded clip: noise, as the extractor wants it; seed -1 is silence and black frames."""
    inputs, random = built(name).inputs, np.random.default_rng(max(seed, 0))
    if isinstance(inputs, Sound):
        samples = random.uniform(-1, 1, int(seconds * inputs.sample_rate)).astype(np.float32)
        return samples * (seed >= 0)
    shape = (2, inputs.height or 48, inputs.width or 64, 3)
    return random.integers(0, 256, shape, dtype=np.uint8) * np.uint8(seed >= 0)


def described(name, *clips):
    made = built(name)
    prepared = [made.prepare(one) for one in clips]
    return prepared if made.describe is None else made.describe(prepared)


each = pytest.mark.parametrize("name", HERE)


@pytest.mark.parametrize("name", EVERY)
def test_every_option_is_documented_and_an_unknown_one_is_answered_with_the_nearest(name):
    modality = MODALITY[name]
    assert all(option.sentence for option in schema(EXTRACTORS[modality][name]).values())
    for option in options_of(name, modality)[:1]:
        with pytest.raises(InputError, match=f"did you mean '{option}'"):
            extractor(name, modality, {f"{option}x": 1})


@pytest.mark.parametrize("name", EVERY)
def test_it_is_of_one_modality_alone(name):
    for other in EXTRACTORS.keys() - {MODALITY[name]}:
        with pytest.raises(InputError, match=f"no {other} extractor '{name}'"):
            extractor(name, other)


@each
def test_it_says_what_it_is(name):
    made = built(name)
    assert (made.name, made.modality) == (name, MODALITY[name])
    assert isinstance(made.inputs, Sound if made.modality == "audio" else Frames)
    assert json.loads(json.dumps(dict(made.parameters))) == dict(made.parameters)
    assert (made.parameters["weights"] is None) is (made.describe is None)


@each
def test_a_description_has_a_row_a_step_and_its_pool_one_for_the_clip(name):
    (rows,) = described(name, clip(name))
    assert rows.dtype == np.float32
    assert rows.ndim == 2
    assert len(rows) >= 1
    pooled = built(name).pool(rows)
    assert pooled.shape == (built(name).dimension,)
    assert pooled.dtype == np.float32
    assert np.isfinite(rows).all()


@each
@pytest.mark.parametrize("count", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_a_clip_is_described_to_the_bit_as_if_it_were_alone(name, count):
    clips = [clip(name, seed, seconds=0.4 + 0.9 * seed) for seed in range(count)]
    together = described(name, *clips)
    for one, rows in zip(clips, together, strict=True):
        assert np.array_equal(described(name, one)[0], rows)
    assert not np.array_equal(built(name).pool(together[0]), built(name).pool(together[1]))


@each
def test_the_same_clip_has_the_same_description_and_stays_as_it_was(name):
    given = clip(name)
    before = given.copy()
    first, second = (described(name, given)[0] for _ in range(2))
    assert np.array_equal(first, second)
    assert np.array_equal(given, before)


@each
def test_silence_and_black_frames_are_described_in_finite_numbers(name):
    (rows,) = described(name, clip(name, seed=-1))
    assert np.isfinite(rows).all()
    assert np.isfinite(built(name).pool(rows)).all()


@each
def test_what_a_decoding_process_runs_can_be_sent_there(name):
    prepare = pickle.loads(pickle.dumps(built(name).prepare))
    assert np.array_equal(prepare(clip(name)), built(name).prepare(clip(name)))


def test_what_a_decoding_process_runs_needs_no_torch():
    modules = set()
    for name in HERE:
        prepare = built(name).prepare
        function = prepare.func if isinstance(prepare, partial) else prepare
        modules.add(function.__module__)
    code = (
        f"import importlib, sys; [importlib.import_module(m) for m in {sorted(modules)}]; print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_every_exception_names_an_extractor():
    assert ABSENT.keys() <= MODALITY.keys()
