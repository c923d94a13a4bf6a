"""Leaks by channels other than the input of an encoder fail, or inference is unknown; honest encoders pass."""

import ctypes
import json
import os
import py_compile
import shutil
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from aadml.feature_extraction.ground.errors import InputError
from aadml.protocols.audit import AuditReport, audit, with_garbage_labels
from aadml.protocols.audit_checks import CHECKS, label_blindness, one_modality_alone, partner_blindness
from aadml.protocols.pipelines import FunctionPipeline, of_function
from aadml.protocols.subprocess_embedding import in_fresh_process
from aadml.retrieval.evaluation import evaluate
from tests.protocols import channel_zoo as zoo

QUICK = ("file_in_tmp", "mapped_at_import", "network_socket", "labels_in_a_file", "below_the_tolerance")


def remove_traces():
    for place in (zoo.PLACE, Path("/var/tmp/aadml-channel-zoo"), Path("/dev/shm/aadml-channel-zoo")):
        shutil.rmtree(place, ignore_errors=True)
        with suppress(OSError):
            place.unlink()
    (Path(zoo.__file__).parent / "__pycache__/aadml-channel-zoo.pyc").unlink(missing_ok=True)
    for name in os.listxattr(zoo.__file__):
        if name.startswith("user.zoo"):
            os.removexattr(zoo.__file__, name)


@pytest.fixture(autouse=True)
def planted(subject, monkeypatch):
    """Labels outside, as a leak finds them: in a file and in the environment."""
    remove_traces()
    test = subject.splits.test
    rows = {m: test.matrix(m).numpy() for m in test.modalities}
    table = {zoo.key(row): int(label) for m in rows for row, label in zip(rows[m], test.labels, strict=True)}
    zoo.PLACE.mkdir()
    (zoo.PLACE / "planted").write_text(json.dumps(table))
    monkeypatch.setenv("AADML_CHANNEL_ZOO", json.dumps(table))
    yield
    remove_traces()


def report(encoder, subject, checks, **order):
    pipeline = of_function(zoo.identity)
    pipeline = replace(pipeline, order=replace(pipeline.order, place=f"channel_zoo:{encoder}", **order))
    return AuditReport(audit(pipeline, subject.splits, checks, seconds=120.0))


def scores(encoder, clips):
    """Return the MAP of a call, and of a call with garbage labels in another process, without isolation."""
    pipeline = FunctionPipeline(getattr(zoo, encoder))
    results = []
    for part in (clips, with_garbage_labels(clips, 2)):

        def work(part=part):
            return [{m: pipeline.embedder(None, "test")(part).matrix(m) for m in clips.modalities}]

        results += in_fresh_process(work, seconds=60.0).vectors
    return [evaluate(clips.embedded(vectors)).map_mean for vectors in results]


@pytest.fixture(autouse=True)
def no_shared_segment():
    """Remove the segment of System V that an earlier test or run left in the namespace of this machine."""
    remove_segment()
    yield
    remove_segment()


def remove_segment():
    library = ctypes.CDLL(None)
    if (number := library.shmget(0xAAD31, 0, 0o600)) >= 0:
        library.shmctl(number, 0, None)  # IPC_RMID


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
    if name in zoo.HARMLESS:  # cannot reach its labels, so that the audited embeddings are honest ones
        assert "MAP by cosine 0.3427" in found[-1].evidence
    else:
        assert found.inference != "passed", found


def test_without_isolation_by_the_kernel_inference_is_unknown(subject):
    found = report("labels_in_a_file", subject, [label_blindness], by_kernel=False)
    assert found.inference == "unknown"
    assert f"file {zoo.PLACE / 'planted'}" in found[1].evidence


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) for name in zoo.NAMES])
def test_no_leak_passes_without_isolation_by_the_kernel(name, subject):
    assert report(name, subject, [label_blindness], by_kernel=False).inference != "passed"


def test_a_file_that_is_not_named_is_asked_for(subject):
    with pytest.raises(InputError, match=r"^FileNotFoundError: .*; pass the files and modules .* to --allow$"):
        report("missing_weights", subject, [])


HONEST = [*zoo.HONEST, *zoo.WITH_TORCH]


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n == "own_cache" else pytest.mark.slow) for n in HONEST])
def test_an_honest_encoder_passes(name, subject):
    py_compile.compile(zoo.__file__)  # a compiled file beside an encoder is no channel: its source is compiled again
    checks = [label_blindness] if name == "own_cache" else CHECKS
    found = report(name, subject, checks)
    assert found.inference == "passed", found
    assert not found.failed, found


@pytest.mark.parametrize("name", ["no_such_encoder", "PLACE"])
def test_a_name_that_is_no_function_of_the_module_is_refused_with_advice(name, subject):
    with pytest.raises(InputError, match=f"channel_zoo:{name}: the module has no function '{name}'; pass module:f"):
        report(name, subject, [])
