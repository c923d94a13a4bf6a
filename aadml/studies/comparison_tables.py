"""The tables of a comparison: ours beside the published columns, and each loss with proxy minus its controls."""

from collections.abc import Mapping, Sequence

from aadml.reports.tables import Cell, Table
from aadml.retrieval.significance import Pair
from aadml.studies.ablation_tables import figure_cells, figure_columns
from aadml.studies.comparison_rows import ComparisonRow
from aadml.studies.control_rows import ALONE, NONE
from aadml.studies.published_figures import FIGURES, NOTE, data_sets, published
from aadml.studies.results import CellScores, differences, how_tested, in_words, mark, signed

Scores = Mapping[str, CellScores]


def table_of(
    kind: str,
    rows: Sequence[ComparisonRow],
    scores: Scores,
    reference: ComparisonRow | None,
    about: str,
    metrics: Sequence[str] = (),
) -> Table:
    """Tabulate the rows of a kind: MAP over seeds, difference to a reference, cost, and the published columns.

    Args:
        kind: "methods" or "losses".
        rows: of that kind.
        scores: by name of the cell.
        reference: what the others are compared with; None compares nothing.
        about: one sentence: data, split, protocol, seeds.
        metrics: further columns.
    """
    printed = published(kind)
    pairs: list[Pair] = []
    if reference is not None:
        pairs = [(row.cell.name, reference.cell.name) for row in rows if row.cell.name != reference.cell.name]
    found = differences(scores, pairs)
    directions = next((one.directions for one in scores.values() if one.runs), [])
    columns = [{"methods": "method", "losses": "loss"}[kind], *figure_columns("MAP", directions)]
    columns += [f"difference to {reference.name}"] if reference is not None else []
    columns += [column for metric in metrics for column in figure_columns(metric, directions)]
    columns += ["train MAP", "epochs", "steps", "seconds", "parameters", "seeds"]
    columns += [f"{name} published {figure.replace('_', '-')}" for name in data_sets(kind) for figure in FIGURES]
    lines = []
    for row in rows:
        own = scores[row.cell.name]
        line: list[Cell] = [row.name, *figure_cells(own, "map", directions)]
        if reference is not None:
            line.append(in_words(found.get((row.cell.name, reference.cell.name))))
        line += [cell for metric in metrics for cell in figure_cells(own, metric, directions)]
        line += [own.train_map, own.epochs, own.steps, _seconds(own), _count(own), len(own.runs)]
        known = {} if row.control else printed.get(row.item, {})
        line += [known.get(name, {}).get(figure) for name in data_sets(kind) for figure in FIGURES]
        lines.append(tuple(line))
    notes = [*how_tested(list(found.values())), NOTE, *_failed(rows, scores)]
    return Table(tuple(columns), tuple(lines), about, tuple(notes), best=("MAP mean",))


def proxy_table(rows: Sequence[ComparisonRow], scores: Scores, about: str) -> Table | None:
    """Tabulate rows with anchor-aware proxies minus each of their controls; None where no row has any.

    Args:
        rows: of all kinds.
        scores: by name of the cell.
        about: one sentence: data, split, protocol, seeds.
    """
    beside = [(row, _controls_of(row, rows)) for row in rows if not row.control]
    beside = [(row, found) for row, found in beside if found]
    if not beside:
        return None
    names = list(dict.fromkeys(name for _, found in beside for name in found))
    pairs = [(row.cell.name, other.cell.name) for row, found in beside for other in found.values()]
    tested = differences(scores, pairs)
    lines: list[tuple[Cell, ...]] = []
    for row, found in beside:
        cells: list[Cell] = [row.name, scores[row.cell.name].over_seeds("map")]
        for name in names:
            other = found.get(name)
            cells.append(in_words(tested.get((row.cell.name, other.cell.name))) if other else None)
        cells.append(scores[row.cell.name].steps)
        lines.append(tuple(cells))
    columns = ("with proxy", "MAP mean", *(f"minus {name}" for name in names), "steps")
    caption = f"With the anchor-aware proxy, minus each of its controls. {about}"
    return Table(columns, tuple(lines), caption, tuple(how_tested(list(tested.values()))))


def pair_table(rows: Sequence[ComparisonRow], scores: Scores, about: str) -> Table:
    """Tabulate the differences of all pairs of rows, row minus column, corrected for all of them."""
    shown = [row for row in rows if not row.control]
    pairs = [(one.cell.name, other.cell.name) for i, one in enumerate(shown) for other in shown[i + 1 :]]
    pairs = [pair for pair in pairs if pair[0] != pair[1]]
    tested = differences(scores, pairs)
    lines: list[tuple[Cell, ...]] = []
    for row in shown:
        cells: list[Cell] = [row.name]
        for other in shown:
            own = tested.get((row.cell.name, other.cell.name))
            turned = tested.get((other.cell.name, row.cell.name))
            if own is None and turned is not None:
                own = turned.reversed()
            cells.append(None if own is None else signed(own.mean) + mark(own))
        lines.append(tuple(cells))
    caption = f"ComparisonRow minus column, MAP mean. {about}"
    return Table(("", *(row.name for row in shown)), tuple(lines), caption, tuple(how_tested(list(tested.values()))))


def _controls_of(row: ComparisonRow, rows: Sequence[ComparisonRow]) -> dict[str, ComparisonRow]:
    """Find the controls of an anchor-aware row; in the table of losses two of them are rows of their own."""
    found = {
        other.control: other for other in rows if other.control and (other.table, other.item) == (row.table, row.item)
    }
    if not found or row.table != "losses":
        return found
    named = {other.item: other for other in rows if other.table == "losses" and not other.control}
    plain = named.get(row.item.removeprefix("aa-"))
    first = {ALONE: plain} if plain else {}
    last = {NONE: named[NONE]} if NONE in named else {}
    return {**first, **found, **last}


def _failed(rows: Sequence[ComparisonRow], scores: Scores) -> list[str]:
    return [
        f"{row.name}, seed {seed}, failed: {reason}"
        for row in rows
        for seed, reason in scores[row.cell.name].failed.items()
    ]


def _seconds(own: CellScores) -> str | None:
    return None if own.seconds is None else f"{own.seconds.mean:.1f}"


def _count(own: CellScores) -> int | None:
    figure = own.parameters
    return None if figure is None else round(figure.mean)
