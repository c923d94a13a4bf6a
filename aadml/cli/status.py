"""`aadml status`: how far an extraction job is."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from aadml.feature_extraction.jobs.status import Status


@click.command()
@click.argument("output", type=click.Path(), metavar="F.h5")
@click.option("--json", "as_json", is_flag=True, help="Print the status as JSON.")
def command(output: str, as_json: bool) -> None:
    """Show how far the extraction of F.h5 is, running or not.

    F.h5 is what `aadml extract -o` was given, of a whole job or of a shard; the shards of a job are summed up. Exit
    status 1 if the job stopped before its end, or if any clip failed so far.
    """
    import json
    from dataclasses import asdict

    from aadml.feature_extraction.jobs.status import status

    found = status(output)
    if as_json:
        click.echo(json.dumps(asdict(found)))
    else:
        _print(found)
    if found.state == "stopped" or found.failed:
        raise click.exceptions.Exit(1)


def _print(found: "Status", indent: str = "") -> None:
    from aadml.feature_extraction.media import REASONS

    share = f" ({100 * found.done // found.clips} %)" if found.clips else ""
    counted = f"{found.done:,} of {found.clips:,} clips done{share}, {sum(found.failed.values()):,} failed"
    click.echo(f"{indent}{found.path}: {found.state}, {counted}")
    if found.shards:
        for one in found.shards:
            _print(one, indent + "  ")
    if found.state == "running":
        rates = [f"{found.rate:.1f} clips/s lately"] if found.rate else []
        rates += [f"{found.rate_overall:.1f} overall"] if found.rate_overall else []
        left = "" if found.seconds_left is None else f"about {_duration(found.seconds_left)} left"
        click.echo(
            indent + "  " + ("; ".join(part for part in (", ".join(rates), left) if part) or "no rate known yet")
        )
    if not found.shards:
        for reason in REASONS:
            if found.failed.get(reason):
                click.echo(f"{indent}  {reason:<10} {found.failed[reason]:>8,}  {REASONS[reason]}")
    if found.state == "stopped" and not found.shards:
        click.echo(f"{indent}  to continue: {_continuing(found)}")


def _continuing(found: "Status") -> str:
    """Say what to type."""
    import os
    import shlex

    if not found.command:
        return f"call aadml.extract again as before (in {found.folder})"
    away = f"cd {shlex.quote(found.folder)} && " if found.folder != os.getcwd() else ""  # noqa: PTH109
    return away + found.command


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
