"""The audit passes what is honest and catches every leak by name."""

import pytest

from aadml.protocols.audit import Verdict, audit
from aadml.protocols.audit_checks import CHECKS
from aadml.protocols.pipelines import FunctionPipeline, ProtocolPipeline
from tests.protocols import zoo


def failures(subject, name):
    return {f.check for f in audit(ProtocolPipeline(subject, name), subject.splits, CHECKS) if f.failed}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["inductive", "bank", "bank-expansion"])
def test_the_honest_protocols_pass_every_check(subject, name):
    assert failures(subject, name) == set()


@pytest.mark.slow
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


def test_joined_leaks_are_caught_too(subject):
    assert failures(subject, "legacy:partner+legacy:running-map") >= {"partner blindness", "metric"}


@pytest.mark.parametrize("encoder", zoo.LEAKY, ids=lambda encoder: encoder.__name__)
def test_every_leak_of_the_zoo_fails_or_is_not_claimed_to_be_checked(encoder, subject, memory):
    found = {one.check: one for one in audit(FunctionPipeline(encoder), subject.splits, CHECKS)}
    caught = zoo.LEAKY[encoder]
    if caught is not None:
        assert found[caught].verdict is Verdict.FAIL, found[caught].evidence
    if not found["nothing dropped"].failed:
        assert found["selection"].verdict is Verdict.NOT_CHECKABLE
    assert zoo.STATE == {}  # nothing was called in this process


@pytest.mark.slow
@pytest.mark.parametrize("encoder", zoo.HONEST, ids=lambda encoder: encoder.__name__)
def test_every_honest_encoder_of_the_zoo_passes(encoder, subject, memory):
    found = audit(FunctionPipeline(encoder), subject.splits, CHECKS)
    assert [(one.check, one.evidence) for one in found if one.failed] == []
    unknown = {one.check for one in found if one.verdict is Verdict.NOT_CHECKABLE}
    assert unknown == {"selection", "metric", "channels", "carried labels"}
