"""Training in bfloat16: what is computed in it, when it is taken, and that a run remembers it."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from aadml.configuration.config import resolve
from aadml.configuration.files import open_config
from aadml.configuration.from_arguments import assemble
from aadml.feature_extraction.ground.errors import InputError
from aadml.layers.linear import Linear
from aadml.methods.training import precision
from aadml.methods.training.precision import PAYS_FROM, computed_in, resolved
from aadml.methods.training.session import Callbacks
from aadml.runs.loading import load, read_config
from aadml.runs.prepare import prepare
from aadml.runs.train import train_into
from aadml.studies.ablation_grid import jobs_of
from aadml.studies.grid import Overrides, cells_of, parse_axis, points
from aadml.studies.sweep import sweep

SMALL = {"training.epochs": 4, "training.batch": 20, "training.learning_rate": 0.005}


@pytest.fixture
def units(monkeypatch):
    """Say whether the machine multiplies bfloat16 in hardware."""

    def units(there):
        monkeypatch.setattr(precision, "bfloat16_units", lambda device: there)

    return units


def config(features, asked, width=16, **changes):
    settings = SMALL | {"network.hidden": [width, width], "training.precision": asked} | changes
    return assemble(config="aadml", data=features, settings=settings)


def learner_of(features, method="aadml", **settings):
    return prepare(assemble(data=features, method=method, settings=SMALL | settings)).model.method.learner


@pytest.mark.parametrize("loss", ["daml", "hdml", "dsml-n-pair"])
@torch.no_grad()
def test_generators_of_losses_multiply_in_it_too(features, loss):
    learner = prepare(assemble(data=features, loss=loss, settings=SMALL)).model.method.learner
    generators = [module.generator for module in learner.objective.modules() if hasattr(module, "generator")]
    assert len(generators) == 2  # one a direction
    for generator in generators:
        inputs = torch.randn(5, generator[0].in_features)
        exact = generator(inputs)
        with computed_in("bfloat16", learner):
            reduced = generator(inputs)
        assert reduced.dtype == torch.float32
        assert 0 < float((reduced - exact).norm() / exact.norm()) < 0.02
        assert torch.equal(generator(inputs), exact)


def test_tangents_take_less_time_as_long_as_it_lasts(features):
    learner = learner_of(features)
    tangents = [module for module in learner.modules() if isinstance(module, torch.nn.Tanh)]
    with computed_in("float32", learner):
        assert [layer.reduced for layer in tangents] == [None] * 6  # three a modality
    with computed_in("bfloat16", learner):
        assert [layer.reduced for layer in tangents] == [torch.bfloat16] * 6
    assert [layer.reduced for layer in tangents] == [None] * 6


def test_what_is_embedded_is_float32_also_after_an_error(features):
    learner = learner_of(features).eval()
    inputs = torch.randn(5, 6)
    expected = learner.encoders["audio"](inputs)

    def fail():
        with computed_in("bfloat16", learner):
            assert not torch.equal(learner.encoders["audio"](inputs), expected)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert torch.equal(learner.encoders["audio"](inputs), expected)


def test_tf32_applies_to_the_products_of_the_steps_and_ends_with_them(features):
    learner = learner_of(features)

    def fail():
        with computed_in("tf32", learner):
            assert torch.get_float32_matmul_precision() == "high"
            assert all(module.reduced is None for module in learner.modules() if isinstance(module, Linear))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert torch.get_float32_matmul_precision() == "highest"


def test_tf32_without_cuda_is_refused_before_a_run_begins(features, tmp_path):
    refusal = "training.precision is tf32, but the device is cpu; train on a CUDA device, or choose float32, bfloat16"
    with pytest.raises(InputError, match=f"^{re.escape(refusal)}"):
        train_into(config(features, "tf32"), tmp_path / "run")
    assert list(tmp_path.iterdir()) == [Path(features)]


@pytest.mark.gpu
def test_a_model_trained_in_tf32_has_nearly_the_embeddings_of_float32_and_embeds_on_a_cpu(features, tmp_path):
    sounds, embedded = torch.randn(5, 6), {}
    for asked in ("float32", "tf32"):
        train_into(config(features, asked, device="cuda"), tmp_path / asked)
        embedded[asked] = load(tmp_path / asked).embed(audio=sounds)
    assert torch.allclose(*embedded.values(), atol=0.05)


@pytest.mark.parametrize("there", [True, False])
def test_auto_takes_bfloat16_for_wide_layers_of_shown_methods_where_the_hardware_has_it(features, units, there):
    units(there)
    wide = learner_of(features, **{"network.hidden": [PAYS_FROM, PAYS_FROM]})
    assert resolved("auto", wide) == ("bfloat16" if there else "float32")
    for other in (
        learner_of(features, **{"network.hidden": [PAYS_FROM - 1, PAYS_FROM - 1]}),
        learner_of(features, **{"network.hidden": [PAYS_FROM]}),  # its inputs are narrow
        learner_of(features, "clip", **{"method.hidden": [PAYS_FROM, PAYS_FROM]}),
        learner_of(features, "dcca"),
    ):
        assert resolved("auto", other) == "float32"
    assert resolved("float32", wide) == "float32"
    assert resolved("bfloat16", wide) == "bfloat16"


def test_auto_begins_at_the_layer_that_the_measurements_name():
    page = (Path(__file__).parents[3] / "docs" / "lab" / "speed.md").read_text(encoding="utf-8")
    said = re.search(r"`auto` takes it from a layer of (\d+) by (\d+) on", page)
    assert {int(side) for side in said.groups()} == {PAYS_FROM}


@pytest.mark.parametrize("asked", ["bfloat16", "tf32"])
@pytest.mark.parametrize("method", ["dcca", "dscmr", "bic-net"])
def test_methods_either_take_fewer_bits_or_refuse_them_in_one_line(features, method, asked):
    learner = learner_of(features, method)
    if learner.in_bfloat16 == "no":
        with pytest.raises(InputError, match=rf"training\.precision is {asked}, but this method supports only float32"):
            resolved(asked, learner)
    else:
        assert resolved(asked, learner) == asked


def test_an_unknown_precision_is_refused_in_one_line():
    with pytest.raises(InputError, match=r"^training\.precision is .*float16.*bfloat16") as refusal:
        resolve(open_config("aadml").values | {"training": {"precision": "float16"}})
    assert "\n" not in str(refusal.value)


def weights(folder):
    return (folder / "model.safetensors").read_bytes()


@pytest.mark.slow
def test_a_run_in_bfloat16_is_repeatable_and_not_that_in_float32(features, tmp_path):
    for name, asked in {"a": "bfloat16", "b": "bfloat16", "c": "float32"}.items():
        train_into(config(features, asked), tmp_path / name)
    assert weights(tmp_path / "a") == weights(tmp_path / "b")
    one, other = (load(tmp_path / name).method.state() for name in "ac")
    assert not all(torch.equal(one[key], other[key]) for key in one)
    assert all(torch.allclose(one[key], other[key], atol=0.05) for key in one)
    assert all(value.dtype == torch.float32 for value in one.values())


class KilledError(Exception):
    pass


def killed(config, folder, after):
    def stop(record):
        if record["epoch"] == after:
            raise KilledError

    with pytest.raises(KilledError):
        train_into(config, folder, callbacks=Callbacks(on_epoch=stop))


@pytest.mark.slow
@pytest.mark.parametrize("after", [2, 3])
def test_a_killed_run_in_bfloat16_continues_to_the_same_bytes(features, tmp_path, after):
    wanted = config(features, "bfloat16", **{"proxy.k": 2})
    train_into(wanted, tmp_path / "whole")
    killed(wanted, tmp_path / "killed", after)
    train_into(wanted, tmp_path / "killed")
    assert weights(tmp_path / "killed") == weights(tmp_path / "whole")


@pytest.mark.slow
def test_a_run_remembers_what_auto_resolved_to_and_continues_in_it_on_another_machine(features, tmp_path, units):
    asked = config(features, "auto", PAYS_FROM)
    units(True)
    train_into(asked, tmp_path / "whole")
    assert read_config(tmp_path / "whole").training.precision == "bfloat16"
    assert json.loads((tmp_path / "whole/model.json").read_text())["facts"]["training"]["precision"] == "bfloat16"
    killed(asked, tmp_path / "killed", 2)
    units(False)
    train_into(asked, tmp_path / "killed")
    assert read_config(tmp_path / "killed").training.precision == "bfloat16"
    assert weights(tmp_path / "killed") == weights(tmp_path / "whole")
    train_into(asked, tmp_path / "new")
    assert read_config(tmp_path / "new").training.precision == "float32"


def test_a_sweep_goes_on_with_the_precision_of_the_runs_it_finds(features, tmp_path, units):
    base = config(features, "auto", PAYS_FROM, **{"training.epochs": 2})
    jobs = jobs_of(cells_of(points(base, [parse_axis("proxy.k=1,2")], Overrides())), (0,), tmp_path)
    units(True)
    assert not any(outcome.reason for outcome in sweep(jobs[:1], workers=0))
    units(False)
    outcomes = sweep(jobs, workers=0)
    assert [(outcome.was_finished, outcome.reason) for outcome in outcomes] == [(True, ""), (False, "")]
    assert [read_config(job.folder).training.precision for job in jobs] == ["bfloat16", "float32"]
    other = [replace(job, config=config(features, "float32", PAYS_FROM, **{"training.epochs": 2})) for job in jobs[:1]]
    with pytest.raises(InputError, match="a different config"):
        sweep(other, workers=0)
