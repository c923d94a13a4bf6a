"""The audio-text papers from captioned sound to one page."""

from collections.abc import Mapping
from dataclasses import replace

from aadml.configuration.config import Config
from aadml.configuration.files import open_config
from aadml.configuration.from_arguments import assembled
from aadml.configuration.overrides import setting_pairs
from aadml.feature_extraction.ground.atomic import write_text
from aadml.papers.audio_text_runs import PaperRun, runs_of, table_of
from aadml.papers.audio_text_tables import DATASETS, own_dataset, refuse_overridden, starting_config
from aadml.papers.procedure import ReproductionPlan, worked_off
from aadml.papers.schedule import NOTE, shortened
from aadml.reports import page
from aadml.reports.page import Section
from aadml.reports.tables import Table, write_tables
from aadml.runs.data import load_splits
from aadml.runs.sample_data import with_sample_data
from aadml.studies.epoch_limit import at_most
from aadml.studies.folder import sole_owner
from aadml.studies.sweep_result import SweepResult

REPORT = "report.html"
TITLES = {
    "mei": "On Metric Learning for Audio-Text Cross-Modal Retrieval",
    "3cmlf": "3CMLF",
    "xie": "On Negative Sampling",
}
_NARROW = "Networks are narrow ones, not those of the paper."


def reproduce_audio_text(name: str, data: Mapping[str, str], plan: ReproductionPlan) -> SweepResult:
    """Reproduce an audio-text paper.

    Args:
        name: "mei", "3cmlf" or "xie".
        data: data set ("audiocaps", "clotho") -> its folder or manifest; nothing takes the sample clips.
        plan: how.

    Raises:
        InputError: data that are not there, or a setting that the config refuses or that no row would have.
    """
    places: Mapping[str, str | None] = data or {"sample": None}
    for one in places:
        refuse_overridden(name, [key for key, _ in setting_pairs(plan.settings)], _dataset(name, one))
    bases = {one: _base(name, one, place, plan) for one, place in places.items()}
    with sole_owner(plan.owned, {plan.folder / one: base.data for one, base in bases.items()}):
        planned = {
            one: runs_of(name, base.values, plan.seeds, plan.folder / one, data=base.data, dataset=_dataset(name, one))
            for one, base in bases.items()
        }
        outcomes = worked_off([job for runs in planned.values() for run in runs for job in run.jobs], plan)
        if plan.division.shard:
            return SweepResult((), tuple(outcomes), plan.folder, None)
        tables = {
            f"{name}-{one}": _marked(table_of(name, runs, data=_data_of(runs), dataset=_dataset(name, one)), one, plan)
            for one, runs in planned.items()
        }
        for file, table in tables.items():
            write_tables(table, plan.folder / file)
        write_text(plan.folder / REPORT, _page(name, tables, plan))
    return SweepResult(tuple(tables.values()), tuple(outcomes), plan.folder, plan.folder / REPORT)


def _base(name: str, data_set: str, place: str | None, plan: ReproductionPlan) -> Config:
    """Put together the config that the runs on a data set start from."""
    narrow = place is None or plan.quick
    started = open_config(plan.config or starting_config(name, None if narrow else _dataset(name, data_set)))
    base = with_sample_data(assembled(started, {"data": place, "device": plan.device}, plan.settings), plan.note)
    if plan.max_epochs is not None:
        base = at_most(base, plan.max_epochs)
    return shortened(base, len(load_splits(base).train)) if plan.quick else base


def _dataset(name: str, data_set: str) -> str:
    """Name the data set whose published figures stand beside ours."""
    return DATASETS.get(data_set, own_dataset(name))


def _data_of(runs: list[PaperRun]) -> str:
    return runs[0].jobs[0].config.data


def _marked(table: Table, data_set: str, plan: ReproductionPlan) -> Table:
    """Say on a table what is not as in the paper."""
    words = [NOTE] * plan.quick + [_NARROW] * (plan.quick or data_set == "sample")
    return replace(table, caption=" ".join([*words, table.caption]))


def _page(name: str, tables: Mapping[str, Table], plan: ReproductionPlan) -> str:
    """Write one page of the tables: ours beside the published figures."""
    sections = []
    for file, table in tables.items():
        naming = [column for column in table.columns if not column.startswith("published ")]
        printed = [column for column in table.columns if column.startswith("published ")]
        keys = naming[: len(naming) - len(printed) - 3]
        content = page.table(table, naming) + "<h3>Beside the published figures</h3>"
        ours = naming[len(keys) : len(keys) + len(printed)]
        content += page.table(table, [*keys, *(one for pair in zip(ours, printed, strict=True) for one in pair)])
        sections.append(Section(f"{name} on {file.rpartition('-')[2]}", content, [table.caption, *table.notes]))
    sections.append(Section("How it was made", page.command(plan.command)))
    words = f'<p class="warning">{page.text(NOTE)}</p>' if plan.quick else ""
    summary = (
        f'{words}<p class="note">Every item is embedded alone; published figures are not comparable as they stand.</p>'
    )
    return page.document(f"{TITLES[name]}, reproduced", "Reproduction of a paper", summary, sections)
