"""Reproduction of the AADML paper."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from aadml.configuration.overrides import setting_pairs
from aadml.configuration.presets import preset_path
from aadml.data.ave import CLOCK, CLOCK_LIMIT, with_drawn_clock
from aadml.data.reading import open_data
from aadml.feature_extraction.feature_file.content import FeatureFile
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.registry import lookup
from aadml.feature_extraction.ground.strings import Note
from aadml.papers.page import write_reproduction
from aadml.papers.reproduction_plan import ReproductionPlan, shortened
from aadml.papers.rows import PaperRuns, paper_runs
from aadml.papers.tables import Group, leaks_of
from aadml.reports.published import PAPER
from aadml.retrieval.judgments import judgment_files
from aadml.studies.ablation_grid import collected
from aadml.studies.comparison_rows import RowSettings
from aadml.studies.execution import SweepResult
from aadml.studies.folder import sole_owner
from aadml.studies.grid import Overrides
from aadml.studies.job import Job
from aadml.studies.sweep import SweepOutcome
from aadml.studies.sweep_parts import describe

DRAWS = range(5)
"""Seeds for drawing 100 of the 160 clips of the AVE class Clock. The tables use the first seed.

The paper also uses 100 of these clips, but does not list the clips.
"""


def reproduce_paper(data: Mapping[str, str], only: str | None, plan: ReproductionPlan) -> SweepResult:
    """Reproduce the AADML paper.

    Args:
        data: data set ("vegas", "ave") -> path of its features.
        only: names of parts, separated by commas; None selects all parts.
        plan: execution, schedule and settings.

    Raises:
        InputError: an unknown part, no part for these data sets, unreadable data, a setting that applies to no row, or
            a run missing from a merge.
    """
    parts, notes = chosen_parts(only, data)
    for message in notes:
        plan.note(message)

    def note(message: str) -> None:
        if message not in notes:
            notes.append(message)
            plan.note(message)

    judgments = judgment_files(value for key, value in setting_pairs(plan.settings) if key == "relevance")
    with sole_owner(plan.locked, {plan.folder / name: place for name, place in data.items()}, judgments):
        runs = {name: _runs(name, place, parts, plan, note) for name, place in data.items()}
        jobs = {name: of_set.jobs(parts, plan.seeds, plan.folder / name) for name, of_set in runs.items()}
        outcomes = plan.reproduce([job for several in jobs.values() for job in several])
        if plan.shard:
            return SweepResult(tuple(outcomes), plan.folder)
        groups = {
            name: _group(of_set, parts, jobs[name], outcomes, plan) for name, of_set in runs.items() if jobs[name]
        }
        tables, page = write_reproduction(parts, groups, plan, notes)
    return SweepResult(tuple(outcomes), plan.folder, tables, page)


def _runs(name: str, place: str, parts: Sequence[str], plan: ReproductionPlan, note: Note) -> PaperRuns:
    """Return the runs on a data set.

    If AVE has more than 100 clips of the class Clock, 100 of these clips are drawn.
    """
    draws: dict[int, str] = {}
    if name == "ave":
        place, draws = drawn_sets(place, plan.folder / name, note, with_others="clock-draw" in parts)
    content = open_data(place)
    for message in other_size(name, content):
        note(f"{Path(place).name}: {message}")
    clips = len(content.rows("train"))
    base = str(preset_path(PAPER.data_sets[name].config))
    changes = Overrides(dict(setting_pairs(plan.settings)))
    shared = RowSettings(place, changes, plan.max_epochs, base, with_controls=False)
    runs = paper_runs(
        name, shared, draws=draws, shorten=lambda config: shortened(config, clips) if plan.quick else config
    )
    for message in runs.notes:
        note(message)
    return runs


def _group(
    runs: PaperRuns, parts: Sequence[str], jobs: Sequence[Job], outcomes: Sequence[SweepOutcome], plan: ReproductionPlan
) -> Group:
    folder = plan.folder / runs.data_set
    cells = list({cell.name: cell for part in parts for cell in runs.cells(part)}.values())
    scores = collected(cells, plan.seeds, folder, outcomes)
    on_data = {cell.name for cell in cells if cell.config.data == cells[0].config.data}
    of_tables = {name: cell for name, cell in scores.items() if name in on_data and cell.runs}
    about, about_draws = (describe(several, plan.seeds, folder) for several in (of_tables or scores, scores))
    return Group(runs, scores, leaks_of(scores, jobs, folder), about, about_draws)


def chosen_parts(only: str | None, data_sets: Collection[str]) -> tuple[list[str], list[str]]:
    """Return parts in the order of the paper, and notes on parts that lack a data set.

    Args:
        only: names of parts, separated by commas; None selects all parts.
        data_sets: names of the available data sets.

    Raises:
        InputError: no named part, an unknown part, or no part for these data sets.
    """
    names = [name.strip() for name in (only or ",".join(PAPER.parts)).split(",") if name.strip()]
    if not names:
        raise InputError(f"--only {only} names no part; choose from {', '.join(PAPER.parts)}")
    for name in names:
        lookup(PAPER.parts, name, "part of the paper")
    parts, notes = [], []
    for name, part in PAPER.parts.items():
        absent = [data_set for data_set in part.data_sets if data_set not in data_sets]
        if name not in names:
            continue
        if len(absent) < len(part.data_sets):
            parts.append(name)
        if absent:
            without = f"is reproduced without {' and '.join(PAPER.data_sets[data_set].name for data_set in absent)}"
            flags = " and no ".join(f"--{data_set}" for data_set in absent)
            notes.append(f"{name} {without if name in parts else 'is left out'}, because no {flags} is given")
    if not parts:
        possible = sorted({data_set for name in names for data_set in PAPER.parts[name].data_sets})
        flags = " or ".join(f"--{data_set} F.h5" for data_set in possible)
        raise InputError(f"--only {only}: the data set of these parts is missing; pass {flags}")
    return parts, notes


def other_size(data_set: str, content: FeatureFile) -> list[str]:
    """Return a list with a note if the size of the data differs from that in the paper; empty otherwise.

    Args:
        data_set: "vegas" or "ave".
        content: features of the data set.
    """
    clips, classes = len(content.ids), len(content.class_names)
    expected = PAPER.data_sets[data_set]
    if (clips, classes) == (expected.clips, expected.classes):
        return []
    same = [other.name for other in PAPER.data_sets.values() if (other.clips, other.classes) == (clips, classes)]
    guess = f" (the size of {same[0]})" if same else ""
    return [
        f"the data have {clips:,} clips of {classes} classes{guess}; the paper's {expected.name} has "
        f"{expected.clips:,} clips of {expected.classes} classes, so the values of the paper come from other data"
    ]


def drawn_sets(data: str, folder: Path, note: Note, *, with_others: bool) -> tuple[str, dict[int, str]]:
    """Write feature files of AVE in which the class Clock has only 100 drawn clips.

    The clips in the file for the tables are drawn with the first seed of DRAWS. Each other seed of DRAWS has a
    further file. Existing files are kept only if the folder contains runs.

    Args:
        data: features of AVE in any layout.
        folder: folder for the feature files.
        note: called with the number of clips, or with the reason why the files of the other seeds are not possible.
        with_others: whether the files of the other seeds are written.

    Returns:
        Path of the file for the tables, and seed -> path for the files of the other seeds. Without enough clips of
        Clock, the result is `data` and an empty mapping. No file is then written.

    Raises:
        InputError: the features cannot be read, or a file cannot be written.
    """
    content = open_data(data)
    try:
        first = with_drawn_clock(content, DRAWS[0])
    except InputError as error:
        if with_others:
            note(f"clock-draw is not measured: {error}")
        return data, {}
    counts = f"{len(first.ids)} of {len(content.ids)} clips are kept"
    note(f"{Path(data).name}: {CLOCK} has more than {CLOCK_LIMIT} clips, so {CLOCK_LIMIT} are drawn by seed ({counts})")
    places = {seed: folder / f"clock-draw={seed}.h5" for seed in (DRAWS if with_others else DRAWS[:1])}
    has_runs = any(inner.is_dir() for inner in folder.glob("*"))  # runs of other data are refused
    for seed, place in places.items():
        if not (has_runs and place.is_file()):
            write_features(place, with_drawn_clock(content, seed))
    table, *others = map(str, places.values())
    return table, dict(zip(DRAWS[1:], others, strict=False))
