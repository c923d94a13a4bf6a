"""Leaks by channels other than the input of an encoder fail, or inference is unknown; honest encoders pass."""

import py_compile
import sys

import pytest

from aadml.feature_extraction.ground.errors import InputError
from aadml.protocols import audit_checks
from aadml.protocols.audit import with_garbage_labels
from aadml.protocols.audit_checks import CHECKS, label_blindness, one_modality_alone, partner_blindness
from tests.protocols import channel_zoo as zoo
from tests.protocols import channels
from tests.protocols.channels import scores

QUICK = (
    "file_in_tmp", "mapped_at_import", "network_socket", "labels_in_a_file", "below_the_tolerance",
    "beside_a_constant", "in_signs",
)  # fmt: skip


@pytest.fixture(autouse=True)
def planted(subject, monkeypatch):
    """Labels outside, as a leak finds them: in a file and in the environment."""
    for name, value in channels.planted(subject.splits).items():
        monkeypatch.setenv(name, value)
    yield
    channels.remove_traces()


def report(encoder, subject, checks, **order):
    return channels.report(encoder, subject.splits, checks, **order)


@pytest.mark.slow
@pytest.mark.parametrize("name", zoo.NAMES)
def test_a_leak_gains_where_nothing_is_checked(name, subject, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "aadml.protocols.audit", None)
    clips = subject.splits.test
    honest, *_ = scores("plain_encoder", clips)
    first, later = scores(name, clips)
    if name in ("well_behaved_below_an_audit", "labels_in_the_memory_of_the_audit"):
        return  # the tests have the command line of an audit, and labels of other tests in memory
    assert first > honest + 0.1
    if any(name.startswith(way) for way in ("file_in", "mapped", "posix", "system_v", "links", "attributes")):
        assert later > honest + 0.1


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in QUICK else pytest.mark.slow) for n in zoo.NAMES])
def test_a_leak_by_a_channel_fails_or_is_unknown(name, subject):
    found = report(name, subject, [label_blindness, partner_blindness])
    if name == "partner_cache":
        found = report(name, subject, [one_modality_alone])
    assert found.inference != "passed", found


def one_garbage(case):
    """The first half of label blindness, whose draws the leak knows how to undo."""
    (after,) = case.embed(with_garbage_labels(case.clips, case.draw(2)))
    return audit_checks._unchanged(case, after, "labels were replaced by garbage")


def test_garbage_of_a_known_seed_is_seen_through_and_that_of_a_drawn_one_is_not(subject):
    checks = [one_garbage, partner_blindness]
    assert report("garbage_by_a_known_seed", subject, checks, seed=3).inference == "passed"
    assert report("garbage_by_a_known_seed", subject, checks).inference == "failed"


def test_without_isolation_by_the_kernel_inference_is_unknown(subject):
    found = report("labels_in_a_file", subject, [label_blindness], by_kernel=False)
    assert found.inference == "unknown"
    assert f"file {zoo.PLACE / 'planted'}" in found[2].evidence


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) for name in zoo.NAMES])
def test_no_leak_passes_without_isolation_by_the_kernel(name, subject):
    assert report(name, subject, [label_blindness], by_kernel=False).inference != "passed"


def test_a_file_that_is_not_named_is_asked_for(subject):
    with pytest.raises(InputError, match=r"^FileNotFoundError: .*; pass the files and modules .* to --allow$"):
        report("missing_weights", subject, [])


HONEST = [*zoo.HONEST, *zoo.WITH_TORCH]


SOAKED = ("double", "bfloat16")


def marks_of(name):
    if name == "own_cache":
        return []
    return pytest.mark.soak if name in SOAKED else pytest.mark.slow


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks_of(name)) for name in HONEST])
def test_an_honest_encoder_passes(name, subject, tmp_path):
    py_compile.compile(zoo.__file__)  # a compiled file beside an encoder is no channel: its source is compiled again
    checks = [label_blindness] if name == "own_cache" else CHECKS
    weights = channels.ridge_weights(subject.splits, tmp_path / "ridge.npz")
    found = report(name, subject, checks, weights=weights)
    assert found.inference == "passed", found
    assert not found.failed, found


@pytest.mark.parametrize("name", ["no_such_encoder", "PLACE"])
def test_a_name_that_is_no_function_of_the_module_is_refused_with_advice(name, subject):
    with pytest.raises(InputError, match=f"channel_zoo:{name}: the module has no function '{name}'; pass module:f"):
        report(name, subject, [])
