"""Law: the gradients of every trainable network are those of finite differences (`scripts/soak/gradients.py`)."""

import importlib
import pkgutil

import gradients
import pytest
import torch
from torch import nn

import aadml
from aadml.feature_extraction.backbones import EXTRACTORS, options_of
from aadml.methods import METHODS

TRIALS = gradients.trials()
OFTEN = ("hf clap audio", "hf wav2vec2 audio", "hf clip visual", "hf bert text")
LARGE = ("vggish", "inception-v3")
PARTS_OF_LARGE = {"VGGish", "InceptionV3", "Unit", "Mixed"}
WITHOUT_WEIGHTS = {
    "LeftOut": "stands for a part of a training that a loaded model does without",
    "_Head": "is exported frozen",
    "TowerLearner": "passes what a tower makes to a learner; both are tried",
}
"""Modules of the product that are in no trial, with the reason."""
FROM_ELSEWHERE = {
    "vggish-hub": "a TensorFlow model, which is not trained",
    **dict.fromkeys(("hf-audio", "hf-visual", "hf-text"), "every family is tried"),
}
"""Extractors whose network is not one of the product."""


@pytest.fixture(autouse=True, scope="module")
def cache_folder(tmp_path_factory):
    """Keep the register of networks away from that of this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AADML_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def seldom(name):
    return name in LARGE or (name.startswith("hf ") and name not in OFTEN)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if seldom(name) else []) for name in TRIALS]
)
def test_gradients_are_those_of_finite_differences(name):
    wrong = {}
    for case, build in TRIALS[name].items():
        for player, trial in gradients.built(build).items():
            worst = gradients.largest(trial)
            if worst.error > gradients.TOLERANCE:
                wrong[f"{case} {player}".strip()] = worst
    assert not wrong


def test_a_wrong_factor_of_one_tensor_is_found():
    torch.manual_seed(0)
    network = nn.Sequential(*(nn.Linear(9, 9) for _ in range(6))).double()
    network[2].weight.register_hook(lambda gradient: 1.01 * gradient)
    worst = gradients.largest(gradients.of_module(network, network, {"input": torch.randn(5, 9)}))
    assert worst.where.startswith("2.weight")
    assert worst.error == pytest.approx(0.01, rel=0.05)


def test_every_module_of_the_product_is_tried():
    tried = set()
    for name, cases in TRIALS.items():
        if name not in LARGE and (name in OFTEN or not name.startswith("hf ")):
            for trial in gradients.built(next(iter(cases.values()))).values():
                tried |= {base.__name__ for module in trial.module.modules() for base in type(module).__mro__}
    for module in pkgutil.walk_packages(aadml.__path__, "aadml."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    ours = {kind.__name__ for kind in kinds(nn.Module) if kind.__module__.startswith("aadml.")}
    assert ours - tried == PARTS_OF_LARGE | WITHOUT_WEIGHTS.keys()


def kinds(kind):
    for inner in kind.__subclasses__():
        yield inner
        yield from kinds(inner)


def test_every_extractor_with_weights_and_every_exception_is_known():
    extractors = {name: modality for modality, table in EXTRACTORS.items() for name in table.places}
    networks = {name for name, modality in extractors.items() if {"weights", "model"} & set(options_of(name, modality))}
    assert networks == {*gradients.EXTRACTOR_NETWORKS, *FROM_ELSEWHERE}
    assert gradients.WITHOUT_NETWORK.keys() <= set(METHODS)
    assert gradients.WITHOUT_INPUTS.keys() | gradients.FROZEN.keys() <= gradients.NETWORKS.keys()
