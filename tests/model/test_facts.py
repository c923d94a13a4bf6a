"""Features of another extractor are refused by name; what does not decide values does not count."""

import copy
from dataclasses import replace
from functools import cache

import pytest
from click.testing import CliRunner

import aadml
from aadml.cli import cli
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.backbones import EXTRACTORS, extractor
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.model.facts import difference, fingerprint
from aadml.runs.model_data import read_for

OFFLINE = [
    ("audio", "log-mel", {}),
    ("audio", "vggish", {"weights": "untrained"}),
    ("visual", "hog-color", {}),
    ("visual", "inception-v3", {"weights": "untrained"}),
]
VARIANTS = {
    "vggish": [{"variant": "post-relu"}],
    "inception-v3": [
        {"precision": "bfloat16"},
        {"last_pool": "max"},
        {"frames_per_second": 2.0},
        {"reduction": "own-pca"},
    ],
    "hog-color": [{"frames_per_second": 2.0}],
    "log-mel": [],
}
SAYS_NOTHING = {"torch", "tensorflow", "tensorflow-hub", "numpy", "device", "weight_file", "pca_file", "versions"}
"""Keys that make no other features: they belong to `about`."""


def origin_of(modality, name, options):
    return copy.deepcopy(_origin_of(modality, name, tuple(options.items())))


@cache
def _origin_of(modality, name, options):
    one = extractor(name, modality, dict(options))
    return {"extractor": one.name, "parameters": dict(one.parameters), "about": dict(one.about)}


@pytest.mark.parametrize(("modality", "name", "options"), OFFLINE)
def test_versions_and_names_of_files_are_no_parameters(modality, name, options):
    origin = origin_of(modality, name, options)
    assert not SAYS_NOTHING & set(origin["parameters"])
    other = origin | {"about": {"torch": "1.0", "weight_file": "elsewhere.pth"}}
    assert difference(fingerprint(origin), fingerprint(other)) == ""


def test_the_cases_are_all_that_can_be_made_without_a_download():
    names = {(modality, name) for modality, table in EXTRACTORS.items() for name in table if ":" not in name}
    assert {(modality, name) for modality, name, _ in OFFLINE} == names - {
        ("audio", "vggish-hub"),
        *((m, f"hf-{m}") for m in EXTRACTORS),
    }


@pytest.mark.parametrize(
    ("modality", "name", "options", "changed"),
    [(m, name, options, changed) for m, name, options in OFFLINE for changed in VARIANTS[name]],
)
def test_every_option_that_decides_values_counts(modality, name, options, changed):
    base = {"precision": "float32"} if name == "inception-v3" else {}
    expected = fingerprint(origin_of(modality, name, options | base))
    given = fingerprint(origin_of(modality, name, options | base | changed))
    key, value = next(iter(changed.items()))
    assert f"{name} with {key} {value} instead of {expected['parameters'][key]}" in difference(expected, given)


def test_weights_count():
    origin = origin_of("audio", "vggish", {"weights": "untrained"})
    other = origin | {"parameters": origin["parameters"] | {"weights": "1" * 64}}
    assert "weights 1111" in difference(fingerprint(origin), fingerprint(other))


def test_files_that_keep_versions_among_the_parameters_agree_with_those_that_do_not():
    now = origin_of("audio", "vggish", {"weights": "untrained"})
    before = {"extractor": "vggish", "parameters": now["parameters"] | {"torch": "2.6.0", "weight_file": "vggish.ckpt"}}
    assert fingerprint(before) == fingerprint(now)


@pytest.mark.parametrize(
    "origin", [{}, {"extractor": ""}, {"extractor": "unknown", "layout": "flat"}, {"notes": ["x"]}, {"parameters": {}}]
)
def test_an_origin_that_names_no_extractor_is_unknown(origin):
    assert fingerprint(origin) == {}


@pytest.mark.parametrize("parameters", [None, 3, "x", [1]])
def test_parameters_of_a_wrong_kind_are_none(parameters):
    assert fingerprint({"extractor": "a", "parameters": parameters}) == {"extractor": "a", "parameters": {}}


# a model meets a file

AUDIO = {"extractor": "log-mel", "parameters": {"patch": 96}, "about": {"torch": "2"}}
VISUAL = {"extractor": "hog-color", "parameters": {"side": 64}, "about": {}}


@pytest.fixture(scope="module")
def content():
    drawn = synthetic(classes=3, train=60, valid=15, test=30, dimensions=(6, 8), difficulty=0.2)
    return replace(drawn, provenance={"audio": AUDIO, "visual": VISUAL})


@pytest.fixture(scope="module")
def model(content, tmp_path_factory):
    path = tmp_path_factory.mktemp("train") / "features.h5"
    write_features(path, content)
    return aadml.fit(path, method="cca", settings={"method.dimension": 3})


MEETINGS = {
    "the same": (AUDIO, None, None),
    "another version of a package": (AUDIO | {"about": {"torch": "3"}}, None, None),
    "another extractor": (
        AUDIO | {"extractor": "vggish"},
        "audio features were computed by vggish instead of log-mel",
        None,
    ),
    "another variant": (AUDIO | {"parameters": {"patch": 48}}, "log-mel with patch 48 instead of 96", None),
    "unknown": ({}, None, "does not name the extractor of its audio features; the model expects log-mel"),
}


@pytest.mark.parametrize("case", MEETINGS)
def test_a_model_refuses_features_of_another_origin_by_name(model, content, tmp_path, case):
    audio, refused, warned = MEETINGS[case]
    path, said = tmp_path / "other.h5", []
    write_features(path, replace(content, provenance={"audio": audio, "visual": VISUAL}))
    calls = [
        lambda **more: read_for(model, path, **more),
        lambda **more: aadml.evaluate(model, data=path, **more),
        lambda **more: aadml.embed(model, path, tmp_path / "embedded.h5", **more),
    ]
    for call in calls:
        if refused:
            with pytest.raises(InputError, match=refused):
                call()
            assert not (tmp_path / "embedded.h5").exists()
            call(allow_other_features=True)
        else:
            call(on_note=said.append)
    assert len(said) == (len(calls) if warned else 0)
    assert all(warned in one for one in said)


def test_the_command_line_lets_them_in_where_that_is_meant(model, content, tmp_path):
    folder, path = model.save(tmp_path / "model"), tmp_path / "other.h5"
    write_features(path, replace(content, provenance={"audio": AUDIO | {"extractor": "vggish"}, "visual": VISUAL}))
    for line in (["evaluate", folder, "--data", path], ["embed", folder, path, "-o", tmp_path / "e.h5"]):
        refused = CliRunner().invoke(cli, [str(part) for part in line])
        assert isinstance(refused.exception, InputError)
        assert "--allow-other-features" in str(refused.exception)
        assert CliRunner().invoke(cli, [str(part) for part in [*line, "--allow-other-features"]]).exit_code == 0


@pytest.mark.slow
def test_what_an_extraction_writes_is_what_the_extractor_says(tmp_path):
    from aadml.data.sample_clips import sample_data

    manifest = sample_data(tmp_path / "clips", clips=10, seconds=0.5)
    aadml.extract(manifest, tmp_path / "clips.h5", workers=1)
    written = read_features(tmp_path / "clips.h5").provenance
    for modality, name in (("audio", "log-mel"), ("visual", "hog-color")):
        assert fingerprint(written[modality]) == fingerprint(origin_of(modality, name, {}))
        assert written[modality]["about"] == {}


def test_media_are_refused_where_their_features_cannot_be_made_again(model, content, tmp_path):
    clip = tmp_path / "clip.mp4"
    clip.write_bytes(b"x")
    for origin, message in {
        "an extractor that is not here": ({"extractor": "clap", "parameters": {}}, "clap, is not installed"),
        "another setting of it": (VISUAL, "differs from the extractor of the model's features .hog-color"),
        "fitted matrices": (
            origin_of("visual", "inception-v3", {"weights": "untrained", "reduction": "own-pca"}),
            "fitted to the training clips",
        ),
        "nothing known": ({}, "the extractor of the model's features is unknown"),
        "weights of one's own": (
            {"extractor": "hog-color", "parameters": VISUAL["parameters"] | {"weights": "0" * 64}},
            "instead of 0000",
        ),
    }.values():
        facts = replace(model.facts, features={"visual": fingerprint(origin)})
        with pytest.raises(InputError, match=message):
            replace(model, facts=facts).embed(visual=clip)
