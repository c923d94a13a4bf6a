import pytest

from aadml.configuration.from_arguments import assemble
from aadml.feature_extraction.ground.errors import InputError
from aadml.studies.ablation_grid import plan_ablation
from aadml.studies.grid import Overrides, parse_axis

BASE = assemble(data="x.h5")


def test_settings_of_a_loss_are_those_of_every_loss_of_the_axis():
    changed = {"loss.margin": 0.5, "network.hidden": [8]}
    axes = [parse_axis("loss=triplet,aa-hinge,hard-triplet")]
    ablation = plan_ablation(assemble(data="x.h5", settings=changed), axes, [0], None, Overrides(changed))
    assert {cell.config["loss"]["margin"] for cell in ablation.cells} == {0.5}
    assert len(ablation.cells) == 4  # and aa-hinge's baseline
    with pytest.raises(InputError, match="margin"):
        plan_ablation(BASE, [parse_axis("loss=triplet,supcon")], [0], None, Overrides(changed))


def test_baselines_have_the_settings_of_a_loss_too():
    changed = {"loss.margin": 0.5}
    ablation = plan_ablation(BASE, [parse_axis("loss=triplet")], [0], Overrides({"loss": "hinge"}), Overrides(changed))
    assert [cell.config["loss"]["margin"] for cell in ablation.cells] == [0.5, 0.5]
