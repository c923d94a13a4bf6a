"""Sections of the page on explanations: readings under sums (H6), pairs and few labels (H8), all methods (stage 5)."""

from collections.abc import Sequence

from aadml.reports.tables import markdown
from aadml.retrieval.significance import LEVEL
from scripts.experiments.anchor_aware.contenders import NO_METRIC, READINGS
from scripts.experiments.anchor_aware.finals import CONTROL_SEEDS, LAST_READINGS, finals
from scripts.experiments.anchor_aware.ledger import Ledger
from scripts.experiments.anchor_aware.search import SUMS
from scripts.experiments.anchor_aware.shipped import (
    ALONE,
    CAP,
    CAPPED,
    FEW_LABELS,
    FIFTH,
    LABELS_A_CLASS,
    NEIGHBORS,
    PAIRS,
    WITH_FEW,
    WITHOUT_LABELS,
    few,
)
from scripts.experiments.anchor_aware.statistics import ByMethod, Compared, against, corrected_flips
from scripts.experiments.anchor_aware.tables import (
    budget_table,
    chance_of,
    every_seed,
    exploratory_table,
    figure_name,
    final_table,
    gain,
    option_table,
    titled,
)


def readings_against_none(name: str, ledger: Ledger) -> list[Compared]:
    """Compare the fully trained readings with no metric loss."""
    rows = finals(name, ledger, LAST_READINGS)
    chosen = {method: own for method, own in rows.items() if method in (*READINGS, NO_METRIC)}
    return against(NO_METRIC, chosen, ledger.precisions(LAST_READINGS))


def readings_answer(name: str, ledger: Ledger) -> str:
    """Return whether a reading trains under the paper's own sums (H6), as text."""
    found = readings_against_none(name, ledger)
    if not found:
        return "not run"
    best, flips = max(found, key=lambda one: one.over_seeds.mean), corrected_flips(found)
    said = f"{best.pair[0]}, the best of {len(found)}: {gain(best)}, {len(best.values)} seeds"
    if len(best.values) < CONTROL_SEEDS:
        return f"{said}; not tested"
    above = flips[best.pair] < LEVEL and best.over_seeds.mean > 0
    return f"{said}; {'yes: above no metric loss' if above else 'none found above no metric loss'}; exploratory"


def _pairs(name: str, ledger: Ledger, stage: str, groups: Sequence[tuple[str, Sequence[str]]]) -> list[Compared]:
    """Compare the methods of a stage with the first method of their group."""
    rows, precisions = finals(name, ledger, stage), ledger.precisions(stage)
    found = []
    for base, others in groups:
        own = {method: rows[method] for method in (base, *others) if method in rows}
        found += against(base, own, precisions)
    return found


def without_labels(name: str, ledger: Ledger) -> list[Compared]:
    """Compare the methods without labels with pairs alone."""
    return _pairs(name, ledger, PAIRS, [(ALONE, [one for one in WITHOUT_LABELS if one != ALONE])])


def with_few_labels(name: str, ledger: Ledger) -> list[Compared]:
    """Compare the methods with few labels with pairs and the same number of labels."""
    groups = [(few(ALONE, count), [few(one, count) for one in WITH_FEW if one != ALONE]) for count in LABELS_A_CLASS]
    return _pairs(name, ledger, FEW_LABELS, groups)


def graph_answer(name: str, ledger: Ledger) -> str:
    """Return whether the graph helps without labels or with few labels (H8), as text."""
    asked = {"without labels": (without_labels(name, ledger), (NEIGHBORS, ALONE))}
    for count in LABELS_A_CLASS:
        asked[f"{count} labels a class"] = (with_few_labels(name, ledger), (few(NEIGHBORS, count), few(ALONE, count)))
    said = [
        f"{what}: {gain(one)}, {len(one.values)} seeds"
        for what, (found, pair) in asked.items()
        for one in found
        if one.pair == pair
    ]
    return f"{'; '.join(said)}; exploratory, see the tables" if said else "not run"


def sections_of_set(name: str, ledger: Ledger) -> list[str]:
    """Return the sections of one data set that have runs."""
    parts = titled("Readings under the paper's own sums (H6): rates, chosen by validation MAP",
                    option_table(SUMS, name, ledger))  # fmt: skip
    parts += _stage("Readings under the paper's own sums", "", finals(name, ledger, LAST_READINGS),
                    readings_against_none(name, ledger))  # fmt: skip
    parts += _stage("Without labels (H8)", _OWN, finals(name, ledger, PAIRS), without_labels(name, ledger))
    parts += _stage("Few labels (H8)", "", finals(name, ledger, FEW_LABELS), with_few_labels(name, ledger))
    for stage, title in (
        (FIFTH, "All methods at their own schedules"),
        (CAPPED, f"Longer schedules, ended after {CAP} steps"),
    ):
        rows = finals(name, ledger, stage)
        if stage == CAPPED:  # a closed-form method has no schedule
            rows = {
                method: own for method, own in rows.items() if any(row.epochs or row.failed for row in own.values())
            }
        table = budget_table(rows)
        parts += [*titled(title, table), _failures(rows)]
        if stage == FIFTH and table.rows:
            parts.append(f"![test MAP of every seed of all methods]({figure_name(name, 'methods')})")
    return parts


def _stage(title: str, words: str, rows: ByMethod, found: Sequence[Compared]) -> list[str]:
    table, chance = final_table(rows, every_seed(rows)), chance_of(rows)
    parts = [*titled(title, table), words] if table.rows else []
    parts += [f"Chance: {chance:.3f}."] if chance is not None else []
    names = [" - ".join(one.pair) for one in found]
    parts += [markdown(exploratory_table(found, "difference", names))] if found else []
    return [*parts, _failures(rows)]


def _failures(rows: ByMethod) -> str:
    """Return a sentence with each method's number of failed runs and the reason of the first; "" without failures."""
    failed = {method: [row.failed for row in own.values() if row.failed] for method, own in rows.items()}
    said = [f"{method}: {len(reasons)} ({reasons[0]})" for method, reasons in failed.items() if reasons]
    return f"Failed runs: {'; '.join(said)}." if said else ""


_OWN = """MAP with a query's own partner alone relevant, the mean reciprocal rank; labels act nowhere."""
