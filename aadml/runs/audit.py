"""The audit of a run, or of an encoder made elsewhere."""

from pathlib import Path

import numpy as np

from aadml.data import open_data, to_splits
from aadml.protocols.audit import Finding, Pipeline, audit
from aadml.protocols.pipelines import CommandPipeline, FunctionPipeline, ProtocolPipeline
from aadml.runs.evaluate import subject_of
from aadml.runs.folder import EVALUATION, read_json, read_metrics
from aadml.runs.train import load_run
from feature_extraction.ground.errors import InputError
from feature_extraction.ground.places import imported_from_outside, is_place, search_beside


def audit_run(run: Path, *, protocol: str = "inductive", split: str = "test") -> list[Finding]:
    """Audit a trained run under a protocol.

    Args:
        run: a finished run folder.
        protocol: a key of PROTOCOLS, or leaks joined by "+".
        split: that is scored.
    """
    config, splits, encoder = load_run(run)
    findings = audit(ProtocolPipeline(subject_of(config, splits, encoder), protocol), splits, split=split)
    return [*findings, _kept_epoch(run)]


def audit_elsewhere(
    data: Path, *, encoder: str | None = None, command: str | None = None, split: str = "test"
) -> list[Finding]:
    """Audit an encoder that is not ours.

    Args:
        data: a feature file of any layout.
        encoder: "module:function", called with (features: modality -> (n, d) array, labels (n,)), returning
            modality -> (n, e) array; the module may lie beside the data or in the current folder.
        command: a command line with {input} and {output}.
        split: that is scored.

    Raises:
        InputError: neither or both are given, or the function cannot be found.
    """
    if (encoder is None) == (command is None):
        raise InputError("audit: give either a run, or --data with one of --encoder MODULE:FUNCTION and --command")
    splits = to_splits(open_data(data), name=str(data))
    pipeline: Pipeline = CommandPipeline(command) if command is not None else _function(str(encoder), data)
    return audit(pipeline, splits, split=split)


def _function(place: str, data: Path) -> FunctionPipeline:
    if not is_place(place):
        raise InputError(f"--encoder {place}: write it as module:function")
    search_beside(data)
    return FunctionPipeline(imported_from_outside(place))


def _kept_epoch(run: Path) -> Finding:
    """The epoch that was kept must be the one of the best validation score, or the last where the config says so."""
    kept = read_json(run / EVALUATION).get("selected_epoch")
    records = [record for record in read_metrics(run) if "valid map_mean" in record]
    if kept is None or not records:
        return Finding("kept epoch", None, "nothing was chosen among epochs")
    best = records[int(np.argmax([record["valid map_mean"] for record in records]))]["epoch"]
    passed = kept in (best, records[-1]["epoch"])
    evidence = f"epoch {kept} was kept; the best validation MAP of the log is that of epoch {best}"
    return Finding("kept epoch", passed, evidence)
