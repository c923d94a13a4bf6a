"""The tables of the AADML paper: our results next to the published results, and under each leak.

Reference: Zeng et al., Anchor-aware deep metric learning for audio-visual retrieval, ICMR 2024, https://arxiv.org/abs/2404.13789
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aadml.papers.rows import LEAKS, SELECTION, PaperRuns
from aadml.reports.published import PAPER
from aadml.reports.tables import Cell, Table
from aadml.retrieval.significance import Pair, Spread
from aadml.runs.test_curve import PREFIX
from aadml.studies.ablation_grid import run_folder
from aadml.studies.comparison_rows import SINGULAR, ComparisonRow
from aadml.studies.job import Job, scored_under
from aadml.studies.results import CellScores, spread_of
from aadml.studies.sweep import NOT_POSSIBLE
from aadml.studies.sweep_parts import ResultColumns, failures

Scores = Mapping[str, CellScores]
Leaks = Mapping[str, Mapping[str, Spread]]
"""Name of a cell -> protocol -> mean MAP under the protocol."""

COMPARED = (
    "Published results are the test MAP printed by Zeng et al. (ICMR 2024), who state neither protocol nor spread. "
    "These results cannot be compared directly with ours. Our protocol 'inductive' embeds each item "
    "independently, and the epoch is chosen on validation clips. The columns 'legacy:' score the same runs under each "
    "leak found in published code."
)
WHAT = "what the row is"
"""Column that names the relation of a row to its source."""
SELECTED = (
    f"{SELECTION} is the best test MAP of any logged epoch, which was not used for any choice. Methods "
    "without epochs have no such value."
)


@dataclass(frozen=True)
class Group:
    """Results on one data set.

    Attributes:
        runs: runs on the data set.
        scores: scores by name of the cell.
        leaks: MAP under each leak, by name of the cell.
        about: caption with data, split, protocol, chance and seeds.
        about_draws: the same caption for the data of all draws of the class Clock.
    """

    runs: PaperRuns
    scores: Scores
    leaks: Leaks
    about: str
    about_draws: str

    @property
    def name(self) -> str:
        """Published name of the data set."""
        return PAPER.data_sets[self.runs.data_set].name

    def of(self, row: ComparisonRow) -> CellScores:
        """Return the scores of a row."""
        return self.scores[row.cell.name]

    def leaked(self, row: ComparisonRow) -> Mapping[str, Spread]:
        """Return the MAP of a row under each leak."""
        return self.leaks.get(row.cell.name, {})


def leaks_of(scores: Scores, jobs: Sequence[Job], folder: Path) -> dict[str, dict[str, Spread]]:
    """Return the MAP under every leak: name of a cell -> leak -> `Spread` over the finished runs in `folder`.

    Raises:
        InputError: the evaluation of a run under a leak is missing or damaged.
    """
    by_folder = {job.folder: job for job in jobs}
    leaks = {}
    for name, cell in scores.items():
        finished = [by_folder[run_folder(folder, cell.cell, seed)] for seed in cell.runs]
        values: dict[str, list[float | None]] = {
            SELECTION: [max(run.by_epoch(f"{PREFIX}map_mean").values(), default=None) for run in cell.runs.values()]
        }
        for leak in LEAKS:
            values[leak] = [scored_under(job, leak).map_mean for job in finished if leak in job.protocols]
        leaks[name] = {leak: spread for leak, maps in values.items() if (spread := spread_of(maps))}
    return leaks


def paper_table(rows: Sequence[ComparisonRow], group: Group, described: Mapping[str, str]) -> Table:
    """Return table 1, 2 or 3 on one data set.

    Methods are compared with aadml. Losses with an anchor-aware proxy are compared with the same loss without proxy.

    Args:
        rows: rows of the table.
        group: results of the rows.
        described: row -> description of the row.
    """
    kind, named = rows[0].table, {row.item: row for row in rows}
    reference = "aadml" if kind == "methods" else "itself without proxy"
    pairs: list[Pair | None] = []
    for row in rows:
        other = named.get("aadml" if kind == "methods" else row.item.removeprefix("aa-"))
        pairs.append((row.cell.name, other.cell.name) if other and other.cell != row.cell else None)
    columns = ResultColumns([group.of(row) for row in rows], group.scores, {SINGULAR[kind]: list(named)})
    columns[WHAT] = [_not_possible(group.of(row)) or described.get(row.item) for row in rows]
    columns.add_figures("map", "MAP")
    columns.add_published(kind, list(named), group.name)
    columns.add_differences(f"difference to {reference}", pairs)
    for leak in (SELECTION, *LEAKS):
        columns[leak] = [group.leaked(row).get(leak) for row in rows]
    columns.add_cost("epochs", "steps", "seconds", "seeds")
    notes = [COMPARED, SELECTED, *failures({row.item: group.of(row) for row in rows})]
    return columns.table(group.about, notes, "MAP mean")


def _not_possible(cell: CellScores) -> str:
    return next((reason for reason in cell.failed.values() if reason.startswith(NOT_POSSIBLE)), "")


def leak_table(title: str, rows: Sequence[ComparisonRow], group: Group) -> Table:
    """Return the mean, smallest and largest increase of MAP by each leak, over the rows of a table.

    The increase is MAP under the leak minus inductive MAP.
    """
    lines: list[tuple[Cell, ...]] = []
    for leak in (SELECTION, *LEAKS):
        jumps = {
            row.item: group.leaked(row)[leak].mean - inductive.mean
            for row in rows
            if (inductive := group.of(row).over_seeds("map")) and leak in group.leaked(row)
        }
        if jumps:
            most = max(jumps, key=lambda name: jumps[name])
            figures = (float(np.mean(list(jumps.values()))), min(jumps.values()), jumps[most])
            lines.append((leak, *(round(jump, 3) + 0.0 for jump in figures), most, len(jumps)))  # no "-0.0"
    lines.sort(key=lambda line: -float(str(line[1])))
    columns = ("protocol", "mean jump", "smallest", "largest", "largest for", "rows")
    return Table(columns, tuple(lines), f"MAP under each leak minus inductive MAP: {title}. {group.about}")


def draw_table(group: Group) -> Table:
    """Return a table of the MAP on each draw of the class Clock.

    The table also contains the standard deviation over draws, and the standard deviation over seeds.
    """
    draws = group.runs.all_draws
    spreads = {
        item: [group.of(row).over_seeds("map") for rows in draws.values() for row in rows if row.item == item]
        for item in (row.item for row in draws[0])
    }
    columns = ResultColumns([], group.scores, {"loss": list(spreads)})
    for position, seed in enumerate(draws):
        columns[f"draw {seed}"] = [of_draws[position] for of_draws in spreads.values()]
    known = [[spread for spread in of_draws if spread] for of_draws in spreads.values()]
    across = [spread_of(spread.mean for spread in of_draws) for of_draws in known]
    columns["sd over draws (of means)"] = [spread.sd if spread and spread.count > 1 else None for spread in across]
    within = [spread_of(spread.sd for spread in of_draws if spread.count > 1) for of_draws in known]
    columns["sd over seeds (mean)"] = [spread.mean if spread else None for spread in within]
    note = (
        "Each draw keeps a different 100 of the clips of Clock, over all splits, so the test clips differ too. "
        "The tables use draw 0."
    )
    failed = failures({f"{row.item}, draw {seed}": group.of(row) for seed, rows in draws.items() for row in rows})
    return columns.table(f"MAP mean by draw of Clock. {group.about_draws}", notes=[note, *failed])
