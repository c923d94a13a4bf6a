"""The audit of a run, or of an encoder made elsewhere."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from aadml.data import open_data, to_splits
from aadml.feature_extraction.ground.consent import is_place, with_consent
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.import_paths import imported_with_consent, search_beside
from aadml.feature_extraction.ground.json_values import JsonObject, to_bytes
from aadml.methods.training.session import Record, numbers
from aadml.methods.training.settings import AUTO
from aadml.model.packing import CARD
from aadml.protocols.audit import Finding, Pipeline, Verdict, summary
from aadml.protocols.audit import audit as run_checks
from aadml.protocols.audit_checks import CHECKS
from aadml.protocols.pipelines import CommandPipeline, Function, FunctionPipeline, ProtocolPipeline
from aadml.protocols.protocol import Subject
from aadml.retrieval import evaluate
from aadml.runs.evaluate import Note, keep, subject_of
from aadml.runs.loading import AUDIT, Run, load, load_run, read_config, read_evaluation
from aadml.runs.model_data import read_for
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
) -> list[Finding]:
    """Audit a trained run, a model on other data, or an encoder made elsewhere.

    Every check runs in fresh processes, whose first call is on noise. It passes, fails, or is not checkable; nothing is
    claimed that was not done.

    Args:
        run: a run or a model folder; a model needs `data`.
        data: a feature file of any layout; needed for everything but a run.
        encoder: a function of (features: modality -> (n, d) array, labels (n,)) that returns modality -> (n, e) array,
            or its name, "module:function"; the module may lie beside the data or in the current folder.
        command: a command line with {input} and {output}; it is run without a shell.
        protocol: of a run or model: a key of PROTOCOLS, or leaks joined by "+".
        split: that is scored.
        retrain: train a run again without the scored clips and compare; takes about three times its training.
        time_limit: seconds that one process, and one call of a command, may take.
        trust_code: import the code from outside aadml that the run names as `module:name`.
        on_note: called with notes for the user.

    Returns:
        What each check saw. Those of a finished run under its own protocol are kept in it as `audit.json`, and their
        verdict stands on its card.

    Raises:
        InputError: not exactly one of run, encoder and command, or one that cannot be found.
    """
    if sum(one is not None for one in (run, encoder, command)) != 1:
        raise InputError("audit: give one of RUN, --encoder MODULE:FUNCTION, --command (the last two with --data)")
    if retrain and (run is None or data is not None):
        raise InputError("audit: --retrain needs a run on its own data")
    if run is None and protocol != "inductive":
        raise InputError(f"audit: protocol {protocol} is of a run; an encoder made elsewhere embeds as it does")
    if run is not None and data is None:
        findings = _audit_run(Path(run), protocol, split, retrain=retrain, seconds=time_limit)
        _keep(Path(run), findings, protocol, split, on_note or (lambda message: None))
        return findings
    if data is None:
        raise InputError("audit: an encoder made elsewhere needs --data F.h5")
    if run is not None:
        model = load(run, device="cpu")
        subject = Subject(model, read_for(model, data))
        pipeline: Pipeline = ProtocolPipeline(subject, protocol)
        return run_checks(pipeline, subject.splits, CHECKS, split=split, seconds=time_limit)
    splits = to_splits(open_data(data), name=str(data))
    pipeline = CommandPipeline(command, time_limit) if command is not None else _function(encoder, data)
    return run_checks(pipeline, splits, CHECKS, split=split, seconds=time_limit)


def _audit_run(folder: Path, protocol: str, split: str, *, retrain: bool, seconds: float) -> list[Finding]:
    run = load_run(folder, device="cpu")  # a process that is forked cannot use a device of its parent
    subject = subject_of(run.config, run.splits, run.model)
    findings = run_checks(ProtocolPipeline(subject, protocol), run.splits, CHECKS, split=split, seconds=seconds)
    findings += [_kept_epoch(folder), _stored_score(run)]
    if not retrain:
        return findings
    # training again answers what the check of the selection could only call not checkable
    answered = [one for one in findings if (one.check, one.verdict) != ("selection", Verdict.NOT_CHECKABLE)]
    return [*answered, fitted_without_test(run, split)]


def _keep(folder: Path, findings: Sequence[Finding], protocol: str, split: str, note: Note) -> None:
    """Keep the audit of a run under its own protocol in it, and write its verdict on the card."""
    model = load(folder, device="cpu")
    if (protocol, split) != (model.facts.protocol, "test"):
        return
    verdict = summary(findings)
    content: JsonObject = {
        "protocol": protocol,
        "split": split,
        "verdict": verdict,
        "findings": [vars(one) for one in findings],
    }
    card = replace(model, audit=verdict).card().encode()
    keep(folder, {AUDIT: to_bytes(content), CARD: card}, note)


def _function(encoder: str | Function | None, data: str | Path) -> FunctionPipeline:
    if encoder is not None and not isinstance(encoder, str):
        return FunctionPipeline(encoder)
    if not is_place(encoder):
        raise InputError(f"--encoder {encoder}: write it as module:function")
    search_beside(Path(data))
    return FunctionPipeline(imported_with_consent(str(encoder), "encoder"))


def _kept_epoch(run: Path) -> Finding:
    """The epoch that was kept must be the one of the best validation score, or the last where the config says so.

    Where a method trains in stages, the best of them all will do and that of the last: some stages begin anew.
    """
    kept, training = read_evaluation(run).selected_epoch, read_config(run).training
    criterion = training.criterion
    key, name = ("valid map_mean", "MAP") if criterion == AUTO else (f"valid {criterion}", criterion)
    records = [record for record in read_records(run) if key in record]
    if kept is None or not records:
        return Finding("kept epoch", Verdict.NOT_CHECKABLE, f"nothing was chosen among epochs by validation {name}")
    if training.select == "last":
        wanted, which = [numbers(records[-1])["epoch"]], "the last one of the log"
    else:
        stage = [record for record in records if record.get("stage") == records[-1].get("stage")]
        wanted, which = (
            [_best_epoch(records, key), _best_epoch(stage, key)],
            f"the one of the best validation {name} of the log",
        )
    verdict = Verdict.PASS if kept in wanted else Verdict.FAIL
    evidence = f"epoch {kept} was kept; {which} is epoch {wanted[0]:.0f}"
    return Finding("kept epoch", verdict, evidence)


def _best_epoch(records: Sequence[Record], key: str) -> float:
    """Give the epoch of the highest value, the first of equal ones."""
    return max(map(numbers, records), key=lambda record: record[key])["epoch"]


def _stored_score(run: Run) -> Finding:
    """The score in the run's `evaluation.json` must be that of its model."""
    stored = read_evaluation(run.folder)
    now = evaluate(run.model.embed_clips(run.splits[stored.split])).map_mean
    verdict = Verdict.PASS if abs(now - stored.map_mean) <= 1e-3 else Verdict.FAIL
    others = stored.figure("map-without-partner")
    beside = "" if others is None else f" ({others:.5f} without them)"
    return Finding(
        "stored score",
        verdict,
        f"evaluation.json says MAP {stored.map_mean:.5f} over the full gallery, own clips included{beside}; it is "
        f"{now:.5f}",
    )
