"""Answer on the effect of R5 by the rule of docs/lab/experiments/r5_plan.md; only complete seeds are compared."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import stats

from aadml.reports.tables import Table, markdown
from aadml.retrieval.significance import LEVEL, holm
from scripts.experiments.anchor_aware.clip_groups import group_table
from scripts.experiments.anchor_aware.finals import finals
from scripts.experiments.anchor_aware.ledger import Ledger
from scripts.experiments.anchor_aware.r5 import NO_PROXY, PLANNED, PLUG_INS, R5, STAGE
from scripts.experiments.anchor_aware.statistics import ByMethod, complete_seeds
from scripts.experiments.anchor_aware.tables import clip_table, titled

EQUAL = 0.008
"""Half of the gain: a control whose difference from R5 is within this margin reproduces R5."""
FIRST, SECOND = PLANNED
"""Deciding set, and set that may contradict it."""
OTHERS = (NO_PROXY, *PLUG_INS)
"""Rows that R5 is compared with."""


@dataclass(frozen=True)
class Against:
    """R5 minus a row, over seeds.

    Attributes:
        mean: mean difference of test MAP.
        low: lower end of Student's 95 % interval.
        high: upper end.
        p: two-sided, Student's paired t.
        p_equal: larger p of the two one-sided tests that the difference is within `EQUAL`.
    """

    mean: float
    low: float
    high: float
    p: float
    p_equal: float

    @classmethod
    def of(cls, values: np.ndarray) -> "Against":
        """Test paired differences (n,)."""
        known = stats.ttest_1samp(values, 0)
        low, high = known.confidence_interval(1 - LEVEL)
        above = stats.ttest_1samp(values, -EQUAL, alternative="greater").pvalue
        below = stats.ttest_1samp(values, EQUAL, alternative="less").pvalue
        return cls(float(values.mean()), float(low), float(high), float(known.pvalue), float(max(above, below)))


def differences(rows: ByMethod, count: int) -> dict[str, Against]:
    """Return R5 minus every other row; empty before `count` seeds are complete."""
    seeds = complete_seeds(rows, [R5, *OTHERS])
    if len(seeds) < count:
        return {}
    own = {name: np.array([rows[name][seed].test_map for seed in seeds]) for name in (R5, *OTHERS)}
    return {name: Against.of(own[R5] - own[name]) for name in OTHERS}


def states(found: Mapping[str, Against]) -> dict[str, str]:
    """Return the result of the rule for each control: "reproduces" R5, "loses" the gain, or "open"."""
    corrected = holm({name: found[name].p for name in PLUG_INS})
    equal = holm({name: found[name].p_equal for name in PLUG_INS})
    return {
        name: "reproduces" if equal[name] < LEVEL else "loses" if _above(found[name], corrected[name]) else "open"
        for name in PLUG_INS
    }


def answer(by_set: Mapping[str, Mapping[str, Against]]) -> str:
    """Return the sentence that the rule allows."""
    if not all(by_set.get(name) for name in PLANNED):
        return "No conclusion: not all planned seeds are finished."
    gain = by_set[FIRST][NO_PROXY]
    if not _above(gain, gain.p):
        return f"R5 has no gain to explain on {FIRST}: minus no proxy {gain.mean:+.4f}, p = {gain.p:.3f}."
    said, other = states(by_set[FIRST]), by_set[SECOND]
    same, lost = ([name for name, state in said.items() if state == wanted] for wanted in ("reproduces", "loses"))
    corrected = holm({name: other[name].p for name in PLUG_INS})
    objecting = [
        name
        for name in PLUG_INS
        if corrected[name] < LEVEL and np.sign(other[name].mean) == -np.sign(by_set[FIRST][name].mean)
    ]
    if not same or not lost or objecting:
        return "No explanation is supported by the rule of the plan."
    return f"What {' and '.join(same)} keep and {' and '.join(lost)} lack explains the gain of R5."


def r5_section(ledger: Ledger) -> list[str]:
    """Return the section of the page; empty before the first run."""
    by_set, parts = {}, list[str]()
    for name, planned in PLANNED.items():
        rows = finals(name, ledger, STAGE)
        if not rows:
            continue
        by_set[name] = differences(rows, planned.seeds)
        done = len(complete_seeds(rows, [R5, *OTHERS]))
        parts.append(f"{name}: {done} of {planned.seeds} seeds of all eight rows are finished.")
        if by_set[name]:
            parts.append(markdown(_table(by_set[name])))
            seeds, pairs = complete_seeds(rows, [R5, *OTHERS]), [(R5, other) for other in OTHERS]
            parts += titled(f"{name}, over test clips in both roles", clip_table(name, ledger, seeds, pairs, STAGE))
            parts += titled(f"{name}, by person and container", group_table(name, ledger, seeds, pairs, STAGE))
    return ["## What reading R5 does", "By [the plan](r5_plan.md). " + answer(by_set), *parts] if parts else []


def _table(found: Mapping[str, Against]) -> Table:
    corrected, said = holm({name: found[name].p for name in PLUG_INS}), states(found)
    rows = tuple(
        (name, f"{one.mean:+.4f}", f"[{one.low:+.4f}, {one.high:+.4f}]", f"{corrected.get(name, one.p):.4f}",
         f"{one.p_equal:.4f}", said.get(name, "reference"))
        for name, one in found.items()
    )  # fmt: skip
    return Table(
        ("R5 minus", "mean", "95 %, seeds", "p (Holm over controls)", f"p of equality within {EQUAL}", "rule"), rows
    )


def _above(one: Against, p: float) -> bool:
    return one.mean > 0 and p < LEVEL
