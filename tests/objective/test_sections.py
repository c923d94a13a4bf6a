"""Sections as objects: complete, unchangeable, and written as they were read."""

import pickle
from dataclasses import replace

import pytest

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues, plain
from aadml.objective.composition import LossSection, ProxySection, SelectionSection, Weighted
from aadml.objective.sections import stored_section

OUTSIDE = {"name": "my_losses:cubic", "power": 3}


def test_a_section_has_every_option_of_its_groups_and_its_entry():
    section = LossSection.of("triplet", margin=0.5, weight=2.0)
    assert (section.options.margin, section.options.score) == (0.5, "squared-euclidean")
    assert (section.options.reduction, section.shared(Weighted).weight) == ("mean-of-active", 2.0)
    assert list(plain(section))[:4] == ["name", "weight", "reduction", "combine"]


@pytest.mark.parametrize(
    ("kind", "name", "options", "message"),
    [
        (LossSection, "tripplet", {}, "no loss 'tripplet'; did you mean 'triplet'"),
        (ProxySection, "anchor-aware", {"kk": 3}, r"proxy\.kk: anchor-aware has no such option"),
        (SelectionSection, "harderst", {}, "no selection 'harderst'"),
    ],
)
def test_a_wrong_name_is_refused(kind, name, options, message):
    with pytest.raises(InputError, match=message):
        kind.of(name, **options)


def test_values_are_checked_where_a_config_is_resolved():
    with pytest.raises(InputError, match=r"loss\.margin is -1"):
        LossSection("triplet", OptionValues(margin=-1)).completed(check=True)


def test_options_cannot_be_changed_and_are_compared_by_value():
    section = ProxySection.of("anchor-aware", k=5)
    with pytest.raises(AttributeError, match="k"):
        section.options.k = 6
    assert section == pickle.loads(pickle.dumps(section)) == ProxySection.of("anchor-aware", k=5)
    assert section != replace(section, options=ProxySection.of("anchor-aware", k=6).options)


def test_a_section_of_a_file_is_built_without_importing_code_from_outside():
    assert stored_section("loss", LossSection, {"name": "triplet", "margin": 0.5}) == LossSection.of(
        "triplet", margin=0.5
    )
    assert plain(stored_section("loss", LossSection, OUTSIDE)) == OUTSIDE
