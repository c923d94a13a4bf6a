"""Statistics over seeds and test clips: spread, intervals, and tests of whether two methods differ."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr, stdtrit

Values = NDArray[np.float64]
Pair = tuple[str, str]
K = TypeVar("K")
LEVEL = 0.05
NEGLIGIBLE = 0.01
"""Largest difference of mean MAP that counts as negligible."""


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation of n values.

    The denominator of the variance is n - 1. The standard deviation of one value is NaN.
    """

    mean: float
    sd: float
    count: int

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.sd:.3f}" if self.count > 1 else f"{self.mean:.3f}"


@dataclass(frozen=True)
class Difference:
    """Paired difference of two methods. With one seed, all floats except `mean` are NaN.

    Attributes:
        mean: mean of the differences, first minus second.
        error: standard error of the mean.
        p: two-sided probability of a mean at least as far from 0 as `mean`, if the true difference is 0.
        over: random factors: "both" (seeds and clips), "seeds", or "one seed".
        low: lower end of the interval of the mean. The interval is a 95 % interval unless `at_level` changed the
            level.
        high: upper end of this interval.
        equal: p value of two one-sided tests: probability of a mean at most as far from 0 as `mean`, if the true
            absolute difference is at least `NEGLIGIBLE`.
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
        """Whether p < 0.05."""
        return self.p < LEVEL

    @property
    def equivalent(self) -> bool:
        """Whether the absolute difference is significantly smaller than `NEGLIGIBLE`."""
        return self.equal < LEVEL

    def at_level(self, level: float) -> "Difference":
        """Return the difference with its interval at significance level `level` instead of 5 %."""
        if np.isnan(self.freedom):
            return self
        factor = float(stdtrit(self.freedom, 1 - level / 2) / stdtrit(self.freedom, 1 - LEVEL / 2))
        return replace(
            self, low=self.mean + factor * (self.low - self.mean), high=self.mean + factor * (self.high - self.mean)
        )


def spread(values: ArrayLike) -> Spread:
    """Return the mean and standard deviation of the values (n,) of several seeds."""
    array = np.asarray(values, dtype=np.float64)
    sd = float(array.std(ddof=1)) if len(array) > 1 else float("nan")
    return Spread(float(array.mean()), sd, len(array))


def mean_interval(values: Values) -> tuple[float, float]:
    """Return the 95 % interval of the mean of `values`, by Student's t distribution.

    Args:
        values: (n,) pseudo-values of clips, or of clusters of clips.

    Returns:
        Lower and upper end. The interval is cut at 0 and at 1. If there is only one value, both ends equal this
        value.
    """
    mean = float(values.mean())
    if len(values) < 2:
        return mean, mean
    reach = float(stdtrit(len(values) - 1, 1 - LEVEL / 2) * values.std(ddof=1) / np.sqrt(len(values)))
    return max(mean - reach, 0.0), min(mean + reach, 1.0)


def paired_t(first: ArrayLike, second: ArrayLike) -> Difference:
    """Compare two methods by Student's paired t test.

    The test is valid for few pairs of values, such as one pair per seed.

    Args:
        first: (n,) values of the first method, at least two.
        second: (n,) values of the second method, for the same seeds, data and splits.
    """
    d = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    error = float(d.std(ddof=1) / np.sqrt(len(d)))
    return _by_student(float(d.mean()), error, len(d) - 1, "seeds", len(d))


def seeds_and_clips(first: Values, second: Values) -> Difference:
    """Compare two methods with seeds and test clips as random factors.

    The differences d (s, n) are decomposed by a two-way analysis of variance. The variance of the mean of d is a
    sum of three terms: the seed component over s, the clip component over n, and the residual over s n. The degrees
    of freedom are Satterthwaite's (as in Dorfman, Berbaum and Metz, 1992, for readers and cases). If the component
    of seeds or clips is negative, only the larger of the mean squares of seeds and of clips is used.

    Two seeds estimate the variance of seeds poorly. With two seeds, the t test over seeds is therefore computed
    too. Of these two tests, the test with the larger p value determines the p value and the interval. `equal` is
    the larger of the two values of `equal`. With one seed there is no test.

    Reference: Dorfman et al., Receiver operating characteristic rating analysis: generalization to the population of
    readers and patients with the jackknife method, Investigative Radiology 1992,
    https://doi.org/10.1097/00004424-199209000-00015

    Args:
        first: (s, n) pseudo-values of MAP of the first method for each seed and each clip (or cluster of clips);
            see `aadml.retrieval.results.DirectionResult.unit_values`. All seeds have the same clips in the same
            order.
        second: (s, n) pseudo-values of the second method for the same seeds and clips.
    """
    d = first - second
    if len(d) == 1:
        nan = float("nan")
        return Difference(float(d.mean()), nan, nan, "one seed")
    error, freedom = _error(d)
    test = _by_student(float(d.mean()), error, freedom, "both", len(d))
    if len(d) > 2:
        return test
    seeds = paired_t(first.mean(axis=1), second.mean(axis=1))
    test = replace(test, equal=max(test.equal, seeds.equal))
    if seeds.p <= test.p:
        return test
    return replace(test, p=seeds.p, low=seeds.low, high=seeds.high, freedom=seeds.freedom)


def _error(d: Values) -> tuple[float, float]:
    """Return the standard error of the mean of differences (s, n), and the degrees of freedom of this error.

    Seeds and clips are random factors.
    """
    s, q = d.shape
    mean, by_seed, by_query = d.mean(), d.mean(axis=1), d.mean(axis=0)
    rest = d - by_seed[:, None] - by_query[None, :] + mean
    square_seed = q * float(by_seed.var(ddof=1))
    square_query = s * float(by_query.var(ddof=1))
    square_rest = float((rest**2).sum() / ((s - 1) * (q - 1)))
    parts = [(square_seed, s - 1), (square_query, q - 1), (square_rest, (s - 1) * (q - 1))]
    total = square_seed + square_query - square_rest
    if total < max(square_seed, square_query):  # a negative component: only the larger square counts
        parts = [max(parts[:2])]
        total = parts[0][0]
    below = sum(square**2 / freedom for square, freedom in parts)
    return float(np.sqrt(total / (s * q))), total**2 / below if below else 1.0


def _by_student(mean: float, error: float, freedom: float, over: str, seeds: int) -> Difference:
    """Return the t tests of a mean against 0 and against `NEGLIGIBLE`, and its interval."""
    reach = float(stdtrit(freedom, 1 - LEVEL / 2)) * error
    if error == 0:
        equal = 0.0 if abs(mean) < NEGLIGIBLE else 1.0
        return Difference(mean, error, 1.0 if mean == 0 else 0.0, over, mean, mean, equal, freedom, seeds)
    p = float(2 * stdtr(freedom, -abs(mean) / error))
    equal = float(stdtr(freedom, (abs(mean) - NEGLIGIBLE) / error))
    return Difference(mean, error, p, over, mean - reach, mean + reach, equal, freedom, seeds)


def holm(probabilities: Mapping[K, float]) -> dict[K, float]:
    """Correct p values of many comparisons (Holm, 1979).

    At level 5 %, the probability of at least one false positive among the comparisons is then at most 5 %.

    Reference: Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 1979, https://www.jstor.org/stable/4615733

    Args:
        probabilities: comparison -> p value; NaN for an untested comparison. A NaN is returned unchanged, and an
            untested comparison does not count.

    Returns:
        comparison -> corrected p value, in the order of `probabilities`.
    """
    corrected, largest = dict(probabilities), 0.0
    for name, left in _steps(probabilities):
        largest = max(largest, min(1.0, left * probabilities[name]))
        corrected[name] = largest
    return corrected


def _steps(probabilities: Mapping[K, float]) -> list[tuple[K, int]]:
    """Return the tested comparisons by increasing p value, each with the number of comparisons left.

    The number counts the comparison and all later comparisons.
    """
    ordered = sorted((name for name, p in probabilities.items() if not np.isnan(p)), key=lambda n: probabilities[n])
    return list(zip(ordered, range(len(ordered), 0, -1), strict=True))


def corrected(differences: Mapping[Pair, Difference]) -> dict[Pair, Difference]:
    """Correct p values and intervals for the number of comparisons.

    The p values of the difference and of the equivalence test are corrected by `holm`. An interval has the significance
    level of its step in Holm's procedure (Serlin, 1993): 5 % divided by the number of comparisons left. From the first
    step that is not significant, the level stays the same.
    """
    alone = {pair: difference.p for pair, difference in differences.items()}
    p, equal = holm(alone), holm({pair: difference.equal for pair, difference in differences.items()})
    steps = _steps(alone)
    least = len(steps) - sum(value < LEVEL for value in p.values())
    levels = {pair: LEVEL / max(left, least) for pair, left in steps}
    return {
        pair: replace(difference.at_level(levels.get(pair, LEVEL)), p=p[pair], equal=equal[pair])
        for pair, difference in differences.items()
    }
