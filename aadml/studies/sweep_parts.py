"""Parts of the page of a sweep: the summary, which says what is best and how sure that is, and the tables."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from aadml.reports.page import Fact, facts, table, text
from aadml.reports.tables import Table
from aadml.retrieval.significance import NEGLIGIBLE, Difference
from aadml.studies.published_figures import NOTE
from aadml.studies.results import CellScores, in_words, mean_map

COST = ("epochs", "steps", "seconds", "parameters", "seeds")
PUBLISHED = " published "


def summary(
    rows: Mapping[str, CellScores],
    found: Mapping[str, Difference],
    reference: str | None,
    about: Sequence[str],
    what: str = "row",
) -> str:
    """Lay out the summary of a sweep.

    Args:
        rows: name -> scores.
        found: name of a row -> its difference to what it is measured against.
        reference: the row that all are measured against, where it is one.
        about: plain sentences: data, split, protocol, chance, seeds.
        what: a row is called.
    """
    scored = {name: spread for name, one in rows.items() if (spread := one.over_seeds("map")) is not None}
    best = max(scored, key=lambda name: scored[name].mean)
    runs = [run for one in rows.values() for run in one.runs.values()]
    chance = float(np.mean([run.record.chance for run in runs]))
    failed = sum(len(one.failed) for one in rows.values())
    shown = [Fact(f"best test {mean_map(rows.values())}", str(scored[best]), best)]
    if reference in scored and reference != best:
        shown.append(Fact("measured against", str(scored[str(reference)]), str(reference)))
    shown.append(Fact("chance", f"{chance:.3f}", "MAP of a random order"))
    several = f"{len(rows)} {what}s" if len(rows) != 1 else f"1 {what}"
    shown.append(Fact("runs", str(len(runs)), several + (f", {failed} runs failed" if failed else "")))
    words = f"{best} scores highest, {scored[best].mean / chance:.1f} times chance."
    if best in found:
        against = reference or "its baseline"
        words += f" Its difference to {against} is {_how_sure(found[best])}: {in_words(found[best])}."
    notes = "".join(f'<p class="note">{text(note)}</p>' for note in (verdict(found, what), *about) if note)
    return f'<p class="verdict">{text(words)}</p>{facts(shown)}{notes}'


def _how_sure(one: Difference) -> str:
    if math.isnan(one.p):
        return "not tested"
    if one.significant:
        return "significant"
    return f"within ±{NEGLIGIBLE:g}" if one.equivalent else "undecided"


def verdict(found: Mapping[str, Difference], what: str) -> str:
    """Say how many differences are more than luck."""
    if not found:
        return ""
    tested = [one for one in found.values() if not math.isnan(one.p)]
    if not tested:
        return f"Nothing is tested: one seed says nothing of others ({len(found)} {what}s were compared)."
    above = sum(one.significant and one.mean > 0 for one in tested)
    below = sum(one.significant and one.mean < 0 for one in tested)
    equal = sum(one.equivalent and not one.significant for one in tested)
    undecided = len(tested) - above - below - equal
    noun = "comparison" if len(tested) == 1 else "comparisons"
    return (
        f"Of {len(tested)} {noun}: {above} significantly above, {below} significantly below, {equal} equal within "
        f"±{NEGLIGIBLE:g}, {undecided} undecided."
    )


def result_tables(shown: Table, key_columns: int = 1) -> str:
    """Lay a wide table out as several: the results, the published figures beside ours, and the cost.

    Args:
        shown: the whole table.
        key_columns: how many columns at its beginning say which row it is.
    """
    keys, printed = shown.columns[:key_columns], [name for name in shown.columns if PUBLISHED in name]
    cost = [name for name in shown.columns if name in COST]
    html = table(shown, [name for name in shown.columns if name not in (*printed, *cost)])
    beside = _with_published(shown, printed)
    if beside.rows:
        ours = [name for name in shown.columns if name == "MAP mean"]
        html += f'<h3>Beside the published figures</h3><p class="note">{text(NOTE)}</p>'
        html += table(beside, [*keys, *ours, *printed])
    return html + ("<h3>Cost</h3>" + table(shown, [*keys, *cost]) if cost else "")


def _with_published(shown: Table, printed: Sequence[str]) -> Table:
    """Keep the rows that have a published figure; what is best among all rows is not marked there."""
    places = [shown.columns.index(name) for name in printed]
    rows = tuple(row for row in shown.rows if any(row[place] is not None for place in places))
    return replace(shown, rows=rows, best=())
