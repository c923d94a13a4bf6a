"""Show the progress of an extraction job: clips done, rate, time left, failures."""

from typing import TYPE_CHECKING

import click

from aadml.cli.terminal import echo, echo_json

if TYPE_CHECKING:
    from aadml.feature_extraction.jobs.status import Status


@click.command()
@click.argument("output", type=click.Path(), metavar="F.h5")
@click.option("--json", "as_json", is_flag=True, help="Print the status as JSON.")
def command(output: str, as_json: bool) -> None:
    """Show the progress of the extraction job of F.h5, whether or not the job is running.

    F.h5 is the output of `aadml extract`, for a whole job or a shard. If the job has several shards, the counts of
    all shards are summed for the whole job. The exit status is 1 if the job stopped early, if a shard was not
    started, or if a clip failed.
    """
    from dataclasses import asdict

    import aadml

    progress = aadml.status(output)
    if as_json:
        echo_json(asdict(progress), indent=None)
    else:
        _print(progress)
    if progress.state == "stopped" or progress.failed:
        raise click.exceptions.Exit(1)


def _print(progress: "Status", indent: str = "") -> None:
    from aadml.feature_extraction.media.inputs import REASONS

    is_partial = bool(progress.not_started) and not progress.total
    clips = "clips of the started shards" if is_partial else "clips"
    share = f" ({100 * progress.done // progress.clips} %)" if progress.clips and not is_partial else ""
    counted = f"{progress.done:,} of {progress.clips:,} {clips} done{share}, {sum(progress.failed.values()):,} failed"
    echo(f"{indent}{progress.path}: {progress.state}, {counted}")
    for shard in progress.shards:
        _print(shard, indent + "  ")
    if progress.not_started:
        first, more = ", ".join(progress.not_started[:8]), " ..." if len(progress.not_started) > 8 else ""
        echo(f"{indent}  not started in this folder: shards {first}{more}; run `aadml extract` with each --shard")
    if progress.state == "running":
        rates = [f"{progress.rate:.1f} clips/s recently"] if progress.rate else []
        rates += [f"{progress.rate_overall:.1f} overall"] if progress.rate_overall else []
        left = "" if progress.seconds_left is None else f"about {_duration(progress.seconds_left)} left"
        parts = [part for part in (", ".join(rates), left) if part]
        echo(f"{indent}  {'; '.join(parts) or 'no rate yet'}")
    if progress.shards:
        return
    for reason, meaning in REASONS.items():
        if progress.failed.get(reason):
            echo(f"{indent}  {reason:<17} {progress.failed[reason]:>7,}  {meaning}")
    if progress.state == "stopped":
        echo(f"{indent}  to continue: {_continuing(progress)}")


def _continuing(progress: "Status") -> str:
    """Return the command that continues a job, or an instruction for a job started from Python."""
    import os
    import shlex

    if not progress.command:
        return f"call aadml.extract again with the same arguments (in {progress.folder})"
    away = f"cd {shlex.quote(progress.folder)} && " if progress.folder != os.getcwd() else ""  # noqa: PTH109
    return away + progress.command


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
