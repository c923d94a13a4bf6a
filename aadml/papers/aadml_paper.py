"""Reproduction of the AADML paper."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from aadml.configuration.overrides import setting_pairs
from aadml.data.reading import open_data
from aadml.feature_extraction.ground.strings import Note
from aadml.papers.clock import drawn_sets
from aadml.papers.page import write_reproduction
from aadml.papers.paper_data import chosen_parts, other_size
from aadml.papers.reproduction_plan import ReproductionPlan, shortened
from aadml.papers.rows import PaperRuns, paper_runs
from aadml.papers.tables import Group, leaks_of
from aadml.reports.published import PAPER
from aadml.studies.ablation_grid import collected
from aadml.studies.comparison_rows import RowSettings
from aadml.studies.execution import SweepResult
from aadml.studies.folder import sole_owner
from aadml.studies.job import Job
from aadml.studies.sweep import SweepOutcome
from aadml.studies.sweep_parts import describe


def reproduce_paper(data: Mapping[str, str], only: str | None, plan: ReproductionPlan) -> SweepResult:
    """Reproduce the AADML paper.

    Args:
        data: data set ("vegas", "ave") -> path of its features.
        only: names of parts, separated by commas; None is all.
        plan: execution, schedule and settings.

    Raises:
        InputError: a part is unknown, no part uses these data sets, or a setting applies to no row.
    """
    parts, notes = chosen_parts(only, data)
    for message in notes:
        plan.note(message)

    def note(message: str) -> None:
        if message not in notes:
            notes.append(message)
            plan.note(message)

    with sole_owner(plan.locked, {plan.folder / name: place for name, place in data.items()}):
        runs = {name: _runs(name, place, parts, plan, note) for name, place in data.items()}
        jobs = {name: of_set.jobs(parts, plan.seeds, plan.folder / name) for name, of_set in runs.items()}
        outcomes = plan.reproduce([job for several in jobs.values() for job in several])
        if plan.shard:
            return plan.result(outcomes)
        groups = {
            name: _group(of_set, parts, jobs[name], outcomes, plan) for name, of_set in runs.items() if jobs[name]
        }
        tables, page = write_reproduction(parts, groups, plan, notes)
    return plan.result(outcomes, tables, page)


def _runs(name: str, place: str, parts: Sequence[str], plan: ReproductionPlan, note: Note) -> PaperRuns:
    """Return the runs on a data set; AVE with all clips of Clock is replaced by a draw."""
    draws: dict[int, str] = {}
    if name == "ave":
        place, draws = drawn_sets(place, plan.folder / name, note, with_others="clock-draw" in parts)
    content = open_data(place)
    for message in other_size(name, content):
        note(f"{Path(place).name}: {message}")
    clips = len(content.rows("train"))
    changes = setting_pairs(plan.settings) + ([("device", plan.device)] if plan.device else [])
    base = plan.config or PAPER.data_sets[name].config
    shared = RowSettings(place, tuple(changes), plan.max_epochs, base, with_controls=False)
    runs = paper_runs(
        name, shared, draws=draws, shorten=lambda config: shortened(config, clips) if plan.quick else config
    )
    for message in runs.notes:
        note(message)
    return runs


def _group(
    runs: PaperRuns, parts: Sequence[str], jobs: Sequence[Job], outcomes: Sequence[SweepOutcome], plan: ReproductionPlan
) -> Group:
    """Read the results on one data set."""
    folder = plan.folder / runs.data_set
    cells = list({cell.name: cell for part in parts for cell in runs.cells(part)}.values())
    scores = collected(cells, plan.seeds, folder, outcomes)
    return Group(runs, scores, leaks_of(scores, jobs, folder), describe(scores, plan.seeds, folder))
