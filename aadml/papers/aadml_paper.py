"""The AADML paper from its data sets to one page."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from aadml.configuration.overrides import setting_pairs
from aadml.data import open_data
from aadml.papers import schedule
from aadml.papers.clock import drawn_sets
from aadml.papers.page import Words, write_reproduction
from aadml.papers.parts import chosen_parts
from aadml.papers.procedure import Note, ReproductionPlan, worked_off
from aadml.papers.rows import PaperRuns, paper_runs
from aadml.papers.sizes import other_size
from aadml.papers.tables import Group, leaks_of
from aadml.studies.ablation_grid import collected
from aadml.studies.ablation_tables import describe
from aadml.studies.comparison_rows import RowSettings
from aadml.studies.folder import sole_owner
from aadml.studies.job import Job
from aadml.studies.sweep import SweepOutcome
from aadml.studies.sweep_result import SweepResult


def reproduce_paper(data: Mapping[str, str], only: str | None, plan: ReproductionPlan) -> SweepResult:
    """Reproduce the AADML paper.

    Args:
        data: data set ("vegas", "ave") -> its features.
        only: parts, separated by commas; None takes all.
        plan: how.

    Raises:
        InputError: an unknown part, none for these data sets, or a setting that fits no row.
    """
    parts, left_out = chosen_parts(only, list(data))
    for line in left_out:
        plan.note(line)
    noted = [*left_out]

    def note(line: str) -> None:
        if line not in noted:
            noted.append(line)
            plan.note(line)

    with sole_owner(plan.owned, {plan.folder / name: place for name, place in data.items()}):
        runs = {name: _laid_out(name, place, parts, plan, note) for name, place in data.items()}
        jobs = {name: one.jobs(parts, plan.seeds, plan.folder / name) for name, one in runs.items()}
        outcomes = worked_off([job for several in jobs.values() for job in several], plan)
        if plan.division.shard:
            return SweepResult((), tuple(outcomes), plan.folder, None)
        groups = {}
        for name, one in runs.items():
            if jobs[name]:
                groups[name] = _group(name, one, parts, jobs[name], outcomes, plan)
        words = Words(schedule.NOTE if plan.quick else "", noted, plan.command)
        tables, page = write_reproduction(parts, runs, groups, plan.folder, words)
    return SweepResult(tuple(tables), tuple(outcomes), plan.folder, page)


def _laid_out(name: str, place: str, parts: Sequence[str], plan: ReproductionPlan, note: Note) -> PaperRuns:
    """Lay out what is trained on a data set; of AVE with all clips of Clock, a draw of them."""
    folder = plan.folder / name
    draws: dict[int, str] = {}
    if name == "ave":
        place, draws = drawn_sets(place, folder, note, with_others="clock-draw" in parts)
    content = open_data(place)
    for line in other_size(name, content):
        note(f"{Path(place).name}: {line}")
    clips = len(content.rows("train"))
    changes = setting_pairs(plan.settings) + ([("device", plan.device)] if plan.device else [])
    base = plan.config or f"aadml_{name}"
    shared = RowSettings(place, tuple(changes), plan.max_epochs, base, with_controls=False)
    found = paper_runs(
        name, shared, draws=draws,
        shorten=lambda config: schedule.shortened(config, clips) if plan.quick else config,
    )  # fmt: skip
    for line in found.notes:
        note(line)
    return found


def _group(
    name: str,
    runs: PaperRuns,
    parts: Sequence[str],
    jobs: Sequence[Job],
    outcomes: Sequence[SweepOutcome],
    plan: ReproductionPlan,
) -> Group:
    """Read what the runs of one data set came to."""
    folder = plan.folder / name
    cells = list({cell.name: cell for part in parts for cell in runs.cells(part)}.values())
    scores = collected(cells, plan.seeds, folder, outcomes)
    return Group(name, scores, leaks_of(scores, jobs), describe(scores, plan.seeds, folder))
