"""`aadml weights`: list, get and verify, against the toy server."""

import json
import logging

import pytest
from click.testing import CliRunner

import aadml
from aadml.cli import cli
from aadml.feature_extraction.backbones import extractor
from aadml.feature_extraction.ground.errors import DamagedFileError, InputError
from aadml.feature_extraction.jobs.recipes import RECIPES
from aadml.feature_extraction.jobs.weights import fetch
from aadml.feature_extraction.weights.table import WEIGHTS, weights_folder
from tests.feature_extraction.weights.conftest import server  # noqa: F401 - a fixture
from tests.feature_extraction.weights.toy_server import CONTENT, SHA256, leftovers, toy

pytestmark = pytest.mark.usefixtures("server")


def called(*arguments):
    result = CliRunner().invoke(cli, ["weights", *map(str, arguments)])
    return result.exit_code, result.output


def test_get_downloads_once_and_prints_the_checksum_and_what_is_checked():
    (state,) = aadml.weights("get", "toy")
    assert (state.present, state.sha256, state.problem) == (True, SHA256, "")
    assert state.check == "the first 8 digits of the SHA-256"
    code, output = called("get", "toy")
    assert code == 0
    assert output.startswith(f"toy: present, SHA-256 {SHA256}; checked: the first 8 digits of the SHA-256; CC0-1.0; ")


def test_the_recorded_checksum_pins_a_later_download(server, caplog):  # noqa: F811
    toy(sha256=None)
    with caplog.at_level(logging.WARNING):
        aadml.weights("get", "toy")
    assert SHA256 in caplog.text
    (weights_folder() / "toy.bin").unlink()
    server.content = CONTENT + b"!"
    with pytest.raises(DamagedFileError, match=f"was {SHA256[:16]}... at first use"):
        aadml.weights("get", "toy")
    assert leftovers() == ["checksums.json"]


def test_get_from_a_folder_needs_no_network_and_checks_the_content(server, tmp_path):  # noqa: F811
    (tmp_path / "stick").mkdir()
    with pytest.raises(InputError, match=r"stick/toy\.bin does not exist; download the file from http"):
        aadml.weights("get", "toy", folder=tmp_path / "stick")
    (tmp_path / "stick" / "toy.bin").write_bytes(CONTENT[:-1] + b"!")
    with pytest.raises(DamagedFileError, match="not the published"):
        aadml.weights("get", "toy", folder=tmp_path / "stick")
    assert leftovers() == []
    (tmp_path / "stick" / "toy.bin").write_bytes(CONTENT)
    code, output = called("get", "toy", "--from", tmp_path / "stick")
    assert (code, server.asked) == (0, [])
    assert SHA256 in output


def test_verify_lists_damage_and_absence():
    assert called("verify", "toy")[0] == 1
    assert not aadml.weights("verify", "toy")[0].present
    assert called("verify")[0] == 0  # nothing is present, so nothing is damaged
    aadml.weights("get", "toy")
    assert called("verify", "toy")[0] == 0
    (weights_folder() / "toy.bin").write_bytes(b"damaged")
    code, output = called("verify")
    assert code == 1
    assert "toy: DAMAGED: " in output
    damaged = json.loads(called("verify", "toy", "--json")[1])[0]
    assert "not the published" in damaged["problem"]


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_stands_for_the_files_that_its_extractors_read(recipe, monkeypatch):
    """`weights` of a recipe is what an extraction opens: the first absent file is of the recipe, until none is."""
    listed = aadml.weights("list", recipe)
    assert tuple(state.name for state in listed) == RECIPES[recipe].weights
    asked = []

    def absent(name, folder=None):
        asked.append(name)
        raise InputError(name)

    for module in ("weights.resolve", "backbones.inception_v3"):
        monkeypatch.setattr(f"aadml.feature_extraction.{module}.weights_path", absent)
    named = RECIPES[recipe]
    for modality, name in (("audio", named.audio), ("visual", named.visual)):
        with pytest.raises(InputError):
            extractor(name, modality, named.options[modality])
    assert set(asked) <= set(named.weights)
    variant = named.options["audio"]["variant"]
    assert ("vggish-pca" in named.weights) == ("pca" in variant)
    assert ("youtube-8m-pca" in named.weights) == (named.options["visual"].get("reduction") == "youtube-8m")


def test_the_error_of_a_recipe_lists_all_absent_files(monkeypatch):
    toy(url="http://127.0.0.1:9/toy.bin")
    with pytest.raises(InputError, match=r"Connection refused.* \(also absent: vggish-pca, youtube-8m-pca\)$"):
        fetch(["toy", "vggish-pca", "youtube-8m-pca"])


def test_a_damaged_record_is_an_error_in_one_line():
    weights_folder().mkdir(parents=True)
    (weights_folder() / "checksums.json").write_text("[1]")
    with pytest.raises(DamagedFileError, match=r"not a JSON object; .* or delete the file"):
        aadml.weights()


WRONG = {
    "an unknown name": (("get", "vgish"), "did you mean 'vggish'"),
    "no name": (("get",), "the name is missing"),
    "a folder without get": (
        ("list", "toy", "--from", "x"),
        "the folder is x, but only `aadml weights get` copies files; leave the folder out",
    ),
    "a model of the hub to verify": (("verify", "hf:a/b"), "can only be downloaded"),
    "another action": (("fetch",), "is not one of"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_calls_are_refused_in_a_line(case, capsys):
    arguments, message = WRONG[case]
    result = CliRunner().invoke(cli, ["weights", *arguments])
    assert result.exit_code != 0
    assert message in result.output + str(result.exception)


def test_every_entry_says_what_is_checked_and_no_checksum_is_invented():
    checks = {name: entry.check for name, entry in WEIGHTS.items() if name != "toy"}
    assert checks["panns-cnn14"] == "the SHA-256"
    assert checks["vggish"] == "the MD5 of the publisher"
    for name in ("youtube-8m-pca", "panns-cnn10", "panns-resnet38"):
        assert checks[name] == "no published checksum"
    for name in ("tv", "tf", "tf-adv", "gluon"):
        assert checks[f"inception-v3-{name}"].endswith("the address is of the newest revision, not of a fixed one")
    assert {len(entry.sha256) for entry in WEIGHTS.values() if entry.sha256} == {8, 64}
