"""The part of `aadml compare` that lays out the tables of the audio-text papers."""

from pathlib import Path

import click


def is_of_papers(tables: str | None) -> bool:
    """Tell whether `--tables` names tables of the audio-text papers, and not those of AADML's by their numbers."""
    from aadml.reports.audio_text_tables import PAPER_TABLES

    return bool({part.strip() for part in (tables or "").split(",")} & {*PAPER_TABLES, "all"})


def compare_papers(
    names: str,
    *,
    data: str | None = None,
    config: str | None = None,
    settings: tuple[str, ...] = (),
    epochs: int | None = None,
    device: str | None = None,
    seeds: int = 3,
    workers: int | None = None,
    as_json: bool = False,
    output: Path | None = None,
) -> None:
    """Run every row of the named tables with every seed, print them and keep them as Markdown, CSV and LaTeX.

    The same call again goes on where it was stopped: finished runs are kept.

    Args:
        names: "mei", "3cmlf", "xie", several with commas, or "all".
        data: captioned sound; None for the sample clips.
        config: a YAML file all tables start from; None takes each table's own, narrow on the sample clips.
        settings: of `--set`.
        epochs: training.epochs.
        device: auto, cpu, cuda.
        seeds: runs of every row.
        workers: processes.
        as_json: print JSON.
        output: folder.
    """
    from aadml.cli.sweeps import finish, show, worked_off
    from aadml.configuration.assembly import assembled
    from aadml.configuration.files import open_config
    from aadml.reports.audio_text_tables import checked_tables, jobs_of, starting_config, table_of
    from aadml.reports.tables import write_tables
    from aadml.runs.data import with_sample_data
    from aadml.sweeps.sweep import sole_owner

    folder = output or Path("comparisons")
    place = str(Path(data).absolute()) if data else None
    tables, outcomes = [], []
    with sole_owner(folder):
        for name in checked_tables(names):
            started = open_config(config or starting_config(name, data))
            flags = {"data": place, "training.epochs": epochs, "device": device}
            base = with_sample_data(assembled(started, flags, settings), _say)
            planned = jobs_of(name, base.values, range(seeds), folder, str(base["data"]))
            outcomes += worked_off([job for _, jobs in planned for job in jobs], workers)
            tables.append(table_of(name, planned, str(base["data"])))
            write_tables(tables[-1], folder / name)
    show(tables, as_json=as_json)
    finish(outcomes, folder, folder, as_json=as_json)


def _say(message: str) -> None:
    click.echo(f"aadml: {message}", err=True)
