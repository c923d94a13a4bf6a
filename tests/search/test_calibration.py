"""Probabilities: a perfect scorer stays inside its band, a curve never falls, a threshold keeps its word."""

from contextlib import closing

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import aadml
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.search import Index
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
from aadml.search.items import meta_of
from aadml.search.store import connect, write_meta, writing


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


def test_a_perfect_scorer_stays_inside_its_band_in_95_of_100_draws():
    generator = np.random.default_rng(1)
    chances = generator.random(228)
    limit = band(chances)
    inside = [calibration_error(chances, generator.random(228) < chances) <= limit for _ in range(1000)]
    assert 0.93 <= np.mean(inside) <= 0.97
    assert 0.03 < limit < 0.15  # an error of this size says nothing at 228 clips


def test_a_curve_is_its_formula():
    scores = np.array([[0.9, 0.4], [0.5, 0.5]])
    logit = np.log(scores / (1 - scores))
    for kind, x in (("logistic", scores), ("logistic of log-odds", logit)):
        expected = 1 / (1 + np.exp(-(2.0 * x - 0.5 * x[:, :1] + 0.25)))
        np.testing.assert_allclose(Curve(kind, 2.0, -0.5, 0.25)(scores), expected, rtol=1e-12)
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


@pytest.fixture(scope="module")
def easy(tmp_path_factory):
    path = tmp_path_factory.mktemp("easy") / "easy.h5"
    write_features(path, synthetic(classes=4, train=80, valid=60, test=60, dimensions=(6, 8), difficulty=0.5))
    return path


@pytest.fixture(scope="module")
def model(easy, tmp_path_factory):
    return aadml.fit(easy, method="cca", settings={"method.dimension": 4}, runs=tmp_path_factory.mktemp("runs"))


def test_curves_of_another_version_are_refused_and_fitted_anew(easy, model, tmp_path):
    Index.build(easy, tmp_path / "i", model=model).close()
    with closing(connect(tmp_path / "i")) as database:
        written = meta_of(database)["calibration"]
    with writing(tmp_path / "i") as database:
        write_meta(database, {"calibration": {**written, "form": 1, "curves": [{"kind": "isotonic"}]}})
    with pytest.raises(InputError, match="of another version of aadml; `aadml index` fits them again"):
        Index(tmp_path / "i")
    with Index.build(easy, tmp_path / "i", model=model) as index:
        assert len(index._state.calibrations) == 6


@pytest.mark.slow
def test_an_index_says_how_likely_its_hits_fit(easy, model, tmp_path):
    notes = []
    with Index.build(easy, tmp_path / "i", model=model, precision=0.6, on_note=notes.append) as index:
        assert [note.partition(":")[0] for note in notes] == [
            "audio to audio", "audio to visual", "visual to audio", "visual to visual", "audio+visual to audio",
            "audio+visual to visual",
        ]  # fmt: skip
        assert all("AUROC of clips whose class is not in the index" in note for note in notes)
        test = aadml.read(easy).test
        found = [index.search(audio=row.numpy(), to="visual") for row in test["audio"]]
        for one in found:
            chances = [hit.probability for hit in one.hits]
            assert chances == sorted(chances, reverse=True)
            threshold = one.calibration.threshold
            assert one.nothing_fits == (None if threshold is None else chances[0] < threshold)
        notes.clear()
        index.update(precision=0.6, on_note=notes.append)
        assert notes == []  # nothing has changed
        index.update(precision=0.5, on_note=notes.append)
        assert len(notes) == 6
        assert index.search(audio=test["audio"][0].numpy(), to="visual").calibration.precision == 0.5


@pytest.mark.slow
def test_without_validation_clips_there_are_no_probabilities_and_it_says_so(easy, model, tmp_path):
    content, notes = aadml.data.reading.open_data(easy), []
    bare = tmp_path / "bare.h5"
    write_features(bare, content.select(content.rows("test")))
    with Index.build(bare, tmp_path / "i", model=model, on_note=notes.append) as index:
        assert notes == ["no probabilities: the index has 0 validation clips, 30 are needed; see --calibrate"]
        found = index.search(audio=content.features["audio"][0], to="visual")
        assert found.calibration is found.nothing_fits is found.hits[0].probability is None
        index.update(calibrate=easy)
        assert index.search(audio=content.features["audio"][0], to="visual").hits[0].probability > 0
        write_features(bare, content.select(content.rows("test")[1:]))
        index.update()  # the clips of the calibration are remembered
        assert index.search(audio=content.features["audio"][0], to="visual").hits[0].probability > 0
    with pytest.raises(InputError, match="precision: 1 is not between 0 and 1"):
        Index.build(bare, tmp_path / "i", model=model, precision=1)


def test_the_clips_of_a_calibration_are_found_from_elsewhere_and_known_by_their_content(tmp_path, monkeypatch):
    sizes = {"classes": 4, "test": 20, "dimensions": (6, 5), "difficulty": 0.3}
    clips, others = tmp_path / "clips.h5", tmp_path / "others.h5"
    write_features(clips, synthetic(train=40, valid=0, **sizes))
    write_features(others, synthetic(train=0, valid=40, **sizes))
    monkeypatch.chdir(tmp_path)
    with Index.build("clips.h5", "i", calibrate="others.h5") as index:
        assert {one.clips for one in index._state.calibrations.values()} == {40}
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    write_features(clips, synthetic(train=44, valid=0, **sizes))
    with Index.build(clips, tmp_path / "i") as index:  # other items: fitted anew on the clips that are remembered
        assert {one.clips for one in index._state.calibrations.values()} == {40}
    write_features(others, synthetic(train=0, valid=50, **sizes))
    with Index.build(clips, tmp_path / "i") as index:
        assert {one.clips for one in index._state.calibrations.values()} == {50}
        generation = index._state.generation
    with Index.build(clips, tmp_path / "i", calibrate=others) as index:  # the same file by another name: nothing to do
        assert index._state.generation == generation
