"""`aadml train`: fit a method on a feature file into a run folder."""

from pathlib import Path
from typing import Any

import click

from aadml.cli.settings import config_options


@click.command("train")
@click.option("--data", help="Feature file of any layout. Without it: the sample clips, rendered and extracted once.")
@click.option("--method", help="A method of `aadml list methods`; its configs/METHOD.yaml is the starting point.")
@click.option("--loss", help="A loss of `aadml list losses`; aa-LOSS sees the anchors as anchor-aware proxies.")
@click.option("--k", type=int, help="Neighbors of the anchor-aware proxy (proxy.k).")
@config_options
@click.option("--seed", type=int, help="Decides weights, order, draws, and the validation split where one is made.")
@click.option("--epochs", type=int, help="training.epochs.")
@click.option("--device", help="auto, cpu, cuda.")
@click.option("--runs", default="runs", show_default=True, type=click.Path(path_type=Path), help="Where runs go.")
@click.option("--resume", type=click.Path(path_type=Path), help="Continue this interrupted run folder.")
@click.option("--json", "as_json", is_flag=True, help="Print the evaluation as JSON before the run folder.")
def command(runs: Path, resume: Path | None, as_json: bool, **flags: Any) -> None:
    """Fit a method; choose the epoch on validation clips; score the test split once.

    The last line printed is the run folder: read on with `aadml evaluate RUN` and `aadml report RUN`.
    """
    from aadml.cli.progress import TrainingProgress
    from aadml.cli.settings import assemble
    from aadml.runs import folder as folders
    from aadml.runs import train as run
    from aadml.runs.data import with_sample_data
    from feature_extraction.ground.errors import InputError

    if resume is not None:
        given = [name for name, value in flags.items() if value]
        if given:
            raise InputError(f"--resume takes everything from {resume / folders.CONFIG}; leave out --{given[0]}")
        config, folder = run.read_config(resume), resume
        if run.is_finished(folder):
            click.echo(f"aadml: {folder} is finished; nothing to resume", err=True)
            click.echo(folder)
            return
    else:
        flags["data"] = str(Path(flags["data"]).absolute()) if flags["data"] else None
        config = assemble(**flags)
        config = with_sample_data(config, lambda message: click.echo(f"aadml: {message}", err=True))
        folder = folders.new_run_folder(runs, config.label(), config["seed"])
    for note in run.remarks(config):
        click.echo(f"aadml: {note}", err=True)
    progress = TrainingProgress()
    try:
        result = run.train_run(config, folder, **progress.callbacks())
    except KeyboardInterrupt:
        progress.close()
        click.echo(f"aadml: interrupted; continue with: aadml train --resume {folder}", err=True)
        raise
    except InputError:
        if resume is None:
            folders.discard_unbegun(folder)
        raise
    finally:
        progress.close()
    _print(result, as_json)
    click.echo(folder)


def _print(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        import json

        click.echo(json.dumps(result, indent=2))
        return
    directions = ", ".join(f"{name} {values['map']:.4f}" for name, values in result["directions"].items())
    click.echo(
        f"test MAP {result['map_mean']:.4f} ({directions}); chance {result['chance']:.4f}, "
        f"tie rate {result['tie_rate']:.3f}, protocol {result['protocol']}"
    )
