"""Results of the experiment on partners that share more than their class (H9)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aadml.reports.tables import Cell, Table, markdown
from aadml.retrieval.significance import LEVEL, Difference, holm, paired_t, spread
from aadml.studies.results import signed
from scripts.experiments.anchor_aware.contenders import ANCHOR_AWARE, PARTNER, PLAIN
from scripts.experiments.anchor_aware.finals import LAST_SHARES, finals
from scripts.experiments.anchor_aware.ledger import Ledger
from scripts.experiments.anchor_aware.search import SHARES
from scripts.experiments.anchor_aware.sequential import sign_flip
from scripts.experiments.anchor_aware.sets import SHARED, drawn_name
from scripts.experiments.anchor_aware.statistics import ByMethod, compared, complete_seeds
from scripts.experiments.anchor_aware.tables import ends, every_seed, final_table, gain, option_table, titled

SHARING_PAIRS = ((ANCHOR_AWARE, PLAIN), (PARTNER, PLAIN))


@dataclass(frozen=True)
class Slope:
    """Change of a difference with the share of partners.

    Attributes:
        pair: (first, second).
        over_seeds: slope of their difference over the share, one value per seed.
        flip: p of random signs over seeds.
        seeds: number of seeds.
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
    """Return whether AA gains if partners share more (H9), as text."""
    said = [
        f"{' - '.join(one.pair)}: slope {signed(one.over_seeds.mean)} {ends(one.over_seeds)} over shares of 0 to "
        f"{SHARED[-1]:g}, {one.seeds} seeds"
        for one in slopes(ledger)
    ]
    if said:
        return f"on drawn sets, {'; '.join(said)}; exploratory, see the table"
    known = {share for points in share_differences(ledger).values() for share, *_ in points}
    return f"in part: {len(known)} of {len(SHARED)} shares, see the table" if known else "not run"


def share_differences(ledger: Ledger) -> dict[str, list[tuple[float, float, float]]]:
    """Return the differences over the shares, for two or more seeds: pair -> (share, mean, standard error)."""
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
    """Return the table of test MAP and differences by share."""
    rows: list[tuple[Cell, ...]] = []
    for share in SHARED:
        own, precisions = finals(drawn_name(share), ledger, LAST_SHARES), ledger.precisions(LAST_SHARES)
        maps = [[row.test_map for row in own.get(one, {}).values() if row.test_map is not None]
                for one in (PLAIN, ANCHOR_AWARE, PARTNER)]  # fmt: skip
        if not any(maps):
            continue
        pairs = [compared(own, precisions, pair, complete_seeds(own, pair)) for pair in SHARING_PAIRS]
        rows.append((f"{share:g}", max(map(len, maps)), *(spread(one) if one else None for one in maps),
                     *(gain(one) if one else None for one in pairs)))  # fmt: skip
    columns = ("share", "seeds", PLAIN, ANCHOR_AWARE, PARTNER, *(" - ".join(pair) for pair in SHARING_PAIRS))
    return Table(columns, tuple(rows))


def slope_table(found: Sequence[Slope]) -> Table:
    """Return the table of slopes, with p of random signs corrected within the table."""
    flips = holm({repr(one.pair): one.flip for one in found})
    rows = [
        (" - ".join(one.pair), one.seeds, signed(one.over_seeds.mean),
         ends(one.over_seeds), f"{flips[repr(one.pair)]:.3f}",
         "yes" if flips[repr(one.pair)] < LEVEL else "no")
        for one in found
    ]  # fmt: skip
    return Table(
        ("difference", "seeds", "slope over the share", "95 %, seeds", "p sign-flip (Holm)", "found"), tuple(rows)
    )


def section_of_shares(ledger: Ledger) -> list[str]:
    """Return the section on the shares; empty without runs."""
    parts = []
    for share in SHARED:
        name = drawn_name(share)
        rows = finals(name, ledger, LAST_SHARES)
        parts += titled(f"A share of {share:g}: options, chosen by validation MAP", option_table(SHARES, name, ledger))
        parts += titled(f"A share of {share:g}", final_table(rows, every_seed(rows)))
    parts += titled("Differences by share", share_table(ledger))
    parts += ["![differences by share, with their standard errors](shares.svg)"] if share_differences(ledger) else []
    found = slopes(ledger)
    parts += [markdown(slope_table(found))] if found else []
    return [_SHARES, *parts] if parts else []


_SHARES = """## What partners share (H9)

Features of AVE's size, drawn once for each share: so much of the variance within a class do both modalities of a clip
have in common. Whether AA gains by it is the slope of its difference to the plain loss, one a seed."""
