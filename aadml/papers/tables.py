"""The AADML paper's tables, ours beside the published figures and beside what each leak would print."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from aadml.papers.parts import DATA_SETS
from aadml.papers.rows import LEAKS, SELECTION
from aadml.reports.tables import Cell, Table
from aadml.retrieval.significance import Pair, Spread, spread
from aadml.runs.test_curve import PREFIX
from aadml.studies.ablation_grid import run_folder
from aadml.studies.ablation_tables import figure_cells, figure_columns
from aadml.studies.comparison_rows import ComparisonRow
from aadml.studies.job import Job, scored_under
from aadml.studies.published_figures import FIGURES, published
from aadml.studies.results import CellScores, RunScores, differences, how_tested, in_words

Scores = Mapping[str, CellScores]
Leaks = Mapping[str, Mapping[str, Spread]]
"""Name of a cell -> protocol -> mean MAP under it."""

COMPARED = (
    "Published figures are the test MAP printed by Zeng et al. (ICMR 2024), protocol and spread unstated. They cannot "
    "be compared with ours as they stand: ours are 'inductive', each item embedded alone and the epoch chosen on "
    "validation clips. The columns 'legacy:' show what each leak seen in published code makes of the very same runs."
)
SELECTED = (
    f"{SELECTION} is the best test MAP of any logged epoch, a diagnosis: nothing was chosen by it. Methods without "
    "epochs have none."
)


@dataclass(frozen=True)
class Group:
    """What one data set came to.

    Attributes:
        data_set: "vegas" or "ave".
        scores: by name of the cell.
        leaks: by name of the cell.
        about: one sentence: data, split, protocol, chance, seeds.
    """

    data_set: str
    scores: Scores
    leaks: Leaks
    about: str

    @property
    def name(self) -> str:
        """Name the data set as the paper does."""
        return DATA_SETS[self.data_set]


def leaks_of(scores: Scores, jobs: Sequence[Job]) -> dict[str, dict[str, Spread]]:
    """Read what finished runs score under every leak."""
    by_folder = {job.folder: job for job in jobs}
    found: dict[str, dict[str, Spread]] = {}
    for name, one in scores.items():
        folders = {
            seed: next(f for f in by_folder if f.name == run_folder(f, one.cell, seed).name) for seed in one.runs
        }
        own = {SELECTION: [_best_look(run) for run in one.runs.values()]}
        for leak in LEAKS:
            own[leak] = [
                scored_under(by_folder[folder], leak).map_mean
                for folder in folders.values()
                if leak in by_folder[folder].protocols
            ]
        known = {leak: [value for value in values if value is not None] for leak, values in own.items()}
        found[name] = {leak: spread(values) for leak, values in known.items() if values}
    return found


def _best_look(run: RunScores) -> float | None:
    """Give the best test MAP of any epoch; None where the log has none."""
    looks = [float(one[key]) for one in run.epochs if (key := f"{PREFIX}map_mean") in one]
    return max(looks, default=None)


def paper_table(kind: str, rows: Sequence[ComparisonRow], group: Group, *, against: str | None = None) -> Table:
    """Tabulate Table 1, 2 or 3 on one data set.

    Args:
        kind: "methods" or "losses".
        rows: of the table.
        group: what they came to.
        against: the row that all others are compared with; by default each anchor-aware row with itself without proxy.
    """
    named = {row.item: row for row in rows}
    pairs = {row.item: _compared(row, named, against) for row in rows}
    tested = differences(group.scores, [pair for pair in pairs.values() if pair])
    directions = next((one.directions for one in group.scores.values() if one.runs), [])
    of = against or "itself without proxy"
    columns = [kind.removesuffix("s").replace("losse", "loss"), *figure_columns("MAP", directions)]
    columns += [f"published {figure.replace('_', '-')}" for figure in FIGURES]
    columns += [f"difference to {of}", SELECTION, *LEAKS, "epochs", "steps", "seconds", "seeds"]
    printed = published(kind)
    lines = []
    for row in rows:
        own, pair = group.scores[row.cell.name], pairs[row.item]
        line: list[Cell] = [row.item, *figure_cells(own, "map", directions)]
        line += [printed.get(row.item, {}).get(group.name, {}).get(figure) for figure in FIGURES]
        line.append(in_words(tested.get(pair)) if pair else None)
        line += [group.leaks.get(row.cell.name, {}).get(leak) for leak in (SELECTION, *LEAKS)]
        line += [own.epochs, own.steps, None if own.seconds is None else f"{own.seconds.mean:.1f}", len(own.runs)]
        lines.append(tuple(line))
    notes = [*how_tested(list(tested.values())), COMPARED, SELECTED, *failed(rows, group.scores)]
    return Table(tuple(columns), tuple(lines), group.about, tuple(notes), best=("MAP mean",))


def _compared(row: ComparisonRow, named: Mapping[str, ComparisonRow], against: str | None) -> Pair | None:
    other = named.get(against if against else row.item.removeprefix("aa-"))
    return (row.cell.name, other.cell.name) if other is not None and other.cell != row.cell else None


def failed(rows: Sequence[ComparisonRow], scores: Scores) -> list[str]:
    """Name the runs that failed, and why."""
    return [
        f"{row.item}, seed {seed}, failed: {reason}"
        for row in rows
        for seed, reason in scores[row.cell.name].failed.items()
    ]


def leak_table(title: str, rows: Sequence[ComparisonRow], group: Group) -> Table:
    """Tabulate which leak gives which jump: MAP under it minus the inductive MAP, over the rows of a table."""
    lines: list[tuple[Cell, ...]] = []
    for leak in (SELECTION, *LEAKS):
        jumps = {
            row.item: group.leaks[row.cell.name][leak].mean - own.mean
            for row in rows
            if (own := group.scores[row.cell.name].over_seeds("map")) is not None
            and leak in group.leaks.get(row.cell.name, {})
        }
        if jumps:
            most = max(jumps, key=lambda name: jumps[name])
            figures = [float(np.mean(list(jumps.values()))), min(jumps.values()), jumps[most]]
            lines.append((leak, *(round(one, 3) + 0.0 for one in figures), most, len(jumps)))  # no minus before a zero
    lines.sort(key=lambda line: -float(str(line[1])))
    columns = ("protocol", "mean jump", "smallest", "largest", "largest for", "rows")
    return Table(columns, tuple(lines), f"MAP under each leak minus inductive MAP: {title}. {group.about}")


def draw_table(rows: Mapping[int, Sequence[ComparisonRow]], group: Group) -> Table:
    """Tabulate the scores over draws of Clock, and how far apart draws are, beside how far apart seeds are."""
    items = [row.item for row in rows[0]]
    lines: list[tuple[Cell, ...]] = []
    for item in items:
        own = {draw: next(row for row in several if row.item == item) for draw, several in rows.items()}
        spreads = {draw: group.scores[row.cell.name].over_seeds("map") for draw, row in own.items()}
        means = [one.mean for one in spreads.values() if one is not None]
        sds = [one.sd for one in spreads.values() if one is not None and one.count > 1]
        across = spread(means) if len(means) > 1 else None
        line: list[Cell] = [item, *spreads.values(), across.sd if across else None]
        lines.append((*line, float(np.mean(sds)) if sds else None))
    columns = ("loss", *(f"draw {draw}" for draw in rows), "sd over draws (of means)", "sd over seeds (mean)")
    notes = (
        "Draws differ in which 100 of the clips of Clock are kept, in every split; so the test clips differ too. "
        "The tables use draw 0.",
    )
    return Table(columns, tuple(lines), f"MAP mean by draw of Clock. {group.about}", notes)
