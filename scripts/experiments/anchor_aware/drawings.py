"""Figures of the experiment's page: compared methods with every seed as a dot, and differences over the shares."""

from collections.abc import Mapping, Sequence

import numpy as np

from aadml.retrieval.significance import Values
from aadml.studies.sweep_figures import difference_curve, drawn, spread_dots
from scripts.experiments.anchor_aware.answers import Findings
from scripts.experiments.anchor_aware.contenders import ANCHOR_AWARE, CONTENDERS
from scripts.experiments.anchor_aware.finals import finals
from scripts.experiments.anchor_aware.ledger import Ledger, Row
from scripts.experiments.anchor_aware.shares import share_differences
from scripts.experiments.anchor_aware.shipped import FIFTH
from scripts.experiments.anchor_aware.statistics import complete_seeds
from scripts.experiments.anchor_aware.tables import chance_of

SHARES = "shares.svg"


def drawings(name: str, found: Findings, ledger: Ledger) -> dict[str, str]:
    """Draw the figures of a data set: kind -> SVG; empty for fewer than two seeds.

    The figures are the contenders' test MAPs and paired differences, and the test MAPs of all methods at their own
    schedules.
    """
    return _of_contenders(found) | _of_methods(finals(name, ledger, FIFTH))


def _of_contenders(found: Findings) -> dict[str, str]:
    if not found.primary:
        return {}
    maps = {method: _maps(found.rows[method], found.seeds) for method in CONTENDERS}
    differences = {" - ".join(one.pair): np.array(one.values) for one in found.primary}
    differences |= {
        f"AA - {one.pair[1].removeprefix(f'{ANCHOR_AWARE}, ')}": np.array(one.values) for one in found.controls
    }
    return {
        "map": drawn(spread_dots, maps, x="test MAP", marks={}),
        "differences": drawn(spread_dots, differences, x="difference of test MAP", marks={"no difference": 0.0}),
    }


def _of_methods(rows: Mapping[str, Mapping[int, Row]]) -> dict[str, str]:
    maps = {method: _maps(rows[method], complete_seeds(rows, [method])) for method in rows}
    known = dict(sorted(((method, one) for method, one in maps.items() if len(one)), key=lambda pair: -pair[1].mean()))
    chance = chance_of(rows)
    marks = {} if chance is None else {"chance": chance}
    return {"methods": drawn(spread_dots, known, x="test MAP", marks=marks)} if known else {}


def _maps(rows: Mapping[int, Row], seeds: Sequence[int]) -> Values:
    return np.array([rows[seed].test_map for seed in seeds], dtype=np.float64)


def share_drawing(ledger: Ledger) -> str:
    """Draw the differences over the shares; "" for fewer than two seeds."""
    lines = share_differences(ledger)
    return drawn(difference_curve, lines, x="shared part", y="difference of test MAP") if lines else ""
