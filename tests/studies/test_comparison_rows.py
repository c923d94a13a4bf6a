"""Which rows a comparison is asked for."""

from dataclasses import replace

import pytest

from aadml.feature_extraction.ground.errors import InputError
from aadml.methods import METHODS
from aadml.studies.comparison_rows import RowSettings, cells_of_rows, chosen, file_of, method_names, named_rows
from aadml.studies.control_rows import AFFINE, ALONE, CLASS_MEAN, HALF, MEMORY, NONE, RANDOM, UNIFORM
from aadml.studies.grid import Overrides

SETTINGS = RowSettings("x.h5", with_controls=False)
KNOWN = {"cca": 1, "dcca": 2, "random": 3}


@pytest.mark.parametrize("given", ["random, cca", ["random", "cca"], ("random,cca", "random")])
def test_rows_are_named_by_text_or_one_by_one_in_their_order(given):
    assert chosen(given, ("cca", "dcca"), KNOWN, "method") == ["random", "cca"]


def test_all_stands_for_everything_and_names_join_it():
    assert chosen("all", ("cca", "dcca"), KNOWN, "method") == ["cca", "dcca"]
    assert chosen(["random", "all"], ("cca", "dcca"), KNOWN, "method") == ["random", "cca", "dcca"]
    assert chosen(None, ("cca", "dcca"), KNOWN, "method") == []


def test_all_methods_are_those_that_train_on_any_features():
    assert sorted({*METHODS} - {*method_names()}) == ["3cmlf", "audio-text", "xie", "zero-shot"]


def test_an_unknown_row_is_refused():
    with pytest.raises(InputError, match="no method 'ccaa'; did you mean 'cca'"):
        chosen(["ccaa"], (), KNOWN, "method")


@pytest.mark.parametrize(
    ("methods", "losses", "key"),
    [
        ((), ("supcon",), "loss"),
        ((), ("supcon",), "loss.name"),
        ((), ("supcon",), "proxy"),
        ((), ("supcon",), "proxy.name"),
        (("dscmr",), (), "method"),
        (("dscmr",), ("supcon",), "data"),
        (("dscmr",), (), "seed"),
    ],
)
def test_what_rows_are_named_by_is_not_set_for_all(methods, losses, key):
    shared = replace(SETTINGS, changes=Overrides({key: "hinge"}))
    with pytest.raises(
        InputError, match=rf'--set {key}="hinge": the comparison itself sets {key.split(".")[0]}; leave'
    ):
        named_rows(methods, losses, shared)


def test_a_recipe_keeps_the_selection_that_it_has_its_name_from():
    shared = replace(SETTINGS, changes=Overrides({"selection": "semi-hard", "training.batch": 7}))
    rows, notes = named_rows((), ("triplet", "hard-triplet"), shared)
    selections = {row.item: row.cell.config["selection"]["name"] for row in rows if row.item}
    assert selections["triplet"] == selections["aa-triplet"] == "semi-hard"
    assert selections["hard-triplet"] == selections["aa-hard-triplet"] == "hardest"
    assert {row.cell.config.training.batch for row in rows} == {7}
    assert notes == ["selection was not set for rows that cannot use this setting: hard-triplet, aa-hard-triplet"]


def test_options_of_a_loss_are_set_where_a_row_has_them():
    rows, notes = named_rows((), ("triplet", "supcon"), replace(SETTINGS, changes=Overrides({"loss.margin": 0.5})))
    assert {row.cell.config["loss"].get("margin") for row in rows if "triplet" in row.item} == {0.5}
    assert notes == ["loss.margin was not set for rows that cannot use this setting: supcon, aa-supcon"]


def test_a_setting_of_no_row_is_refused_and_one_of_the_methods_alone_is_noted():
    for methods, losses in ((("cca", "random"), ()), (("cca",), ("triplet",))):
        shared = replace(SETTINGS, changes=Overrides({"method.nothing": 3}))
        with pytest.raises(InputError, match=r"--set method\.nothing=3: no row can use this setting \(.*nothing.*\); "):
            named_rows(methods, losses, shared)
    negative = replace(SETTINGS, changes=Overrides({"proxy.k": -1}))
    with pytest.raises(InputError, match=r"setting \(aa-triplet: proxy\.k is -1\); pass a whole number"):
        named_rows((), ("triplet",), replace(negative, with_controls=False))
    own = replace(SETTINGS, changes=Overrides({"selection": "all"}), with_controls=False)
    with pytest.raises(InputError, match=r"\(aa-hard-triplet: the row sets its own value\); leave out this setting"):
        named_rows((), ("hard-triplet",), own)
    _, notes = named_rows(("cca", "random"), ("triplet",), replace(SETTINGS, changes=Overrides({"loss.margin": 0.5})))
    assert notes == ["loss.margin was not set for rows that cannot use this setting: cca, random"]
    _, notes = named_rows((), ("triplet",), replace(SETTINGS, changes=Overrides({"proxy.k": 3})))
    assert notes == ["proxy.k was not set for rows that cannot use this setting: triplet"]


def test_rows_with_the_same_config_share_a_cell_and_losses_share_the_control_without_metric_loss():
    rows, _ = named_rows(("aadml",), ("triplet", "hinge"), RowSettings("x.h5"))
    by_name = {row.name: row for row in rows}
    assert by_name["aadml"].cell is by_name["aa-triplet"].cell
    assert by_name["aadml, without proxy"].cell is by_name["triplet"].cell
    assert [row.name for row in rows[-2:]] == [f"aa-hinge, {HALF}", NONE]
    assert by_name["aa-hinge"].cell.name == "aa-hinge"
    cells = cells_of_rows(rows)
    assert len(cells) == len({cell.name for cell in cells}) == len({row.cell.config.yaml() for row in rows})
    other = replace(rows[0], cell=replace(rows[0].cell, config=rows[-1].cell.config))
    with pytest.raises(InputError, match="two different rows have the name 'aadml'; leave out one row"):
        cells_of_rows([rows[0], other])


def test_losses_of_two_names_share_a_cell():
    rows, _ = named_rows((), ("daml", "dsml-triplet", "daml-triplet", "dsml-n-pair"), SETTINGS)
    plain = [(row.item, row.cell.name) for row in rows if not row.item.startswith("aa-")]
    assert plain == [
        ("daml", "daml"), ("dsml-triplet", "daml"), ("daml-triplet", "daml"), ("dsml-n-pair", "dsml-n-pair")
    ]  # fmt: skip


def test_a_config_replaces_the_defaults_of_losses_and_of_its_own_method(tmp_path):
    settings = RowSettings("x.h5", config="aadml_ave", with_controls=False)
    rows, _ = named_rows(("aadml", "dscmr"), ("triplet",), settings)
    batches = {row.name: row.cell.config.training.batch for row in rows}
    assert {name: batch for name, batch in batches.items() if name != "dscmr"} == dict.fromkeys(
        ("aadml", "triplet", "aa-triplet"), 200
    )
    assert rows[1].cell.config == Overrides({"data": "x.h5"}).applied(file_of("dscmr"))
    with pytest.raises(InputError, match="no method or config 'dscmrr'"):
        file_of("dscmrr")


def test_the_row_of_a_method_never_has_the_config_of_another_method():
    settings = RowSettings("x.h5", config="pairs", with_controls=False)
    rows, _ = named_rows(("aadml", "pairs"), ("triplet",), settings)
    methods = {row.name: row.cell.config.method for row in rows}
    assert methods == {"aadml": "aadml", "pairs": "pairs", "triplet": "pairs", "aa-triplet": "pairs"}


def test_rivals_are_rows_beside_the_row_itself():
    settings = RowSettings("x.h5", with_controls=False, with_rivals=True)
    (method, *beside), _ = named_rows(["aadml"], [], settings)
    assert [row.control for row in [method, *beside]] == ["", MEMORY, CLASS_MEAN, UNIFORM, AFFINE]
    (plain, anchored, *beside), _ = named_rows([], ["triplet"], settings)
    assert (plain.name, anchored.name) == ("triplet", "aa-triplet")
    assert [row.name for row in beside] == [f"aa-triplet, {name}" for name in (MEMORY, CLASS_MEAN, UNIFORM, AFFINE)]


def test_trials_do_not_try_what_is_set_for_all_rows(tmp_path):
    config = tmp_path / "base.yaml"
    lines = ["proxy: anchor-aware", "tuning:", *(f"  {key}: [1, 2]" for key in ("proxy.k", "training.epochs"))]
    config.write_text("\n".join([*lines, "  training.learning_rate: [0.1, 0.2]", "  network.dropout: [0.1, 0.2]"]))
    changes = Overrides({"network": {"hidden": [8], "dropout": 0.3}, "proxy.k": 3})
    shared = RowSettings("x.h5", changes, 4, str(config), with_controls=False)
    rows, _ = named_rows(("aadml", "c-cca"), ("triplet",), shared)
    assert [list(row.space) for row in rows if row.item != "c-cca"] == [["training.learning_rate"]] * 3
    space = next(row.space for row in rows if row.item == "c-cca")
    fixed = replace(shared, changes=Overrides({"method.dimension": 4}))
    rows, _ = named_rows(("c-cca",), (), fixed)
    assert [*space] == ["method.dimension", *rows[0].space]


def test_trials_do_not_undo_what_defines_a_row(tmp_path):
    keys = ["loss", "loss.weight", "proxy", "proxy.neighbors", "proxy.temperature", "proxy.aa_mix", "selection"]
    config = tmp_path / "base.yaml"
    tuned = ["training.batch", *keys]
    config.write_text("\n".join(["loss: aa-triplet", "tuning:", *(f"  {key}: [1, 2]" for key in tuned)]))
    settings = RowSettings("x.h5", config=str(config), with_rivals=True)
    rows, _ = named_rows(("aadml",), ("triplet", "hard-triplet"), settings)
    spaces = {row.name: set(row.space) for row in rows}
    assert spaces["aadml"] == set(tuned) - {"loss.weight"}
    of_losses = set(tuned) - {"loss", "proxy", "loss.weight"}  # a control has half of the weight of the other rows
    assert spaces["triplet"] == spaces["aa-triplet"] == of_losses
    assert spaces["hard-triplet"] == spaces["aa-hard-triplet"] == of_losses - {"selection"}
    fixed = (f"aadml, {NONE}", f"aadml, {HALF}", f"aa-triplet, {HALF}")
    assert all(spaces[name] == of_losses for name in (NONE, *fixed))
    assert spaces[f"aadml, {ALONE}"] == spaces[f"aadml, {MEMORY}"] == spaces[f"aa-triplet, {CLASS_MEAN}"] == of_losses
    assert spaces[f"aadml, {RANDOM}"] == spaces[f"aa-triplet, {RANDOM}"] == of_losses - {"proxy.neighbors"}
    assert spaces[f"aa-triplet, {UNIFORM}"] == of_losses - {"proxy.temperature"}
    rows, _ = named_rows(("aadml",), ("triplet",), replace(settings, with_controls=False))
    assert all("loss.weight" in row.space for row in rows)
