"""Is one method better than another, or did it draw better seeds or easier queries?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr

from feature_extraction.ground.errors import InputError

Values = NDArray[np.float64]
FLIPS = 10_000
EXHAUSTIVE = 14  # up to so many pairs all sign flips are tried


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation (n - 1 in the denominator; NaN for one value) of n values."""

    mean: float
    sd: float
    count: int

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.sd:.3f}" if self.count > 1 else f"{self.mean:.3f}"


@dataclass(frozen=True)
class Difference:
    """A paired difference.

    Attributes:
        mean: of the differences, first minus second.
        error: its standard error.
        p: two-sided probability of a difference as large where there is none.
        over: what was treated as drawn at random.
    """

    mean: float
    error: float
    p: float
    over: str


def spread(values: ArrayLike) -> Spread:
    """Summarize the figures of several seeds.

    Raises:
        InputError: there are none, or a NaN.
    """
    array = _checked(values, "values")
    if array.ndim != 1 or not len(array):
        raise InputError(f"values of shape {array.shape}; wanted one figure a seed")
    sd = float(array.std(ddof=1)) if len(array) > 1 else float("nan")
    return Spread(float(array.mean()), sd, len(array))


def paired_t(first: ArrayLike, second: ArrayLike, *, over: str = "seeds") -> Difference:
    """Compare pairs of figures by Student's t test: right for few pairs, such as seeds.

    Args:
        first: (n,) at least two.
        second: (n,) of the same seeds, data and splits.
        over: what the pairs are, for the record.
    """
    d = _differences(first, second)
    error = float(d.std(ddof=1) / np.sqrt(len(d)))
    return Difference(float(d.mean()), error, _t_probability(float(d.mean()), error, len(d) - 1), over)


def sign_flips(first: ArrayLike, second: ArrayLike, *, over: str = "queries", seed: int = 0) -> Difference:
    """Compare pairs of figures by flipping the signs of their differences: free of any assumption on their form.

    All flips up to 14 pairs, else 10,000 random ones, the observed one counted with them. Below 6 pairs no result can
    reach 5 %: use `paired_t` there.

    Args:
        first: (n,) at least two, such as the average precision of each query.
        second: (n,) of the same queries.
        over: what the pairs are, for the record.
        seed: of the random flips.
    """
    d = _differences(first, second)
    observed = abs(d.sum()) * (1 - 1e-12)  # equal sums are as large, whatever order they were added in
    if len(d) <= EXHAUSTIVE:
        signs = 1 - 2 * ((np.arange(2 ** len(d))[:, None] >> np.arange(len(d))) & 1)
        p = float((np.abs(signs @ d) >= observed).mean())
    else:
        generator, larger = np.random.default_rng(seed), 0
        step = max(1, (1 << 22) // len(d))
        for first_flip in range(0, FLIPS, step):
            signs = generator.integers(0, 2, (min(step, FLIPS - first_flip), len(d)), dtype=np.int8) * 2 - 1
            larger += int((np.abs(signs.astype(np.float64) @ d) >= observed).sum())
        p = (larger + 1) / (FLIPS + 1)
    return Difference(float(d.mean()), float(d.std(ddof=1) / np.sqrt(len(d))), p, over)


def seeds_and_queries(first: ArrayLike, second: ArrayLike) -> Difference:
    """Compare two methods over seeds and queries at once, both taken as drawn at random.

    The differences d (s, q) are split as in a two-way analysis of variance; the variance of their mean is that of seeds
    over s, plus that of queries over q, plus the rest over s q, with Satterthwaite's degrees of freedom (Dorfman,
    Berbaum and Metz, 1992, compare readers and cases so). A negative part counts as zero. With one seed only the
    queries are tested (`sign_flips`).

    Args:
        first: (s, q) average precision of each query under each seed; every seed has the same queries, in one order.
        second: (s, q) of the same seeds and queries.

    Raises:
        InputError: other shapes, or NaN.
    """
    a, b = _checked(first, "first"), _checked(second, "second")
    if a.shape != b.shape or a.ndim != 2 or a.shape[0] < 1 or a.shape[1] < 2:
        raise InputError(
            f"figures of shapes {a.shape} and {b.shape}; wanted (seeds, queries), equal, two queries or more"
        )
    if len(a) == 1:
        return sign_flips(a[0], b[0])
    d = a - b
    s, q = d.shape
    mean, by_seed, by_query = d.mean(), d.mean(axis=1), d.mean(axis=0)
    rest = d - by_seed[:, None] - by_query[None, :] + mean
    square_seed = q * float(by_seed.var(ddof=1))
    square_query = s * float(by_query.var(ddof=1))
    square_rest = float((rest**2).sum() / ((s - 1) * (q - 1)))
    parts = [(square_seed, s - 1), (square_query, q - 1), (square_rest, (s - 1) * (q - 1))]
    total = square_seed + square_query - square_rest
    if total < max(square_seed, square_query):  # one part came out negative: the larger square alone stands
        parts = [max(parts[:2])]
        total = parts[0][0]
    error = float(np.sqrt(total / (s * q)))
    below = sum(square**2 / freedom for square, freedom in parts)
    return Difference(
        float(mean), error, _t_probability(float(mean), error, total**2 / below if below else 1.0), "both"
    )


def holm(probabilities: Mapping[str, float]) -> dict[str, float]:
    """Correct the p of many comparisons (Holm, 1979): calling those at most 5 % significant errs once in 5 % of tables.

    Args:
        probabilities: comparison -> p.

    Returns:
        comparison -> corrected p, in the given order.
    """
    ordered = sorted(probabilities, key=lambda name: probabilities[name])
    corrected: dict[str, float] = {}
    largest = 0.0
    for i, name in enumerate(ordered):
        largest = max(largest, min(1.0, (len(ordered) - i) * probabilities[name]))
        corrected[name] = largest
    return {name: corrected[name] for name in probabilities}


def compare(
    figures: Mapping[str, Sequence[ArrayLike]], pairs: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], Difference]:
    """Compare pairs of methods over seeds and queries, their p corrected for the number of pairs.

    Args:
        figures: method -> for each seed the average precision of each query (q,).
        pairs: (first, second) names; the difference is first minus second.

    Returns:
        Pair -> difference with the corrected p.

    Raises:
        InputError: an unknown name, or seeds or queries that do not match.
    """
    for name in {name for pair in pairs for name in pair}:
        if name not in figures:
            raise InputError(f"no figures of '{name}'; there are: {', '.join(figures)}")
    found = {pair: seeds_and_queries(_stacked(figures, pair[0]), _stacked(figures, pair[1])) for pair in pairs}
    corrected = holm({repr(pair): difference.p for pair, difference in found.items()})
    return {pair: Difference(one.mean, one.error, corrected[repr(pair)], one.over) for pair, one in found.items()}


def _stacked(figures: Mapping[str, Sequence[ArrayLike]], name: str) -> Values:
    rows = [_checked(row, name) for row in figures[name]]
    if len({row.shape for row in rows}) != 1:
        raise InputError(
            f"{name}: the seeds have figures of {sorted({row.shape for row in rows})}; wanted one query set"
        )
    return np.stack(rows)


def _checked(values: ArrayLike, where: str) -> Values:
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise InputError(f"{where}: holds NaN or infinity; such figures cannot be compared")
    return array


def _differences(first: ArrayLike, second: ArrayLike) -> Values:
    a, b = _checked(first, "first"), _checked(second, "second")
    if a.shape != b.shape or a.ndim != 1 or len(a) < 2:
        raise InputError(f"figures of shapes {a.shape} and {b.shape}; wanted two or more pairs")
    return a - b


def _t_probability(mean: float, error: float, freedom: float) -> float:
    if error == 0:
        return 1.0 if mean == 0 else 0.0
    return float(2 * stdtr(freedom, -abs(mean) / error))
