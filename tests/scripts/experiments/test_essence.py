"""When two configs are the same training: what `essence` says, held against what is trained."""

import numpy as np
import pytest
import torch

from aadml.configuration.config import resolve
from aadml.configuration.files import ConfigFile
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.proxies.anchor_aware import degeneracy
from aadml.proxies.attention import Attention, AttentionOptions
from aadml.proxies.readings import READINGS, Keys
from aadml.runs.data import load_splits
from aadml.runs.prepare import untrained_model
from aadml.studies.control_rows import AFFINE, ALONE, EVEN, NONE, RANDOM, UNIFORM, controls, rivals, weighted
from aadml.studies.grid import Overrides, without_proxy
from scripts.experiments.anchor_aware.essence import essence
from scripts.experiments.anchor_aware.finals import same_training


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "small.h5"
    write_features(path, synthetic(classes=3, train=24, valid=6, test=9, dimensions=(5, 6), difficulty=0.2))
    return {"method": "aadml", "loss": "aa-triplet", "data": str(path), "network": {"hidden": [4], "dropout": 0.0},
            "training": {"epochs": 2, "batch": 12, "learning_rate": 0.01}}  # fmt: skip


def of(base, **options):
    return Overrides({f"proxy.{key}": value for key, value in options.items()}).applied(ConfigFile(base))


def trained(config):
    splits = load_splits(config)
    model = untrained_model(config, splits, "cpu")
    model.method.fit(*(model.scaling.clips(one) for one in (splits.train, splits.valid)))
    return model.embed(audio=splits.test["audio"].numpy())


SAME = [
    ({"reading": "R1", "k": 1, "query": "partner"}, {"reading": "R1", "graph_modality": "agreeing", "live": True}),
    ({"reading": "R3", "k": 1}, {"reading": "R3", "k": 1, "query": "partner"}),
    ({"reading": "R3", "k": 1, "attention": "free"}, {"reading": "R3", "k": 1, "attention": "free", "temperature": 2}),
]
OTHER = [
    ({"reading": "R5", "k": 1}, {"reading": "R5", "k": 3}),
    ({"reading": "R3", "k": 2}, {"reading": "R3", "k": 2, "query": "partner"}),
    ({"reading": "R3", "k": 1}, {"reading": "R3", "k": 1, "live": True}),
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_configs_of_one_essence_train_the_same_network(base, first, second):
    one, two = of(base, **first), of(base, **second)
    assert essence(one) == essence(two)
    np.testing.assert_allclose(trained(one), trained(two), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("first", "second"), OTHER)
def test_configs_of_another_essence_train_another_network(base, first, second):
    one, two = of(base, **first), of(base, **second)
    assert essence(one) != essence(two)
    assert np.abs(trained(one) - trained(two)).max() > 1e-5


@pytest.mark.parametrize(
    "options",
    [{"aa_mix": 0.0},
     {"reading": "R1", "attention": "free", "residual": "convex"},
     {"reading": "R1", "attention": "free", "residual": "none"}],
)  # fmt: skip
def test_a_proxy_that_is_its_anchor_is_none(base, options):
    config = of(base, **options)
    assert essence(config) == without_proxy(config)
    np.testing.assert_allclose(trained(config), trained(without_proxy(config)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("changes", "none"), [({}, True), ({"aa_on": "anchor"}, False), ({"residual": "add"}, False)])
def test_a_proxy_without_gradient_leaves_no_metric_loss(base, changes, none):
    config = of(base, **{"reading": "R3", "k": 1, "residual": "none", "aa_mix": 1.0, **changes})
    alone = weighted(without_proxy(config), 0.0)
    assert (essence(config) == alone) == none
    assert (np.abs(trained(config) - trained(alone)).max() < 1e-6) == none
    assert (NONE in same_training(config)) == none
    assert (degeneracy(config.section("proxy").options) or "").endswith("does not train the encoders") == none


def test_the_affine_map_that_doubles_the_anchor_is_no_identity(base):
    config = of(base, reading="R1", attention="free", residual="add")
    assert essence(config) != without_proxy(config)


@pytest.mark.parametrize(
    ("options", "same"),
    [({"reading": "R5", "residual": "convex"}, set()),
     ({"reading": "R6"}, set()),
     ({"reading": "R1"}, {RANDOM, AFFINE}),
     ({"reading": "R1", "attention": "free", "residual": "none"}, {RANDOM, ALONE}),
     ({"reading": "R3", "attention": "free", "temperature": EVEN}, {UNIFORM}),
     ({"reading": "R3", "attention": "free", "k": 1}, {UNIFORM})],
)  # fmt: skip
def test_controls_that_are_the_training_itself(base, options, same):
    config = of(base, **options)
    beside = controls(config) | rivals(config)
    assert {name for name, one in beside.items() if essence(one) == essence(config)} == same


def test_the_uniform_mean_weights_the_neighbors_equally(base):
    config = of(base, k=3)
    options = rivals(config)[UNIFORM].section("proxy").options
    chosen = AttentionOptions(attention=options.attention, temperature=options.temperature)
    generator = torch.Generator().manual_seed(0)
    anchors, keys = (torch.randn(5, count, 4, generator=generator, dtype=torch.float64) for count in (1, 3))
    mask = torch.ones(5, 3, dtype=torch.bool)
    found = READINGS[options.reading](Attention(4, chosen), Keys(anchors[:, 0], anchors, keys, mask))
    torch.testing.assert_close(found, keys.mean(1), rtol=0, atol=3e-4)


def test_what_has_no_anchor_aware_proxy_is_its_own_essence(base):
    for values in ({**base, "loss": "triplet"}, {**base, "loss": "triplet", "proxy": "memory"}):
        config = resolve(values)
        assert essence(config) is config
