"""Audit of runs on their own data, and of models on data of the user."""

from collections.abc import Callable
from dataclasses import asdict, replace
from operator import itemgetter
from pathlib import Path

import torch

from aadml.comparison.clips import Splits
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import to_bytes
from aadml.feature_extraction.ground.strings import Note
from aadml.methods.training.learned_method import LearnedMethod
from aadml.methods.training.session import numbers
from aadml.methods.training.settings import AUTO
from aadml.model.model import Model
from aadml.protocols.audit import AuditReport, Finding, Verdict
from aadml.protocols.pipelines import ProtocolPipeline
from aadml.protocols.protocol import Subject
from aadml.retrieval.evaluation import evaluate
from aadml.retrieval.record import EvaluationRecord
from aadml.runs.environment import data_hash
from aadml.runs.loading import AUDIT, SAME_SCORE, AuditRecord, Run, checksums, load, load_run, read_evaluation
from aadml.runs.manifest import newest_run
from aadml.runs.model_data import read_for
from aadml.runs.protocol_scores import add_to_run, subject_of
from aadml.runs.retrain import fitted_without_test
from aadml.runs.session import read_records
from aadml.runs.train import card_of_run

Checks = Callable[..., AuditReport]
"""Function that runs all checks of an encoder on data; see `aadml.protocols.audit.audit`."""


def audit_model(
    folder: Path, data: str | Path | Splits, protocol: str | None, checks: Checks, note: Note
) -> AuditReport:
    """Audit the model in a folder on the data of the caller; see `aadml.audit`."""
    folder = newest_run(folder)
    model = load(folder, device="cpu")
    splits = read_for(model, data, on_note=note)
    pipeline = ProtocolPipeline(Subject(model, splits), protocol or model.facts.protocol)
    return checks(pipeline, splits, training=_training_data(folder, model, splits))


def _training_data(folder: Path, model: Model, splits: Splits) -> Splits | None:
    """Return the clips that trained a model; None if `splits` is the training data, no clips if unknown."""
    try:
        if data_hash(splits) == model.facts.data.sha256:
            return None
        return load_run(folder, device="cpu", judged=False).splits
    except InputError:
        return Splits(splits.train.select(torch.arange(0)))


def audit_run(
    folder: Path, protocol: str | None, split: str, checks: Checks, *, retrain: bool, note: Note
) -> AuditReport:
    """Audit a run on its own data; see `aadml.audit`.

    Findings on the test split, under the protocol of the run, are added to the run.
    """
    run = load_run(folder, device="cpu")  # a forked process cannot use the GPU of its parent, nor train on it
    protocol = protocol or run.model.facts.protocol
    subject = subject_of(run, split, device="cpu")
    report = checks(ProtocolPipeline(subject, protocol), subject.splits)
    stored = read_evaluation(run.manifest)
    score = evaluate(run.model.embed_clips(run.splits[stored.split])).map_mean
    report += [_kept_epoch(run), _stored_score(stored, score)]
    if retrain:  # the comparison with a retraining replaces a selection check that was not possible
        report[:] = [f for f in report if (f.check, f.verdict) != ("selection", Verdict.NOT_CHECKABLE)]
        note("the run is trained three more times")
        report.append(fitted_without_test(run, split))
    if (protocol, split) == (run.model.facts.protocol, "test"):
        findings, sums = tuple(report), checksums(run.manifest)
        record = AuditRecord(protocol, split, report.summary, findings, report.checksum, score, *sums)
        card = card_of_run(replace(run.model, audit=record.on(run.manifest, stored)), run.manifest, note)
        add_to_run(run.folder, {AUDIT: to_bytes(asdict(record))} | card, note)
    return report


def _kept_epoch(run: Run) -> Finding:
    """Check that the stored epoch is the epoch selected by the config: the best on validation clips, or the last.

    For training in stages, the best epoch of all stages and the best epoch of the last stage are accepted. Some stages
    choose the best epoch independently of earlier stages.
    """
    epoch, training = read_evaluation(run.manifest).selected_epoch, run.config.training
    method, criterion = run.model.method, training.criterion
    if criterion == AUTO:
        criterion = method.learner.criterion if isinstance(method, LearnedMethod) else "map_mean"
    key, name = f"valid {criterion}", "MAP" if criterion == "map_mean" else criterion
    records = [record for record in read_records(run.manifest) if key in record]
    if epoch is None or not records:
        return Finding("kept epoch", Verdict.NOT_CHECKABLE, f"no epoch was chosen by validation {name}")
    if training.select == "last":
        accepted, rule = {"the log": numbers(records[-1])["epoch"]}, "the last epoch of"
    else:
        stage = records[-1].get("stage")
        parts = {"the log": records, f"the stage {stage}": [r for r in records if r.get("stage") == stage]}
        # max returns the first epoch of equal scores
        accepted = {place: max(map(numbers, part), key=itemgetter(key))["epoch"] for place, part in parts.items()}
        rule = f"the epoch with the best validation {name} in"
    place = next((place for place, number in accepted.items() if number == epoch), "the log")
    verdict = Verdict.PASS if epoch == accepted[place] else Verdict.FAIL
    return Finding("kept epoch", verdict, f"epoch {epoch} was kept; {rule} {place} is {accepted[place]:.0f}")


def _stored_score(stored: EvaluationRecord, score: float) -> Finding:
    """Check that the score in `evaluation.json` equals the score of the model, up to `SAME_SCORE`."""
    verdict = Verdict.PASS if abs(score - stored.map_mean) <= SAME_SCORE else Verdict.FAIL
    without = stored.figure("map-without-partner")
    others = "" if without is None else f" ({without:.5f} without them)"
    return Finding(
        "stored score",
        verdict,
        f"MAP {stored.map_mean:.5f} in evaluation.json over the full gallery, own clips included{others}; "
        f"MAP of the model {score:.5f}",
    )
