"""Probabilities: a perfect scorer stays inside its band, a curve never falls, a threshold keeps its word."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aadml.search.calibration import (
    Calibration,
    Curve,
    Sample,
    auroc,
    band,
    calibrate,
    calibration_error,
    curve_of,
    held_out,
    wilson,
)


def drawn(queries, seed, steepness=2.0, hits=10):
    """Hits whose chance of fitting is a logistic function of their score, which falls with the rank."""
    generator = np.random.default_rng(seed)
    scores = -np.sort(-generator.normal(size=(queries, hits)), axis=1)
    return Sample(scores, generator.random(scores.shape) < 1 / (1 + np.exp(-steepness * scores)))


def test_the_calibration_error_is_its_definition():
    generator = np.random.default_rng(0)
    chances, fits = generator.random(500), generator.random(500) < 0.3
    error = 0.0
    for low in np.arange(10) / 10:
        own = (chances >= low) & (chances < low + 0.1)
        if own.any():
            error += own.sum() / 500 * abs(chances[own].mean() - fits[own].mean())
    assert calibration_error(chances, fits) == pytest.approx(error)
    assert calibration_error(np.array([1.0, 0.0]), np.array([True, False])) == 0
    assert calibration_error(np.zeros(0), np.zeros(0, dtype=bool)) == 0


def test_a_perfect_scorer_stays_inside_its_band_in_95_of_100_draws():
    generator = np.random.default_rng(1)
    chances = generator.random(228)
    limit = band(chances)
    inside = [calibration_error(chances, generator.random(228) < chances) <= limit for _ in range(1000)]
    assert 0.93 <= np.mean(inside) <= 0.97
    assert limit == pytest.approx(0.09719228849594737, rel=1e-9)  # an error of this size says nothing at 228 clips


def test_a_curve_is_its_formula():
    scores = np.array([[0.9, 0.4], [0.5, 0.5]])
    logit = np.log(scores / (1 - scores))
    for kind, x in (("logistic", scores), ("logistic of log-odds", logit)):
        expected = 1 / (1 + np.exp(-(2.0 * x - 0.5 * x[:, :1] + 0.25)))
        np.testing.assert_allclose(Curve(kind, 2.0, -0.5, 0.25)(scores), expected, rtol=1e-12)
    certain = Curve("logistic of log-odds", by_score=1.0)(np.array([1.0, 0.0]))
    np.testing.assert_allclose(certain, [1 - 1e-6, 1e-6], rtol=1e-9)
    assert Curve("posterior", margin=0.2)(scores).tolist() == [[0.8, 0.4], [0.5, 0.5]]


def test_a_fitted_curve_is_calibrated_on_new_clips():
    train, test = drawn(1500, 0), drawn(400, 1)
    chances = curve_of(train, "logistic")(test.scores)
    for rank in (0, 4, 9):
        assert calibration_error(chances[:, rank], test.fits[:, rank]) <= band(chances[:, rank])


def test_questions_that_nothing_answers_well_are_told_from_others_by_their_best_score():
    def questions(seed):  # of half of them no item is of the class: equal scores mean less there
        generator = np.random.default_rng(seed)
        hard = np.arange(1000) % 2 == 1
        scores = -np.sort(-generator.normal(size=(1000, 10)), axis=1) - hard[:, None]
        return Sample(scores, ~hard[:, None] & (generator.random(scores.shape) < 1 / (1 + np.exp(-2 * scores))))

    train, test = questions(0), questions(1)
    curve = curve_of(train, "logistic")
    assert curve.by_best > 0.5
    alone = Curve("logistic", curve.by_score, 0.0, curve.level)(test.scores)
    assert ((curve(test.scores) - test.fits) ** 2).mean() < 0.9 * ((alone - test.fits) ** 2).mean()
    assert calibration_error(curve(test.scores)[:, 0], test.fits[:, 0]) < 0.06


@settings(max_examples=25)
@given(
    queries=st.integers(10, 60),
    seed=st.integers(0, 1000),
    kind=st.sampled_from(["logistic", "logistic of log-odds", "posterior"]),
    share=st.sampled_from([0.0, 1.0, None]),
)
@example(queries=10, seed=68, kind="logistic of log-odds", share=None)  # hits that separate: steep beyond all bounds
def test_a_curve_never_falls_and_nothing_is_certain(queries, seed, kind, share):
    found = drawn(queries, seed, steepness=seed % 7 - 3)
    fits = found.fits if share is None else np.full_like(found.fits, share)
    found = Sample(found.scores, fits)
    chances = curve_of(found, kind)(np.linspace(5, -5, 101)[None])  # of one question, best first
    assert (np.diff(chances) <= 1e-12).all()
    assert 0 < chances.min() <= chances.max() < 1
    assert np.isfinite(held_out(found, kind)).all()


def test_hits_that_all_fit_or_never_do_have_the_probability_of_the_rule_of_succession():
    scores = drawn(4, 0, hits=5).scores
    for kind in ("logistic", "logistic of log-odds"):
        for fits, expected in ((True, 21 / 22), (False, 1 / 22)):
            curve = curve_of(Sample(scores, np.full((4, 5), fits)), kind)
            np.testing.assert_allclose(curve(scores), expected, rtol=1e-12)
            assert curve.margin == 1 / 22


def test_no_probability_is_nearer_to_certainty_than_the_margin():
    scores = np.array([[2.0, 1.0, -1.0], [0.5, -0.5, -2.0]])
    assert curve_of(Sample(scores, scores > 0), "posterior")(scores).tolist() == [
        [7 / 8, 7 / 8, 1 / 8],
        [0.5, 1 / 8, 1 / 8],
    ]


def test_a_score_that_speaks_against_a_hit_has_no_weight():
    found = drawn(300, 0, steepness=-2.0)
    curve = curve_of(found, "logistic")
    assert curve.by_score == 0
    assert curve.by_best < 0
    chances = curve(found.scores)
    assert (chances == chances[:, :1]).all()
    assert (chances * found.weights).sum() == pytest.approx((found.fits * found.weights).sum(), rel=1e-3)


def fitted(found, **options):
    options = {"posteriors": False, "relevance": "class", "gallery": 100, **options}
    return calibrate(("audio",), "visual", found, **options)


def test_a_threshold_keeps_its_word_on_new_clips():
    train, test = drawn(1500, 2, 1.0), drawn(1000, 3, 1.0)
    one = fitted(train, precision=0.9)
    chances = one.probability(test.scores[:, :1])[:, 0]
    over = chances >= one.threshold
    low, high = wilson(float(test.fits[over, 0].mean()), int(over.sum()))
    assert low <= one.reached[0] <= high or test.fits[over, 0].mean() >= 0.9
    assert one.reached[1] <= one.reached[0] <= one.reached[2]
    assert 0.05 < over.mean() < 1
    assert one.answered == pytest.approx(over.mean(), abs=0.1)


@pytest.mark.parametrize("kind", ["logistic", "logistic of log-odds"])
def test_the_calibration_of_a_sample_stays_the_same(kind):
    hits = drawn(60, 2, 1.0)
    scores = hits.scores if kind == "logistic" else 1 / (1 + np.exp(-hits.scores))
    absent = scores[:, 0] - 0.2
    one = fitted(Sample(scores, hits.fits), posteriors=kind != "logistic", precision=0.85, absent=absent)
    curve = [one.curve.by_score, one.curve.by_best, one.curve.level, one.curve.margin]
    assert (one.curve.kind, one.clips, one.gallery, one.relevance) == (kind, 60, 100, "class")
    assert curve == pytest.approx([0.7904, 0.0642, -0.2887, 1 / 602], rel=1e-2)
    assert (one.error, one.band, one.threshold) == pytest.approx((0.07134, 0.15513, 0.81570), rel=1e-3)
    assert (*one.reached, one.answered) == pytest.approx((0.9, 0.595850, 0.982124, 10 / 60), rel=1e-5)
    assert one.absent == pytest.approx(np.mean(scores[:, :1] > absent) + np.mean(scores[:, :1] == absent) / 2)
    assert fitted(Sample(scores, hits.fits), precision=0.85).absent is None


@pytest.mark.parametrize(("clips", "threshold"), [(9, None), (10, 101 / 102)])
def test_a_threshold_needs_ten_hits(clips, threshold):
    hits = drawn(clips, 0)
    one = fitted(Sample(hits.scores, np.ones_like(hits.fits)))
    assert one.threshold == (None if threshold is None else pytest.approx(one.curve(hits.scores[:1])[0, 0], abs=0.01))


def test_a_precision_that_is_not_reached_gives_no_threshold():
    generator = np.random.default_rng(0)
    found = Sample(drawn(100, 0).scores, generator.random((100, 10)) < 0.2)
    assert fitted(found).threshold is None
    assert fitted(found, precision=0.01).threshold is not None


def test_a_posterior_is_taken_as_it_is_where_no_curve_predicts_better():
    generator = np.random.default_rng(0)
    scores = -np.sort(-generator.random((300, 10)), axis=1)
    found = Sample(scores, generator.random(scores.shape) < scores)
    one = fitted(found, posteriors=True)
    assert one.curve.kind == "posterior"
    np.testing.assert_allclose(one.probability(scores), scores, atol=1e-3)
    assert (
        fitted(Sample(scores, generator.random(scores.shape) < scores / 3), posteriors=True).curve.kind != "posterior"
    )


def test_of_pairs_the_odds_fall_with_the_number_of_items():
    one = Calibration(("audio",), "visual", Curve("posterior"), "pair", 50, 100, 0, 0, 0.9)
    assert one.probability(np.array([0.8]), 100) == pytest.approx(0.8)
    assert one.probability(np.array([0.8]), 400) == pytest.approx(0.5)  # odds 4 : 1 become 1 : 1


def test_auroc_is_the_share_of_pairs_in_order():
    present, absent = np.array([1.0, 2.0, np.nan, 2.0]), np.array([0.0, 2.0])
    assert auroc(present, absent) == pytest.approx((1 + 0 + 2 * (1 + 0.5)) / 6)
    assert auroc(present, np.array([np.nan])) is None
