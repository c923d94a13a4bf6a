import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_rel

from aadml.retrieval.significance import compare, holm, paired_t, seeds_and_queries, sign_flips, spread
from feature_extraction.ground.errors import InputError


def test_spread_is_mean_and_standard_deviation_of_a_sample():
    found = spread([1.0, 2.0, 4.0])
    assert (found.mean, found.count) == (pytest.approx(7 / 3), 3)
    assert found.sd == pytest.approx(np.sqrt(7 / 3))
    assert str(found) == "2.333 ± 1.528"
    assert str(spread([0.5])) == "0.500"


def test_paired_t_is_scipys():
    generator = np.random.default_rng(0)
    a, b = generator.random(7), generator.random(7)
    found = paired_t(a, b)
    assert found.p == pytest.approx(ttest_rel(a, b).pvalue)
    assert found.mean == pytest.approx((a - b).mean())
    assert paired_t(a, a).p == 1
    assert paired_t([2.0, 3.0], [1.0, 2.0]).p == 0


def test_few_pairs_try_every_sign_flip():
    a, b = np.array([0.3, 0.1, 0.5, 0.2, 0.9]), np.array([0.1, 0.2, 0.1, 0.2, 0.3])
    d = a - b
    sums = [abs(sum(s * x for s, x in zip(signs, d, strict=True))) for signs in itertools.product((1, -1), repeat=5)]
    assert sign_flips(a, b).p == pytest.approx(np.mean([s >= abs(d.sum()) - 1e-12 for s in sums]))


def test_many_pairs_agree_with_the_t_test_on_normal_differences():
    generator = np.random.default_rng(1)
    b = generator.random(300)
    a = b + generator.normal(0.01, 0.1, 300)
    assert sign_flips(a, b).p == pytest.approx(ttest_rel(a, b).pvalue, abs=0.02)
    assert sign_flips(a, b) == sign_flips(a, b)
    assert sign_flips(b + 1, b).p == pytest.approx(1 / 10_001)


def crossed(generator, seeds, queries, sd_seed, sd_query, sd_rest):
    return (
        generator.normal(0, sd_seed, (seeds, 1))
        + generator.normal(0, sd_query, (1, queries))
        + generator.normal(0, sd_rest, (seeds, queries))
    )


@pytest.mark.parametrize("sds", [(0.01, 0.05, 0.1), (0, 0.05, 0.1), (0.02, 0, 0.1), (0.02, 0.3, 0.05)])
def test_methods_that_do_not_differ_are_told_apart_in_about_one_case_of_twenty(sds):
    generator = np.random.default_rng(2)
    zero = np.zeros((5, 80))
    wrong = np.mean([seeds_and_queries(crossed(generator, 5, 80, *sds), zero).p < 0.05 for _ in range(600)])
    assert wrong < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 600)


def test_what_one_lucky_seed_gives_is_not_called_significant_and_what_every_seed_gives_is():
    generator = np.random.default_rng(3)
    base = generator.random((5, 500))
    lucky = base + np.array([0.5, 0, 0, 0, 0])[:, None] + generator.normal(0, 0.01, base.shape)
    steady = base + 0.1 + generator.normal(0, 0.01, base.shape)
    assert sign_flips(lucky.mean(0), base.mean(0)).p < 0.001
    assert seeds_and_queries(lucky, base).p > 0.2
    assert seeds_and_queries(steady, base).p < 1e-4


def test_with_one_seed_the_queries_alone_are_tested():
    generator = np.random.default_rng(4)
    a, b = generator.random((1, 30)), generator.random((1, 30))
    assert seeds_and_queries(a, b) == sign_flips(a[0], b[0])


def test_equal_figures_do_not_differ():
    same = np.random.default_rng(5).random((4, 9))
    assert seeds_and_queries(same, same).p == 1


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


def test_compare_corrects_for_the_number_of_comparisons():
    generator = np.random.default_rng(6)
    base = generator.random((3, 40))
    figures = {"x": base, "y": base + generator.normal(0.02, 0.05, base.shape), "z": base + 0.3}
    pairs = [("y", "x"), ("z", "x"), ("z", "y")]
    alone = {pair: seeds_and_queries(figures[pair[0]], figures[pair[1]]) for pair in pairs}
    together = compare(figures, pairs)
    assert [together[pair].p for pair in pairs] == list(holm({str(p): d.p for p, d in alone.items()}).values())
    assert together["z", "x"].mean == pytest.approx(0.3)
    with pytest.raises(InputError, match="no figures of 'w'"):
        compare(figures, [("w", "x")])
    with pytest.raises(InputError, match="wanted one query set"):
        compare({"x": [[1.0, 2.0], [1.0]], "y": base}, [("x", "y")])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: spread([]), "one figure a seed"),
        (lambda: spread([1.0, float("nan")]), "holds NaN"),
        (lambda: paired_t([1.0], [2.0]), "two or more pairs"),
        (lambda: sign_flips([1.0, 2.0], [2.0]), "two or more pairs"),
        (lambda: seeds_and_queries(np.ones((2, 3)), np.ones((3, 2))), r"wanted \(seeds, queries\)"),
    ],
)
def test_figures_that_cannot_be_compared_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
