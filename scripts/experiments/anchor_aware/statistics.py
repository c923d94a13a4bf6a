"""Statistics of the experiment's rows: paired differences over seeds and queries, looks, power, and the verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import nctdtr, stdtrit

from aadml.feature_extraction.ground.errors import InputError
from aadml.retrieval.significance import LEVEL, Difference, Pair, holm, paired_t
from scripts.experiments.anchor_aware.contenders import ANCHOR_AWARE, CONTENDERS, MEMORY, PLAIN
from scripts.experiments.anchor_aware.finals import LOOKS, SECOND, finals
from scripts.experiments.anchor_aware.ledger import Ledger, Precisions, Row
from scripts.experiments.anchor_aware.plan_interval import seeds_and_queries
from scripts.experiments.anchor_aware.sequential import LOOK_LEVEL, look_interval, sign_flip

MARGIN = 0.02
"""An interval of AA - plain that exceeds this bound leaves the question open."""
PRIMARY: Sequence[Pair] = ((ANCHOR_AWARE, PLAIN), (ANCHOR_AWARE, MEMORY), (MEMORY, PLAIN))
"""H1, H2, and the comparison of the memory alone with the plain loss."""

ByMethod = Mapping[str, Mapping[int, Row]]


@dataclass(frozen=True)
class Compared:
    """Two methods on their common seeds.

    Attributes:
        pair: (first, second); differences are first minus second.
        values: (n,) difference of test MAP on each seed.
        over_seeds: Student's paired t test over seeds.
        over_both: test over seeds and queries.
        flip: p of random signs over seeds.
    """

    pair: Pair
    values: tuple[float, ...]
    over_seeds: Difference
    over_both: Difference
    flip: float

    @property
    def deviation(self) -> float:
        """Standard deviation of the paired difference over seeds."""
        return float(np.std(self.values, ddof=1))

    @property
    def at_look(self) -> tuple[float, float]:
        """Interval over seeds at the level of a look."""
        return look_interval(self.over_seeds, len(self.values))

    @property
    def sign(self) -> int:
        """Sign of the decision of a look: 1 above, -1 below, 0 neither."""
        return int(np.sign(self.over_seeds.mean)) if self.over_seeds.p < LOOK_LEVEL else 0

    def power(self, true: float) -> float:
        """Return the power of Student's t test over these seeds at 5 % for a true difference, at this deviation."""
        return power_of(true, self.deviation, len(self.values))


def power_of(true: float, deviation: float, count: int) -> float:
    """Return the power of a two-sided paired t test at 5 %.

    Args:
        true: true difference.
        deviation: standard deviation of the paired difference over seeds.
        count: number of seeds.
    """
    if deviation == 0:
        return 1.0
    reach, shift = float(stdtrit(count - 1, 1 - LEVEL / 2)), true / deviation * np.sqrt(count)
    found = float(1 - nctdtr(count - 1, shift, reach) + nctdtr(count - 1, shift, -reach))
    return 1.0 if np.isnan(found) else found  # the series does not converge for large differences


def complete_seeds(rows: ByMethod, methods: Sequence[str] = tuple(CONTENDERS)) -> list[int]:
    """Return the seeds on which all of some methods have a test MAP."""
    by_method = [{seed for seed, row in rows.get(one, {}).items() if row.test_map is not None} for one in methods]
    return sorted(set.intersection(*by_method)) if by_method else []


def seeds_of_look(rows: ByMethod) -> list[int]:
    """Return the seeds of the last complete look; before the first look, all complete seeds."""
    seeds = complete_seeds(rows)
    done = [look for look in LOOKS if look <= len(seeds)]
    return seeds[: done[-1]] if done else seeds


def compared(rows: ByMethod, precisions: Precisions, pair: Pair, seeds: Sequence[int]) -> Compared | None:
    """Compare two methods on some seeds.

    Args:
        rows: rows that include both methods on all of these seeds.
        precisions: average precisions of these runs.
        pair: (first, second).
        seeds: compared seeds.

    Returns:
        None for fewer than two seeds.

    Raises:
        InputError: the rows are of test sets of different size.
    """
    if len(seeds) < 2:
        return None
    first, second = ([rows[name][seed] for seed in seeds] for name in pair)
    maps = [np.array([row.test_map for row in side], dtype=np.float64) for side in (first, second)]
    queries = [[precisions[row.key] for row in side] for side in (first, second)]
    if len(sizes := {one.size for side in queries for one in side}) > 1:
        raise InputError(
            f"{first[0].data_set}: the rows of {' and '.join(pair)} are of different test sets, of "
            f"{' and '.join(map(str, sorted(sizes)))} queries; take the rows of other data out of the CSV files"
        )
    values = tuple((maps[0] - maps[1]).tolist())
    both = [np.stack(side) for side in queries]
    over_both = _over_both(both[0].tobytes(), both[1].tobytes(), both[0].shape)
    return Compared(pair, values, paired_t(*maps), over_both, _flip(values))


@lru_cache(maxsize=256)
def _over_both(first: bytes, second: bytes, shape: tuple[int, int]) -> Difference:
    """Compare float64 precisions over seeds and queries; cached, because a page uses each costly result repeatedly."""
    return seeds_and_queries(*(np.frombuffer(side).reshape(shape) for side in (first, second)))


@lru_cache(maxsize=256)
def _flip(values: tuple[float, ...]) -> float:
    return sign_flip(values)


def by_look(name: str, ledger: Ledger) -> list[Compared]:
    """Return the primary comparisons on a data set, on the seeds of its last look."""
    rows, precisions = finals(name, ledger), ledger.precisions(SECOND)
    seeds = seeds_of_look(rows)
    found = [compared(rows, precisions, pair, seeds) for pair in PRIMARY]
    return [one for one in found if one is not None]


def against(base: str, rows: ByMethod, precisions: Precisions) -> list[Compared]:
    """Compare every method of some rows with the method `base`, method minus `base`, on their common seeds."""
    pairs = [(method, base) for method in rows if method != base and base in rows]
    found = [compared(rows, precisions, pair, complete_seeds(rows, pair)) for pair in pairs]
    return [one for one in found if one is not None]


def corrected_flips(found: Sequence[Compared]) -> dict[Pair, float]:
    """Correct the p values of random signs for the number of comparisons in one table (Holm)."""
    p = holm({repr(one.pair): one.flip for one in found})
    return {one.pair: p[repr(one.pair)] for one in found}


def verdict(found: Sequence[Compared]) -> str:
    """Return the decision of the looks on one data set; "AA helps" is a verdict on both primary sets, see `overall`."""
    if not found or len(found[0].values) < LOOKS[0]:
        return "no verdict: the first look is not complete"
    plain, memory, _ = found
    if plain.sign > 0 and memory.sign > 0:
        return "AA is above the plain loss and above the memory"
    if plain.over_both.high > MARGIN and not _memory_helps(found):
        return f"undecided: a gain by AA of up to {plain.over_both.high:.3f} is not excluded"
    return _without_help(found)


def _memory_helps(found: Sequence[Compared]) -> bool:
    _, memory, bank = found
    return bank.sign > 0 and memory.sign <= 0


def _without_help(found: Sequence[Compared]) -> str:
    """Return the plan's second or third verdict on a set, for sets where "AA helps" does not hold."""
    if _memory_helps(found):
        return "a memory helps, not AA"
    plain = found[0]
    bound = max(plain.over_both.high, 0.0)
    return f"AA does not help by more than {bound:.3f} (power to find 0.01: {plain.power(0.01):.2f})"


def overall(found: Mapping[str, Sequence[Compared]]) -> str:
    """Return the verdict on the primary sets together, by the rules of docs/lab/experiments/plan.md to the letter.

    "AA helps" needs AA - plain and AA - XBM both significantly above zero on one set, each corrected for the number of
    sets (Holm), and neither mean below zero on any other set.

    Args:
        found: primary set -> its primary comparisons.
    """
    if any(not one or len(one[0].values) < LOOKS[0] for one in found.values()):
        return "open: the first look is not complete on every primary set"
    p = [holm({name: one[place].over_seeds.p for name, one in found.items()}) for place in (0, 1)]
    above = [
        name
        for name, one in found.items()
        if all(one[place].over_seeds.mean > 0 and p[place][name] < LOOK_LEVEL for place in (0, 1))
    ]
    below = [
        f"{' - '.join(difference.pair)} is below zero on {name} ({difference.over_seeds.mean:+.2g})"
        for name, one in found.items()
        for difference in one[:2]
        if difference.over_seeds.mean < 0
    ]
    if above and not below:
        return f"AA helps ({', '.join(above)})"
    parts = [f'not "AA helps", as {" and ".join(below)}'] if above else []
    if all(one[0].over_both.high > MARGIN and not _memory_helps(one) for one in found.values()):
        return "; ".join([*parts, "undecided"])
    return "; ".join([*parts, *(f"{name}: {_without_help(one)}" for name, one in found.items())])
