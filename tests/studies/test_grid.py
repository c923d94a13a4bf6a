import re
from types import SimpleNamespace

import pytest

from aadml.configuration.config import ConfigFile, resolve
from aadml.configuration.files import open_config
from aadml.configuration.presets import configs_folder
from aadml.feature_extraction.ground.errors import InputError
from aadml.studies.grid import (
    Axis,
    Overrides,
    Point,
    at_most,
    axes_of,
    cells_of,
    folder_name,
    parse_axis,
    points,
    set_again,
)

BASE = resolve(open_config("aadml").values | {"data": "features.h5"})


def cells(*texts):
    return cells_of(points(BASE, [parse_axis(text) for text in texts], Overrides()))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("proxy.k=1..4", (1, 2, 3, 4)),
        ("proxy.k=1..7..3,10", (1, 4, 7, 10)),
        ("proxy.k=2..2,-3..-2..1", (2, -3, -2)),
        ("loss=triplet, aa-triplet", ("triplet", "aa-triplet")),
        ("network.hidden=[16],[32, 8]", ([16], [32, 8])),
        ("training.learning_rate=1e-4,0.001", (1e-4, 1e-3)),
        ("train_per_class=5,null", (5, None)),
    ],
)
def test_an_axis_is_read_from_text(text, values):
    assert parse_axis(text).values == values


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("proxy.k", "key=values"),
        ("proxy.k=", "key=values"),
        ("proxy.k=3..1", "empty"),
        ("proxy.k=1..3..0", "empty"),
        ("=1", "key=values"),
        ("proxy.k=1..3,2", "is repeated"),
        ("seed=0..4", "--seeds"),
        ("loss=[a", "--over loss=.a: .+; write YAML values, separated by commas"),
    ],
)
def test_a_bad_axis_is_told(text, hint):
    with pytest.raises(InputError, match=hint):
        parse_axis(text)


def test_axes_are_read_from_texts_and_from_values_of_keys():
    assert axes_of(["proxy.k=1..2", "loss=triplet"]) == [Axis("proxy.k", (1, 2)), Axis("loss", ("triplet",))]
    assert axes_of("proxy.k=1..2") == axes_of({"proxy.k": "1..2"}) == axes_of({"proxy.k": range(1, 3)})
    assert axes_of({"loss": "triplet", "proxy.k": 3}) == [Axis("loss", ("triplet",)), Axis("proxy.k", (3,))]


@pytest.mark.parametrize(
    ("over", "hint"),
    [
        ({"seed": [0, 1]}, "--seeds"),
        ({"proxy.k": [1, 1]}, "is repeated"),
        ({"proxy.k": []}, "no value"),
        (-1, "over has type int; pass a mapping of keys to values, or texts"),
    ],
)
def test_bad_values_of_keys_are_told_too(over, hint):
    with pytest.raises(InputError, match=hint):
        axes_of(over)


def test_a_setting_that_no_run_would_have_is_refused():
    with pytest.raises(
        InputError, match=r"--over training.epochs: training.epochs is also set to \d+ for all runs; leave out"
    ):
        set_again(Overrides({"training.epochs": 3}), [parse_axis("training.epochs=1,2")])
    with pytest.raises(InputError, match="--set seed=3: every run has its own"):
        set_again(Overrides({"seed": 3}), [parse_axis("training.epochs=1,2")])


def test_an_unknown_key_or_value_is_refused_before_anything_runs():
    with pytest.raises(InputError, match="margin"):
        cells("loss.margn=1,2")
    with pytest.raises(InputError, match="triplett"):
        cells("loss=aa-triplett")
    with pytest.raises(InputError, match="occurs twice"):
        cells("proxy.k=1", "proxy.k=2")


def test_two_cells_whose_values_have_the_same_text_get_different_names():
    of = [
        Point(Overrides({"proxy.k": None}), points(BASE, [Axis("proxy.k", (k,))], Overrides())[0].config)
        for k in (1, 2)
    ]
    first, second = cells_of(of)
    assert first.name == "aa-triplet"
    assert re.fullmatch("aa-triplet-[0-9a-f]{8}", second.name)


def test_the_grid_is_crossed_and_what_changes_nothing_is_one_cell():
    found = cells("proxy.k=1..3", "loss=triplet,aa-triplet")
    assert [cell.settings.values for cell in found] == [
        {"proxy.k": None, "loss": "triplet"},
        {"proxy.k": 1, "loss": "aa-triplet"},
        {"proxy.k": 2, "loss": "aa-triplet"},
        {"proxy.k": 3, "loss": "aa-triplet"},
    ]
    assert found[2].config["proxy"]["k"] == 2
    assert found[2].name == "proxy.k=2_loss=aa-triplet"


def test_options_of_a_loss_are_set_after_the_loss():
    found = cells("loss.margin=0.5,1.5", "loss=triplet,aa-hard-triplet")
    assert sorted({cell.config["loss"]["margin"] for cell in found}) == [0.5, 1.5]
    assert len(found) == 4
    hard = next(cell for cell in found if cell.settings.values["loss"] == "aa-hard-triplet")
    assert hard.config["selection"]["name"] == "hardest"
    found = cells("selection=all,semi-hard", "loss=triplet,complete-triplet")
    assert [cell.config["selection"]["name"] for cell in found] == ["all", "all", "semi-hard", "semi-hard"]
    assert [cell.name for cell in found] == [  # of earlier versions, whose runs continue
        f"selection={name}_loss={loss}" for name in ("all", "semi-hard") for loss in ("triplet", "complete-triplet")
    ]


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (("loss=hard-triplet,triplet", "selection=all"), {"loss=triplet_selection=all": None}),
        (("loss=hard-triplet,triplet", "selection=hardest"), {"loss=hard-triplet_selection=hardest": "hard-triplet"}),
        (("selection=semi-hard", "loss.name=triplet,hard-triplet"), {"selection=semi-hard_loss.name=triplet": None}),
        (
            ("loss=aa-hard-triplet,aa-triplet,hard-triplet,triplet", "selection=all"),
            {"loss=aa-triplet_selection=all": None, "loss=triplet_selection=all": None},
        ),
        (
            ("loss=dsml-n-pair,daml-n-pair,daml-triplet,daml",),
            {"loss=dsml-n-pair": "dsml-n-pair", "loss=daml-triplet": "daml-triplet"},
        ),
        (("recipe=hard-triplet,semi-hard-triplet",), {"aa-triplet": None}),
    ],
)
def test_recipes_of_equal_sections_are_one_cell(texts, names):
    found = cells(*texts)
    assert {cell.name: cell.config.recipe for cell in found} == names


@pytest.mark.parametrize("loss", ["hard-triplet", "complete-triplet"])
def test_a_selection_and_directions_are_set_after_the_name_of_a_loss(loss):
    base = ConfigFile(open_config("aadml").values).changed({"loss": loss})
    changed = Overrides({"directions": ["all"], "selection": "semi-hard", "loss.name": "triplet"}).applied(base)
    assert (changed["directions"], changed["selection"]["name"]) == (("all",), "semi-hard")
    found = [
        Overrides({"loss.name": "triplet", "directions": value}).applied(base) for value in ("all", "audio-visual")
    ]
    assert [config["directions"] for config in found] == [("all",), ("audio-visual",)]


def test_names_and_folders_of_cells_differ():
    found = cells("network.hidden=[16],[32, 8],[32]", "label_loss=ce,row-norm")
    assert found[0].name == "network.hidden=[16]_label_loss=ce"
    assert len({cell.name for cell in found}) == len({cell.folder("seed0") for cell in found}) == 6
    assert all(re.fullmatch("network[A-Za-z0-9._-]+_seed0", cell.folder("seed0")) for cell in found)
    assert cells("proxy.k=1", "loss=aa-triplet")[0].folder("seed0") == "proxy.k--1_loss--aa-triplet_seed0"


def test_the_folder_of_a_grid_is_the_same_each_time_and_another_for_another_grid():
    axes = [parse_axis("proxy.k=1..3")]
    assert folder_name(BASE, axes) == folder_name(BASE.on("features.h5"), [parse_axis("proxy.k=1,2,3")])
    assert folder_name(BASE, axes) != folder_name(Overrides({"validation": 0.2}).applied(BASE), axes)
    base = SimpleNamespace(values={"proxy": {"name": "anchor-aware"}, "data": "x.h5"})
    axes = [parse_axis("proxy.k=1,2"), parse_axis("loss.margin=0.5,1")]
    assert folder_name(base, axes) == "proxy.k-loss.margin-bebcd864"  # of earlier versions, whose grids continue


def test_a_seeded_cell_is_the_config_with_that_seed():
    cell = cells("loss=triplet")[0]
    assert cell.config.seeded(7)["seed"] == 7
    assert resolve(cell.config.seeded(7).values).yaml() == cell.config.seeded(7).yaml()


def test_epochs_are_limited_where_there_are_more():
    file = ConfigFile(open_config("3cmlf").values | {"data": "x"})
    config = file.changed({"training.epochs": 5, "method.ancillary_epochs": 4}).resolve()
    assert at_most(config, 5) is config
    for epochs, ancillary in ((4, 4), (3, 3)):
        limited = at_most(config, epochs)
        assert (limited.training.epochs, limited.options.ancillary_epochs) == (epochs, ancillary)
    longer = file.changed({"training.epochs": 2, "method.ancillary_epochs": 3}).resolve()
    assert at_most(longer, 3) is longer
    assert at_most(longer, 2).options.ancillary_epochs == 2


def test_settings_without_the_proxy():
    point = Point(Overrides({"proxy.k": 3, "loss": "aa-triplet", "validation": 0.2}), BASE)
    assert point.without_proxy().settings.values == {"proxy.k": None, "loss": "triplet", "validation": 0.2}
    assert not point.without_proxy().config.prefix


@pytest.mark.parametrize("path", sorted(configs_folder().glob("*.yaml")), ids=lambda path: path.stem)
def test_every_value_of_a_shipped_search_space_is_taken_by_its_config(path):
    values = open_config(path).values
    space = ConfigFile(values).tuning_space()
    assert bool(space) == (path.stem not in ("random", "zero_shot"))  # which learn nothing
    for key, choices in space.items():
        for choice in choices:
            resolved = Overrides({key: choice}).applied(ConfigFile(values))
            section, _, name = key.partition(".")
            assert resolved[section][name] == choice


def test_a_tuning_that_is_no_mapping_of_lists_is_refused():
    with pytest.raises(InputError, match="list of at least one value"):
        resolve(BASE.values | {"tuning": {"training.learning_rate": 1.0e-3}})
    assert "tuning" not in resolve(BASE.values | {"tuning": {"training.learning_rate": [1.0e-3]}}).values
