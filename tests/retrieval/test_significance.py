import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t, ttest_1samp, ttest_rel

from aadml.retrieval.significance import (
    NEGLIGIBLE,
    _by_student,
    corrected,
    holm,
    mean_interval,
    paired_t,
    seeds_and_clips,
    spread,
)


def test_spread_is_mean_and_standard_deviation_of_a_sample():
    found = spread([1.0, 2.0, 4.0])
    assert (found.mean, found.count) == (pytest.approx(7 / 3), 3)
    assert found.sd == pytest.approx(np.sqrt(7 / 3))
    assert str(found) == "2.333 ± 1.528"
    assert str(spread([0.0, 1.0])) == "0.500 ± 0.707"
    assert str(spread([0.5])) == "0.500"


def test_paired_t_is_scipys():
    generator = np.random.default_rng(0)
    a, b = generator.random(7), generator.random(7)
    found = paired_t(a, b)
    assert found.p == pytest.approx(ttest_rel(a, b).pvalue)
    assert found.mean == pytest.approx((a - b).mean())
    assert paired_t(a, a).p == 1
    assert paired_t([2.0, 3.0], [1.0, 2.0]).p == 0


def test_the_interval_and_the_equivalence_of_paired_t_are_those_of_students_t():
    generator = np.random.default_rng(1)
    b = generator.random(9)
    a = b + generator.normal(0.002, 0.004, 9)
    found = paired_t(a, b)
    interval = ttest_1samp(a - b, 0).confidence_interval(0.95)
    assert (found.low, found.high) == (pytest.approx(interval.low), pytest.approx(interval.high))
    above = ttest_1samp(a - b, -NEGLIGIBLE, alternative="greater").pvalue
    below = ttest_1samp(a - b, NEGLIGIBLE, alternative="less").pvalue
    assert found.equal == pytest.approx(max(above, below))
    assert paired_t(b + 0.005, b).equal == pytest.approx(0, abs=1e-9)
    assert paired_t(b + 0.02, b).equal == pytest.approx(1)


def crossed(generator, seeds, queries, sd_seed, sd_query, sd_rest):
    return (
        generator.normal(0, sd_seed, (seeds, 1))
        + generator.normal(0, sd_query, (1, queries))
        + generator.normal(0, sd_rest, (seeds, queries))
    )


SDS = [(0.01, 0.05, 0.1), (0, 0.05, 0.1), (0.02, 0, 0.1), (0.02, 0.3, 0.05)]


@pytest.mark.parametrize("sds", SDS)
@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_methods_that_do_not_differ_are_told_apart_in_at_most_one_case_of_twenty(seeds, sds):
    generator = np.random.default_rng(2)
    zero = np.zeros((seeds, 80))
    draws = [crossed(generator, seeds, 80, *sds) for _ in range(600)]
    wrong = np.mean([seeds_and_clips(one, zero).significant for one in draws])
    assert wrong < 0.055 + 3 * np.sqrt(0.05 * 0.95 / 600)


@pytest.mark.parametrize("seeds", [3, 5, 8])
def test_a_planted_null_is_starred_in_five_percent_of_200_comparisons(seeds):
    generator = np.random.default_rng(7)
    stars = []
    for _ in range(200):
        # average precisions of two equal methods: queries are easy or hard for both, seeds lucky for either
        easy = generator.beta(2, 3, (1, 150))
        figures = [np.clip(easy + crossed(generator, seeds, 150, 0.01, 0.03, 0.08), 0, 1) for _ in ("first", "second")]
        stars.append(seeds_and_clips(*figures).significant)
    assert 0.02 <= np.mean(stars) <= 0.08


@pytest.mark.parametrize("sds", SDS)
def test_the_interval_covers_the_truth_in_about_nineteen_cases_of_twenty(sds):
    generator = np.random.default_rng(8)
    zero, truth = np.zeros((5, 60)), 0.03
    found = [seeds_and_clips(truth + crossed(generator, 5, 60, *sds), zero) for _ in range(300)]
    covered = np.mean([one.low <= truth <= one.high for one in found])
    assert covered > 0.95 - 3 * np.sqrt(0.05 * 0.95 / 300)
    assert np.mean([one.high - one.low for one in found]) < 6 * np.mean([one.error for one in found])


def analysis_of_variance(d):
    """Standard error of the mean and degrees of freedom, both factors drawn at random, as loops."""
    s, q = len(d), len(d[0])
    mean = sum(map(sum, d)) / (s * q)
    rows = [sum(row) / q for row in d]
    columns = [sum(row[j] for row in d) / s for j in range(q)]
    of_rows = q * sum((row - mean) ** 2 for row in rows) / (s - 1)
    of_columns = s * sum((column - mean) ** 2 for column in columns) / (q - 1)
    rests = [d[i][j] - rows[i] - columns[j] + mean for i in range(s) for j in range(q)]
    of_rest = sum(rest**2 for rest in rests) / ((s - 1) * (q - 1))
    if of_rest > min(of_rows, of_columns):
        larger, freedom = max((of_rows, s - 1), (of_columns, q - 1))
        return math.sqrt(larger / (s * q)), freedom
    total = of_rows + of_columns - of_rest
    below = of_rows**2 / (s - 1) + of_columns**2 / (q - 1) + of_rest**2 / ((s - 1) * (q - 1))
    return math.sqrt(total / (s * q)), total**2 / below


@given(seeds=st.integers(3, 6), queries=st.integers(2, 9), sds=st.sampled_from(SDS), draw=st.integers(0, 999))
def test_error_and_p_over_seeds_and_clips_are_those_of_the_analysis_of_variance(seeds, queries, sds, draw):
    d = 0.05 + crossed(np.random.default_rng(draw), seeds, queries, *sds)
    found = seeds_and_clips(d, np.zeros_like(d))
    error, freedom = analysis_of_variance(d.tolist())
    assert found.error == pytest.approx(error, rel=1e-9)
    assert found.p == pytest.approx(2 * t.sf(abs(d.mean()) / error, freedom), rel=1e-6)


def test_what_is_as_large_as_negligible_is_seldom_called_none():
    generator = np.random.default_rng(9)
    zero = np.zeros((5, 200))
    for truth, share in ((NEGLIGIBLE, (0, 0.09)), (0.0, (0.5, 1))):
        draws = (truth + crossed(generator, 5, 200, 0.002, 0.01, 0.05) for _ in range(300))
        called = np.mean([seeds_and_clips(one, zero).equivalent for one in draws])
        assert share[0] <= called <= share[1]


def test_what_one_lucky_seed_gives_is_not_called_significant_and_what_every_seed_gives_is():
    generator = np.random.default_rng(3)
    base = generator.random((5, 500))
    lucky = base + np.array([0.5, 0, 0, 0, 0])[:, None] + generator.normal(0, 0.01, base.shape)
    steady = base + 0.1 + generator.normal(0, 0.01, base.shape)
    assert paired_t(lucky.mean(0), base.mean(0)).p < 0.001
    assert seeds_and_clips(lucky, base).p > 0.2
    assert seeds_and_clips(steady, base).p < 1e-4


def test_one_seed_is_not_tested():
    generator = np.random.default_rng(4)
    a, b = generator.random((1, 300)) + 1, generator.random((1, 300))
    found = seeds_and_clips(a, b)
    assert found.mean == pytest.approx(float((a - b).mean()))
    assert found.over == "one seed"
    assert all(math.isnan(value) for value in (found.error, found.p, found.low, found.high, found.equal))
    assert not found.significant
    assert not found.equivalent


@pytest.mark.parametrize("count", [2, 40])
def test_the_interval_of_a_mean_is_students_within_0_and_1(count):
    values = np.random.default_rng(11).uniform(0.4, 0.6, count)
    interval = ttest_1samp(values, 0).confidence_interval(0.95)
    expected = max(interval.low, 0), min(interval.high, 1)
    assert mean_interval(values) == (pytest.approx(expected[0]), pytest.approx(expected[1]))
    assert mean_interval(values[:1]) == (values[0], values[0])
    assert mean_interval(np.array([0.0, 1.0])) == (0, 1)


def test_equal_figures_do_not_differ():
    same = np.random.default_rng(5).random((4, 9))
    found = seeds_and_clips(same, same)
    assert (found.p, found.equal, found.low, found.high) == (1, 0, 0, 0)


@given(st.dictionaries(st.text(max_size=3), st.floats(0, 1), max_size=6))
def test_holm_is_its_definition(probabilities):
    found = holm(probabilities)
    assert list(found) == list(probabilities)
    count = len(probabilities)
    ordered = sorted(probabilities.values())
    for name, p in probabilities.items():
        place = ordered.index(p)
        steps = [min(1.0, (count - i) * q) for i, q in enumerate(ordered) if i <= place or q == p]
        assert found[name] >= p
        assert max(steps[: place + 1]) <= found[name] <= max(steps)


def test_holm_known_values():
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06})
    found = holm({"a": 0.01, "untested": float("nan"), "b": 0.04})
    assert math.isnan(found.pop("untested"))
    assert found == pytest.approx({"a": 0.02, "b": 0.04})


def test_two_seeds_have_the_interval_of_the_test_that_their_p_is_of():
    generator = np.random.default_rng(3)
    first = generator.random((2, 200))
    second = first - np.array([[0.01], [0.04]]) + generator.normal(0, 0.02, first.shape)
    both, seeds = seeds_and_clips(first, second), paired_t(first.mean(axis=1), second.mean(axis=1))
    assert both.seeds == seeds.seeds == 2
    assert both.p == seeds.p > 0.05
    assert (both.low, both.high) == (pytest.approx(seeds.low), pytest.approx(seeds.high))
    assert both.low < 0 < both.high


@given(st.lists(st.floats(-6, 6), min_size=1, max_size=8))
def test_intervals_and_p_of_a_table_are_corrected_alike(statistics):
    differences = {
        (str(n), "baseline"): _by_student(statistic * 0.01, 0.01, 6, "seeds", 7)
        for n, statistic in enumerate(statistics)
    }
    for pair, difference in corrected(differences).items():
        assert difference.significant == (not difference.low <= 0 <= difference.high)
        assert difference.low <= differences[pair].low
        assert difference.high >= differences[pair].high
    (alone,) = corrected({("0", "baseline"): differences["0", "baseline"]}).values()
    assert alone == differences["0", "baseline"]


def test_the_intervals_of_a_table_have_the_levels_of_holm():
    differences = {(str(n), "b"): _by_student(mean, 0.01, 9, "seeds", 10) for n, mean in enumerate((0.06, 0.02, 0.0))}
    intervals = corrected(differences)
    for number, comparisons in enumerate((3, 2, 2)):
        reach = 0.01 * t.ppf(1 - 0.05 / comparisons / 2, 9)
        found = intervals[str(number), "b"]
        assert (found.low, found.high) == (pytest.approx(found.mean - reach), pytest.approx(found.mean + reach))


def test_differences_are_corrected_for_the_number_of_comparisons():
    generator = np.random.default_rng(6)
    base = generator.random((3, 40))
    figures = {"x": base, "y": base + generator.normal(0.02, 0.05, base.shape), "z": base + 0.3}
    pairs = [("y", "x"), ("z", "x"), ("z", "y")]
    alone = {pair: seeds_and_clips(figures[pair[0]], figures[pair[1]]) for pair in pairs}
    together = corrected(alone)
    for key in ("p", "equal"):
        expected = holm({str(pair): getattr(difference, key) for pair, difference in alone.items()})
        assert [getattr(together[pair], key) for pair in pairs] == list(expected.values())
    assert together["z", "x"].mean == pytest.approx(0.3)
