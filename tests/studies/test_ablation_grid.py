import pytest

from aadml.configuration.from_arguments import assemble
from aadml.feature_extraction.ground.errors import InputError
from aadml.studies.ablation_grid import jobs_of, plan_ablation
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


def test_without_a_proxy_every_cell_is_compared_with_the_first_and_with_none_nothing_is():
    base, axes = assemble(data="x.h5", settings={"loss": "triplet"}), [parse_axis("label_loss=ce,row-norm,mse")]
    names = [f"label_loss={name}" for name in ("ce", "row-norm", "mse")]
    ablation = plan_ablation(base, axes, range(2), None, Overrides())
    assert (ablation.baselines, ablation.seeds) == (dict.fromkeys(names[1:], names[0]), (0, 1))
    assert [cell.name for cell in ablation.cells] == names
    assert plan_ablation(base, axes, [0], Overrides(), Overrides()).baselines == {}
    own = plan_ablation(base, axes, [0], Overrides({"label_loss": "mse"}), Overrides())
    assert own.baselines == dict.fromkeys(names[:2], names[2])


def test_runs_are_ordered_by_seed_and_have_the_metrics(tmp_path):
    cells = plan_ablation(BASE, [parse_axis("proxy.k=1,2")], [0], Overrides(), Overrides()).cells
    jobs = jobs_of(cells, (3, 4), tmp_path, ["recall@5"])
    assert [job.folder.name for job in jobs] == [f"proxy.k--{k}_seed{seed}" for seed in (3, 4) for k in (1, 2)]
    assert [job.config.common.seed for job in jobs] == [3, 3, 4, 4]
    assert {job.metrics for job in jobs} == {("recall@5",)}
