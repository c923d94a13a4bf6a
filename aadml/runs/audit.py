"""Audit of a run, of a model on other data, or of an encoder made elsewhere."""

from dataclasses import replace
from pathlib import Path

from aadml.data import open_data, to_splits
from aadml.feature_extraction.ground.consent import is_place, with_consent
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.import_paths import imported_with_consent, search_beside
from aadml.feature_extraction.ground.json_values import JsonObject, to_bytes
from aadml.feature_extraction.ground.processor_time import require_seconds
from aadml.methods.training.session import numbers
from aadml.methods.training.settings import AUTO
from aadml.model.packing import CARD
from aadml.protocols.audit import AuditReport, Finding, Pipeline, Verdict
from aadml.protocols.audit import audit as run_checks
from aadml.protocols.audit_checks import CHECKS
from aadml.protocols.pipelines import CommandPipeline, Function, FunctionPipeline, ProtocolPipeline
from aadml.protocols.protocol import Subject
from aadml.retrieval import evaluate
from aadml.runs.evaluate import add_to_run, subject_of
from aadml.runs.loading import AUDIT, Run, load, load_run, read_evaluation
from aadml.runs.model_data import Note, read_for
from aadml.runs.retrain import fitted_without_test
from aadml.runs.session import read_records


@with_consent("run", "data")
def audit(
    run: str | Path | None = None,
    *,
    data: str | Path | None = None,
    encoder: str | Function | None = None,
    command: str | None = None,
    protocol: str = "inductive",
    split: str = "test",
    retrain: bool = False,
    time_limit: float = 600.0,
    trust_code: bool = False,
    on_note: Note | None = None,
) -> AuditReport:
    """Audit a trained run, a model on other data, or an encoder made elsewhere.

    Every check runs in fresh processes, whose first call is on noise. A check passes, fails, or is not checkable.

    Args:
        run: a run or a model folder; a model needs `data`.
        data: a feature file of any layout; required except for a run.
        encoder: a function of (features: modality -> (n, d) array, labels (n,)) that returns modality -> (n, e) array,
            or its name, "module:function"; the module may be beside the data or in the current folder.
        command: a command line with {input} and {output}, executed without a shell.
        protocol: for a run or model: a key of PROTOCOLS, or leaks joined by "+".
        split: split to score.
        retrain: train a run again without the scored clips and compare; takes about three times its training.
        time_limit: seconds for one process, and for one call of a command.
        trust_code: import the code from outside aadml that the run names as `module:name`.
        on_note: called with notes for the user.

    Returns:
        A finding for each check. Findings of a finished run under its own protocol are added to the run as
        `audit.json`, and their verdict to its card.

    Raises:
        InputError: not exactly one of run, encoder and command is given, or one cannot be found.
    """
    require_seconds("time limit", time_limit)
    if sum(subject is not None for subject in (run, encoder, command)) != 1:
        raise InputError("audit: pass one of RUN, --encoder MODULE:FUNCTION and --command (the last two with --data)")
    if retrain and (run is None or data is not None):
        raise InputError("audit: --retrain applies to a run on its own data only; leave out --retrain")
    if run is None and protocol != "inductive":
        raise InputError(f"audit: protocol {protocol} applies to a run or model only; leave out --protocol")
    if run is not None and data is None:
        findings = AuditReport(_audit_run(Path(run), protocol, split, retrain=retrain, seconds=time_limit))
        _add_to_run(Path(run), findings, protocol, split, on_note or (lambda message: None))
        return findings
    if data is None:
        raise InputError("audit: an encoder made elsewhere needs data; pass --data F.h5")
    pipeline: Pipeline
    if run is not None:
        model = load(run, device="cpu")
        splits = read_for(model, data)
        pipeline = ProtocolPipeline(Subject(model, splits), protocol)
    else:
        splits = to_splits(open_data(data), name=str(data))
        pipeline = CommandPipeline(command, time_limit) if command is not None else _function(encoder, data)
    return AuditReport(run_checks(pipeline, splits, CHECKS, split=split, seconds=time_limit))


def _audit_run(folder: Path, protocol: str, split: str, *, retrain: bool, seconds: float) -> list[Finding]:
    run = load_run(folder, device="cpu")  # a forked process cannot use a device of its parent
    pipeline = ProtocolPipeline(subject_of(run), protocol)
    findings = run_checks(pipeline, run.splits, CHECKS, split=split, seconds=seconds)
    findings += [_kept_epoch(run), _stored_score(run)]
    if not retrain:
        return findings
    # the comparison with another training replaces a check of the selection that was not possible
    checked = [f for f in findings if (f.check, f.verdict) != ("selection", Verdict.NOT_CHECKABLE)]
    return [*checked, fitted_without_test(run, split)]


def _add_to_run(folder: Path, findings: AuditReport, protocol: str, split: str, note: Note) -> None:
    """Add the audit to a run and to its card, if the run was audited under its own protocol."""
    model = load(folder, device="cpu")
    if (protocol, split) != (model.facts.protocol, "test"):
        return
    verdict = findings.summary
    rows: list[JsonObject] = [vars(finding) for finding in findings]
    content: JsonObject = {"protocol": protocol, "split": split, "verdict": verdict, "findings": rows}
    card = replace(model, audit=verdict).card().encode()
    add_to_run(folder, {AUDIT: to_bytes(content), CARD: card}, note)


def _function(encoder: str | Function | None, data: str | Path) -> FunctionPipeline:
    if encoder is not None and not isinstance(encoder, str):
        return FunctionPipeline(encoder)
    if not is_place(encoder):
        raise InputError(f"--encoder {encoder}: not a name of a function; write it as module:function")
    search_beside(Path(data))
    return FunctionPipeline(imported_with_consent(str(encoder), "encoder"))


def _kept_epoch(run: Run) -> Finding:
    """Check that the kept epoch has the best validation score, or is the last one where the config says so.

    Where a method trains in stages, the best epoch of all stages or of the last stage is accepted, as some stages
    start again.
    """
    epoch, training = read_evaluation(run.folder).selected_epoch, run.config.training
    criterion = training.criterion
    key, name = ("valid map_mean", "MAP") if criterion == AUTO else (f"valid {criterion}", criterion)
    records = [record for record in read_records(run.folder) if key in record]
    if epoch is None or not records:
        return Finding("kept epoch", Verdict.NOT_CHECKABLE, f"no epoch was chosen by validation {name}")
    if training.select == "last":
        accepted, rule = [numbers(records[-1])["epoch"]], "the last one of the log"
    else:
        stage = [record for record in records if record.get("stage") == records[-1].get("stage")]
        # of equal scores, the first epoch
        accepted = [max(map(numbers, part), key=lambda record: record[key])["epoch"] for part in (records, stage)]
        rule = f"the one of the best validation {name} of the log"
    verdict = Verdict.PASS if epoch in accepted else Verdict.FAIL
    return Finding("kept epoch", verdict, f"epoch {epoch} was kept; {rule} is epoch {accepted[0]:.0f}")


def _stored_score(run: Run) -> Finding:
    """Check that the score in `evaluation.json` is that of the model."""
    stored = read_evaluation(run.folder)
    score = evaluate(run.model.embed_clips(run.splits[stored.split])).map_mean
    verdict = Verdict.PASS if abs(score - stored.map_mean) <= 1e-3 else Verdict.FAIL
    without = stored.figure("map-without-partner")
    others = "" if without is None else f" ({without:.5f} without them)"
    return Finding(
        "stored score",
        verdict,
        f"MAP {stored.map_mean:.5f} in evaluation.json over the full gallery, own clips included{others}; "
        f"MAP of the model {score:.5f}",
    )
