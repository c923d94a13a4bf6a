"""What every extractor must hold, present and future, as it comes: with its default options.

A pretrained network of every family stands for the extractors that need one.
"""

import json
import math
import pickle
import re
import subprocess
import sys
import tempfile
from functools import cache, partial
from pathlib import Path
from typing import Literal, get_args, get_origin

import numpy as np
import pytest
from annotated_types import Ge, Gt, Le

from aadml.feature_extraction.backbones import EXTRACTORS, Extractor, extractor, options_of
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import schema
from aadml.feature_extraction.ground.validation import checked
from aadml.feature_extraction.media import Frames, Pictures, Sound, Text
from aadml.feature_extraction.media.pictures import fitted
from tests.feature_extraction.hub.tiny import NETWORKS, SENTENCE, written
from tests.option_leaves import leaves

ABSENT = {"vggish-hub": "its model comes from TensorFlow Hub; tests of its own give it one"} | dict.fromkeys(
    ("hf-audio", "hf-visual", "hf-text"), "needs a model: FAMILIES are tried"
)
MODALITY = {name: modality for modality, table in EXTRACTORS.items() for name in table.places}
EVERY = sorted(MODALITY)
HERE = sorted(set(EVERY) - set(ABSENT))
FAMILIES = {
    f"{name} {modality}": (name, modality) for name, (_, modalities) in NETWORKS.items() for modality in modalities
}
QUICK = ("clap audio", "whisper audio", "clip visual", "siglip2 visual", "bert text", "clip text")
NETWORK_FOLDER = tempfile.TemporaryDirectory()


@pytest.fixture(autouse=True, scope="module")
def cache_folder():
    """Keep the register of networks away from that of this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AADML_CACHE", NETWORK_FOLDER.name)
        yield


@cache
def built(name):
    """An extractor as it comes; a network is untrained."""
    if name in FAMILIES:
        family, modality = FAMILIES[name]
        return extractor(f"hf:{written(family, Path(NETWORK_FOLDER.name))}", modality)
    modality = MODALITY[name]
    untrained = {"weights": "untrained"} if "weights" in options_of(name, modality) else {}
    return extractor(name, modality, untrained)


def clip(name, seed=0, seconds=1.3):
    """A decoded clip: noise, as the extractor wants it; seed -1 is silence and black frames."""
    inputs, random = built(name).inputs, np.random.default_rng(max(seed, 0))
    if isinstance(inputs, Sound):
        samples = random.uniform(-1, 1, int(seconds * inputs.sample_rate)).astype(np.float32)
        return samples * (seed >= 0)
    if isinstance(inputs, Text):
        text = " ".join(SENTENCE.split()[seed : 3 * seed + 2]) if seed >= 0 else "."
        return np.frombuffer(text.encode(), dtype=np.uint8)
    shape = (2, inputs.height or 48, inputs.width or 64, 3)
    frames = random.integers(0, 256, shape, dtype=np.uint8) * np.uint8(seed >= 0)
    return np.stack([fitted(one, inputs) for one in frames]) if isinstance(inputs, Pictures) else frames


def described(name, *clips):
    made = built(name)
    prepared = [made.prepare(one) for one in clips]
    return prepared if made.describe is None else made.describe(prepared)


each = pytest.mark.parametrize(
    "name", [*HERE, *(pytest.param(n, marks=[] if n in QUICK else [pytest.mark.slow]) for n in FAMILIES)]
)


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


def options(name):
    return schema(EXTRACTORS[MODALITY[name]][name])


def borders(metadata):
    """The smallest and the largest number that bounds let through, and the nearest ones that they do not."""
    inside, outside = [], []
    for bound in metadata:
        if isinstance(bound, Gt):
            inside.append(math.nextafter(bound.gt, math.inf))
            outside.append(bound.gt)
        elif isinstance(bound, Ge):
            inside.append(bound.ge)
            outside.append(math.nextafter(bound.ge, -math.inf))
        elif isinstance(bound, Le):
            inside.append(bound.le)
            outside.append(math.nextafter(bound.le, math.inf))
    return inside, outside


def values(option):
    """Values of an option: (some that are possible, its borders among them, some that are not)."""
    possible, impossible = [], [[], {}]
    for kind, metadata in leaves(option.kind):
        if get_origin(kind) is Literal:
            possible += get_args(kind)
        elif kind is float:
            inside, outside = borders(metadata)
            assert len(inside) == len(outside) == 2, f"{option.name} is a number without two bounds"
            possible += inside
            impossible += outside
        else:
            possible += {bool: [True, False], str: ["nowhere"], type(None): [None]}[kind]
    kinds = {type(value) for value in possible}
    foreign = {str: "nothing like this", int: 1, float: math.nan, bool: True, type(None): None}
    impossible += [
        value for kind, value in foreign.items() if kind not in kinds and not (kind is int and float in kinds)
    ]
    if any(get_origin(kind) is Literal for kind, _ in leaves(option.kind)):
        impossible.append("nothing like this")
    return possible, impossible


@each
def test_the_shortest_clip_has_a_length_and_a_batch_has_clips(name):
    assert built(name).minimum_seconds >= 0
    assert built(name).batch_clips > 0


def test_the_shortest_clip_of_an_extractor_is_one_sample_or_frame_by_default():
    assert Extractor.minimum_seconds == 0


OPTIONS = [(name, option.name) for name in EVERY for option in options(name).values()]
each_option = pytest.mark.parametrize(("name", "key"), OPTIONS)


@each_option
def test_the_default_and_the_borders_of_an_option_are_possible(name, key):
    option = options(name)[key]
    for value in [option.default, *values(option)[0]]:
        assert checked(option.kind, value, key) == value


@each_option
def test_what_is_just_outside_is_refused_in_one_line_with_option_and_range(name, key):
    option = options(name)[key]
    for value in values(option)[1]:
        with pytest.raises(InputError, match=rf"^{name}\.{key} is .*; pass {re.escape(option.possible)}") as caught:
            extractor(name, MODALITY[name], {key: value})
        assert "\n" not in str(caught.value)


BESIDE = {"eight_bit": {"reduction": "own-pca"}}
"""What else is given where an option is one of another's value."""
ROUND = {"frames_per_second": [0.5, 2.0, 1000.0]}
"""Values of a number that are possible beside its borders' neighbors."""


def of_network(name):
    return [pytest.mark.slow] if "weights" in options(name) else []


@pytest.mark.parametrize(
    ("name", "key"), [pytest.param(*option, marks=of_network(option[0])) for option in OPTIONS if option[0] in HERE]
)
def test_no_option_is_ignored(name, key):
    """Another value makes other features, and says so among the parameters, or it is refused."""
    untrained = {"weights": "untrained"} if "weights" in options(name) and key != "weights" else {}
    outcomes = set()
    for value in [options(name)[key].default, *ROUND.get(key, values(options(name)[key])[0])]:
        try:
            made = extractor(name, MODALITY[name], untrained | BESIDE.get(key, {}) | {key: value})
            outcomes.add(json.dumps(dict(made.parameters), sort_keys=True))
        except InputError as refusal:
            outcomes.add(str(refusal))
    assert len(outcomes) >= (len(ROUND[key]) + 1 if key in ROUND else 2)


@each
def test_it_says_what_it_is(name):
    made = built(name)
    modality = FAMILIES[name][1] if name in FAMILIES else MODALITY[name]
    assert (made.name, made.modality) == (f"hf-{modality}" if name in FAMILIES else name, modality)
    assert isinstance(made.inputs, {"audio": Sound, "visual": Frames, "text": Text}[modality])
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
    for name in [*HERE, *QUICK]:
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
