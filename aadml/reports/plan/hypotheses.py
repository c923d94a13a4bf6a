"""The parts of the page that explain: readings under sums (H6), pairs and few labels (H8), shares (H9), all methods."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aadml.reports.plan.statistics import ByMethod, Compared, against, compared, complete_seeds, corrected_flips
from aadml.reports.plan.tables import budget_table, every_seed, exploratory_table, final_table, interval, option_table
from aadml.reports.tables import Cell, Table, markdown
from aadml.retrieval.sequential import sign_flip
from aadml.retrieval.significance import LEVEL, Difference, holm, paired_t, spread
from aadml.sweeps.plan.contenders import ANCHOR_AWARE, NO_METRIC, PARTNER, PLAIN, READINGS
from aadml.sweeps.plan.finals import CONTROL_SEEDS, LAST_READINGS, LAST_SHARES, finals
from aadml.sweeps.plan.ledger import Ledger
from aadml.sweeps.plan.search import SUMS
from aadml.sweeps.plan.sets import SHARED, drawn_name
from aadml.sweeps.plan.shipped import (
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

SHARING_PAIRS = ((ANCHOR_AWARE, PLAIN), (PARTNER, PLAIN))


def readings_against_none(name: str, ledger: Ledger) -> list[Compared]:
    """Compare the readings that were trained to the end with no metric loss."""
    rows = finals(name, ledger, LAST_READINGS)
    chosen = {method: own for method, own in rows.items() if method in (*READINGS, NO_METRIC)}
    return against(NO_METRIC, chosen, ledger.precisions(LAST_READINGS))


def readings_answer(name: str, ledger: Ledger) -> str:
    """Say whether a reading trains under the paper's own sums (H6)."""
    found = readings_against_none(name, ledger)
    if not found:
        return "not run"
    best, flips = max(found, key=lambda one: one.over_seeds.mean), corrected_flips(found)
    said = f"{best.pair[0]}, the best of {len(found)}: {_said(best)}, {len(best.values)} seeds"
    if len(best.values) < CONTROL_SEEDS:
        return f"{said}; not tested yet"
    above = flips[best.pair] < LEVEL and best.over_seeds.mean > 0
    return f"{said}; {'yes: above no metric loss' if above else 'none found above no metric loss'}; exploratory"


def _pairs(name: str, ledger: Ledger, stage: str, groups: Sequence[tuple[str, Sequence[str]]]) -> list[Compared]:
    """Compare methods of a stage with the first one of their group."""
    rows, precisions = finals(name, ledger, stage), ledger.precisions(stage)
    found = []
    for base, others in groups:
        own = {method: rows[method] for method in (base, *others) if method in rows}
        found += against(base, own, precisions)
    return found


def without_labels(name: str, ledger: Ledger) -> list[Compared]:
    """Compare what learns without labels with pairs alone."""
    return _pairs(name, ledger, PAIRS, [(ALONE, [one for one in WITHOUT_LABELS if one != ALONE])])


def with_few_labels(name: str, ledger: Ledger) -> list[Compared]:
    """Compare what learns with few labels with pairs and these labels, each at its own number of labels."""
    groups = [(few(ALONE, count), [few(one, count) for one in WITH_FEW if one != ALONE]) for count in LABELS_A_CLASS]
    return _pairs(name, ledger, FEW_LABELS, groups)


def graph_answer(name: str, ledger: Ledger) -> str:
    """Say whether the graph helps without labels, or with few (H8)."""
    asked = {"without labels": (without_labels(name, ledger), (NEIGHBORS, ALONE))}
    for count in LABELS_A_CLASS:
        asked[f"{count} labels a class"] = (with_few_labels(name, ledger), (few(NEIGHBORS, count), few(ALONE, count)))
    said = [
        f"{what}: {_said(one)}, {len(one.values)} seeds"
        for what, (found, pair) in asked.items()
        for one in found
        if one.pair == pair
    ]
    return f"{'; '.join(said)}; exploratory, see the tables" if said else "not run"


def _said(one: Compared) -> str:
    return f"{one.over_seeds.mean:+.3f} {_ends(one.over_both)}"


def _ends(one: Difference) -> str:
    return interval((one.low, one.high))


@dataclass(frozen=True)
class Slope:
    """How a difference changes with what partners share.

    Attributes:
        pair: (first, second).
        over_seeds: slope of their difference over the share, one a seed.
        flip: p by sign-flips over seeds.
        seeds: how many.
    """

    pair: tuple[str, str]
    over_seeds: Difference
    flip: float
    seeds: int


def slopes(ledger: Ledger) -> list[Slope]:
    """Fit the differences over the shares, on the seeds that all shares have."""
    by_share = {share: finals(drawn_name(share), ledger, LAST_SHARES) for share in SHARED}
    found = []
    for pair in SHARING_PAIRS:
        seeds = sorted(set.intersection(*({*complete_seeds(rows, pair)} for rows in by_share.values())))
        if len(seeds) < 2:
            continue
        values = np.array([[_difference(rows, pair, seed) for seed in seeds] for rows in by_share.values()])
        slope = np.polyfit(SHARED, values, 1)[0]
        found.append(Slope(pair, paired_t(slope, np.zeros(len(seeds))), sign_flip(slope), len(seeds)))
    return found


def _difference(rows: ByMethod, pair: tuple[str, str], seed: int) -> float:
    first, second = (rows[method][seed].test_map for method in pair)
    assert first is not None
    assert second is not None
    return first - second


def slope_answer(ledger: Ledger) -> str:
    """Say whether AA gains where partners share more (H9)."""
    said = [
        f"{' - '.join(one.pair)}: slope {one.over_seeds.mean:+.3f} {_ends(one.over_seeds)} over shares of 0 to "
        f"{SHARED[-1]:g}, {one.seeds} seeds"
        for one in slopes(ledger)
    ]
    return f"on drawn sets, {'; '.join(said)}; exploratory, see the table" if said else "not run"


def share_differences(ledger: Ledger) -> dict[str, list[tuple[float, float, float]]]:
    """Give the differences over the shares: pair -> (share, mean, standard error over seeds), of two seeds and more."""
    found: dict[str, list[tuple[float, float, float]]] = {}
    for share in SHARED:
        rows = finals(drawn_name(share), ledger, LAST_SHARES)
        for pair in SHARING_PAIRS:
            values = [_difference(rows, pair, seed) for seed in complete_seeds(rows, pair)]
            if len(values) > 1:
                error = float(np.std(values, ddof=1) / np.sqrt(len(values)))
                found.setdefault(" - ".join(pair), []).append((share, float(np.mean(values)), error))
    return found


def share_table(ledger: Ledger) -> Table:
    """Lay out test MAP and differences by what partners share."""
    rows: list[tuple[Cell, ...]] = []
    for share in SHARED:
        own, precisions = finals(drawn_name(share), ledger, LAST_SHARES), ledger.precisions(LAST_SHARES)
        maps = [[row.test_map for row in own.get(one, {}).values() if row.test_map is not None]
                for one in (PLAIN, ANCHOR_AWARE, PARTNER)]  # fmt: skip
        if not any(maps):
            continue
        pairs = [compared(own, precisions, pair, complete_seeds(own, pair)) for pair in SHARING_PAIRS]
        rows.append((f"{share:g}", max(map(len, maps)), *(spread(one) if one else None for one in maps),
                     *(_said(one) if one else None for one in pairs)))  # fmt: skip
    columns = ("share", "seeds", PLAIN, ANCHOR_AWARE, PARTNER, *(" - ".join(pair) for pair in SHARING_PAIRS))
    return Table(columns, tuple(rows))


def slope_table(found: Sequence[Slope]) -> Table:
    """Lay out slopes: sign-flips, corrected within the table."""
    flips = holm({repr(one.pair): one.flip for one in found})
    rows = [
        (" - ".join(one.pair), one.seeds, f"{one.over_seeds.mean:+.3f}",
         _ends(one.over_seeds), f"{flips[repr(one.pair)]:.3f}",
         "yes" if flips[repr(one.pair)] < LEVEL else "no")
        for one in found
    ]  # fmt: skip
    return Table(
        ("difference", "seeds", "slope over the share", "95 %, seeds", "p sign-flip (Holm)", "found"), tuple(rows)
    )


def sections_of_set(name: str, ledger: Ledger) -> list[str]:
    """Write the sections of one data set, those that have runs."""
    parts = _titled("Readings under the paper's own sums (H6): rates, chosen by validation MAP",
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
        table = budget_table(rows)
        parts += [*_titled(title, table), _failures(rows)]
        if stage == FIFTH and table.rows:
            parts.append(f"![test MAP of every seed of all methods]({name}-methods.svg)")
    return parts


def section_of_shares(ledger: Ledger) -> list[str]:
    """Write what was found over the shares, where there are runs."""
    parts = []
    for share in SHARED:
        parts += _titled(f"Options at a share of {share:g}", option_table("shares-", drawn_name(share), ledger))
    parts += _titled("Differences by share", share_table(ledger))
    parts += ["![differences by share, with their standard errors](shares.svg)"] if share_differences(ledger) else []
    found = slopes(ledger)
    parts += [markdown(slope_table(found))] if found else []
    return [_SHARES, *parts] if parts else []


def _stage(title: str, words: str, rows: ByMethod, found: Sequence[Compared]) -> list[str]:
    table = final_table(rows, every_seed(rows))
    parts = [*_titled(title, table), words] if table.rows else []
    names = [" - ".join(one.pair) for one in found]
    parts += [markdown(exploratory_table(found, "difference", names))] if found else []
    return [*parts, _failures(rows)]


def _failures(rows: ByMethod) -> str:
    """Name the runs that failed, with the reason of the first."""
    failed = {method: [row.failed for row in own.values() if row.failed] for method, own in rows.items()}
    said = [f"{method}: {len(reasons)} ({reasons[0]})" for method, reasons in failed.items() if reasons]
    return f"Failed runs: {'; '.join(said)}." if said else ""


def _titled(title: str, table: Table) -> list[str]:
    return [f"### {title}", markdown(table)] if table.rows else []


_OWN = """MAP with a query's own partner alone relevant, the mean reciprocal rank; labels act nowhere."""
_SHARES = """## What partners share (H9)

Features of AVE's size, drawn once for each share: so much of the variance within a class do both modalities of a clip
have in common. Whether AA gains by it is the slope of its difference to the plain loss, one a seed."""
