"""A job describes the modalities that are named, or without names those that its media have."""

import csv
import dataclasses
import json
import shutil

import numpy as np
import pytest
from click.testing import CliRunner

import aadml
from aadml.cli import cli
from aadml.feature_extraction.backbones import extractor, mean_over_time
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.frontends.whitening import PcaWhitening
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.jobs import job
from aadml.feature_extraction.jobs.merge import merge
from aadml.feature_extraction.jobs.status import status
from aadml.feature_extraction.manifest import read_manifest
from tests.feature_extraction.small_jobs import extract

SILENT, BLIND, BOTH = "silent.mp4", "blind.wav", "both.mp4"


@pytest.fixture(scope="module")
def media(tmp_path_factory, render):
    folder = tmp_path_factory.mktemp("media")
    render(folder / SILENT, tone=None)
    render(folder / BLIND, picture=False, codecs=("", "pcm_s16le"))
    render(folder / BOTH)
    return folder


@pytest.fixture
def manifest(media, tmp_path):
    """Write a manifest of some of the media, each under a name of its own."""

    def written(*names):
        with (tmp_path / "manifest.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["id", "media", "label", "split"])
            for number, name in enumerate(names):
                writer.writerow([number, f"{number}-{name}", number % 2, "train"])
                shutil.copy(media / name, tmp_path / f"{number}-{name}")
        return tmp_path / "manifest.csv"

    return written


def described(path):
    content = read_features(path)
    assert set(content.features) == set(content.provenance)
    return sorted(content.features)


def command(*arguments):
    result = CliRunner().invoke(cli, [*map(str, arguments), "--workers", "1"])
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("names", "modalities"),
    [
        ({}, {"audio": "log-mel", "visual": "hog-color"}),
        ({"audio": "log-mel"}, {"audio": "log-mel"}),
        ({"visual": "hog-color"}, {"visual": "hog-color"}),
        ({"audio": "none"}, {"visual": "hog-color"}),
        ({"visual": "none"}, {"audio": "log-mel"}),
        ({"audio": "log-mel", "visual": "none"}, {"audio": "log-mel"}),
        ({"audio": "none", "visual": "hog-color"}, {"visual": "hog-color"}),
    ],
)
def test_the_modalities_that_are_named_are_described_by_function_and_command(manifest, tmp_path, names, modalities):
    place = manifest(BOTH, BOTH)
    aadml.extract(place, tmp_path / "python.h5", **names, workers=1)
    options = [argument for modality, name in names.items() for argument in (f"--{modality}", name)]
    code, output = command("extract", place, "-o", tmp_path / "command.h5", *options, "--json")
    assert code == 0, output
    assert json.loads(output.splitlines()[-1])["modalities"] == [*modalities]
    origins = read_features(tmp_path / "python.h5").provenance
    assert {modality: origin["extractor"] for modality, origin in origins.items()} == modalities
    assert (tmp_path / "python.h5").read_bytes() == (tmp_path / "command.h5").read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"audio": "none", "visual": "none"}, "nothing is left to extract"),
        (
            {"recipe": "paper-pca", "audio": "vggish"},
            "--recipe paper-pca sets the extractors of sound and pictures, so --audio and --visual cannot be passed",
        ),
        ({"recipe": "paper-pca", "visual": "none"}, "--recipe paper-pca sets the extractors"),
        ({"audio": "log-mel", "options": {"visual": {"frames_per_second": 2}}}, "this job has no visual extractor"),
    ],
)
def test_names_that_contradict_each_other_are_refused(manifest, tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        aadml.extract(manifest(BOTH), tmp_path / "f.h5", **options)


def test_no_options_for_an_absent_extractor_are_no_error():
    (chosen,) = job.choose_extractors({"audio": "log-mel"}, {"visual": {}})
    assert chosen.name == "log-mel"


@pytest.mark.parametrize(("name", "kept", "lacking"), [(BLIND, "audio", "visual"), (SILENT, "visual", "audio")])
@pytest.mark.parametrize("named", [False, True])
def test_a_modality_that_every_clip_lacks_is_not_written(manifest, tmp_path, name, kept, lacking, named):
    options = ["--audio", "log-mel", "--visual", "hog-color"] if named else []
    line = ["extract", manifest(name, name), "-o", tmp_path / "f.h5", *options]
    code, output = command(*line)
    assert code == 0, output
    assert described(tmp_path / "f.h5") == [kept]
    assert f"every clip lacks {lacking}, so no {lacking} features are written" in output
    assert read_features(tmp_path / "f.h5").present == {}
    content = (tmp_path / "f.h5").read_bytes()
    assert "2 from an earlier call" in command(*line)[1]
    assert (tmp_path / "f.h5").read_bytes() == content
    shutil.copy(tmp_path / f"0-{name}", tmp_path / "spare")
    manifest(name, BOTH)
    assert "1 from an earlier call" in command(*line)[1]
    assert described(tmp_path / "f.h5") == ["audio", "visual"]
    assert read_features(tmp_path / "f.h5").has(lacking).tolist() == [False, True]
    assert status(tmp_path / "f.h5").done == 2


@pytest.mark.parametrize("names", [(BLIND, BLIND, BLIND), (BLIND, BOTH, BLIND), (SILENT, BLIND, SILENT), (SILENT,) * 3])
def test_shards_agree_with_the_whole_on_the_modalities(manifest, tmp_path, names):
    place = manifest(*names)
    whole = aadml.extract(place, tmp_path / "whole.h5", workers=1)
    for number in range(2):
        aadml.extract(place, tmp_path / "f.h5", shard=(number, 2), workers=1)
    if whole.path is None:
        with pytest.raises(InputError, match="contains no clips"):
            merge((), tmp_path / "f.h5")
        return
    merged = merge((), tmp_path / "f.h5")
    assert merged.failures == whole.failures
    assert (tmp_path / "f.h5").read_bytes() == (tmp_path / "whole.h5").read_bytes()
    assert sorted(merged.dimensions) == described(tmp_path / "f.h5")


@pytest.mark.parametrize("sequence", [False, True])
def test_nothing_is_fitted_to_a_modality_that_every_clip_lacks(manifest, tmp_path, sequence):
    fitted = dataclasses.replace(
        extractor("hog-color", "visual"), pool=mean_over_time, dimension=3, fit=PcaWhitening(3)
    )
    rows, both = read_manifest(manifest(BLIND, BLIND, BLIND)), [extractor("log-mel", "audio"), fitted]
    outcome = extract(rows, tmp_path / "whole.h5", both, workers=1, sequence=sequence)
    assert [each.modality for each in outcome.extractors] == ["audio"]
    for number in range(2):
        extract(rows, tmp_path / f"{number}.h5", both, workers=1, sequence=sequence, shard=(number, 2))
    merge([tmp_path / f"{number}.h5" for number in range(2)], tmp_path / "f.h5")
    assert (tmp_path / "f.h5").read_bytes() == (tmp_path / "whole.h5").read_bytes()


@pytest.mark.parametrize("shard", [(0, 1), (1, 2)])
def test_without_names_a_modality_is_left_out_for_which_the_manifest_lists_no_media(media, tmp_path, shard):
    lines = ["id,audio,visual,label,split", *(f"{number},{media / BLIND},,a,train" for number in range(2))]
    (tmp_path / "manifest.csv").write_text("\n".join(lines))
    outcome = aadml.extract(tmp_path / "manifest.csv", tmp_path / "f.h5", shard=shard, workers=1)
    assert (outcome.failures, described(outcome.path)) == ((), ["audio"])
    assert np.isfinite(read_features(outcome.path).features["audio"]).all()


@pytest.fixture
def built(monkeypatch):
    """The arguments of every extractor that is built, and the names of weights that are fetched."""
    built = []

    @dataclasses.dataclass(frozen=True)
    class Built:
        about: dict = dataclasses.field(default_factory=dict)

    monkeypatch.setattr(job, "fetch", lambda names: built.append(names))
    monkeypatch.setattr(job, "extractor", lambda *arguments: built.append(arguments) or Built())
    return built


def test_a_recipe_fetches_its_weights_unless_others_or_options_are_passed(built):
    extractors = job.choose_extractors({}, recipe="paper-pca")
    assert [one.about for one in extractors] == [{"recipe": "paper-pca"}] * 2
    visual = {"weights": "inception-v3-2015", "reduction": "youtube-8m"}
    assert built == [
        ("vggish", "vggish-pca", "inception-v3-2015", "youtube-8m-pca"),
        ("vggish", "audio", {"variant": "pca"}), ("inception-v3", "visual", visual),
    ]  # fmt: skip
    for given in ({"weights": "untrained"}, {"options": {"audio": {"device": "cpu"}}}):
        built.clear()
        job.choose_extractors({}, recipe="paper-pca", **given)
        assert [arguments[0] for arguments in built] == ["vggish", "inception-v3"]


@pytest.mark.parametrize(
    ("names", "given", "expected"),
    [
        ({}, {"weights": None}, [("log-mel", "audio", None), ("hog-color", "visual", None)]),
        ({"audio": "none"}, {"options": {"visual": {"side": 3}}}, [("hog-color", "visual", {"side": 3})]),
        (
            {"audio": "vggish", "visual": "hog-color"}, {"weights": "w", "options": {"audio": {"device": "cpu"}}},
            [("vggish", "audio", {"device": "cpu", "weights": "w"}), ("hog-color", "visual", None)],
        ),
        (
            {"audio": "vggish"}, {"weights": "w", "options": {"audio": {"weights": "x"}}},
            [("vggish", "audio", {"weights": "x"})],
        ),
    ],
)  # fmt: skip
def test_options_and_weights_reach_their_extractors(built, names, given, expected):
    job.choose_extractors(names, **given)
    assert built == expected


@pytest.mark.parametrize(
    ("names", "given", "says"),
    [
        ({}, {"options": {"hop": 0.5}}, "pass options by modality, as in "),
        ({}, {"options": ["audio"]}, "pass options by modality, as in "),
        ({"audio": "log-mel"}, {"options": {"visual": {"side": 3}}}, "visual.side: this job has no visual extractor"),
        ({"audio": "log-mel"}, {"weights": "w"}, "weights w: none of log-mel accepts weights; leave the weights out"),
        ({"audio": "none", "visual": "none"}, {}, "nothing is left to extract; pass the extractor of a modality"),
    ],
)
def test_options_without_an_extractor_are_refused(built, names, given, says):
    with pytest.raises(InputError, match=says):
        job.choose_extractors(names, **given)
    assert built == []


def test_a_shard_is_not_written_through_a_link_that_nobody_typed(manifest, tmp_path):
    link = tmp_path / "f.0-of-2.h5"
    link.symlink_to(tmp_path / "mine.h5")
    with pytest.raises(InputError, match=r"f\.0-of-2\.h5 is a symbolic link"):
        aadml.extract(manifest(BOTH, BOTH), tmp_path / "f.h5", shard=(0, 2), workers=1)
    assert not (tmp_path / "mine.h5").exists()
