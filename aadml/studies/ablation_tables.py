"""The table of an ablation, and the sentences that say what its figures are."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aadml.comparison.relevance import LABEL
from aadml.feature_extraction.ground.errors import InputError
from aadml.reports.tables import Cell, Table
from aadml.retrieval.record import EvaluationRecord
from aadml.retrieval.significance import Difference, Pair
from aadml.retrieval.summary import RELEVANCE_IN_WORDS
from aadml.runs.environment import Environment, read_environment
from aadml.studies.ablation_grid import Ablation, run_folder
from aadml.studies.results import CellScores, differences, how_tested, in_words


def results_table(
    ablation: Ablation, scores: Mapping[str, CellScores], about: str, metrics: Sequence[str] = ()
) -> Table:
    """Tabulate MAP of every cell, with the difference to its baseline, and further metrics."""
    found = differences(scores, ablation.pairs())
    directions = next((one.directions for one in scores.values() if one.runs), [])
    keys = [axis.key for axis in ablation.axes]
    named = keys if "loss" in keys or len({cell.config.label() for cell in ablation.cells}) == 1 else ["loss", *keys]
    compared = ["difference to", "difference"] if ablation.baselines else []
    rows: list[tuple[Cell, ...]] = []
    for cell in ablation.cells:
        own = scores[cell.name]
        settings = {"loss": cell.config.label(), **cell.settings}
        row: list[Cell] = [None if settings[key] is None else str(settings[key]) for key in named]
        row += figure_cells(own, "map", directions)
        other = ablation.baselines.get(cell.name, "")
        row += [other, in_words(found.get((cell.name, other)))] if compared else []
        row += [cell for metric in metrics for cell in figure_cells(own, metric, directions)]
        rows.append((*row, own.train_map, own.epochs, own.steps, len(own.runs)))
    further = [column for metric in metrics for column in figure_columns(metric, directions)]
    columns = (*named, *figure_columns("MAP", directions), *compared, *further, "train MAP", "epochs", "steps", "seeds")
    return Table(columns, tuple(rows), about, tuple(_notes(found, scores)), best=("MAP mean",))


def figure_columns(metric: str, directions: Sequence[str]) -> list[str]:
    """Name the columns of a metric: one a direction, and their mean."""
    return [f"{metric} {name}" for name in (*directions, "mean")]


def figure_cells(own: CellScores, metric: str, directions: Sequence[str]) -> list[Cell]:
    """Give the figures of a metric over the seeds, as `figure_columns` names them."""
    return [own.over_seeds(metric, direction) for direction in (*directions, None)]


def describe(scores: Mapping[str, CellScores], seeds: Sequence[int], folder: Path, metrics: Sequence[str] = ()) -> str:
    """Say what the figures are: data, split, what is relevant, protocol, chance, ties, seeds, what data they are."""
    found = _first_of_each_cell(scores, folder)
    if not found:
        reasons = [reason for cell in scores.values() for reason in cell.failed.values()]
        first = f" ({reasons[0]})" if reasons else ""
        raise InputError(f"{folder}: no run was finished{first}; see failure.txt in each")
    record, environment = found[0]
    clips = ", ".join(f"{_span([other.clips[split] for _, other in found])} {split}" for split in environment.clips)
    chance = _span([f"{other.chance:.3f}" for other, _ in found])
    of_others = [
        f"{metric} {_span([f'{level:.3f}' for level in levels])}"
        for metric in metrics
        if (levels := [level for other, _ in found if (level := other.chance_of(metric)) is not None])
    ]
    chance += f" ({', '.join(of_others)})" if of_others else ""
    rules = sorted({other.relevance for other, _ in found} - {LABEL.name})
    relevant = "".join(f"relevant is {RELEVANCE_IN_WORDS[rule]} ({rule}), " for rule in rules)
    ties = max(run.record.tie_rate for one in scores.values() for run in one.runs.values())
    noted = "".join(f"; {note.rstrip('.')}" for note in _data_notes([other for _, other in found]))
    return (
        f"MAP on the {record.split} split of {Path(environment.data.name).name} ({clips} clips), "
        f"{relevant}protocol {record.protocol}, chance {chance}, tie rate at most {ties:.3f}; "
        f"{'mean ± sd over ' if len(seeds) > 1 else ''}{len(seeds)} seed{'s' if len(seeds) > 1 else ''}"
        f"{noted}."
    )


def _data_notes(environments: Sequence[Environment]) -> list[str]:
    """Repeat what was done to the data on the way to its splits: what the first runs of all cells noted alike."""
    return [note for note in environments[0].data.notes if all(note in other.data.notes for other in environments)]


def _first_of_each_cell(scores: Mapping[str, CellScores], folder: Path) -> list[tuple[EvaluationRecord, Environment]]:
    """Give the evaluation and the environment of each cell's first finished run."""
    first = [(one.cell, *next(iter(one.runs.items()))) for one in scores.values() if one.runs]
    return [(run.record, read_environment(run_folder(folder, cell, seed))) for cell, seed, run in first]


def _span(values: Sequence[Any]) -> str:
    """Write what is the same everywhere, or from where to where it goes."""
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"


def _notes(found: Mapping[Pair, Difference], scores: Mapping[str, CellScores]) -> list[str]:
    notes = how_tested(list(found.values()))
    for name, one in scores.items():
        notes += [f"{name}, seed {seed}, failed: {reason}" for seed, reason in one.failed.items()]
    return notes
