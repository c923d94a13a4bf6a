import random
import re

import pytest

from aadml.comparison.options import Share
from aadml.configuration.from_arguments import assemble, starting_file
from aadml.feature_extraction.ground.consent import consent_to
from aadml.feature_extraction.ground.errors import InputError
from aadml.proxies.unchanged import Unchanged
from aadml.studies.ablation_grid import jobs_of, plan_ablation, run_folder
from aadml.studies.grid import Axis, Cell, Overrides, parse_axis

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


class Smoothed(Unchanged):
    """Proxy from outside aadml with an option that no listed proxy has."""

    def __init__(self, dimension, modalities, *, share: Share = 0.5):
        super().__init__(dimension, modalities)


@pytest.mark.parametrize("baseline", [None, Overrides({"loss": "hinge"})])
def test_an_option_of_an_own_proxy_of_an_axis_changes_nothing_with_the_other_proxies(baseline):
    consent_to(place := f"{__name__}:Smoothed")
    base = assemble(data="x.h5", settings={"loss": "triplet"})
    axes = [Axis("proxy", ("identity", {"name": place})), Axis("proxy.share", (0.2, 0.5))]
    ablation = plan_ablation(base, axes, [0], baseline, Overrides())
    assert [cell.settings.values["proxy.share"] for cell in ablation.cells[:3]] == [None, 0.2, 0.5]
    assert [cell.config["proxy"].get("share") for cell in ablation.cells[:3]] == [None, 0.2, 0.5]
    axes[0] = Axis("proxy.name", ("identity", place))
    assert len(plan_ablation(base, axes, [0], baseline, Overrides()).cells) == len(ablation.cells)
    axes[1] = Axis("proxy.shar", (0.2, 0.5))
    with pytest.raises(InputError, match=r"proxy\.shar: identity has no such option"):
        plan_ablation(base, axes, [0], baseline, Overrides())


@pytest.mark.parametrize("baseline", [{"loss": "hinge"}, {"proxy": "identity"}])
def test_an_option_of_an_own_proxy_of_the_base_changes_nothing_with_the_proxy_of_the_baseline(baseline):
    consent_to(place := f"{__name__}:Smoothed")
    changed = {"proxy": place, "proxy.share": 0.3}
    base = assemble(data="x.h5", settings={"loss": "triplet", **changed})
    axes = [Axis("proxy.share", (0.2, 0.5))]
    ablation = plan_ablation(base, axes, [0], Overrides(baseline), Overrides())
    assert [cell.config["proxy"].get("share") for cell in ablation.cells] == [0.2, 0.5, None]
    axes = [Axis("loss", ("triplet", "hinge"))]
    ablation = plan_ablation(base, axes, [0], Overrides({"loss": "nt-xent"}), Overrides(changed))
    assert [cell.config["proxy"].get("share") for cell in ablation.cells] == [0.3, 0.3, None]


def test_without_a_proxy_every_cell_is_compared_with_the_first_and_with_none_nothing_is():
    base, axes = assemble(data="x.h5", settings={"loss": "triplet"}), [parse_axis("label_loss=ce,row-norm,mse")]
    names = [f"label_loss={name}" for name in ("ce", "row-norm", "mse")]
    ablation = plan_ablation(base, axes, range(2), None, Overrides())
    assert (ablation.baselines, ablation.seeds) == (dict.fromkeys(names[1:], names[0]), (0, 1))
    assert [cell.name for cell in ablation.cells] == names
    assert plan_ablation(base, axes, [0], Overrides(), Overrides()).baselines == {}
    own = plan_ablation(base, axes, [0], Overrides({"label_loss": "mse"}), Overrides())
    assert own.baselines == dict.fromkeys(names[:2], names[2])


def test_the_epochs_of_every_cell_and_baseline_have_a_limit():
    axes, own = [parse_axis("loss=aa-triplet,hinge")], BASE.training.epochs
    for limit, epochs in ((3, 3), (10**6, own), (None, own)):
        for baseline in (None, Overrides({"label_loss": "mse"})):
            cells = plan_ablation(BASE, axes, [0], baseline, Overrides(), limit).cells
            assert {cell.config.training.epochs for cell in cells} == {epochs}
    together = r"^the runs differ in training\.epochs, which --max-epochs 3 limits; leave out one of the two$"
    with pytest.raises(InputError, match=together):
        plan_ablation(BASE, [parse_axis("training.epochs=2,4")], [0], None, Overrides(), 3)
    with pytest.raises(InputError, match=together):
        plan_ablation(BASE, axes, [0], Overrides({"training.epochs": 2}), Overrides(), 3)


def test_runs_are_ordered_by_seed_and_have_the_metrics(tmp_path):
    cells = plan_ablation(BASE, [parse_axis("proxy.k=1,2")], [0], Overrides(), Overrides()).cells
    jobs = jobs_of(cells, (3, 4), tmp_path, ["recall@5"])
    assert [job.folder.name for job in jobs] == [f"proxy.k--{k}_seed{seed}" for seed in (3, 4) for k in (1, 2)]
    assert [job.config.common.seed for job in jobs] == [3, 3, 4, 4]
    assert {job.metrics for job in jobs} == {("recall@5",)}


@pytest.mark.parametrize("name", ["a=1", "a=" + "9" * 300, "a=/b/c", "a=\0"])
def test_the_folder_of_a_run_does_not_change_after_the_first_run(tmp_path, name):
    cell = Cell(name, BASE)
    folder = run_folder(tmp_path, cell, 0)
    folder.mkdir(parents=True)
    assert run_folder(tmp_path, cell, 0) == folder
    assert folder.parent == tmp_path / "runs"


CHOICES = {
    "loss": ["triplet", "aa-triplet", "hard-triplet", "aa-hinge", "ranking", "xbm-semi-hard-triplet"],
    "proxy": ["identity", "memory", "class-mean", "anchor-aware"],
    "proxy.name": ["identity", "memory", "anchor-aware"],
    "selection": ["all", "semi-hard", "hardest"],
    "loss.score": ["cosine", "squared-euclidean"],
    "loss.margin": [0.3, 0.7],
    "directions": [["audio-visual"], ["audio-visual", "visual-audio"]],
    "training.batch": [9, 20],
}


def planned(config, settings, axes, baseline=None):
    file = starting_file(config, None, sample=False).changed({"data": "x.h5"}).changed(settings)
    return plan_ablation(file, axes, [0], Overrides(baseline or {}), Overrides(settings))


def trained(config, settings):
    loss = settings.get("loss")
    return assemble(data="x.h5", loss=loss, config=config, settings={k: settings[k] for k in settings if k != "loss"})


@pytest.mark.parametrize("number", range(30))
def test_a_cell_is_what_a_training_with_the_same_settings_trains(number, tmp_path):
    draw = random.Random(number)
    shorthand = tmp_path / "aa.yaml"
    shorthand.write_text(f"loss: {draw.choice(CHOICES['loss'])}")
    config = draw.choice([None, str(shorthand)])
    excluded = draw.choice(["proxy", "proxy.name"])
    keys = draw.sample([key for key in CHOICES if key != excluded], 4)
    settings = {key: draw.choice(CHOICES[key]) for key in keys[:2]}
    axes = [Axis(key, tuple(CHOICES[key])) for key in keys[2:]]
    crossed = [{keys[2]: a, keys[3]: b} for a in axes[0].values for b in axes[1].values]
    try:
        expected = {trained(config, settings | values).yaml(recipe=False) for values in crossed}
    except InputError as error:
        with pytest.raises(InputError, match=re.escape(str(error))):
            planned(config, settings, axes)
        return
    assert sorted(cell.config.yaml(recipe=False) for cell in planned(config, settings, axes).cells) == sorted(expected)


@pytest.mark.parametrize(
    ("over", "baseline", "proxies", "baselines"),
    [
        (
            ["loss=triplet,contrastive", "proxy=identity,memory,class-mean"],
            {},
            ["identity", "memory", "class-mean"] * 2,
            0,
        ),
        (["loss=aa-triplet,aa-contrastive"], {"proxy": "identity"}, ["anchor-aware"] * 2 + ["identity"] * 2, 2),
        (["loss=triplet,aa-triplet", "proxy.k=1,2"], {}, ["identity", "anchor-aware", "anchor-aware"], 0),
        (["proxy=identity,anchor-aware", "proxy.k=1,2"], {}, ["identity", "anchor-aware", "anchor-aware"], 0),
        (["loss=xbm-triplet,aa-triplet", "proxy.k=1,2"], {}, ["memory", "anchor-aware", "anchor-aware"], 0),
        (["proxy.k=1,2"], {"proxy": "memory"}, ["anchor-aware", "anchor-aware", "memory"], 2),
        (["proxy=anchor-aware,memory"], {"loss": "triplet"}, ["anchor-aware", "memory", "identity"], 2),
    ],
)
def test_a_proxy_is_set_after_the_loss(over, baseline, proxies, baselines):
    ablation = planned(None, {}, [parse_axis(text) for text in over], baseline)
    assert [cell.config["proxy"]["name"] for cell in ablation.cells] == proxies
    assert len(ablation.baselines) == baselines


def test_a_cell_with_two_baselines_is_refused():
    axes = [parse_axis(text) for text in ("loss=triplet,contrastive", "proxy.k=1,3")]
    told = (
        r"the cell 'loss=triplet' has the baselines '[^']*proxy\.k=1' and '[^']*proxy\.k=3'.*as --baseline.*as --over"
    )
    with pytest.raises(InputError, match=told):
        plan_ablation(BASE, axes, [0], Overrides({"loss": "aa-triplet"}), Overrides())
    axes[0] = parse_axis("loss=aa-triplet,aa-contrastive")
    ablation = plan_ablation(BASE, axes, [0], Overrides({"loss": "triplet"}), Overrides())
    assert list(ablation.baselines.values()) == ["loss=triplet"] * 4


def test_options_of_a_proxy_that_no_run_has_are_refused():
    with pytest.raises(InputError, match="identity has no such option"):
        planned(None, {"loss": "triplet"}, [parse_axis("proxy.k=1,2")])
