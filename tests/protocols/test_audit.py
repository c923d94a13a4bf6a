"""The audit passes what is honest and catches every leak by name."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import aadml
from aadml.comparison.embeddings import checksum_of
from aadml.feature_extraction.ground.errors import InputError
from aadml.protocols import audit as audit_module
from aadml.protocols import audit_checks
from aadml.protocols.audit import AuditReport, Finding, Verdict, audit
from aadml.protocols.audit_checks import CHECKS
from aadml.protocols.pipelines import FunctionPipeline, ProtocolPipeline
from aadml.protocols.subprocess_embedding import in_fresh_process
from aadml.retrieval.evaluation import evaluate
from tests.protocols import zoo


def failures(subject, name):
    """Return the failed checks. The draw is fixed: by chance, garbage labels select the same epoch as the labels."""
    return {f.check for f in audit(ProtocolPipeline(subject, name), subject.splits, CHECKS, seed=0) if f.failed}


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
@pytest.mark.slow
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


@pytest.mark.slow
def test_an_audit_has_at_most_25_passes(subject, monkeypatch):
    passes = []

    def counted(work, **options):
        passes.append(work)
        return in_fresh_process(work, **options)

    monkeypatch.setattr(audit_module, "in_fresh_process", counted)
    audit(FunctionPipeline(zoo.random_each_time), subject.splits, CHECKS)
    external = len(passes)
    retrained = replace(subject, retrain=lambda splits: subject.encoder)
    audit(ProtocolPipeline(retrained, "legacy:test-selection"), subject.splits, CHECKS)
    assert 10 < external < len(passes) - external <= 25


def test_small_batches_take_500_clips_at_most():
    sizes, clips = [], aadml.Clips.of([0, 1] * 251, audio=torch.randn(502, 3))
    reference = {"audio": clips.matrix("audio")}

    def embed(*requests):
        sizes.extend(len(request) for request in requests)
        return [{"audio": request.matrix("audio")} for request in requests]

    case = SimpleNamespace(clips=clips, reference=reference, embed=embed, scores={})
    assert (audit_checks.batch_invariance(case)()[0], sizes) == (Verdict.PASS, [7] * 71 + [3])


@pytest.fixture
def passes(monkeypatch):
    """Calls of each pass, (features, labels) each; passes run in this process."""
    calls = []

    def in_this_process(work, *, seconds, **options):
        assert seconds == 600.0
        calls.append([])
        return SimpleNamespace(vectors=work(), channels=())

    monkeypatch.setattr(audit_module, "in_fresh_process", in_this_process)
    return calls


def recording(passes):
    def encode(features, labels):
        passes[-1].append((next(iter(features.values())).tobytes(), labels.tobytes()))
        return {m: v[:, :4] for m, v in features.items()}

    return FunctionPipeline(encode)


def test_any_pass_can_be_a_reference_and_all_start_alike(subject, passes):
    places = set()
    for seed in range(40):
        passes.clear()
        report = audit(recording(passes), subject.splits, [audit_checks.label_blindness], seed=seed)
        assert len(passes) == 4
        assert len({calls[0] for calls in passes}) == 1
        assert sorted(len(calls) for calls in passes) == [2, 2, 2, 3]
        labels = [calls[1][1] for calls in passes]
        (place,) = [n for n, values in enumerate(labels) if values != subject.splits.test.labels.numpy().tobytes()]
        places.add(place)
        shown = ", ".join(str(n + 1) for n in range(4) if n != place)
        assert f"in steps {shown} of 4 (order and noise drawn with seed {seed})" in report[1].evidence
    assert places == {0, 1, 2, 3}


def test_each_audit_draws_other_noise_and_other_garbage(subject, passes):
    for _ in range(2):
        audit(recording(passes), subject.splits, [audit_checks.label_blindness])
    first, second = ({call for calls in part for call in calls} for part in (passes[:4], passes[4:]))
    truth = subject.splits.test
    assert first & second == {(truth.matrix("audio").numpy().tobytes(), truth.labels.numpy().tobytes())}


@pytest.mark.parametrize("seed", range(4))
def test_an_encoder_that_behaves_otherwise_in_one_pass_fails(subject, tmp_path, seed):
    """Whether that pass is a reference, the pass of a check, or the one that the others are compared with."""

    def encode(features, labels):
        counted = len([*tmp_path.iterdir()])
        (tmp_path / f"{counted}").touch()
        return {m: v[:, :4] + (counted // 2 == seed) * np.eye(4)[labels] for m, v in features.items()}

    findings = audit(FunctionPipeline(encode), subject.splits, [audit_checks.id_blindness], seed=seed)
    assert findings.inference == "failed"
    assert {finding.check for finding in findings if finding.failed} <= {"references", "id blindness"}
    if not findings[0].failed:
        assert findings[1].evidence.endswith("the encoder is random, or depends on earlier passes")


def finding(check, verdict):
    return Finding(check, Verdict(verdict), "evidence")


@pytest.mark.parametrize(
    ("findings", "summary"),
    [
        ({"history": "pass", "channels": "pass", "selection": "pass"},
         "inference passed, training passed; 3 checks passed"),
        ({"history": "fail", "channels": "pass", "duplicates": "fail"},
         "inference failed, training failed; 1 checks passed, 2 failed (history, duplicates)"),
        ({"history": "pass", "channels": "not checkable", "exact rows": "pass"},
         "inference unknown, training unknown; 2 checks passed, 1 not checkable (channels)"),
        ({"trained without test": "pass", "metric": "not checkable"},
         "inference unknown, training passed; 1 checks passed, 1 not checkable (metric)"),
    ],
)  # fmt: skip
def test_a_report_has_a_verdict_on_inference_and_one_on_training(findings, summary):
    report = AuditReport([finding(*one) for one in findings.items()])
    assert report.summary == summary
    assert report.failed is ("failed" in summary)
    first, *_, last = repr(report).splitlines()
    check, verdict = next(iter(findings.items()))
    assert (first, last) == (f"{verdict:13}  {check:19}  evidence", summary)


def test_references_are_compared_and_at_most_five_channels_are_listed():
    rows = {"audio": torch.eye(2)}
    case = SimpleNamespace(references=[rows, rows, rows], reference=rows, seed=5, channels={})
    case.pipeline = SimpleNamespace(surroundings="alone")
    assert audit_module._of_references(case, ["1", "3"], 7) == Finding(
        "references",
        Verdict.PASS,
        "the unchanged clips were embedded in steps 1, 3 of 7 (order and noise drawn with seed 5); largest change of a "
        "row (relative): 0",
    )
    empty = SimpleNamespace(references=[{}, {}], reference={}, seed=5)
    assert audit_module._of_references(empty, ["1"], 7).evidence.endswith("(relative): 0")
    case.references[1] = {"audio": 1.5 * torch.eye(2)}
    found = audit_module._of_references(case, ["1"], 7)
    assert found.verdict is Verdict.FAIL
    assert found.evidence.endswith(": 0.5; the encoder is random, or depends on earlier passes")
    assert audit_module._of_channels(case) == Finding("channels", Verdict.PASS, "alone")
    for count, more in ((5, ""), (7, " and 2 more")):
        case.channels = dict.fromkeys(map(str, range(count)))
        evidence = f"the encoder could have received data by 0, 1, 2, 3, 4{more}"
        assert audit_module._of_channels(case) == Finding("channels", Verdict.NOT_CHECKABLE, evidence)


def test_steps_are_reported(subject, passes):
    steps = []
    audit(recording(passes), subject.splits, CHECKS, progress=lambda done, total: steps.append((done, total)))
    count = len(CHECKS) + audit_module.REFERENCES
    assert steps == [(done, count) for done in range(count + 1)]


@pytest.mark.parametrize("width", [4, 3])
def test_the_last_finding_has_the_checksum_of_the_embeddings_and_their_map_if_they_have_one(subject, passes, width):
    def encode(features, labels):
        passes[-1].append(labels)
        return {m: v[:, : 4 if m == "audio" else width] for m, v in features.items()}

    report = audit(FunctionPipeline(encode), subject.splits, [], split="valid")
    clips = subject.splits.valid
    vectors = {m: clips.matrix(m)[:, : 4 if m == "audio" else width] for m in clips.modalities}
    score = f"MAP by cosine {evaluate(clips.embedded(vectors)).map_mean:.5f}; " if width == 4 else ""
    assert report.checksum == checksum_of(vectors)
    evidence = f"{score}SHA-256 of the audited embeddings {report.checksum}"
    assert report[-1] == Finding("embeddings", Verdict.PASS, evidence)
    assert {len(labels) for calls in passes for labels in calls} == {24}


def test_an_encoder_that_fails_on_the_unchanged_clips_ends_the_audit_at_once(subject, passes):
    def encode(features, labels):
        raise InputError("no such weights")

    with pytest.raises(InputError, match="no such weights"):
        audit(FunctionPipeline(encode), subject.splits, CHECKS)
    assert len(passes) <= 2
