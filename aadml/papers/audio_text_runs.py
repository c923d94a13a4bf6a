"""The runs behind the tables of the audio-text papers: rows of equal configs share one, and some need a model first."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from aadml.configuration.config import Config, resolve
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.ground.options import made
from aadml.methods.audio_text.curriculum import ancillary
from aadml.methods.audio_text.options import CurriculumOptions
from aadml.papers.audio_text_tables import PaperRow, laid_out, planned, slug
from aadml.reports.tables import Table
from aadml.retrieval.record import EvaluationRecord
from aadml.runs.loading import read_evaluation
from aadml.runs.pretraining import prior_config, prior_folder
from aadml.runs.run_names import evaluation_file
from aadml.studies.job import Job, is_done


@dataclass(frozen=True)
class PaperRun:
    """The runs of a row.

    Attributes:
        row: of the table.
        jobs: its runs, one a seed.
    """

    row: PaperRow
    jobs: tuple[Job, ...]


def runs_of(
    name: str, values: JsonObject, seeds: Sequence[int], folder: Path, *, data: str, dataset: str
) -> list[PaperRun]:
    """List the runs of a table, a job a seed for each row, in folders named after the rows.

    A model that rows need first is a run of its own, in a folder named by what determines it; a row of the same config
    is that run.

    Args:
        name: a key of PAPER_TABLES.
        values: the config to start from.
        seeds: of the runs of a row.
        folder: of the runs.
        data: what they are trained on.
        dataset: as the papers call it.
    """
    place = folder / name
    rows = [
        (row, [resolve(changed | {"seed": seed, "data": data}) for seed in seeds])
        for row, changed in planned(name, values, dataset)
    ]
    priors = {config.yaml(): _prior(config, place) for _, configs in rows for config in configs}
    jobs = {prior.config.yaml(): prior for prior in priors.values() if prior}
    for row, configs in rows:
        for config in configs:
            own = place / f"{slug(row.cells)}_seed{config.common.seed}"
            jobs.setdefault(config.yaml(), Job(own, config, needs=priors[config.yaml()]))
    return [PaperRun(row, tuple(jobs[config.yaml()] for config in configs)) for row, configs in rows]


def _prior(config: Config, place: Path) -> Job | None:
    """Lay out the run that one of `config` needs first, in its own folder in `place`; None where there is none."""
    if config.method != "3cmlf":
        return None
    prior = ancillary(made(CurriculumOptions, vars(config.options)), config.training)
    if prior is None:
        return None
    own = prior_config(config, prior)
    return Job(prior_folder(place, own, prior), own)


def table_of(name: str, runs: Sequence[PaperRun], *, data: str, dataset: str) -> Table:
    """Lay out a table from those of its runs that are finished."""
    results = [[_evaluation(run.row, job) for job in run.jobs if is_done(job)] for run in runs]
    table = laid_out(name, [run.row for run in runs], results, dataset=dataset, data=data)
    return replace(table, notes=(*table.notes, *_cost_of_priors(runs)))


def _evaluation(row: PaperRow, job: Job) -> EvaluationRecord:
    last = read_evaluation(job.folder)
    if not row.stage:
        return last
    return read_evaluation(job.folder, name=evaluation_file(last.protocol, job.split, row.stage))


def _cost_of_priors(runs: Sequence[PaperRun]) -> list[str]:
    """Say what the models cost that several rows share: their steps are not among those of the rows."""
    needed = {job.needs.folder: job.needs for run in runs for job in run.jobs if job.needs}
    records = [read_evaluation(folder) for folder, job in sorted(needed.items()) if is_done(job)]
    if not records:
        return []
    epochs, steps = (" or ".join(sorted({str(getattr(one, name)) for one in records})) for name in ("epochs", "steps"))
    return [
        "Mined batches are made from the vectors of the plain model, trained once a seed and shared by the rows: "
        f"{epochs} epochs, {steps} steps, which are not among those of the rows. Stages 1 to 3 are one run, scored at "
        "the end of each stage."
    ]
