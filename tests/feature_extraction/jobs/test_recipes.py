"""Features by one name: a recipe is what its options say, and the file says it."""

import json

import h5py
import pytest
from click.testing import CliRunner

from aadml.cli import cli
from aadml.feature_extraction.backbones import EXTRACTORS
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues
from aadml.feature_extraction.ground.validation import checked_options
from aadml.feature_extraction.jobs.job import choose_extractors
from aadml.feature_extraction.jobs.recipes import RECIPES


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_names_extractors_and_options_that_there_are(name):
    recipe = RECIPES[name]
    for modality, extractor in (("audio", recipe.audio), ("visual", recipe.visual)):
        factory = EXTRACTORS[modality][extractor]
        assert vars(checked_options(factory, OptionValues(**recipe.options[modality]), extractor, name=extractor))


@pytest.mark.slow
def test_a_recipe_is_the_same_extractors_as_its_options_spelled_out():
    short = choose_extractors({}, {"visual": {"frames_per_second": 2.0}}, "untrained", "paper-own-pca")
    visual = {"reduction": "own-pca", "frames_per_second": 2.0}
    spelled = {"audio": {"variant": "post-relu"}, "visual": visual}
    long = choose_extractors({"audio": "vggish", "visual": "inception-v3"}, spelled, "untrained")
    assert [one.parameters for one in short] == [one.parameters for one in long]
    assert [one.dimension for one in short] == [128, 1024]
    assert {one.about["recipe"] for one in short} == {"paper-own-pca"}
    assert all("recipe" not in one.about for one in long)


def test_options_and_weights_that_are_given_win():
    taken = RECIPES["paper-8bit"].with_options({"visual": {"eight_bit": False}}, weights=None)
    assert taken["visual"] == {"weights": "inception-v3-2015", "reduction": "youtube-8m", "eight_bit": False}
    assert "weights" not in RECIPES["paper-8bit"].with_options(None, weights="folder")["visual"]
    assert RECIPES["paper-8bit"].options["visual"]["eight_bit"] is True
    with pytest.raises(InputError, match="did you mean 'paper-pca'"):
        choose_extractors({}, recipe="paper-pcb")


def test_recipes_are_listed_and_refuse_other_extractors_beside_them(tmp_path):
    listed = CliRunner().invoke(cli, ["list", "feature-recipes"])
    assert [line.split()[0] for line in listed.stdout.splitlines()] == list(RECIPES)
    (tmp_path / "m.csv").write_text("id,media,label,split\na,a.wav,x,train\n")
    arguments = ["extract", str(tmp_path / "m.csv"), "-o", str(tmp_path / "f.h5"), "--recipe", "paper-pca"]
    with pytest.raises(InputError, match="sets the extractors of sound and pictures"):
        CliRunner().invoke(cli, [*arguments, "--audio", "vggish"], catch_exceptions=False)


@pytest.mark.slow
def test_a_feature_file_says_by_which_recipe_it_was_made(tmp_path):
    import aadml

    manifest = aadml.sample_data(tmp_path / "clips", clips=20, seconds=1)
    settings = ("--weights", "untrained", "--set", "visual.reduction=none", "--workers", "1")
    arguments = ["extract", str(manifest), "-o", str(tmp_path / "f.h5"), "--recipe", "paper-own-pca", *settings]
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    with h5py.File(tmp_path / "f.h5") as file:
        said = [json.dumps(json.loads(file[m].attrs[key])) for m in ("audio", "visual") for key in file[m].attrs]
    assert sum("paper-own-pca" in one for one in said) == 2
