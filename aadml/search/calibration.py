"""From scores to probabilities: how likely it is that a hit fits, fitted on validation clips and stored with the index.

Every validation clip asks the index, its own clip left out where classes decide what fits. What its best hits scored,
and whether they fitted, is all that is fitted on. A posterior is taken as it is where no curve predicts better.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aadml.comparison.types import Modality

Values = NDArray[np.float64]
Truths = NDArray[np.bool_]
Curve = Callable[[Values], Values]

HITS = 10
"""Hits of each validation clip that a calibration is fitted on."""

FEWEST = 30
"""Validation clips below which there is no calibration."""

_FOLDS, _KNOTS, _BINS, _DRAWS = 5, 201, 10, 2000


@dataclass(frozen=True)
class Sample:
    """The best hits of q validation clips.

    Attributes:
        scores: (q, h) falling.
        fits: (q, h) whether a hit fits.
    """

    scores: Values
    fits: Truths

    @property
    def weights(self) -> Values:
        """How much a hit counts (q, h): one over its rank."""
        return np.broadcast_to(1 / np.arange(1.0, self.scores.shape[1] + 1), self.scores.shape)


@dataclass(frozen=True)
class Calibration:
    """What a score of one kind of question means.

    Attributes:
        asked: modalities of the question.
        to: modality of the items.
        kind: `posterior`, `logistic`, `logistic of log-odds` or `isotonic`: whichever predicted held-out clips best.
        scores: knots of the curve, rising.
        probabilities: at the knots, not falling.
        relevance: `class` where items of one class fit, `pair` where only the clip's own partner does.
        clips: how many validation clips asked.
        gallery: how many items each of them asked.
        error: expected calibration error of the best hits, predicted by folds.
        band: 95 % of perfectly calibrated scorers of this size have an error up to this.
        precision: that was asked for at the threshold.
        threshold: probability from which a best hit counts as fitting; None where the precision is not reached.
        reached: share of best hits from the threshold on that fit, with its 95 % interval.
        answered: share of clips whose best hit reaches the threshold.
        absent: AUROC of telling clips whose class stands in the gallery from those whose class was taken out.
    """

    asked: tuple[Modality, ...]
    to: Modality
    kind: str
    scores: tuple[float, ...]
    probabilities: tuple[float, ...]
    relevance: str
    clips: int
    gallery: int
    error: float
    band: float
    precision: float
    threshold: float | None = None
    reached: tuple[float, float, float] | None = None
    answered: float = 0.0
    absent: float | None = None

    def probability(self, scores: Values, items: int | None = None) -> Values:
        """Give the probability that items with these scores fit.

        Args:
            scores: of any shape.
            items: how many are searched. Where only a clip's own partner fits, more items are more chances of error,
                and the odds fall by as much.
        """
        found = np.interp(scores, self.scores, self.probabilities)
        if self.relevance == "class" or not items:
            return np.asarray(found)
        odds = found / (1 - found) * self.gallery / items
        return np.asarray(odds / (1 + odds))


def curves_of(found: Sample, kind: str) -> Curve:
    """Fit one kind of curve to hits; a hit of rank r counts 1/r, as it is the first ones that people look at."""
    scores, fits, weights = found.scores.ravel(), found.fits.ravel(), found.weights.ravel()
    margin = 1 / (len(scores) + 2)  # no finite number of hits makes anything certain

    def held(curve: Curve) -> Curve:
        return lambda values: np.clip(curve(values), margin, 1 - margin)

    if kind == "posterior":
        return held(lambda values: np.asarray(values, dtype=np.float64))
    if fits.all() or not fits.any():
        share = float(fits.mean())
        return held(lambda values: np.full(np.shape(values), share))
    if kind == "logistic":
        return held(_logistic(scores, fits, weights))
    if kind == "logistic of log-odds":
        inside = _logistic(_log_odds(scores), fits, weights)
        return held(lambda values: inside(_log_odds(values)))
    from sklearn.isotonic import IsotonicRegression

    fitted = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(scores, fits.astype(float), weights)
    return held(lambda values: np.asarray(fitted.predict(np.ravel(values)).reshape(np.shape(values))))


def _log_odds(values: Values) -> Values:
    inside = np.clip(values, 1e-6, 1 - 1e-6)
    return np.asarray(np.log(inside / (1 - inside)))


def _logistic(scores: Values, fits: Truths, weights: Values) -> Curve:
    from sklearn.linear_model import LogisticRegression

    center, scale = float(scores.mean()), float(scores.std()) or 1.0
    fitted = LogisticRegression(C=100.0).fit(((scores - center) / scale)[:, None], fits, weights)
    slope, begin = max(float(fitted.coef_[0, 0]), 0.0), float(fitted.intercept_[0])
    return lambda values: 1 / (1 + np.exp(-(slope * (np.asarray(values) - center) / scale + begin)))


def held_out(found: Sample, kind: str) -> Values:
    """Predict the hits (q, h) of each clip by a curve fitted on clips of other folds."""
    predicted = np.empty_like(found.scores)
    folds = np.random.default_rng(0).permutation(len(found.scores)) % _FOLDS
    for fold in range(_FOLDS):
        own = folds == fold
        curve = curves_of(Sample(found.scores[~own], found.fits[~own]), kind)
        predicted[own] = curve(found.scores[own])
    return predicted


def calibration_error(probabilities: Values, fits: Truths) -> float:
    """Expected calibration error over ten bins of equal width: |mean probability - share that fits|, by size."""
    bins = np.minimum((probabilities * _BINS).astype(int), _BINS - 1)
    gaps = np.bincount(bins, weights=probabilities - fits, minlength=_BINS)
    return float(np.abs(gaps).sum() / max(len(probabilities), 1))


def band(probabilities: Values, *, draws: int = _DRAWS, seed: int = 0) -> float:
    """Give the calibration error that 95 % of perfectly calibrated scorers with these probabilities stay below."""
    generator = np.random.default_rng(seed)
    errors = [
        calibration_error(probabilities, generator.random(len(probabilities)) < probabilities) for _ in range(draws)
    ]
    return float(np.quantile(errors, 0.95))


def calibrate(
    asked: tuple[Modality, ...],
    to: Modality,
    found: Sample,
    *,
    posteriors: bool,
    relevance: str,
    gallery: int,
    absent: Values | None = None,
    precision: float = 0.9,
) -> Calibration:
    """Fit what scores mean.

    Args:
        asked: modalities of the questions.
        to: modality of the items.
        found: the best hits of q validation clips.
        posteriors: whether the scores are probabilities by themselves: inner products of posteriors.
        relevance: `class` or `pair`.
        gallery: how many items each clip asked.
        absent: (q,) best score of each clip where no item of its class is left; None where that has no meaning.
        precision: share of best hits that shall fit from the threshold on.
    """
    kinds = ["isotonic", "logistic", *(["posterior", "logistic of log-odds"] if posteriors else [])]
    predicted = {kind: held_out(found, kind) for kind in kinds}
    kind = min(kinds, key=lambda one: float(((predicted[one] - found.fits) ** 2 * found.weights).sum()))
    best, true = predicted[kind][:, 0], found.fits[:, 0]
    threshold, reached, answered = _threshold(best, true, precision)
    knots = _knots(found.scores)
    curve = curves_of(found, kind)
    return Calibration(
        asked, to, kind, tuple(knots.tolist()), tuple(np.maximum.accumulate(curve(knots)).tolist()), relevance,
        len(best), gallery, calibration_error(best, true), band(best), precision, threshold, reached, answered,
        None if absent is None else auroc(found.scores[:, 0], absent),
    )  # fmt: skip


def auroc(present: Values, absent: Values) -> float | None:
    """Give how often a clip whose class is there scores better than one whose class is not; None without either."""
    from sklearn.metrics import roc_auc_score

    present, absent = present[np.isfinite(present)], absent[np.isfinite(absent)]
    if not len(present) or not len(absent):
        return None
    truth = np.repeat([1, 0], [len(present), len(absent)])
    return float(roc_auc_score(truth, np.concatenate([present, absent])))


def _knots(scores: Values) -> Values:
    """Choose scores at which a curve is written down: where hits were, and evenly between."""
    every = np.concatenate(
        [np.quantile(scores, np.linspace(0, 1, _KNOTS)), np.linspace(scores.min(), scores.max(), _KNOTS)]
    )
    return np.unique(every)


def _threshold(
    probabilities: Values, fits: Truths, precision: float
) -> tuple[float | None, tuple[float, float, float] | None, float]:
    """Find the lowest probability from which on best hits fit as often as is wanted."""
    order = np.argsort(-probabilities, kind="stable")
    shares = np.cumsum(fits[order]) / np.arange(1, len(order) + 1)
    last = np.append(np.diff(probabilities[order]) < 0, True)  # equal probabilities stand or fall together
    enough = np.flatnonzero((shares >= precision) & last & (np.arange(len(order)) >= 9))
    if not len(enough):
        return None, None, 0.0
    count = int(enough[-1]) + 1
    share = float(shares[count - 1])
    return float(probabilities[order[count - 1]]), (share, *wilson(share, count)), count / len(order)


def wilson(share: float, count: int) -> tuple[float, float]:
    """Give the 95 % interval of a share of so many (Wilson, 1927)."""
    z = 1.959964
    center, spread = share + z * z / (2 * count), z * np.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return float((center - spread) / (1 + z * z / count)), float((center + spread) / (1 + z * z / count))
