"""`compare`: the rows of the papers' tables on any feature file, with tables, figures and a page."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from aadml.comparison.options import Count, CountOrZero, Seeds
from aadml.configuration.overrides import Settings, proxy_prefix_of, setting_pairs
from aadml.feature_extraction.ground.argument_types import with_consent
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.registry import JoinedRegistry, lookup
from aadml.feature_extraction.ground.strings import Note, listed
from aadml.losses import LOSSES
from aadml.objective.recipes import RECIPES
from aadml.proxies.anchor_aware import AnchorAware
from aadml.retrieval.judgments import judgment_files
from aadml.retrieval.metric_functions import check_columns
from aadml.runs.data import TrainingSource
from aadml.runs.sample_data import sample_features
from aadml.studies import comparison_rows as rows_of
from aadml.studies.ablation_grid import collected, jobs_of
from aadml.studies.comparison_page import scores_of_rows, write_comparison
from aadml.studies.comparison_rows import RowSettings, cells_of_rows, named_rows
from aadml.studies.execution import Execution, RunJobs, SweepResult, log, shard_of
from aadml.studies.folder import refuse_foreign, sole_owner
from aadml.studies.grid import Cell, Overrides
from aadml.studies.sweep import SweepOutcome, sweep
from aadml.studies.trials import tuned_rows, write_records


@with_consent("config", "output")
def compare(
    *,
    data: str | Path | None = None,
    methods: Sequence[str] | str | None = None,
    losses: Sequence[str] | str | None = None,
    config: str | None = None,
    modalities: Sequence[str] | str | None = None,
    settings: Settings = (),
    max_epochs: Count | None = None,
    with_controls: bool = True,
    with_rivals: bool = False,
    baseline: str | None = None,
    trials: Count = 1,
    seeds: Seeds = 5,
    metrics: Sequence[str] | str | None = (),
    workers: CountOrZero | None = None,
    shard: str | None = None,
    merge: bool = False,
    trust_code: bool = False,
    output: str | Path | None = None,
    command: str = "aadml.compare",
    work: RunJobs = sweep,
    on_note: Note | None = None,
) -> SweepResult:
    """Train methods and losses with several seeds on one feature file, and test the differences for significance.

    A repeated call continues an interrupted study and keeps finished runs. A failed row does not stop the others.

    Args:
        data: a feature file in any layout; None uses the sample clips.
        methods: "all", or methods and presets, as a list or separated by commas. Each method has its own config.
        losses: "all", or losses, as a list or separated by commas. Each loss is run with and without anchor-aware
            proxies.
        config: config in which each compared loss replaces the metric loss; by default the config of aadml.
        modalities: modalities of the data to compare, as a list or separated by commas; None for all.
        settings: config keys and values, as "key=value". A note lists the rows that do not use a setting.
        max_epochs: upper limit on the training epochs of every row.
        with_controls: add the control rows of every anchor-aware row.
        with_rivals: add rows of simpler replacements of the proxy to every anchor-aware row: cross-batch memory,
            class means, the uniform mean of the neighbors, an affine map of the anchor.
        baseline: row that all other rows are compared with; by default aadml, or the first row of a table without
            aadml.
        trials: largest number of configs that are compared on validation clips for every row: the row's config, and
            points of the `tuning` section of this config. Keys of `settings` and keys that define the row are not
            tried. If a control has half the weight of the metric loss, `loss.weight` is not tried either. The row is
            run with the best config. A row is not run if the process of a trial ended early. A repeated call runs
            this trial again, and counts the trial as failed if its process ends early again. The config of a row
            with runs is not chosen again.
        seeds: number of seeds per row.
        metrics: metrics of `aadml list metrics` that have columns in addition to MAP, such as recall@10. Several
            metrics are separated by commas, or passed one by one.
        workers: number of worker processes; 0 is this process. By default one per core, or a single one on a GPU.
        shard: train only shard i (from 0) of n, as "i/n". Afterwards, copy the folders of all shards into one folder.
        merge: write the page from finished runs without training, and raise an error if a run is missing.
        trust_code: import the code from outside aadml that the config file or a run in the folder names as
            `module:name`.
        output: folder of the study; by default `comparisons/NAME-HASH`.
        command: command shown on the page.
        work: function that runs the jobs.
        on_note: called with notes for the user; by default they go to the logger "aadml".

    Raises:
        InputError: no chosen row, an unknown name, a setting that applies to no row, or options that cannot be
            combined. Other causes: a folder or data that cannot be used, no finished run, or a missing run in a merge.
    """
    shards, note = shard_of(shard, merge=merge), on_note or log
    if trials > 1 and (shard or merge):
        other = f"--shard {shard}" if shard else "--merge"
        raise InputError(
            f"--trials {trials} cannot be combined with {other}, because the best trial of a row is chosen among all "
            f"trials; leave out {other}"
        )
    source = TrainingSource(data)
    names = _wanted(methods, losses, config)
    place = source.place or _sample(note)
    chosen = [] if modalities is None else [("modalities", listed(modalities))]
    overrides = Overrides(dict([*chosen, *setting_pairs(settings)]))
    shared = RowSettings(place, overrides, max_epochs, config, with_controls, with_rivals)
    execution = Execution(
        folder=Path(output) if output else Path("comparisons") / _name(*names, shared, trials),
        workers=workers, shard=shards, merge=merge, work=work, note=note, command=command,
    )  # fmt: skip
    columns = check_columns(metrics)
    rows, notes = named_rows(*names, shared)
    if baseline is not None:
        lookup({row.name: row for row in rows}, baseline, "row")
    if trials > 1:
        notes.append(f"Options of every row: the best of at most {trials} trials on validation clips (seed 0).")
    for message in notes:
        note(message)
    refuse_foreign(execution.folder)
    judgments = judgment_files(row.cell.config.common.relevance for row in rows)
    with sole_owner(execution.locked, {execution.folder: shared.data}, judgments):
        rows, records, lost = tuned_rows(rows, trials, execution) if trials > 1 else (rows, {}, {})
        cells = cells_of_rows(rows)
        outcomes = _outcomes(cells, lost, range(seeds), columns, execution)
        if execution.shard:
            return SweepResult(tuple(outcomes), execution.folder)
        write_records(records, cells, range(seeds), execution.folder)
        scores = collected(cells, range(seeds), execution.folder, outcomes)
        tables, page = write_comparison(
            rows, scores, range(seeds), execution, baseline=baseline, notes=notes, metrics=columns
        )
    return SweepResult(tuple(outcomes), execution.folder, tables, page, scores_of_rows(rows, scores))


def _outcomes(
    cells: Sequence[Cell], lost: Mapping[str, str], seeds: range, columns: Sequence[str], execution: Execution
) -> list[SweepOutcome]:
    """Train the runs of cells, and return the outcome of every run.

    The runs of a cell in `lost` are not trained. Their outcome has the reason in `lost`, by name of the cell.
    """
    ready = [cell for cell in cells if cell.name not in lost]
    outcomes = execution.train(jobs_of(ready, seeds, execution.folder, columns))
    others = [cell for cell in cells if cell.name in lost]
    return outcomes + [SweepOutcome(job, lost[c.name]) for c in others for job in jobs_of([c], seeds, execution.folder)]


def _wanted(
    methods: Sequence[str] | str | None, losses: Sequence[str] | str | None, config: str | None
) -> tuple[list[str], list[str]]:
    """Return the names of the methods and losses to compare.

    "all" selects every loss, or every method that trains on any features. The losses replace that of `config`.
    """
    plain = []
    for name in listed(losses):
        prefix = proxy_prefix_of(name)
        plain.append(name.removeprefix(prefix))
        if prefix not in ("", AnchorAware.prefix):
            raise InputError(
                f"--losses {name} is a loss with another proxy, but every loss is run with and without anchor-aware "
                f"proxies; pass --losses {plain[-1]}"
            )
    method_rows = rows_of.chosen(methods, rows_of.method_names(), rows_of.known_methods(), "method or config")
    loss_rows = rows_of.chosen(plain, rows_of.loss_names(), JoinedRegistry(LOSSES, RECIPES), "loss")
    if not (method_rows or loss_rows):
        raise InputError(
            "compare: there are no methods and no losses; pass --methods all, --losses all, or names instead of all"
        )
    if audio_text := rows_of.sound_only(method_rows):
        raise InputError(
            f"--methods {audio_text[0]} needs captioned sound, but compare trains on feature files; "
            "leave out this method"
        )
    if config is not None and not loss_rows:
        raise InputError(
            f"--config {config} applies only to losses, as each method has its own config; pass --losses as well, "
            "or leave out --config"
        )
    return method_rows, loss_rows


def _sample(note: Note) -> str:
    path = sample_features(note)
    note(f"--data is not set, so the rows are compared on the sample clips: {path}")
    return str(path)


def _name(methods: list[str], losses: list[str], shared: RowSettings, trials: int) -> str:
    """Return the name of the folder. Equal arguments have the same folder, so that a repeated comparison continues."""
    kinds = [kind for kind, names in (("methods", methods), ("losses", losses)) if names]
    settings = (
        f"data={shared.data!r}, changes={tuple(shared.changes.values.items())!r}, max_epochs={shared.max_epochs!r}, "
        f"config={shared.config!r}, with_controls={shared.with_controls!r}"
    )
    text = f"({methods!r}, {losses!r}, Settings({settings}), {trials!r})" + " rivals" * shared.with_rivals
    return f"{'-'.join(kinds)}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
