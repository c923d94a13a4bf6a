"""Reproduction of the audio-text papers: runs of every row, and our results next to the published results."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from aadml.configuration.config import Config
from aadml.configuration.from_arguments import assemble
from aadml.configuration.overrides import setting_pairs
from aadml.configuration.presets import preset_path
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import made, schema
from aadml.methods import METHODS
from aadml.methods.audio_text.curriculum import ancillary
from aadml.methods.audio_text.options import CurriculumOptions
from aadml.papers.reproduction_plan import ReproductionPlan, shortened
from aadml.reports import page
from aadml.reports.published import read_paper
from aadml.reports.tables import Cell, Table
from aadml.retrieval.record import EvaluationRecord
from aadml.runs.data import load_splits
from aadml.runs.loading import read_evaluation
from aadml.runs.pretraining import prior_config, prior_folder
from aadml.runs.run_names import evaluation_file
from aadml.runs.sample_data import with_sample_data
from aadml.studies.comparison_rows import NAMED
from aadml.studies.execution import SweepResult
from aadml.studies.folder import sole_owner
from aadml.studies.grid import Overrides, at_most
from aadml.studies.job import Job, is_done
from aadml.studies.results import mean_count, spread_of
from aadml.studies.sweep import SweepOutcome
from aadml.studies.sweep_parts import StudyPart, write_study

DATASETS = {"audiocaps": "AudioCaps", "clotho": "Clotho"}
"""Name of a data set in aadml -> name in the papers."""

OptionValue = str | int | float | bool


@dataclass(frozen=True)
class PaperRow:
    """Row of a paper's table.

    Attributes:
        cells: text of each naming column.
        method: name in METHODS.
        changes: config keys and values that override the starting config.
        changes_on: data set -> overrides in addition to `changes`.
        published: data set -> published results, in the order of the columns, separated by spaces.
        weights: whether the row needs published weights. Without configured weights, the row is omitted.
        stage: stage whose best weights are scored, for rows that share one run; "" for the last stage.
    """

    cells: tuple[str, ...]
    method: str
    changes: Mapping[str, OptionValue]
    changes_on: Mapping[str, Mapping[str, OptionValue]] = field(default_factory=dict)
    published: Mapping[str, str] = field(default_factory=dict)
    weights: bool = False
    stage: str = ""

    def changed(self, dataset: str) -> Mapping[str, OptionValue]:
        """Return all overrides of the starting config on a data set."""
        return {**self.changes, **self.changes_on.get(dataset, {})}


@dataclass(frozen=True)
class PaperTable:
    """Content of a YAML file that describes the table of a paper.

    Attributes:
        title: short title of the paper.
        source: paper, tables and unit, as text.
        configs: data set with published results -> preset of the published sizes.
        narrow: preset of narrow networks.
        naming: columns that name a row.
        digits: decimal places.
        figures: column -> direction, metric, factor from the metric to the unit of the paper.
        rows: rows of the table.
    """

    title: str
    source: str
    configs: Mapping[str, str]
    narrow: str
    naming: tuple[str, ...]
    digits: int
    figures: Mapping[str, tuple[str, str, float]]
    rows: tuple[PaperRow, ...]

    def printed_on(self, dataset: str) -> str:
        """Return the data set of the published results: `dataset` if in `configs`, else the first of `configs`."""
        return dataset if dataset in self.configs else next(iter(self.configs))


PAPER_TABLES = {name: read_paper(PaperTable, name) for name in ("mei", "3cmlf", "xie")}

SAMPLE = "sample"


@dataclass(frozen=True)
class PaperRun:
    """Row of a table with its runs, one per seed."""

    row: PaperRow
    jobs: tuple[Job, ...]


def reproduce_audio_text(name: str, data: Mapping[str, str], plan: ReproductionPlan) -> SweepResult:
    """Reproduce an audio-text paper.

    Args:
        name: "mei", "3cmlf" or "xie".
        data: data set ("audiocaps", "clotho") -> folder or manifest of the data set; empty for the sample clips.
        plan: execution, schedule and settings.

    Raises:
        InputError: unreadable data, a setting that the config rejects or every row overrides, or a run missing from a
            merge.
    """
    places: Mapping[str, str | None] = data or {SAMPLE: None}
    names = {data_set: DATASETS.get(data_set, PAPER_TABLES[name].printed_on("")) for data_set in places}
    for data_set in places:
        refuse_overridden(name, [key for key, _ in setting_pairs(plan.settings)], names[data_set])
    bases = {data_set: _base(name, names[data_set], place, plan) for data_set, place in places.items()}
    with sole_owner(plan.locked, {plan.folder / data_set: base.data for data_set, base in bases.items()}):
        planned = {
            data_set: runs_of(name, base, plan.seeds, plan.folder / data_set, dataset=names[data_set])
            for data_set, base in bases.items()
        }
        for sentence in {left_out(name, [run.row for run in runs]) for runs in planned.values()} - {""}:
            plan.note(sentence)
        outcomes = plan.reproduce([job for runs in planned.values() for run in runs for job in run.jobs])
        if plan.shard:
            return SweepResult(tuple(outcomes), plan.folder)
        tables = {
            data_set: _table(name, data_set, names[data_set], runs, plan, outcomes)
            for data_set, runs in planned.items()
        }
        note = "Every item is embedded on its own; the published results cannot be compared directly with ours."
        summary = plan.warning() + page.notes([note])
        parts = [_part(name, data_set, tables[data_set]) for data_set in planned]
        title = f"{PAPER_TABLES[name].title}, reproduced"
        path = write_study(plan, title, "Reproduction of a paper", summary, parts)
    return SweepResult(tuple(outcomes), plan.folder, list(tables.values()), path)


def left_out(name: str, rows: Sequence[PaperRow]) -> str:
    """Return a sentence on the rows of a paper that are missing from `rows`; "" without missing rows."""
    missing = [" ".join(filter(None, row.cells)) for row in PAPER_TABLES[name].rows if row not in rows]
    needs = f"{len(missing)} rows need published weights and are left out ({'; '.join(missing)})"
    return f"{name}: {needs}; pass --set method.audio_weights=FILE to include these rows" if missing else ""


def _base(name: str, dataset: str, place: str | None, plan: ReproductionPlan) -> Config:
    """Return the starting config of the runs on a data set."""
    narrow = place is None or plan.quick
    preset = starting_config(name, None if narrow else dataset)
    base = with_sample_data(assemble(plan.settings, config=str(preset_path(preset)), data=place), plan.note)
    base = at_most(base, plan.max_epochs)
    return shortened(base, len(load_splits(base).train)) if plan.quick else base


def _table(
    name: str, data_set: str, dataset: str, runs: list[PaperRun], plan: ReproductionPlan, outcomes: list[SweepOutcome]
) -> Table:
    """Return the table on a data set. Caption and notes state the differences from the paper, and missing runs."""
    table = table_of(name, runs, dataset=dataset)
    if plan.quick or data_set == SAMPLE:
        table = replace(table, caption=f"The networks are narrower than those of the paper. {table.caption}")
    reasons = {outcome.job.folder: outcome.reason for outcome in outcomes if outcome.reason}
    missing = [
        f"{' '.join(filter(None, run.row.cells))}: {reasons[job.folder]}"
        for run in runs
        for job in run.jobs
        if job.folder in reasons
    ]
    return plan.marked(replace(table, notes=(*table.notes, *dict.fromkeys(missing))))


def _part(name: str, data_set: str, table: Table) -> StudyPart:
    """Return the section of a data set: our results, then our results next to the published results."""
    paper = PAPER_TABLES[name]
    beside = [column for figure in paper.figures for column in (figure, f"published {figure}")]
    content = page.table(table, [column for column in table.columns if not column.startswith("published ")])
    content += "<h3>Beside the published results</h3>" + page.table(table, [*paper.naming, *beside])
    notes = [table.caption, *table.notes]
    return StudyPart(f"{name} on {data_set}", content, notes, {f"{name}-{data_set}": table})


def runs_of(name: str, base: Config, seeds: Sequence[int], folder: Path, *, dataset: str) -> list[PaperRun]:
    """Return the runs of each row of a table, one per seed.

    Rows with the same config share a run. The folder of a run is named after the first of its rows and the seed. A
    required pretrained model is a separate run, in a folder named by the config of the model. A row with the config
    of the model shares this run.

    Args:
        name: a key of PAPER_TABLES.
        base: starting config.
        seeds: seeds of every row.
        folder: folder of the runs.
        dataset: "AudioCaps" or "Clotho".

    Raises:
        InputError: the config of a row is invalid.
    """
    place = folder / name
    rows = [(row, [config.seeded(seed) for seed in seeds]) for row, config in planned(name, base, dataset)]
    needed = {config.yaml(): _needed(config, place) for _, configs in rows for config in configs}
    jobs = {job.config.yaml(): job for job in needed.values() if job}
    for row, configs in rows:
        for config in configs:
            run = place / f"{slug(row.cells)}_seed{config.common.seed}"
            jobs.setdefault(config.yaml(), Job(run, config, needs=needed[config.yaml()]))
    return [PaperRun(row, tuple(jobs[config.yaml()] for config in configs)) for row, configs in rows]


def _needed(config: Config, place: Path) -> Job | None:
    """Return the run of the required pretrained model of `config`; None if no model is required."""
    if config.method != "3cmlf":
        return None
    prior = ancillary(made(CurriculumOptions, config.options), config.training)
    if prior is None:
        return None
    first = prior_config(config, prior)
    return Job(prior_folder(place, first, prior), first)


def table_of(name: str, runs: Sequence[PaperRun], *, dataset: str) -> Table:
    """Return a table of the finished runs.

    Args:
        name: a key of PAPER_TABLES.
        runs: rows with their runs.
        dataset: "AudioCaps" or "Clotho".

    Raises:
        InputError: the evaluation of a finished run is missing or damaged.
    """
    results = [[_evaluation(run.row, job) for job in run.jobs if is_done(job)] for run in runs]
    data = runs[0].jobs[0].config.data
    table = laid_out(name, [run.row for run in runs], results, dataset=dataset, data=data)
    return replace(table, notes=(*table.notes, *_cost_of_needed(runs)))


def _evaluation(row: PaperRow, job: Job) -> EvaluationRecord:
    last = read_evaluation(job.folder)
    return read_evaluation(job.folder, name=evaluation_file(last.protocol, job.split, row.stage)) if row.stage else last


def _cost_of_needed(runs: Sequence[PaperRun]) -> list[str]:
    """Return a list with a note on the epochs and steps of pretrained models; empty without finished models."""
    needed = {job.needs.folder: job.needs for run in runs for job in run.jobs if job.needs}
    records = [read_evaluation(folder) for folder, job in sorted(needed.items()) if is_done(job)]
    if not records:
        return []
    epochs, steps = (
        " or ".join(sorted({str(getattr(record, name)) for record in records})) for name in ("epochs", "steps")
    )
    return [
        "Batches are mined with the embeddings of the plain model. This model is trained once per seed and shared by "
        f"the rows. Its {epochs} epochs and {steps} steps are not included in those of the rows. Stages 1 to 3 are one "
        "run, scored at the end of each stage."
    ]


def starting_config(name: str, dataset: str | None) -> str:
    """Return the starting preset of the rows: published sizes, or narrow networks if `dataset` is None."""
    table = PAPER_TABLES[name]
    return table.narrow if dataset is None else table.configs[table.printed_on(dataset)]


def planned(name: str, base: Config, dataset: str) -> list[tuple[PaperRow, Config]]:
    """Return the rows of a table and their configs.

    Rows that need published weights are omitted if `base` names no weights.

    Args:
        name: a key of PAPER_TABLES.
        base: starting config, reduced for each row to the options of the row's method.
        dataset: "AudioCaps" or "Clotho".

    Raises:
        InputError: the config of a row is invalid.
    """
    networks = base.options.plain()
    pairs = []
    for row in PAPER_TABLES[name].rows:
        if row.weights and networks.get("audio_weights", "untrained") == "untrained":
            continue
        known = schema(METHODS[row.method])
        options = {key: value for key, value in networks.items() if key in known}
        if row.method == "3cmlf":  # one model mines the batches of all rows, even if their batch sizes differ
            options["ancillary_batch"] = networks.get("ancillary_batch") or base.training.batch
        changes = Overrides({"method": {"name": row.method, **options}, **row.changed(dataset)})
        pairs.append((row, changes.applied(base)))
    return pairs


def refuse_overridden(name: str, keys: Iterable[str], dataset: str) -> None:
    """Raise InputError for a key in NAMED, and for a key that every row of a table overrides.

    Args:
        name: a key of PAPER_TABLES.
        keys: config keys that the user set for all rows.
        dataset: "AudioCaps" or "Clotho".
    """
    changes = [row.changed(dataset) for row in PAPER_TABLES[name].rows]
    for key in keys:
        if key in NAMED or all(any(f"{key}.".startswith(f"{other}.") for other in changed) for changed in changes):
            raise InputError(f"--set {key}: reproduce sets {key} for every row of {name}; leave out this setting")


def laid_out(
    name: str, rows: Sequence[PaperRow], results: Sequence[Sequence[EvaluationRecord]], *, dataset: str, data: str
) -> Table:
    """Return a table with the mean and spread of our results, the epochs and steps, and the published results.

    Args:
        name: a key of PAPER_TABLES.
        rows: rows of the table.
        results: evaluations of each row, one per seed.
        dataset: data set of the runs, by its name in the papers.
        data: location of the data of the runs.
    """
    table = PAPER_TABLES[name]
    printed_on = table.printed_on(dataset)
    lines: list[tuple[Cell, ...]] = []
    for row, records in zip(rows, results, strict=True):
        ours = [
            spread_of(factor * value for r in records if (value := r.figure(metric, direction)) is not None)
            for direction, metric, factor in table.figures.values()
        ]
        steps = [mean_count(record.epochs for record in records), mean_count(record.steps for record in records)]
        printed: Sequence[Cell] = row.published.get(printed_on, "").split() or [None] * len(table.figures)
        lines.append((*row.cells, *ours, *steps, len(records), *printed))
    chances = [record.chance for records in results for record in records]
    level = f" The chance level of mAP in our runs is {sum(chances) / len(chances):.3f}." if chances else ""
    seeds = max(map(len, results))
    published = (f"published {column}" for column in table.figures)
    return Table(
        columns=(*table.naming, *table.figures, "epochs", "steps", "seeds", *published),
        rows=tuple(lines),
        caption=f"{table.source}. Ours: {data}, test split, protocol inductive, {seeds} seed(s).",
        notes=(f"The published columns are results on {printed_on}. Our columns are results on the data named above, "
               f"with each item embedded independently.{level}",),
        digits=table.digits,
    )  # fmt: skip


def slug(cells: Sequence[str]) -> str:
    """Return the name of a row as part of a file name: lower-case letters, digits and hyphens."""
    return re.sub("[^a-z0-9]+", "-", " ".join(cells).lower()).strip("-")
