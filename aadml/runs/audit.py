"""Audit of a run on its own data, of a model on data of the user, of an external encoder, or of a retrieval task.

The audit of an encoder on data in memory does not import the code of configs, HDF5 and media.
"""

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from aadml.comparison.clips import Clips, Splits
from aadml.feature_extraction.ground.argument_types import with_consent
from aadml.feature_extraction.ground.consent import is_place
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.import_paths import search_beside
from aadml.feature_extraction.ground.processor_time import require_seconds
from aadml.feature_extraction.ground.strings import Note
from aadml.protocols.audit import AuditReport, Pipeline, Progress
from aadml.protocols.audit import audit as run_checks
from aadml.protocols.audit_checks import CHECKS
from aadml.protocols.isolated_encoder import Function, Order
from aadml.protocols.pipelines import FunctionPipeline, IsolatedPipeline, of_command, of_function, order_of
from aadml.protocols.training_command import train_encoder

TIME_LIMIT = 600.0


@with_consent("run", "data")
def audit(
    run: str | Path | None = None,
    *,
    data: str | Path | Splits | Clips | None = None,
    encoder: str | Function | None = None,
    command: str | None = None,
    train_command: str | None = None,
    mteb: str | None = None,
    allow: Sequence[str | Path] = (),
    protocol: str | None = None,
    split: str = "test",
    retrain: bool = False,
    time_limit: float = TIME_LIMIT,
    trust_code: bool = False,
    on_note: Note | None = None,
    progress: Progress | None = None,
) -> AuditReport:
    """Audit a run on its own data, a model on `data`, an external encoder, or a retrieval task.

    Every check of embeddings runs in fresh processes. The first call of a process embeds noise, except in the check
    `history`. A check passes, fails, or cannot be made. A command, or a function that has a name, is started in a
    new interpreter for each process. The Linux kernel isolates that interpreter from the network, from other
    processes, and from files other than libraries and the encoder's files.

    Args:
        run: a run or a model folder; a model needs `data`.
        data: feature file of any layout, for an external encoder or a model; in Python also data in memory. All
            clips of `Clips` are scored. A model is compared with the training data of its run, if these can be read.
        encoder: a function, or the name "module:function" of a function. The function receives two arguments:
            features as modality -> (n, d) array, and labels (n,). The function returns modality -> (n, e) array.
            The module may be next to the data or in the current folder. A lambda, a local function or a function of
            a script has no name, so the verdict on inference is unknown.
        command: a command line, executed without a shell. {input} is the path of a feature file, and {output} is
            the path of an HDF5 file for the embeddings.
        train_command: a command line that trains the encoder. {train} is the path of a feature file of the training
            clips alone, and {output} is the path of a folder. The command runs twice, in isolation. The folder is
            linked as `trained` into the current folder of the encoder.
        mteb: a retrieval task to audit without an encoder. The task is a folder with corpus, queries and qrels, the
            name of a task in mteb, or FOLDER#a2v for a table of clips whose sounds are queries for the videos.
        allow: files and folders that the encoder reads, such as weights or further modules. The module of a
            function and the files in a command line need no entry. Each entry is also linked into the empty current
            folder of the encoder.
        protocol: protocol of a run or model (`aadml list protocols`), or several legacy protocols joined by "+"; by
            default the model's own.
        split: split to score.
        retrain: train the run three more times, with unchanged and changed scored clips, and compare the weights.
        time_limit: time limit of each process, in seconds. A task is audited without such processes.
        trust_code: import the code from outside aadml that the run names as `module:name`.
        on_note: called with notes for the user.
        progress: called with the numbers of steps done and of all steps. A step is a check, or a pass over the
            unchanged clips.

    Returns:
        A finding for each check, with verdicts on inference and on training. After an audit of a finished run on
        its own data, test split and protocol, the findings are added to the run as `audit.json`. Their verdict is
        then added to the card of the run, unless the card was edited.

    Raises:
        InputError: none or several of run, encoder, command and mteb are passed. Other causes: a file that cannot
            be read, an encoder that cannot be run, or an argument that is invalid or does not apply.
    """
    require_seconds("time limit", time_limit)
    note = on_note or (lambda message: None)
    count = sum(subject is not None for subject in (run, encoder, command, mteb))
    if count != 1:
        raise InputError(
            f"audit: {count} runs, encoders or tasks were passed; pass exactly one of RUN, --mteb TASK, "
            "--encoder MODULE:FUNCTION with --data F.h5, and --command LINE with --data F.h5"
        )
    _check_scope(run, data, protocol, retrain=retrain)
    is_external = encoder is not None or command is not None
    for flag, is_set in (("--allow", allow), ("--train-command", train_command is not None)):
        if is_set and not is_external:
            raise InputError(f"audit: {flag} applies only to --encoder and --command; leave out {flag}")
    if mteb is not None:
        return _audit_task(mteb, data, split, time_limit)
    if isinstance(data, Clips):
        if split != "test":
            raise InputError(f"audit: split is '{split}', but all of the Clips are scored; leave out split")
        data = Splits.only_test(data)
    checks = partial(run_checks, checks=CHECKS, split=split, seconds=time_limit, progress=progress)
    if run is not None:
        from aadml.runs.run_audit import audit_model, audit_run

        if data is not None:
            return audit_model(Path(run), data, protocol, checks, note)
        return audit_run(Path(run), protocol, split, checks, retrain=retrain, note=note)
    if data is None:
        raise InputError("audit: an external encoder needs data; pass --data F.h5")
    pipeline_of = partial(_external_pipeline, encoder, command, data)
    places = [Path(place) for place in allow]
    if train_command is None:
        return checks(pipeline_of(places), _splits(data))
    return _audit_trained(train_command, pipeline_of, places, data, split, time_limit, checks, note)


def _audit_trained(
    train_command: str, pipeline_of: Callable[[Sequence[Path]], FunctionPipeline | IsolatedPipeline],
    places: Sequence[Path], data: str | Path | Splits, split: str, seconds: float,
    checks: Callable[[Pipeline, Splits], AuditReport], note: Note,
) -> AuditReport:  # fmt: skip
    """Train an external encoder by a command that may read `places`, and audit the encoder."""
    splits = _splits(data)
    order = order_of(train_command, places, "--train-command", ("{train}", "{output}"))
    _check_readable(order, data)
    note("the encoder is trained twice")
    with tempfile.TemporaryDirectory() as folder:
        trained = Path(folder) / "trained"
        finding = train_encoder(order, splits, split, trained, seconds)
        pipeline = pipeline_of([*places, trained])
        if isinstance(pipeline, FunctionPipeline):
            raise InputError(
                "audit: train_command needs an encoder in its own process, but the encoder has no importable name; "
                "pass the encoder as 'module:function'"
            )
        report = checks(pipeline, splits)
    report.insert(0, finding)
    return report


def _external_pipeline(
    encoder: str | Function | None, command: str | None, data: str | Path | Splits, allow: Sequence[Path]
) -> FunctionPipeline | IsolatedPipeline:
    """Return the pipeline of an encoder from outside aadml: a function, its name, or a command."""
    if isinstance(encoder, str) and not is_place(encoder):
        raise InputError(f"--encoder {encoder} is not the name of a function; pass module:function")
    if not isinstance(data, Splits):
        search_beside(Path(data))
    pipeline = of_function(encoder, allow) if encoder is not None else of_command(command or "", allow)
    if isinstance(pipeline, IsolatedPipeline):
        _check_readable(pipeline.order, data)
    return pipeline


def _audit_task(mteb: str, data: object, split: str, seconds: float) -> AuditReport:
    from aadml.protocols.task_audit import audit_task

    if data is not None:
        raise InputError(f"audit: the task {mteb} has its own data; leave out --data")
    if split != "test":
        raise InputError(f"audit: the split is '{split}', but all splits of a task are audited; leave out --split")
    if seconds != TIME_LIMIT:
        raise InputError(
            f"audit: the time limit is {seconds:g}, but a task is audited without processes; leave out --time-limit"
        )
    return audit_task(mteb)


def _check_scope(run: object, data: object, protocol: str | None, *, retrain: bool) -> None:
    if retrain and (run is None or data is not None):
        raise InputError("audit: --retrain applies only to a run on its own data; leave out --retrain")
    if run is None and protocol not in (None, "inductive"):
        raise InputError(f"audit: protocol {protocol} applies only to a run or model; leave out --protocol")


def _splits(data: str | Path | Splits) -> Splits:
    if isinstance(data, Splits):
        return data
    from aadml.data.reading import open_data
    from aadml.data.splitting.splits import to_splits
    from aadml.feature_extraction.foreign.tables import shown_address

    return to_splits(open_data(data), name=shown_address(data))


def _check_readable(order: Order, data: str | Path | Splits) -> None:
    if isinstance(data, Splits):
        return
    from aadml.feature_extraction.foreign.tables import local_path

    if str(data).startswith("synthetic:"):
        return
    labels = local_path(data).resolve()
    for place in order.readable:
        readable = Path(place).resolve()
        if labels.is_relative_to(readable) or readable.is_relative_to(labels):
            raise InputError(
                f"audit: the encoder may read {place}, which contains the data with the labels or is part of these "
                "data; leave out this path, or keep this path and the data in separate folders"
            )
