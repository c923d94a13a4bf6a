import re

import pytest
import yaml
from click.testing import CliRunner

from aadml.configuration.config import ConfigFile, resolve
from aadml.configuration.files import open_config
from aadml.configuration.from_arguments import assemble
from aadml.configuration.overrides import parse_setting, with_setting
from aadml.configuration.presets import configs_folder
from aadml.feature_extraction.ground.errors import InputError
from aadml.studies.grid import parse_axis


def config(*settings, base="aadml", **flags):
    return assemble(config=base, settings=settings, **flags)


@pytest.mark.parametrize("path", sorted(configs_folder().glob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_config_resolves_and_says_what_it_is(path):
    resolved = resolve(open_config(path).values)
    assert resolved.training.epochs >= 1
    first = path.read_text(encoding="utf-8").splitlines()[0]  # the description in `aadml list configs`
    assert re.fullmatch(r"# .+\.", first), "the first line is not a whole sentence"


@pytest.mark.parametrize("path", sorted(configs_folder().glob("*.yaml")), ids=lambda path: path.stem)
def test_a_resolved_config_read_again_is_the_same(path):
    once = resolve(open_config(path).values)
    again = resolve(yaml.safe_load(once.yaml()))
    assert again.yaml() == once.yaml()


@pytest.mark.parametrize("loss", ["aa-triplet", {"name": "aa-triplet", "margin": 0.5}])
def test_a_set_proxy_replaces_that_of_the_prefix(loss):
    file = ConfigFile({"loss": loss})
    for settings, name in (({"proxy": "identity"}, "identity"), ({"proxy.name": "memory"}, "memory")):
        resolved = file.changed(settings).resolve()
        assert (resolved["proxy"]["name"], resolved["loss"]["name"]) == (name, "triplet")
        assert resolved["loss"]["margin"] == file.resolve()["loss"]["margin"]
    for settings in ({"proxy": {"k": 2}}, {"proxy.k": 2}, {"proxy.k": 2, "loss": "aa-hinge"}):
        proxy = file.changed(settings).resolve()["proxy"]
        assert (proxy["name"], proxy["k"]) == ("anchor-aware", 2)


def test_the_prefix_chooses_the_proxy_and_its_absence_takes_it_away():
    assert config(loss="aa-triplet")["proxy"]["name"] == "anchor-aware"
    assert config(loss="aa-triplet")["proxy"]["k"] == 3
    assert config(loss="triplet")["proxy"] == {"name": "identity"}
    assert config(loss="aa-contrastive")["loss"]["name"] == "contrastive"


def test_a_recipe_is_a_loss_with_its_selection():
    hard = config(loss="aa-hard-triplet")
    assert hard["loss"]["name"] == "triplet"
    assert hard["selection"]["name"] != "all"
    assert hard.label() == "aa-hard-triplet"
    complete = config(loss="complete-triplet")
    assert complete["directions"] == ("both-both",)


def test_a_selection_ranks_in_the_score_of_the_loss_unless_it_names_its_own():
    hard = config("loss.score=cosine", loss="hard-triplet")
    assert hard["selection"]["score"] == "cosine"
    assert config(loss="hard-triplet")["selection"]["score"] == "squared-euclidean"
    own = config("loss.score=cosine", "selection.score=euclidean", loss="hard-triplet")
    assert own["selection"]["score"] == "euclidean"
    assert "score" not in config("loss.score=cosine", loss="triplet")["selection"]


def test_choosing_another_loss_drops_what_belonged_to_the_one_before():
    values = with_setting(open_config("aadml").values, "loss", "hard-triplet")
    plain = resolve(with_setting(values, "loss", "contrastive"))
    assert plain["selection"]["name"] == "all"
    assert "margin" in plain["loss"]
    assert plain.label() == "contrastive"


@pytest.mark.parametrize(
    ("settings", "label", "selection"),
    [
        (["loss.name=contrastive"], "contrastive", "all"),
        (["loss.name=aa-contrastive"], "aa-contrastive", "all"),
        (["loss.name=complete-triplet"], "complete-triplet", "all"),
        ({"loss": {"name": "contrastive"}}, "contrastive", "all"),
        ({"loss": {"name": "aa-hard-triplet", "margin": 0.5}}, "aa-hard-triplet", "hardest"),
        (["selection=all"], "triplet", "all"),
        (["selection=semi-hard", "loss.name=triplet"], "triplet", "semi-hard"),
        (["selection=semi-hard", "loss=triplet"], "triplet", "semi-hard"),
        (["selection=semi-hard", "loss=complete-triplet"], "complete-triplet", "all"),
        (["selection.score=cosine", "loss.margin=0.5", "directions=both-both"], "hard-triplet", "hardest"),
    ],
)
def test_a_config_has_the_name_of_a_recipe_only_with_its_loss_and_sections(settings, label, selection):
    changed = assemble(settings, loss="hard-triplet")
    assert (changed.label(), changed.section("selection").name) == (label, selection)


def test_another_loss_drops_the_options_of_the_recipe_and_keeps_others():
    changed = assemble(["loss.weight=0.25", "loss.name=contrastive"], loss="triplet-sum")
    assert (changed["loss"]["weight"], changed["loss"]["reduction"]) == (
        0.25,
        config(loss="contrastive")["loss"]["reduction"],
    )


def test_a_file_may_not_name_a_recipe_whose_sections_it_replaces():
    assert resolve({"recipe": "hard-triplet", "loss": "triplet"}).label() == "triplet"
    assert resolve({"loss": "complete-triplet", "directions": "all"}).label() == "triplet"
    assert resolve({"loss": "complete-triplet"}).label() == "complete-triplet"
    with pytest.raises(InputError, match=r"^recipe"):
        resolve({"recipe": "hard", "loss": "triplet"})


def test_flags_win_over_the_file_and_set_wins_over_flags():
    flags = {"training.epochs": 7}
    assert config(**flags)["training"]["epochs"] == 7
    assert config("training.epochs=9", **flags)["training"]["epochs"] == 9
    assert config("loss.margin=0.5")["loss"]["margin"] == 0.5
    assert config("proxy.k=5")["proxy"]["k"] == 5


@pytest.mark.parametrize(
    ("setting", "hint"),
    [
        ("loss.margn=1.0", "did you mean 'margin'"),
        ("training.epoch=3", "did you mean 'epochs'"),
        ("trainin.epochs=3", "did you mean 'training'"),
        ("epochs=3", "did you mean 'training.epochs'?"),
        ("margin=0.3", "did you mean 'loss.margin'?"),
        ("network.droput=0.2", "did you mean 'dropout'"),
        ("inputs.scalling=none", "did you mean 'scaling'"),
        ("proxy.readin=R3", "did you mean 'reading'"),
        ("readout.name=posteror", "did you mean 'posterior'"),
        ("method.dimension=3", "there are none"),
        ("training.epochs=many", "training.epochs"),
        ("training.epochs=0", "a whole number from 1"),
        ("seed=-1", "seed"),
        ("validation=1.5", "validation"),
        ("proxy.k", "key=value"),
        ("proxy.k=[1", "not YAML"),
    ],
)
def test_what_does_not_exist_is_answered_with_what_does(setting, hint):
    with pytest.raises(InputError) as error:
        config(setting)
    assert hint in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [("loss.margin", 1), ("loss", 5), ("loss", "aa-hard-triplet"), ("proxy.k", 2), ("selection.k", 2), ("network", {})],
)
def test_a_section_that_a_method_does_not_have_is_refused_before_its_content_is_read(key, value):
    section = key.partition(".")[0]
    with pytest.raises(InputError, match=f"^{section}: method cca has no such key; choose from method, "):
        assemble(method="cca", settings={key: value})


def test_an_unknown_loss_is_answered_with_the_nearest():
    with pytest.raises(InputError, match="did you mean 'triplet'"):
        config(loss="tripplet")
    with pytest.raises(InputError, match="did you mean"):
        config(loss="aa-tripplet")


def test_a_missing_config_names_the_shipped_ones(tmp_path):
    with pytest.raises(InputError, match="recommended"):
        open_config("nowhere.yaml")
    (tmp_path / "list.yaml").write_text("- 1\n")
    with pytest.raises(InputError, match="mapping"):
        open_config(tmp_path / "list.yaml")
    (tmp_path / "broken.yaml").write_text("a: [1\n")
    with pytest.raises(InputError, match="not YAML"):
        open_config(tmp_path / "broken.yaml")


@pytest.mark.parametrize("written", ["5e-4", "5.0e-4", "0.0005", "5E-4", "+5e-4", ".5e-3"])
def test_a_number_is_a_number_as_people_write_it(written, tmp_path):
    assert config(f"training.learning_rate={written}")["training"]["learning_rate"] == 0.0005
    (tmp_path / "c.yaml").write_text(f"method: aadml\nloss: triplet\ntraining: {{learning_rate: {written}}}\n")
    assert resolve(open_config(tmp_path / "c.yaml").values).training.learning_rate == 0.0005
    axis = parse_axis(f"training.learning_rate=1e-3,{written}")
    assert axis.values == (0.001, 0.0005)


def test_values_of_set_are_yaml():
    assert parse_setting("directions=[both-both]") == ("directions", ["both-both"])
    assert parse_setting("proxy.k=5") == ("proxy.k", 5)
    assert parse_setting("training.learning_rate=1.0e-3") == ("training.learning_rate", 1e-3)


def test_the_list_command_names_every_table():
    from aadml.cli import COMMANDS, cli
    from aadml.configuration.catalog import TABLES

    assert "list" in COMMANDS
    for kind in TABLES:
        result = CliRunner().invoke(cli, ["list", kind])
        assert result.exit_code == 0, result.output
        assert len(result.output.splitlines()) >= 2


def test_a_run_is_called_after_the_loss_that_trains_it():
    assert resolve(open_config("recommended").values).label() == "ce"
    assert resolve(open_config("aadml").values).label() == "aa-triplet"
    assert resolve(open_config("cca").values).label() == "cca"
    assert assemble(config="recommended", settings=("loss.weight=1",)).label() == "triplet"
    assert assemble(config="aadml", settings=("loss.weight=0",)).label() == "row-norm"
