"""The audit passes what is honest and catches every leak by name."""

import sys

import numpy as np
import pytest
import torch

from aadml.data import to_splits
from aadml.data.synthetic import synthetic
from aadml.methods import METHODS
from aadml.methods.inputs import fit_scaling
from aadml.methods.method import Context
from aadml.methods.networks import NetworkOptions
from aadml.methods.settings import Training
from aadml.model.facts import Facts
from aadml.model.model import Model
from aadml.protocols import PROTOCOLS
from aadml.protocols.audit import audit
from aadml.protocols.evaluation import evaluate_under, protocols_of
from aadml.protocols.pipelines import CommandPipeline, FunctionPipeline, ProtocolPipeline
from aadml.protocols.protocol import Subject
from feature_extraction.ground.errors import InputError


def trained(splits):
    context = Context({m: splits.train.dimension(m) for m in splits.train.modalities}, len(splits.train.class_names))
    settings = Training(epochs=12, batch=20, learning_rate=5e-3)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        method = METHODS["aadml"](context, settings, network=NetworkOptions(hidden=(24,)), proxy="anchor-aware")
    facts = Facts(
        label="aa-triplet", method={"name": "aadml", "arguments": {}}, training=vars(settings), inputs={},
        dimensions=context.dimensions, class_names=splits.train.class_names, clips=len(splits.train), seed=0,
    )  # fmt: skip
    encoder = Model(method, fit_scaling(splits.train), facts)
    method.fit(encoder.scaling.clips(splits.train), encoder.scaling.clips(splits.valid))
    return encoder


@pytest.fixture(scope="module")
def subject():
    content = synthetic(classes=4, train=80, valid=24, test=44, dimensions=(7, 9), difficulty=0.5)
    splits = to_splits(content)
    return Subject(trained(splits), splits, trained)


def failures(subject, name):
    return {f.check for f in audit(ProtocolPipeline(subject, name), subject.splits) if f.passed is False}


@pytest.mark.parametrize("name", ["inductive", "bank", "bank-expansion"])
def test_the_honest_protocols_pass_every_check(subject, name):
    assert failures(subject, name) == set()


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("legacy:label-graph", "label blindness"),
        ("legacy:batch-attention", "batch invariance"),
        ("legacy:partner", "partner blindness"),
        ("legacy:test-selection", "selection"),
        ("legacy:running-map", "metric"),
        ("legacy:test-scaling", "other items"),
        ("legacy:drop-last", "nothing dropped"),
    ],
)
def test_every_leak_is_caught_by_the_check_that_is_meant_for_it(subject, name, check):
    assert check in failures(subject, name)


def test_every_legacy_protocol_is_in_the_table_of_this_test():
    legacy = {name for name in PROTOCOLS if name.startswith("legacy:")}
    assert len(legacy) == 7


def test_joined_leaks_are_caught_too(subject):
    assert failures(subject, "legacy:partner+legacy:running-map") >= {"partner blindness", "metric"}


def test_leaks_inflate_and_carry_their_name(subject):
    honest = evaluate_under(subject, "inductive")
    for name in ("legacy:label-graph", "legacy:partner", "legacy:label-graph+legacy:running-map"):
        leaked = evaluate_under(subject, name)
        assert leaked.protocol == name
        assert leaked.map_mean > honest.map_mean + 0.02


def test_dropping_the_last_batch_scores_fewer_queries(subject):
    assert len(evaluate_under(subject, "legacy:drop-last").directions[0].ids) == 32


@pytest.mark.parametrize("name", ["legacy:partnr", "inductive+legacy:partner", "bank+bank"])
def test_protocols_that_do_not_exist_or_do_not_join_are_refused(name):
    with pytest.raises(InputError):
        protocols_of(name)


def honest(features, labels):
    return {modality: np.tanh(values[:, :3]) for modality, values in features.items()}


def centering(features, labels):
    return {modality: values[:, :3] - values[:, :3].mean(0) for modality, values in features.items()}


def peeking(features, labels):
    return {modality: values[:, :3] + np.eye(4)[labels][:, :3] for modality, values in features.items()}


@pytest.mark.parametrize(
    ("function", "caught"), [(honest, set()), (centering, {"batch invariance"}), (peeking, {"label blindness"})]
)
def test_a_users_function_is_audited(subject, function, caught):
    found = audit(FunctionPipeline(function), subject.splits)
    assert {f.check for f in found if f.passed is False} >= caught
    assert bool(caught) == any(f.passed is False for f in found)
    assert all(f.evidence for f in found)


def test_a_users_command_is_audited(subject, tmp_path):
    script = tmp_path / "embed.py"
    script.write_text(
        "import sys, h5py\n"
        "with h5py.File(sys.argv[1]) as given, h5py.File(sys.argv[2], 'w') as made:\n"
        "    for modality in ('audio', 'visual'):\n"
        "        if modality in given:\n"
        "            made[modality] = given[modality][:, :3]\n"
    )
    small = to_splits(synthetic(classes=2, train=8, valid=4, test=8, dimensions=(4, 5)))
    found = audit(CommandPipeline(f"{sys.executable} {script} {{input}} {{output}}"), small)
    assert not [f for f in found if f.passed is False]


def test_a_command_that_fails_is_told_with_its_last_line(subject):
    with pytest.raises(InputError, match="ended with"):
        audit(CommandPipeline(f"{sys.executable} -c 'raise SystemExit(3)'"), subject.splits)


def test_duplicates_across_splits_are_found(subject):
    test = subject.splits.test
    doubled = subject.splits.__class__(test.select(torch.arange(10)), subject.splits.valid, test)
    found = {f.check: f for f in audit(FunctionPipeline(honest), doubled)}
    assert found["duplicates"].passed is False
    assert "10 ids" in found["duplicates"].evidence
