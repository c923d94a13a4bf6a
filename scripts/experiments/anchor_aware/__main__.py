"""Command line of the experiment: `python -m scripts.experiments.anchor_aware --data F.h5 -o FOLDER`."""

import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from aadml.cli import main, sweeps
from aadml.cli.progress import note
from aadml.cli.settings import config_options
from aadml.cli.trust import trust_option
from aadml.feature_extraction.ground.consent import consent_to
from aadml.feature_extraction.ground.errors import InputError
from aadml.studies.execution import shard_of
from aadml.studies.forecast import WORTH_ASKING, Forecast, in_words
from scripts.experiments.anchor_aware.execution import ExperimentPlan, run_experiment
from scripts.experiments.anchor_aware.finals import LOOKS


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--data", multiple=True, type=click.Path(), metavar="F.h5", help="Features; repeatable, main set first.")
@click.option("--frozen", metavar="SET", help="Train the options that were chosen on SET, as corsmal, on the data.")
@click.option("--only", metavar="STAGES", help="Stages, or what several begin with, separated by commas.")
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=LOOKS[-1],
    show_default=True,
    help="Largest number of seeds of a method.",
)
@config_options
@click.option("--max-epochs", type=click.IntRange(min=1), help="Upper limit on the training epochs of every run.")
@sweeps.machine_options
@click.option("--yes", is_flag=True, help="Do not ask before a job of more than an hour.")
@click.option("--json", "as_json", is_flag=True, help="Print the tables as JSON.")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder of ledger, runs and page.")
@trust_option
def command(
    data: tuple[str, ...],
    only: str | None,
    seeds: int,
    shard: str | None,
    merge: bool,
    yes: bool,
    as_json: bool,
    output: Path,
    **options: Any,
) -> None:
    """Run the experiment of docs/lab/experiments/plan.md on any data: does AA help?

    First, an estimate of the time is printed. The same command continues an interrupted experiment: a run with a row in
    the CSV files of the folder is not trained again. With --frozen, no options are chosen on the data: the finalists of
    another set are trained on every seed, and each row is written when its run ends.
    """
    consent_to(options["config"], options["settings"])
    plan = ExperimentPlan(
        seeds=range(seeds), folder=output, work=sweeps.work, confirm=partial(confirm, yes=yes), note=note,
        shard=shard_of(shard, merge=merge), merge=merge, **options,
    )  # fmt: skip
    sweeps.show(run_experiment(data, only, plan), as_json=as_json)


def confirm(expected: Forecast, *, yes: bool) -> None:
    """Ask for confirmation before a job of more than an hour.

    Raises:
        InputError: there is no terminal for the question.
    """
    if yes or expected.wall < WORTH_ASKING:
        return
    hours = in_words(expected.wall)
    if not sys.stdin.isatty():
        raise InputError(
            f"would take about {hours}; give --yes to begin, --only for a part, or --shard I/N to divide it over "
            "machines"
        )
    click.confirm(f"this takes about {hours}; begin?", abort=True, err=True)


if __name__ == "__main__":
    main(command)
