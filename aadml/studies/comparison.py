"""A comparison from names to page: the rows of the papers' tables on any feature file."""

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from aadml.configuration.overrides import Settings, proxy_prefix_of, setting_pairs
from aadml.feature_extraction.ground.atomic import write_text
from aadml.feature_extraction.ground.consent import with_consent
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.import_paths import search_beside
from aadml.feature_extraction.ground.registry import Joined
from aadml.feature_extraction.ground.strings import listed
from aadml.losses import LOSSES
from aadml.objective.recipes import RECIPES
from aadml.retrieval.metric_functions import check_columns
from aadml.runs.data import place_of
from aadml.runs.sample_data import sample_features
from aadml.studies import comparison_rows as rows_of
from aadml.studies.ablation_grid import collected, jobs_of, run_folder
from aadml.studies.comparison_page import check_baseline, write_comparison
from aadml.studies.comparison_rows import ComparisonRow, RowSettings
from aadml.studies.folder import refuse_foreign, sole_owner
from aadml.studies.results import CellScores
from aadml.studies.shards import WHOLE, Division
from aadml.studies.sweep import SweepOutcome
from aadml.studies.sweep_result import RunJobs, SweepResult, run_jobs
from aadml.studies.trials import RECORD, chosen_row, record_of, trials_of

_log = logging.getLogger("aadml")
Note = Callable[[str], None]


@with_consent("config", "output")
def compare(
    *,
    data: str | Path | None = None,
    methods: Sequence[str] | str | None = None,
    losses: Sequence[str] | str | None = None,
    config: str | None = None,
    settings: Settings = (),
    max_epochs: int | None = None,
    with_controls: bool = True,
    with_rivals: bool = False,
    baseline: str | None = None,
    trials: int = 1,
    seeds: int = 5,
    metrics: Sequence[str] | str | None = (),
    workers: int | None = None,
    shard: str | None = None,
    merge: bool = False,
    device: str | None = None,
    trust_code: bool = False,
    output: str | Path | None = None,
    command: str = "aadml.compare",
    work: RunJobs = run_jobs,
    on_note: Note | None = None,
) -> SweepResult:
    """Run rows of the papers' tables with several seeds on one feature file; test which differences are significant.

    The same call again continues where it stopped; finished runs are kept. A failed row does not stop the others.

    Args:
        data: a feature file in any layout; None takes the sample clips.
        methods: "all", or methods and shipped configs, one by one or separated by commas.
        losses: "all", or losses, likewise; each is run with and without anchor-aware proxies.
        config: the config that losses are put into.
        settings: any keys of the config, as "key=value"; a row that does not have a key is noted.
        max_epochs: upper limit on the training epochs of every row.
        with_controls: whether anchor-aware rows get their control rows.
        with_rivals: whether they also get the rows of what else could do their work: cross-batch memory, class means,
            the neighbors' uniform mean, an affine map.
        baseline: the row that the others are compared with; by default aadml, or the first row.
        trials: for every row, over its config's `tuning` section, selected on validation clips.
        seeds: number of seeds per row.
        metrics: further columns.
        workers: processes; 0 runs in this process, None takes one per core.
        shard: "i/n": train only every n-th run, for another machine to train the others.
        merge: train nothing; refuse where a run is missing.
        device: "auto", "cpu" or "cuda".
        trust_code: import the code from outside aadml that the config file, or a run of the folder, names
            as `module:name`.
        output: folder; by default `comparisons/NAME-HASH`.
        command: what the page says it was made with.
        work: runs the jobs.
        on_note: called with notes for the user; by default they go to the logger "aadml".

    Raises:
        InputError: nothing to compare, an unknown name, a setting that fits no row, or a run missing from a merge.
    """
    note, division = on_note or _log.info, Division.of(shard, merge=merge)
    if trials > 1 and division != WHOLE:
        raise InputError("--trials: the best of a row is chosen among all its trials; leave --shard and --merge out")
    if data is not None:
        search_beside(Path(data))
    wanted = _wanted(methods, losses)
    if config is not None and not wanted[1]:
        raise InputError(f"--config {config}: is of the losses, and each method has its own; give --losses too")
    changes = setting_pairs(settings) + ([("device", device)] if device else [])
    place = place_of(data) if data else _sample(note)
    shared = RowSettings(place, tuple(changes), max_epochs, config, with_controls, with_rivals)
    folder = Path(output) if output else Path("comparisons") / _name(*wanted, shared, trials)
    columns = check_columns(metrics)
    rows, notes = rows_of.named_rows(*wanted, shared)
    check_baseline(rows, baseline)
    notes += [f"Options of every row: the best of {trials} trials on validation clips (seed 0)."] if trials > 1 else []
    for message in notes:
        note(message)
    refuse_foreign(folder)
    with sole_owner(division.owned(folder), {folder: shared.data}):
        rows, records = _tuned(rows, trials, workers, folder, work, note) if trials > 1 else (rows, {})
        jobs = jobs_of(rows_of.cells_of_rows(rows), range(seeds), folder, columns)
        outcomes = division.worked_off(jobs, lambda own: work(own, workers), note)
        if division.shard:
            return SweepResult((), tuple(outcomes), folder, None)
        scores = _scored(rows, range(seeds), folder, records, outcomes)
        found, page = write_comparison(
            rows, scores, range(seeds), folder, baseline=baseline, notes=notes, command=command, metrics=columns
        )
    return SweepResult(tuple(found), tuple(outcomes), folder, page)


def _scored(
    rows: Sequence[ComparisonRow],
    seeds: range,
    folder: Path,
    records: Mapping[str, str],
    outcomes: Sequence[SweepOutcome],
) -> dict[str, CellScores]:
    """Read the scores of every row with every seed; the record of its trials goes into each run folder."""
    cells = rows_of.cells_of_rows(rows)
    for place, record in ((run_folder(folder, cell, seed), records.get(cell.name)) for cell in cells for seed in seeds):
        if record and place.is_dir():
            write_text(place / RECORD, record)
    return collected(cells, seeds, folder, outcomes)


def _wanted(methods: Sequence[str] | str | None, losses: Sequence[str] | str | None) -> tuple[list[str], list[str]]:
    wanted = rows_of.chosen(methods, rows_of.method_names(), rows_of.known_methods(), "method or config")
    for name in listed(losses):
        if prefix := proxy_prefix_of(name):
            also = (
                "every loss is run with and without AA proxies, and with --rivals beside what else could do their work"
            )
            raise InputError(f"--losses {name}: write {name.removeprefix(prefix)}; {also}")
    wanted_losses = rows_of.chosen(losses, rows_of.loss_names(), Joined(LOSSES, RECIPES), "loss")
    if not (wanted or wanted_losses):
        raise InputError("compare: nothing to compare; give --methods all, --losses all, or names of them")
    audio_text = rows_of.sound_only(wanted)
    if audio_text:
        raise InputError(f"--methods {audio_text[0]}: learns from captioned sound; compare works on feature files")
    return list(dict.fromkeys(wanted)), list(dict.fromkeys(wanted_losses))


def _sample(note: Note) -> str:
    path = sample_features(note)
    note(f"no --data given: comparing on the sample clips, {path}")
    return str(path)


def _name(methods: Sequence[str], losses: Sequence[str], shared: RowSettings, trials: int) -> str:
    """Name the folder: the same comparison has the same name, so that it continues where it stopped."""
    kinds = [kind for kind, names in (("methods", methods), ("losses", losses)) if names]
    # earlier versions hashed the class under the name Settings: their folders keep their names
    text = repr((list(methods), list(losses), shared, trials)).replace("RowSettings(", "Settings(")
    text += " rivals" * shared.with_rivals
    return f"{'-'.join(kinds)}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _tuned(
    rows: Sequence[ComparisonRow], budget: int, workers: int | None, folder: Path, work: RunJobs, note: Note
) -> tuple[list[ComparisonRow], dict[str, str]]:
    """Run the trials of every row; give each the config that was best on validation clips, and what was tried.

    A point of a search space that the data cannot take is a lost trial, no failure of the comparison.
    """
    trials = {row.cell.name: trials_of(row, budget, 0, folder) for row in rows}
    note(f"{sum(map(len, trials.values()))} trials, scored on validation clips only")
    tried = work([trial.job for several in trials.values() for trial in several], workers)
    outcomes = {str(outcome.job.folder): outcome for outcome in tried}
    tuned = [chosen_row(row, trials[row.cell.name], outcomes, budget) for row in rows]
    records = {
        after.cell.name: record_of(trials[before.cell.name], outcomes, after.cell.settings)
        for before, after in zip(rows, tuned, strict=True)
    }
    return tuned, records
