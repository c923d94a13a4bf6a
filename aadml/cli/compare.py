"""`aadml compare`: the tables of the papers on any feature file."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aadml.cli.settings import config_options
from aadml.cli.sweeps import sweep_options

if TYPE_CHECKING:
    from aadml.sweeps.compare import Row


@click.command(short_help="Compare methods, and losses with and without the proxy, next to the published figures.")
@click.option("--data", help="Feature file in any layout.  [default: the sample clips]")
@click.option("--methods", help="'all', or methods and shipped configs separated by commas, each by its own config.")
@click.option("--losses", help="'all', or losses separated by commas; each with and without anchor-aware proxies.")
@click.option(
    "--tables",
    help="The paper's: 1 (methods), 2 or 3 (losses); or those of the audio-text papers: mei, 3cmlf, xie. By commas.",
)
@config_options
@click.option("--max-epochs", type=click.IntRange(min=1), help="Upper limit on the training epochs of every row.")
@click.option(
    "--controls/--no-controls",
    "with_controls",
    default=True,
    help="Add the control rows of every anchor-aware row.  [default: on]",
)
@click.option("--baseline", help="The row that the others are compared with.  [default: aadml, or the first row]")
@click.option(
    "--trials",
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
    help="Give every row this many trials over its config's `tuning` section, selected on validation clips.",
)
@sweep_options
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder.  [default: comparisons/NAME-HASH]")
def command(
    data: str | None,
    methods: str | None,
    losses: str | None,
    tables: str | None,
    config: str | None,
    settings: tuple[str, ...],
    max_epochs: int | None,
    with_controls: bool,
    baseline: str | None,
    trials: int,
    seeds: int,
    metrics: tuple[str, ...],
    workers: int | None,
    device: str | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Run rows of the papers' tables with several seeds on one feature file; test which differences are significant.

    Beside every anchor-aware row stand its controls: the loss without proxy, the proxy over random neighbors of the
    class, half the metric weight, no metric loss. The same command again goes on where it was stopped. A row that fails
    does not stop the others (exit code 1).
    """
    from aadml.cli.paper_tables import compare_papers, is_of_papers
    from aadml.cli.sweeps import finish, said, show, worked_off
    from aadml.configuration.changes import parse_setting
    from aadml.reports.comparison_page import check_baseline, write_comparison
    from aadml.retrieval.requested import check_columns
    from aadml.sweeps.ablate import collected, jobs_of
    from aadml.sweeps.compare import Settings, cells_of_rows, named_rows
    from aadml.sweeps.sweep import check_same_data, sole_owner
    from aadml.sweeps.trials import RECORD
    from feature_extraction.ground.atomic import write_text
    from feature_extraction.ground.errors import InputError
    from feature_extraction.ground.places import search_beside

    if is_of_papers(tables):
        if metrics:
            raise InputError(f"--metric {metrics[0]}: the tables of the audio-text papers have their own columns")
        compare_papers(
            str(tables), data=data, config=config, settings=settings, epochs=max_epochs, device=device, seeds=seeds,
            workers=workers, as_json=as_json, output=output,
        )  # fmt: skip
        return
    if data is not None:
        search_beside(Path(data))
    wanted_methods, wanted_losses = _wanted(methods, losses, tables)
    place = _data(data)
    columns = check_columns(metrics)
    changes = [parse_setting(text) for text in settings] + ([("device", device)] if device else [])
    shared = Settings(place, tuple(changes), max_epochs, config, with_controls)
    rows, notes = named_rows(wanted_methods, wanted_losses, shared)
    check_baseline(rows, baseline)
    notes += [f"Options of every row: the best of {trials} trials on validation clips (seed 0)."] if trials > 1 else []
    for note in notes:
        click.echo(f"aadml: {note}", err=True)
    folder = output or Path("comparisons") / _name(wanted_methods, wanted_losses, shared, trials)
    with sole_owner(folder):
        check_same_data(folder, place)
        rows, records = _searched(rows, trials, workers, folder) if trials > 1 else (rows, {})
        cells = cells_of_rows(rows)
        jobs = jobs_of(cells, range(seeds), folder, columns)
        outcomes = worked_off(jobs, workers)
        scores = collected(cells, range(seeds), folder, outcomes)
        for job in jobs:
            if job.folder.is_dir() and records:
                write_text(job.folder / RECORD, records[job.folder.name.rsplit("_seed=", 1)[0]])
        found, page = write_comparison(
            rows, scores, range(seeds), folder, baseline=baseline, notes=notes, command=said("compare"), metrics=columns
        )
    show(found, as_json=as_json)
    finish(outcomes, folder, page, as_json=as_json)


def _wanted(methods: str | None, losses: str | None, tables: str | None) -> tuple[list[str], list[str]]:
    from aadml.losses import LOSSES
    from aadml.objective.recipes import RECIPES
    from aadml.sweeps import compare
    from feature_extraction.ground.errors import InputError
    from feature_extraction.ground.tables import Joined

    if not (methods or losses or tables):
        raise InputError("compare: say what: --methods all, --losses all, or --tables 1,2,3")
    wanted = compare.chosen(methods or "", compare.method_names(), compare.known_methods(), "method or config")
    wanted_losses = compare.chosen(losses or "", compare.loss_names(), Joined(LOSSES, RECIPES), "loss")
    for number in [part.strip() for part in (tables or "").split(",") if part.strip()]:
        if number not in ("1", "2", "3"):
            raise InputError(f"--tables {number}: the paper has 1 (methods), 2 and 3 (losses on VEGAS and AVE)")
        if number == "1":
            wanted += compare.published_methods()
        else:
            wanted_losses += compare.published_losses()
    deaf = compare.sound_only(wanted)
    if deaf:
        raise InputError(f"--methods {deaf[0]}: learns from captioned sound; compare works on feature files")
    return list(dict.fromkeys(wanted)), list(dict.fromkeys(wanted_losses))


def _data(data: str | None) -> str:
    if data:
        return str(Path(data).absolute())
    from aadml.runs.data import sample_features

    path = sample_features(lambda message: click.echo(f"aadml: {message}", err=True))
    click.echo(f"aadml: no --data given: comparing on the sample clips, {path}", err=True)
    return str(path)


def _name(methods: Sequence[str], losses: Sequence[str], shared: Any, trials: int) -> str:
    """Name the folder: the same comparison has the same name, so that it goes on where it was stopped."""
    import hashlib

    kinds = [kind for kind, names in (("methods", methods), ("losses", losses)) if names]
    said = repr((methods, losses, shared, trials))
    return f"{'-'.join(kinds)}-{hashlib.sha256(said.encode()).hexdigest()[:8]}"


def _searched(
    rows: Sequence["Row"], budget: int, workers: int | None, folder: Path
) -> tuple[list["Row"], dict[str, str]]:
    """Run the trials of every row; give each the config that was best on validation clips, and what was tried.

    A point of a search space that the data cannot take is a trial lost, no failure of the comparison.
    """
    from aadml.cli.sweeps import worked_off
    from aadml.sweeps.trials import chosen_row, record_of, trials_of

    trials = {row.cell.name: trials_of(row, budget, 0, folder) for row in rows}
    click.echo(f"aadml: {sum(map(len, trials.values()))} trials, scored on validation clips only", err=True)
    tried = worked_off([trial.job for several in trials.values() for trial in several], workers)
    outcomes = {str(outcome.job.folder): outcome for outcome in tried}
    searched = [chosen_row(row, trials[row.cell.name], outcomes, budget) for row in rows]
    records = {
        after.cell.name: record_of(trials[before.cell.name], outcomes, after.cell.settings)
        for before, after in zip(rows, searched, strict=True)
    }
    return searched, records
