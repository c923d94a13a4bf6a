"""Train a method on a feature file; the last line printed is the run folder."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

import click

from aadml.cli.progress import Interrupted, TrainingProgress, note, warn
from aadml.cli.settings import config_options, flags_of, key_flag, typed_beside
from aadml.cli.terminal import echo, echo_json, echo_path
from aadml.cli.trust import trust_option

_flag = flags_of("aadml.runs.fit:fit")


@click.command("train")
@key_flag("data")
@_flag("--method")
@_flag("--loss")
@key_flag("proxy.k", int)
@config_options
@key_flag("seed", int)
@key_flag("training.epochs", int)
@key_flag("training.criterion")
@key_flag("relevance")
@key_flag("modalities")
@key_flag("device")
@_flag("--runs", default="runs", show_default=True, type=click.Path(path_type=Path))
@click.option("--resume", type=click.Path(path_type=Path), help="Continue an interrupted run.")
@click.option("--track", help="Log every epoch in an installed tracker: tensorboard, wandb, mlflow or trackio.")
@click.option("--json", "as_json", is_flag=True, help="Print the run folder and the evaluation as JSON.")
@trust_option
@click.pass_context
def command(
    context: click.Context,
    /,
    runs: Path,
    resume: Path | None,
    track: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Train a method, and score the test split once. The epoch is selected on validation clips.

    Without --json, the last line printed is the run folder, for `aadml evaluate RUN` and `aadml report RUN`.
    """
    import aadml
    from aadml.comparison.processes.launch import ProcessLost
    from aadml.feature_extraction.ground.errors import InputError

    progress = TrainingProgress()
    training: Callable[..., Any] = partial(aadml.fit, runs=runs, track=track, on_run=progress.began, **options)
    if resume is not None:
        if flag := typed_beside(context, "resume", "track", "as_json", "trust_code"):
            raise InputError(f"--resume reads all options from {resume / 'config.yaml'}; omit {flag}")
        training = partial(aadml.resume, resume, track=track)
    try:
        model = training(
            on_plan=progress.plan, on_epoch=progress.epoch, on_step=progress.step, on_warning=warn, on_note=note
        )  # fmt: skip
    except KeyboardInterrupt as stop:
        raise Interrupted(_continuation(resume or progress.folder)) from stop
    except ProcessLost as lost:
        raise ProcessLost("; ".join(filter(None, (str(lost), _continuation(resume or progress.folder))))) from lost
    finally:
        progress.close()
    if (epoch := model.facts.selected_epoch) is not None:
        note(f"the weights of epoch {epoch} of {len(model.records())} are kept")
    if as_json:
        echo_json({"run": str(model.folder), **(model.evaluation or {})})
        return
    if model.evaluation is not None:
        _print(model.evaluation)
    echo_path(model.folder)


def _continuation(folder: Path | None) -> str:
    """Return a clause with the command for continuing a run; "" if no run was started."""
    from aadml.comparison.processes.launch import process_count

    if folder is None or not (folder / "config.yaml").is_file():
        return ""
    count = process_count()
    program = "aadml" if count == 1 else f"torchrun --nproc-per-node {count} -m aadml"
    return f"continue with: {program} train --resume {quote(str(folder))}"


def _print(result: Any) -> None:
    directions = ", ".join(f"{name} {values['map']:.4f}" for name, values in result["directions"].items())
    echo(
        f"{result['split']} MAP {result['map_mean']:.4f} ({directions}); chance {result['chance']:.4f}, "
        f"tie rate {result['tie_rate']:.3f}, protocol {result['protocol']}"
    )
