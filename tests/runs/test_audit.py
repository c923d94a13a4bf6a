"""Who is audited, on which clips, and what of it stays in a run; the checks themselves are tested elsewhere."""

import json
import shutil
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import aadml
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import parse_as
from aadml.methods.training.learned_method import LearnedMethod
from aadml.methods.training.settings import AUTO
from aadml.protocols.audit import AuditReport, Finding, Verdict
from aadml.protocols.audit import audit as run_checks
from aadml.protocols.pipelines import FunctionPipeline, ProtocolPipeline
from aadml.runs import audit, run_audit
from aadml.runs.loading import AuditRecord, load_run, read_evaluation
from aadml.runs.manifest import read_manifest
from aadml.runs.protocol_scores import add_to_run
from tests.protocols import channel_zoo as zoo


def replace_checks(monkeypatch, checks):
    """Replace the checks."""

    def run_checks(*arguments, **options):
        report = AuditReport(checks(*arguments, **options))
        report.checksum = "5" * 64
        return report

    monkeypatch.setattr(audit, "run_checks", run_checks)


@pytest.fixture
def asked(monkeypatch):
    """What the checks are asked to look at, (pipeline, splits) each; no process is started."""
    given = []

    def noted(pipeline, splits, checks, *, split, seconds, progress, training=None):
        assert (checks, split in ("test", "valid"), seconds, progress) == (audit.CHECKS, True, 600, None)
        given.append((pipeline, splits))
        return []

    replace_checks(monkeypatch, noted)
    return given


def write(path, test):
    write_features(path, synthetic(classes=3, train=30, valid=9, test=test, dimensions=(6, 8), difficulty=0.2))
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    place = tmp_path_factory.mktemp("audited")
    data = write(place / "own.h5", 12)
    return aadml.fit(data, method="random", runs=place / "runs").folder, write(place / "other.h5", 15)


@pytest.fixture
def run(made, tmp_path):
    return shutil.copytree(made[0], tmp_path / "run")


def test_a_run_is_audited_on_its_own_clips_and_on_others_where_they_are_given(asked, run, made):
    for data in (None, made[1]):
        aadml.audit(run, data=data)
    assert [len(splits.test) for _, splits in asked] == [12, 15]
    assert {type(pipeline) for pipeline, _ in asked} == {ProtocolPipeline}


def test_an_audit_trains_again_on_the_cpu_because_its_forks_cannot_use_a_gpu(asked, run, monkeypatch):
    def on_gpu(folder, **options):
        loaded = load_run(folder, **options)
        return replace(loaded, config=loaded.config.computed_on("cuda"))

    monkeypatch.setattr(run_audit, "load_run", on_gpu)
    aadml.audit(run)
    ((pipeline, splits),) = asked
    assert pipeline.subject.retrain(splits).method.parameters_count() == 0


def test_a_model_needs_data(asked, run, made, tmp_path):
    model = aadml.load(run).save(tmp_path / "model")
    with pytest.raises(InputError, match="data"):
        aadml.audit(model)
    aadml.audit(model, data=made[1])
    assert [len(splits.test) for _, splits in asked] == [15]


def test_the_training_data_of_a_model_are_those_of_its_run_or_the_same_data(monkeypatch, made, run, tmp_path):
    seen = []
    replace_checks(monkeypatch, lambda *_, training=None, **__: seen.append(training) or [])
    own, other, model = made[1].with_name("own.h5"), made[1], aadml.load(run).save(tmp_path / "model")
    for folder, data in ((run, other), (run, own), (model, other), (model, own), (run, aadml.read(other).test)):
        aadml.audit(folder, data=data)
    assert [training and len(training.train) for training in seen] == [30, None, 0, None, 30]
    own.rename(tmp_path / "moved.h5")
    try:
        aadml.audit(run, data=other)
    finally:
        (tmp_path / "moved.h5").rename(own)
    assert len(seen[-1].train) == 0


def test_what_was_made_elsewhere_is_audited_as_it_was_named(asked, made):
    def encoder(features, labels):
        return features

    aadml.audit(encoder=encoder, data=made[1])
    aadml.audit(command="mine {input} {output}", data=made[1])
    (function, _), (command, _) = asked
    assert (function.function, command.order.command) == (encoder, ("mine", "{input}", "{output}"))
    with pytest.raises(InputError, match="an external encoder needs data; pass --data"):
        aadml.audit(encoder=encoder)


def test_all_clips_in_memory_are_audited(asked, made):
    clips = aadml.read(made[1]).test
    aadml.audit(encoder=lambda features, labels: features, data=clips)
    ((_, splits),) = asked
    assert [len(part) for part in (splits.train, splits.valid, splits.test)] == [0, 0, len(clips)]
    with pytest.raises(InputError, match="audit: split is 'valid', but all of the Clips are scored; leave out split"):
        aadml.audit(encoder="a:b", data=clips, split="valid")


def test_a_score_that_is_not_that_of_the_model_is_found(asked, run):
    def stored_score():
        return next(one for one in aadml.audit(run) if one.check == "stored score")

    assert stored_score().verdict is Verdict.PASS
    evaluation = read_evaluation(run)
    better = {**evaluation.to_json(), "map_mean": evaluation.map_mean + 0.01}
    add_to_run(run, {"evaluation.json": json.dumps(better).encode()}, pytest.fail)
    assert stored_score().verdict is Verdict.FAIL


def test_the_audit_of_a_run_is_added_to_the_run(asked, run):
    (left := run / ".audit.abcd_123.partial.json").write_bytes(b"{")  # by an audit that was killed
    add_to_run(run, {"audit.json": b"{}"}, pytest.fail)
    assert (run / "audit.json").read_bytes() == b"{}"
    assert not left.exists()


def test_an_audit_wants_one_subject(random_run, random_model):
    for given in ({}, {"run": random_run, "command": "mine"}, {"encoder": "a:b", "command": "mine", "mteb": "t"}):
        with pytest.raises(
            InputError, match=f"audit: {len(given)} runs, encoders or tasks were passed; pass exactly one of RUN"
        ):
            aadml.audit(**given)
    for given in ({"command": "mine", "data": "f.h5"}, {"run": random_run, "data": "f.h5"}):
        with pytest.raises(InputError, match="--retrain applies only to a run on its own data"):
            aadml.audit(**given, retrain=True)


def test_an_encoder_is_a_function_or_the_name_of_one_beside_the_data(other_file, monkeypatch, tmp_path):
    asked = []
    replace_checks(monkeypatch, lambda pipeline, *_, **__: asked.append(pipeline) or [])
    (tmp_path / "encoder_of_this_test.py").write_text("def same(features, labels):\n    return features\n")
    aadml.audit(encoder="encoder_of_this_test:same", data=other_file())
    assert asked[0].order.place == "encoder_of_this_test:same"
    assert asked[0].order.readable == (str(tmp_path / "encoder_of_this_test.py"),)
    assert "encoder_of_this_test" not in sys.modules
    with pytest.raises(InputError, match="--encoder same is not the name of a function; pass module:function"):
        aadml.audit(encoder="same", data=other_file())


def test_what_training_again_answers_takes_the_place_of_what_was_not_checkable(random_run, monkeypatch):
    seen = [Finding("selection", verdict, "") for verdict in (Verdict.NOT_CHECKABLE, Verdict.PASS)]
    seen.append(Finding("partner", Verdict.NOT_CHECKABLE, ""))
    replace_checks(monkeypatch, lambda *_, **__: list(seen))
    answer = Finding("fitted without test", Verdict.PASS, "")
    monkeypatch.setattr(run_audit, "fitted_without_test", lambda random_run, split: answer)
    plain = aadml.audit(random_run)
    assert plain[:3] == seen
    assert [one.check for one in plain[3:]] == ["kept epoch", "stored score"]
    notes = []
    assert aadml.audit(random_run, retrain=True, on_note=notes.append) == [*seen[1:], *plain[3:], answer]
    assert notes == ["the run is trained three more times"]


@pytest.mark.parametrize(
    ("options", "kept"), [({}, True), ({"split": "valid"}, False), ({"protocol": "legacy:partner"}, False)]
)
def test_only_the_audit_of_the_scored_clips_under_the_own_protocol_is_kept(random_run, monkeypatch, options, kept):
    findings = [Finding("partner", Verdict.FAIL, "seen")]
    replace_checks(monkeypatch, lambda *_, **__: findings)
    found = aadml.audit(random_run, **options)
    assert (random_run / "audit.json").exists() == kept
    assert bool(aadml.load(random_run).audit) == kept
    if kept:
        content = json.loads((random_run / "audit.json").read_text())
        assert [one["check"] for one in content["findings"]] == [one.check for one in found]
        assert (content["protocol"], content["split"]) == ("inductive", "test")
        assert content["map_mean"] == pytest.approx(read_evaluation(random_run).map_mean)
        bound = f"{content['verdict']}; audited: these embeddings (SHA-256 {'5' * 12})"
        assert bound == aadml.load(random_run).audit
        assert f"Audit: {bound}" in (random_run / "README.md").read_text()
    assert aadml.verify(random_run) == []


def test_a_run_is_audited_under_its_own_protocol(asked, made, tmp_path):
    write_features(
        tmp_path / "f.h5", synthetic(classes=6, train=30, valid=12, test=12, dimensions=(6, 8), difficulty=0.2)
    )
    settings = {"unseen_classes": 0.3}
    model = aadml.fit(tmp_path / "f.h5", method="random", settings=settings, runs=tmp_path / "runs")
    aadml.audit(model.folder)
    aadml.audit(model.folder, data=made[1])
    assert [pipeline.protocol for pipeline, _ in asked] == ["unseen-classes"] * 2
    assert json.loads((model.folder / "audit.json").read_text())["protocol"] == "unseen-classes"
    with pytest.raises(InputError, match="audit: protocol bank applies only to a run or model"):
        aadml.audit(encoder="a:b", data=made[1], protocol="bank")


@pytest.mark.parametrize("option", [{"time_limit": 30}, {"split": "valid"}, {"data": "f.h5"}])
def test_what_does_not_apply_to_a_task_is_refused(option):
    with pytest.raises(InputError, match=f"leave out --{next(iter(option)).replace('_', '-')}"):
        aadml.audit(mteb="task", **option)


def test_an_edited_card_is_kept(asked, run):
    card = run / "README.md"
    aadml.audit(run, on_note=pytest.fail)
    edited = card.read_text() + "For the museum."
    card.write_text(edited)
    notes = []
    aadml.audit(run, on_note=notes.append)
    assert card.read_text() == edited
    assert notes == [f"warning: {card} is not the card that this run wrote; the file is kept, and no card was written"]


@pytest.mark.parametrize(
    ("apart", "passes"), [(0.0, True), (9e-4, True), (-9e-4, True), (1.1e-3, False), (-1.1e-3, False)]
)
def test_a_stored_score_is_that_of_the_model_within_a_thousandth(random_run, apart, passes):
    stored = read_evaluation(random_run)
    finding = run_audit._stored_score(replace(stored, map_mean=stored.map_mean + apart), stored.map_mean)
    assert (finding.verdict is Verdict.PASS) == passes
    assert f"MAP {stored.map_mean + apart:.5f} in evaluation.json" in finding.evidence
    assert f"MAP of the model {stored.map_mean:.5f}" in finding.evidence


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), 0.0])
def test_a_time_limit_that_no_clock_can_hold_is_refused(seconds):
    with pytest.raises(InputError, match=r"time limit is .*; pass a number above zero"):
        aadml.audit(data="synthetic:ave", command="true", time_limit=seconds)


def test_an_encoder_does_not_name_the_data(other_file):
    data = other_file()
    for options in ({"allow": [data]}, {"allow": [data.parent]}):
        with pytest.raises(InputError, match="contains the data with the labels or is part of"):
            aadml.audit(command="mine {input} {output}", data=data, **options)
    (link := data.parent.parent / "link").symlink_to(data.parent)
    with pytest.raises(InputError, match="contains the data with the labels"):
        aadml.audit(command="mine {input} {output}", data=data, allow=[link])
    with pytest.raises(InputError, match="contains the data with the labels"):
        aadml.audit(command=f"mine {{input}} {{output}} {data}", data=data)
    with pytest.raises(InputError, match="--allow nowhere does not exist"):
        aadml.audit(command="mine {input} {output}", data=data, allow=["nowhere"])
    with pytest.raises(InputError, match="--allow applies only to --encoder and --command"):
        aadml.audit("run", allow=[data])


def test_scores_say_whether_the_audit_was_of_these_embeddings(asked, run):
    def notes(**options):
        lines = []
        aadml.evaluate(run, on_note=lines.append, **options)
        return [line for line in lines if "audited" in line]

    assert notes() == []
    aadml.audit(run)
    these = f"audited: these embeddings (SHA-256 {'5' * 12})"
    assert notes() == [f"inductive: {these}"]
    assert notes(split="valid") == ["inductive: audited: others"]
    page = aadml.report(run).read_text()
    assert these in page
    better = {**read_evaluation(run).to_json(), "map_mean": read_evaluation(run).map_mean + 0.01}
    add_to_run(run, {"evaluation.json": json.dumps(better).encode()}, pytest.fail)
    assert aadml.load(run).audit.endswith("; audited: others")
    audited = json.loads((run / "audit.json").read_text())
    stored = read_evaluation(run)
    for key, other in {"weights": "0" * 64, "data": "1" * 64, "map_mean": stored.map_mean + 2e-3}.items():
        record = parse_as(AuditRecord, json.dumps(audited | {"map_mean": stored.map_mean - 9e-4}).encode(), run)
        assert record.on(read_manifest(run), stored).endswith(f"; {these}")
        assert replace(record, **{key: other}).on(read_manifest(run), stored).endswith("; audited: others")
    for older in ({"weights": ""}, {"map_mean": None}):  # of versions that did not record both
        assert replace(record, **older).on(read_manifest(run), stored) == record.verdict
    add_to_run(run, {"audit.json": json.dumps({k: v for k, v in audited.items() if k in OLD}).encode()}, pytest.fail)
    assert "audited" not in aadml.load(run).audit
    assert notes() == []


OLD = ("protocol", "split", "verdict", "findings")


@pytest.mark.parametrize("absent", [False, True])
@pytest.mark.parametrize("encode", [zoo.plain_encoder, zoo.too_small_for_float32, zoo.beside_a_constant])
def test_embeddings_of_an_audited_encoder_have_the_checksum_and_the_map_of_its_audit(made, tmp_path, encode, absent):
    splits = aadml.read(made[1])
    present = {"audio": torch.arange(len(splits.test)) > 4} if absent else {}
    splits = replace(splits, test=replace(splits.test, present=present))
    report, test = run_checks(FunctionPipeline(encode), splits, []), splits.test
    vectors = encode({m: test.matrix(m).numpy() for m in test.modalities}, test.labels.numpy())
    masks = {f"{m}_present": flags.numpy() for m, flags in present.items()}
    np.savez(tmp_path / "e.npz", **vectors, **masks, label=test.labels.numpy())
    notes = []
    evaluation = aadml.evaluate(embeddings=tmp_path / "e.npz", on_note=notes.append)
    assert (
        notes[-1]
        == f"the SHA-256 of the embeddings is {report.checksum}; compare this value with the SHA-256 in the audit"
    )
    assert f"MAP by cosine {evaluation.map_mean:.5f}" in report[-1].evidence


@pytest.mark.parametrize(("without", "others"), [(None, ""), (0.25, " (0.25000 without them)")])
@pytest.mark.parametrize(("score", "verdict"), [(0.5009, Verdict.PASS), (0.4989, Verdict.FAIL), (0.5011, Verdict.FAIL)])
def test_the_stored_score_is_compared_with_that_of_the_model(without, others, score, verdict):
    stored = SimpleNamespace(map_mean=0.5, figure={"map-without-partner": without}.get)
    evidence = f"MAP 0.50000 in evaluation.json over the full gallery, own clips included{others}; MAP of the model "
    assert run_audit._stored_score(stored, score) == Finding("stored score", verdict, f"{evidence}{score:.5f}")


LOG = [
    {"epoch": epoch, "stage": stage, "valid map_mean": score, "valid recall@1": 0.1 * epoch}
    for epoch, stage, score in ((1, "a", 0.3), (2, "a", 0.6), (3, "a", 0.6), (4, "b", 0.2), (5, "b", 0.5))
]


BEST = "the epoch with the best validation MAP in the log is 2"


@pytest.mark.parametrize(
    ("kept", "select", "criterion", "log", "verdict", "evidence"),
    [
        (2, "best", AUTO, LOG, Verdict.PASS, f"epoch 2 was kept; {BEST}"),
        (5, "best", AUTO, LOG, Verdict.PASS,
         "epoch 5 was kept; the epoch with the best validation MAP in the stage b is 5"),
        (3, "best", AUTO, LOG, Verdict.FAIL, f"epoch 3 was kept; {BEST}"),
        (4, "best", "recall@1", LOG, Verdict.FAIL,
         "epoch 4 was kept; the epoch with the best validation recall@1 in the log is 5"),
        (2, "best", AUTO, [{"epoch": e, "valid score": -e} for e in (2, 3)], Verdict.PASS,
         "epoch 2 was kept; the epoch with the best validation score in the log is 2"),
        (5, "last", AUTO, LOG, Verdict.PASS, "epoch 5 was kept; the last epoch of the log is 5"),
        (2, "last", AUTO, LOG, Verdict.FAIL, "epoch 2 was kept; the last epoch of the log is 5"),
        (None, "best", AUTO, LOG, Verdict.NOT_CHECKABLE, "no epoch was chosen by validation MAP"),
        (2, "best", AUTO, [{"epoch": 1, "loss": 2.0}], Verdict.NOT_CHECKABLE, "no epoch was chosen by validation MAP"),
    ],
)  # fmt: skip
def test_the_kept_epoch_is_compared_with_the_log(monkeypatch, kept, select, criterion, log, verdict, evidence):
    monkeypatch.setattr(run_audit, "read_evaluation", lambda _: SimpleNamespace(selected_epoch=kept))
    monkeypatch.setattr(run_audit, "read_records", lambda _: log)
    training = SimpleNamespace(criterion=criterion, select=select)
    method = object.__new__(LearnedMethod)
    method.learner = SimpleNamespace(criterion="score" if "valid score" in log[0] else "map_mean")
    config, model = SimpleNamespace(training=training), SimpleNamespace(method=method)
    run = SimpleNamespace(manifest=None, config=config, model=model)
    assert run_audit._kept_epoch(run) == Finding("kept epoch", verdict, evidence)
