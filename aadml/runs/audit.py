"""The audit of a run, or of an encoder made elsewhere."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from aadml.data import open_data, to_splits
from aadml.model.card import card
from aadml.model.files import CARD
from aadml.protocols.audit import Finding, Pipeline
from aadml.protocols.audit import audit as run_checks
from aadml.protocols.pipelines import CommandPipeline, Function, FunctionPipeline, ProtocolPipeline
from aadml.protocols.protocol import Subject
from aadml.runs.evaluate import Note, keep, subject_of
from aadml.runs.later_data import read_for
from aadml.runs.loading import AUDIT, load, load_run, read_evaluation
from aadml.runs.train import read_records
from feature_extraction.ground.errors import InputError
from feature_extraction.ground.places import imported_from_outside, is_place, search_beside


def audit(
    run: str | Path | None = None,
    *,
    data: str | Path | None = None,
    encoder: str | Function | None = None,
    command: str | None = None,
    protocol: str = "inductive",
    split: str = "test",
    on_note: Note | None = None,
) -> list[Finding]:
    """Audit a trained run, a model on other data, or an encoder made elsewhere.

    Args:
        run: a run or a model folder; a model needs `data`.
        data: a feature file of any layout; needed for everything but a run.
        encoder: a function of (features: modality -> (n, d) array, labels (n,)) that returns modality -> (n, e) array,
            or its name, "module:function"; the module may lie beside the data or in the current folder.
        command: a command line with {input} and {output}.
        protocol: of a run or model: a key of PROTOCOLS, or leaks joined by "+".
        split: that is scored.
        on_note: told what people should know.

    Returns:
        What each check saw. Those of a finished run under its own protocol are kept in it as `audit.json`, and their
        verdict stands on its card.

    Raises:
        InputError: not exactly one of run, encoder and command, or one that cannot be found.
    """
    if sum(one is not None for one in (run, encoder, command)) != 1:
        raise InputError(
            "audit: give one of: a run or model, --encoder MODULE:FUNCTION, --command (the last two: --data)"
        )
    if run is not None and data is None:
        return _audit_run(Path(run), protocol, split, on_note or (lambda message: None))
    if data is None:
        raise InputError("audit: an encoder made elsewhere needs --data F.h5")
    if run is not None:
        model = load(run)
        subject = Subject(model, read_for(model, data))
        return run_checks(ProtocolPipeline(subject, protocol), subject.splits, split=split)
    splits = to_splits(open_data(data), name=str(data))
    pipeline: Pipeline = CommandPipeline(command) if command is not None else _function(encoder, data)
    return run_checks(pipeline, splits, split=split)


def verdict(findings: Sequence[Finding]) -> str:
    """Say in a sentence what an audit came to."""
    named = {passed: [one.check for one in findings if one.passed is passed] for passed in (True, False, None)}
    parts = [f"FAILED: {', '.join(named[False])}"] if named[False] else []
    parts.append(f"{len(named[True])} checks passed")
    parts += [f"not checkable: {', '.join(named[None])}"] if named[None] else []
    return "; ".join(parts)


def _audit_run(run: Path, protocol: str, split: str, note: Note) -> list[Finding]:
    opened = load_run(run)
    subject = subject_of(opened.config, opened.splits, opened.model)
    findings = run_checks(ProtocolPipeline(subject, protocol), opened.splits, split=split)
    findings = [*findings, _kept_epoch(run)]
    if (protocol, split) == (opened.model.facts.protocol, "test"):
        model = replace(opened.model, audit=verdict(findings))
        content: dict[str, Any] = {"protocol": protocol, "split": split, "verdict": model.audit}
        content["findings"] = [vars(finding) for finding in findings]
        keep(run, {AUDIT: (json.dumps(content, indent=2) + "\n").encode(), CARD: card(model).encode()}, note)
    return findings


def _function(encoder: str | Function | None, data: str | Path) -> FunctionPipeline:
    if encoder is not None and not isinstance(encoder, str):
        return FunctionPipeline(encoder)
    if not is_place(encoder):
        raise InputError(f"--encoder {encoder}: write it as module:function")
    search_beside(Path(data))
    return FunctionPipeline(imported_from_outside(str(encoder)))


def _kept_epoch(run: Path) -> Finding:
    """The epoch that was kept must be the one of the best validation score, or the last where the config says so."""
    kept = read_evaluation(run).get("selected_epoch")
    records = [record for record in read_records(run) if "valid map_mean" in record]
    if kept is None or not records:
        return Finding("kept epoch", None, "nothing was chosen among epochs")
    best = records[int(np.argmax([record["valid map_mean"] for record in records]))]["epoch"]
    passed = kept in (best, records[-1]["epoch"])
    evidence = f"epoch {kept} was kept; the best validation MAP of the log is that of epoch {best}"
    return Finding("kept epoch", passed, evidence)
