"""What was published is what is run: options, sizes and schedules whose source a baseline's docstring or config names.

What no source gives was decided here, and the findings were made with it; it stands below under DECIDED. A published
number stands here once more on purpose: an error of a power of ten in a default or a config trains without a complaint.
Where one changes, its source must be looked up first.
"""

from importlib import import_module

import pytest

from aadml.configuration.config import resolve
from aadml.configuration.files import open_config
from aadml.feature_extraction.ground.options import schema
from aadml.methods import METHODS

PUBLISHED = {
    "c-cca": {"dimension": 10, "pair_weight": 0.2},
    "dcca": {"outputs": 10, "ridge": 1e-3},
    "c-dcca": {"dimension": 10, "outputs": 100, "pair_weight": 0.2},
    "tnn-c-cca": {"dimension": 10, "hidden": (100, 100, 100), "dropout": 0.1, "margin": 0.5},
    "vae-cca": {"dimension": 64, "hidden": 512, "inner": 64},
    "agah": {"dimension": 64, "hidden": (4096, 512), "margin": 0.3, "class_weight": 0.0, "adv_weight": 1.0},
    "acmr": {"dimension": 40, "visual_hidden": (512, 100), "hidden": (40, 100), "margin": 0.1},
    "dscmr": {"hidden": (2048,), "dimension": 1024, "alpha": 1e-3, "beta": 0.1},
    "tlca": {"margin": 1.2},
    "msnsca": {"dimension": 64, "width": 128, "visual_hidden": 512, "dropout": 0.5, "center_weight": 0.01},
    "clip": {"dimension": 512, "temperature": 0.07},
    "bic-net": {"margin": 0.2},
    "dcil": {"margin": 1.0},
}

DECIDED = {
    "cca": {"dimension": 10, "ridge": 1e-4},
    "kcca": {"dimension": 10, "kernel": "rbf", "ridge": 0.1, "landmarks": 1000},
    "c-cca": {"ridge": 1e-4},
    "dcca": {"hidden_audio": (128, 128, 64), "hidden_visual": (256, 256, 128), "dropout": 0.2},
    "c-dcca": {"hidden": (100, 100, 100), "dropout": 0.2, "ridge": 1e-3},
    "cctl": {"margin": 1.0},
    "video-adviser-lite": {
        "hidden": (1024, 512),
        "dropout": 0.1,
        "teacher_share": 0.3,
        "advice_weight": 1.0,
    },
    "eics": {"explicit": 256, "hidden": (1024,), "margin": 1.0},
    "tlca": {"first_share": 0.5},
    "clip": {"hidden": (1024,), "dropout": 0.1},
    "bic-net": {"dimension": 512, "tokens": 8, "depth": 2, "hidden": (1024,), "dropout": 0.1},
    "dcil": {"dimension": 512, "hidden": (1024,), "dropout": 0.5, "instance_share": 0.5},
    "agah": {"critic_learning_rate": 1e-3},
    "acmr": {"adv_weight": 1.0},
}

CONSTANTS = {
    "correlation.vae_cca:WEIGHTS": {"vae": 1e-4, "label": 1.0, "correlation": 1e-3, "apart": 0.1},
    "correlation.tnn_c_cca:PAIR_WEIGHT": 0.2,
    "correlation.tnn_c_cca:RIDGE": 1e-4,
    "adversarial.agah:WEIGHTS": {"triplet": 1.0, "balance": 1.0, "code": 1e-3, "quantization": 1.0},
    "adversarial.agah:PENALTY": 10.0,
    "adversarial.acmr:LABEL_WEIGHT": 100.0,
    "adversarial.acmr:POSITIVE_WEIGHT": 5.0,
    "label_space.scales:KERNELS": (3, 5, 7),
    "label_space.msnsca:WEIGHTS": {"label": 1.0, "apart": 0.1},
    "label_space.eics:WEIGHTS": {"explicit": 1.0, "correlation": 1e-3, "apart": 0.1, "triplet": 1.0},
    "label_space.tlca:SHARES": (0.25, 0.5, 0.75),
    "pairwise.bic_net:HEADS": 4,
}
"""Numbers of methods that are not options."""

SCHEDULES = {
    "acmr": {"epochs": 50, "batch": 64, "optimizer": "adam", "learning_rate": 1e-4, "betas": (0.5, 0.999)},
    "agah": {
        "epochs": 300,
        "batch": 128,
        "optimizer": "adamax",
        "learning_rate": 1e-3,
        "weight_decay": 5e-4,
        "schedule": "step",
        "schedule_every": 100,
        "schedule_factor": 0.6,
    },
    "bic-net": {"schedule": "plateau", "schedule_every": 5, "schedule_factor": 0.5},
    "dcca": {"epochs": 100, "batch": 200, "optimizer": "rmsprop", "learning_rate": 1e-3, "drop_last": True},
    "c-dcca": {"epochs": 100, "batch": 200, "optimizer": "rmsprop", "learning_rate": 1e-3, "drop_last": True},
    "dscmr": {"epochs": 500, "batch": 100, "optimizer": "adam", "learning_rate": 1e-4, "betas": (0.5, 0.999)},
    "tnn-c-cca": {"epochs": 10, "batch": 45, "optimizer": "adam", "learning_rate": 1e-3},
    "vae-cca": {"epochs": 500, "batch": 128, "optimizer": "adam", "learning_rate": 1e-4, "betas": (0.5, 0.999)},
    "cctl": {"epochs": 400, "batch": 400, "optimizer": "adam", "learning_rate": 1e-4},
    "eics": {"epochs": 400, "batch": 400, "optimizer": "adam", "learning_rate": 1e-4},
    "tlca": {"epochs": 400, "batch": 400, "optimizer": "adam", "learning_rate": 1e-4},
    "clip": {  # decided here: the AADML paper does not state how CLIP was trained on features
        "epochs": 100,
        "batch": 400,
        "optimizer": "adam",
        "learning_rate": 1e-4,
        "schedule": "constant",
    },
}


def alike(value):
    return tuple(value) if isinstance(value, list) else value


@pytest.mark.parametrize("values", [PUBLISHED, DECIDED], ids=["published", "decided"])
@pytest.mark.parametrize("name", sorted(PUBLISHED | DECIDED))
def test_defaults_and_the_shipped_config_are_these_values(name, values):
    defaults, shipped = schema(METHODS[name]), resolve(open_config(name.replace("-", "_")).values)["method"]
    for key, value in values.get(name, {}).items():
        assert alike(defaults[key].default) == value, key
        assert alike(shipped[key]) == value, key


@pytest.mark.parametrize("place", CONSTANTS)
def test_constants_are_these_values(place):
    module, _, name = place.partition(":")
    assert getattr(import_module(f"aadml.methods.{module}"), name) == CONSTANTS[place]


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_shipped_config_has_the_published_schedule(name):
    training = resolve(open_config(name.replace("-", "_")).values)["training"]
    assert {key: alike(training[key]) for key in SCHEDULES[name]} == SCHEDULES[name]
