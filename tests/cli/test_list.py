import json
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from aadml.cli import cli
from aadml.cli.settings import DescribedFlag
from aadml.configuration.catalog import SECTIONS, TABLES, WITH_OPTIONS, listing, options
from aadml.configuration.config import FIXED, TOWERS, Common
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.import_paths import imported
from aadml.feature_extraction.ground.options import schema
from aadml.losses import LOSSES
from aadml.methods.towers.options import PretrainedOptions
from aadml.methods.training.settings import Training
from aadml.objective.recipes import RECIPES
from tests import sections

HEAVY = {"torch", "numpy", "scipy", "av", "cv2", "h5py", "sklearn", "yaml"}


def test_listing_imports_neither_torch_nor_any_other_large_package():
    kinds = [kind for kind in TABLES if kind != "extractors"]
    code = (
        "import sys; from click.testing import CliRunner; from aadml.cli import cli\n"
        f"for kind in {kinds!r}: assert CliRunner().invoke(cli, ['list', kind]).exit_code == 0, kind\n"
        f"print(sorted({HEAVY!r} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_listing_extractors_imports_no_torch():
    code = (
        "import sys; from click.testing import CliRunner; from aadml.cli import cli\n"
        "assert CliRunner().invoke(cli, ['list', 'extractors']).exit_code == 0\n"
        "print(sorted({'torch', 'av', 'cv2'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("kind", TABLES)
def test_every_entry_has_a_line_and_an_origin(kind):
    entries = json.loads(CliRunner().invoke(cli, ["list", kind, "--json"]).stdout)
    assert entries
    for name, entry in entries.items():
        assert entry["description"], name
        assert entry["from"] == "aadml", name
        assert entry["place"], name


def test_a_name_lists_the_options_of_its_entry():
    answer = CliRunner().invoke(cli, ["list", "methods", "dscmr"])
    assert answer.exit_code == 0
    assert "dimension = 1024    (a whole number from 1 to 65536)\n    size of the common space" in answer.stdout


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_lists_its_loss_as_the_recipe_sets_it(name):
    found = json.loads(CliRunner().invoke(cli, ["list", "losses", name, "--json"]).stdout)
    given = {key: value for key, value in RECIPES[name].loss.items() if key != "name"}
    assert {key: found[key]["default"] for key in given} == given
    assert set(schema(LOSSES[RECIPES[name].loss["name"]])) < set(found)


@pytest.mark.parametrize("kind", WITH_OPTIONS)
def test_the_options_of_every_entry_have_a_default_a_range_and_a_sentence(kind):
    for entry in listing(kind):
        for option in options(kind, entry.name):
            assert option.sentence, (entry.name, option.name)
            assert option.possible, (entry.name, option.name)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["methods", "dscm"], "did you mean 'dscmr'?"),
        (["sections", "trainig"], "did you mean 'training'?"),
        (["configs", "aadml"], "list: configs have no options; choose from losses,"),
        (["metrics", "recall"], "list: metrics have no options; choose from losses,"),
    ],
)
def test_a_name_that_has_no_options_is_refused_in_one_line(words, message):
    answer = CliRunner().invoke(cli, ["list", *words])
    assert isinstance(answer.exception, InputError)
    assert message in str(answer.exception)


def test_the_sections_are_those_of_the_config():
    declared = {
        "general": (Common,),
        **{name: (entry,) for name, entry in sections.UNNAMED.items()},
        **{name: (entry,) for name, entry in FIXED.items()},
        TOWERS: (PretrainedOptions,),
        **{name: tuple(reversed(kind.groups)) for name, kind in sections.KINDS.items() if kind.groups},
    }
    assert {name: tuple(imported(place) for place in places) for name, places in SECTIONS.items()} == declared


def test_the_help_of_a_flag_that_sets_a_key_is_the_sentence_of_its_declaration():
    text = " ".join(CliRunner().invoke(cli, ["train", "--help"]).stdout.split())
    epochs = schema(Training)["epochs"].sentence
    assert f"--epochs INTEGER {epochs[0].upper()}{epochs[1:]} [training.epochs]" in text
    assert "--seed INTEGER Seed of initial weights" in text


def test_the_help_of_a_flag_is_the_sentence_of_the_argument_in_the_docstring():
    text = " ".join(CliRunner().invoke(cli, ["extract", "--help"]).stdout.split())
    assert "--time-limit FLOAT Limit on the processor time to decode one modality of a clip, in seconds." in text


def test_every_described_flag_has_a_sentence():
    flags = 0
    for name in cli.list_commands(click.Context(cli)):
        command = cli.get_command(click.Context(cli), name)
        context = click.Context(command)
        for flag in (option for option in command.params if isinstance(option, DescribedFlag) and not option.hidden):
            assert flag.get_help_record(context), (name, flag.name)
            assert flag.help.endswith((".", "]")), (name, flag.name, flag.help)
            flags += 1
    assert flags > 50


def test_the_help_lists_the_commands_after_the_command_list_was_imported(aadml):
    assert aadml("list", "losses")[0] == 0  # rebinds the name `list` in the package of the commands
    code, out, _ = aadml("--help")
    assert (code, "sample-data" in out) == (0, True)
