"""Is one method better than another, or did it draw better seeds or easier queries?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtr, stdtrit

from aadml.feature_extraction.ground.errors import InputError

Values = NDArray[np.float64]
Pair = tuple[str, str]
LEVEL = 0.05
NEGLIGIBLE = 0.01
"""A difference of mean MAP that is called none."""
DRAWS = 2000
NORMAL = float(ndtri(1 - LEVEL / 2))


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
        error: its standard error; NaN from one seed.
        p: two-sided probability of a difference as large where there is none; NaN from one seed, which says nothing of
            other seeds.
        over: what was treated as drawn at random: "both" (seeds and queries), "seeds", or "one seed".
        low: lower end of the 95 % interval; NaN from one seed.
        high: upper end.
        equal: probability of a difference as small where the true one is `NEGLIGIBLE` or more (two one-sided tests);
            NaN from one seed.
        freedom: degrees of freedom of the interval.
        seeds: number of seeds.
    """

    mean: float
    error: float
    p: float
    over: str
    low: float = float("nan")
    high: float = float("nan")
    equal: float = float("nan")
    freedom: float = float("nan")
    seeds: int = 1

    @property
    def significant(self) -> bool:
        """Say whether it would seldom be so large by chance."""
        return self.p < LEVEL

    @property
    def equivalent(self) -> bool:
        """Say whether it is smaller than `NEGLIGIBLE`, beyond doubt."""
        return self.equal < LEVEL

    def reversed(self) -> "Difference":
        """Give second minus first."""
        return replace(self, mean=-self.mean, low=-self.high, high=-self.low)

    def at_level(self, level: float) -> "Difference":
        """Return the difference with the interval of another error level than 5 %."""
        if np.isnan(self.freedom):
            return self
        factor = float(stdtrit(self.freedom, 1 - level / 2) / stdtrit(self.freedom, 1 - LEVEL / 2))
        return replace(
            self, low=self.mean + factor * (self.low - self.mean), high=self.mean + factor * (self.high - self.mean)
        )


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


def paired_t(first: ArrayLike, second: ArrayLike) -> Difference:
    """Compare pairs of figures by Student's t test: right for few pairs, such as seeds.

    Args:
        first: (n,) at least two.
        second: (n,) of the same seeds, data and splits.
    """
    a, b = _checked(first, "first"), _checked(second, "second")
    if a.shape != b.shape or a.ndim != 1 or len(a) < 2:
        raise InputError(f"figures of shapes {a.shape} and {b.shape}; wanted two or more pairs")
    d = a - b
    error = float(d.std(ddof=1) / np.sqrt(len(d)))
    return _by_student(float(d.mean()), error, len(d) - 1, "seeds", len(d))


def seeds_and_queries(first: ArrayLike, second: ArrayLike, *, draws: int = DRAWS) -> Difference:
    """Compare two methods over seeds and queries at once, both taken as drawn at random.

    The differences d (s, q) are split as in a two-way analysis of variance; the variance of their mean is that of seeds
    over s, plus that of queries over q, plus the rest over s q, with Satterthwaite's degrees of freedom (Dorfman,
    Berbaum and Metz, 1992, compare readers and cases so). A negative part counts as zero. Two seeds say so little of
    their own variance that the larger p of this and of the seeds' t test stands, with its interval. The
    interval takes its shape from a bootstrap over seeds and queries together, its width from the standard error and
    Student's t: resampled alone, few seeds vary too little. From one seed nothing is tested.

    Args:
        first: (s, q) average precision of each query under each seed; every seed has the same queries, in one order.
        second: (s, q) of the same seeds and queries.
        draws: of the bootstrap; they change nothing but the interval.

    Raises:
        InputError: other shapes, or NaN.
    """
    a, b = _checked(first, "first"), _checked(second, "second")
    if a.shape != b.shape or a.ndim != 2 or a.shape[0] < 1 or a.shape[1] < 2:
        raise InputError(
            f"figures of shapes {a.shape} and {b.shape}; wanted (seeds, queries), equal, two queries or more"
        )
    d = a - b
    if len(d) == 1:
        nothing = float("nan")
        return Difference(float(d.mean()), nothing, nothing, "one seed")
    error, freedom = _error(d)
    found = _by_student(float(d.mean()), error, freedom, "both", len(d))
    low, high = _shape(d, draws)
    reach = (found.high - found.low) / 2 / NORMAL
    found = replace(found, low=found.mean + low * reach, high=found.mean + high * reach)
    if len(d) > 2:
        return found
    seeds = paired_t(a.mean(axis=1), b.mean(axis=1))
    found = replace(found, equal=max(found.equal, seeds.equal))
    if seeds.p <= found.p:
        return found
    return replace(found, p=seeds.p, low=seeds.low, high=seeds.high, freedom=seeds.freedom)


def _error(d: Values) -> tuple[float, float]:
    """Give the standard error of the mean of differences (s, q), both drawn at random, and its degrees of freedom."""
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
    below = sum(square**2 / freedom for square, freedom in parts)
    return float(np.sqrt(total / (s * q))), total**2 / below if below else 1.0


def _shape(d: Values, draws: int, seed: int = 0) -> tuple[float, float]:
    """Give the 2.5 % and 97.5 % quantiles of the mean of differences (s, q), in its standard deviations from the mean.

    Seeds and queries are drawn with replacement, each on its own (Owen's pigeonhole bootstrap, 2007).
    """
    s, q = d.shape
    generator, means = np.random.default_rng(seed), []
    step = max(1, (1 << 22) // q)
    for done in range(0, draws, step):
        count = min(step, draws - done)
        seeds = generator.multinomial(s, np.full(s, 1 / s), count)
        queries = generator.multinomial(q, np.full(q, 1 / q), count)
        means.append(((queries @ d.T) * seeds).sum(axis=1) / (s * q))
    drawn = np.concatenate(means)
    deviation = float(drawn.std())
    if deviation == 0:
        return -NORMAL, NORMAL
    low, high = (np.quantile(drawn, (LEVEL / 2, 1 - LEVEL / 2)) - d.mean()) / deviation
    return float(low), float(high)


def _by_student(mean: float, error: float, freedom: float, over: str, seeds: int) -> Difference:
    """Judge a mean by its standard error: is it other than 0, is it within `NEGLIGIBLE`, between where does it lie?"""
    reach = float(stdtrit(freedom, 1 - LEVEL / 2)) * error
    if error == 0:
        equal = 0.0 if abs(mean) < NEGLIGIBLE else 1.0
        return Difference(mean, error, 1.0 if mean == 0 else 0.0, over, mean, mean, equal, freedom, seeds)
    p = float(2 * stdtr(freedom, -abs(mean) / error))
    equal = float(stdtr(freedom, (abs(mean) - NEGLIGIBLE) / error))
    return Difference(mean, error, p, over, mean - reach, mean + reach, equal, freedom, seeds)


def holm(probabilities: Mapping[str, float]) -> dict[str, float]:
    """Correct the p of many comparisons (Holm, 1979): calling those at most 5 % significant errs once in 5 % of tables.

    Args:
        probabilities: comparison -> p; those that are NaN were not tested, stay so, and do not count.

    Returns:
        comparison -> corrected p, in the given order.
    """
    ordered = sorted((n for n, p in probabilities.items() if not np.isnan(p)), key=lambda name: probabilities[name])
    corrected = dict(probabilities)
    largest = 0.0
    for i, name in enumerate(ordered):
        largest = max(largest, min(1.0, (len(ordered) - i) * probabilities[name]))
        corrected[name] = largest
    return corrected


def corrected(found: Mapping[Pair, Difference]) -> dict[Pair, Difference]:
    """Correct the p of differences and of their equivalence, and the intervals, for the number of comparisons.

    The p are those of `holm`. The interval of a comparison has the error level of its step in that procedure (Serlin,
    1993): 5 % over the number of comparisons that are left at its step; from the first step that is not significant
    on, the level of that step.
    """
    p = holm({repr(pair): one.p for pair, one in found.items()})
    equal = holm({repr(pair): one.equal for pair, one in found.items()})
    levels = _levels({repr(pair): one.p for pair, one in found.items()})
    return {
        pair: replace(one.at_level(levels[repr(pair)]), p=p[repr(pair)], equal=equal[repr(pair)])
        for pair, one in found.items()
    }


def _levels(probabilities: Mapping[str, float]) -> dict[str, float]:
    """Return the error level of each comparison in the procedure of Holm; 5 % for untested comparisons."""
    ordered = sorted((n for n, p in probabilities.items() if not np.isnan(p)), key=lambda name: probabilities[name])
    levels = dict.fromkeys(probabilities, LEVEL)
    left = len(ordered)
    for name in ordered:
        levels[name] = LEVEL / left
        if probabilities[name] < levels[name]:
            left -= 1
    return levels


def compare(figures: Mapping[str, Sequence[ArrayLike]], pairs: Sequence[Pair]) -> dict[Pair, Difference]:
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
    return corrected({pair: seeds_and_queries(*(_stacked(figures, name) for name in pair)) for pair in pairs})


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
