"""From scores to probabilities: how likely it is that a hit fits, fitted on validation clips and stored with the index.

Every validation clip asks the index, its own clip left out where classes decide what fits. What its best hits scored,
and whether they fitted, is all that is fitted on: a logistic function (Platt, 1999) of a hit's score and of the best
score of its question, since among hits of one score those of a question that nothing answers well fit less often.
A posterior is taken as it is where neither function predicts better.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aadml.comparison.features import Modality

Values = NDArray[np.float64]
Truths = NDArray[np.bool_]

HITS = 10
"""Hits of each validation clip that a calibration is fitted on."""

FEWEST = 30
"""Validation clips below which there is no calibration."""

_FOLDS, _BINS, _DRAWS = 5, 10, 2000


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
class Curve:
    """The probability that a hit fits: 1 / (1 + exp(-(by_score x + by_best b + level))).

    Attributes:
        kind: x is the hit's score and b the best score of its question (`logistic`), or the log-odds of both
            (`logistic of log-odds`), or the score is the probability itself (`posterior`).
        by_score: not below zero, so that within one question a better hit is never less likely to fit.
        by_best: of either sign.
        level: of the log-odds.
        margin: no probability is closer to 0 or 1 than this: no finite number of hits makes anything certain.
    """

    kind: str
    by_score: float = 0.0
    by_best: float = 0.0
    level: float = 0.0
    margin: float = 0.0

    def __call__(self, scores: Values) -> Values:
        """Give the probabilities of hits (..., h) of questions, best first."""
        found = scores
        if self.kind != "posterior":
            x = _inputs(scores, self.kind)
            log_odds = self.by_score * x + self.by_best * x[..., :1] + self.level
            found = np.exp(-np.logaddexp(0.0, -log_odds))  # as the formula, which overflows where hits separate
        return np.asarray(np.clip(found, self.margin, 1 - self.margin))


@dataclass(frozen=True)
class Calibration:
    """What a score of one kind of question means.

    Attributes:
        asked: modalities of the question.
        to: modality of the items.
        curve: whichever predicted held-out clips best.
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
    curve: Curve
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
        """Give the probability that hits fit.

        Args:
            scores: of the hits (..., h) of a question, best first.
            items: how many are searched. Where only a clip's own partner fits, more items are more chances of error,
                and the odds fall by as much.
        """
        found = self.curve(scores)
        if self.relevance == "class" or not items:
            return found
        odds = found / (1 - found) * self.gallery / items
        return np.asarray(odds / (1 + odds))


def curve_of(found: Sample, kind: str) -> Curve:
    """Fit a curve of one kind to hits; a hit of rank r counts 1/r, as it is the first ones that people look at."""
    margin = 1 / (found.fits.size + 2)
    if kind == "posterior":
        return Curve(kind, margin=margin)
    if found.fits.all() or not found.fits.any():
        certain = float(np.log(1 / margin - 1))
        return Curve(kind, level=certain if found.fits.all() else -certain, margin=margin)
    x = _inputs(found.scores, kind)
    columns = np.stack([x, np.broadcast_to(x[:, :1], x.shape)], axis=-1)
    by_score, by_best, level = _logistic(columns, found)
    if by_score < 0:
        by_score, (by_best, level) = 0.0, _logistic(columns[..., 1:], found)
    return Curve(kind, by_score, by_best, level, margin)


def _inputs(scores: Values, kind: str) -> Values:
    if kind == "logistic":
        return scores
    inside = np.clip(scores, 1e-6, 1 - 1e-6)
    return np.asarray(np.log(inside / (1 - inside)))


def _logistic(columns: Values, found: Sample) -> tuple[float, ...]:
    """Fit a logistic function of the columns (q, h, c): c slopes and the level."""
    from sklearn.linear_model import LogisticRegression

    flat = columns.reshape(-1, columns.shape[-1])
    center, scale = flat.mean(axis=0), flat.std(axis=0)
    scale[scale == 0] = 1
    fitted = LogisticRegression().fit((flat - center) / scale, found.fits.ravel(), found.weights.ravel())
    slopes = fitted.coef_[0] / scale
    return (*slopes.tolist(), float(fitted.intercept_[0] - slopes @ center))


def held_out(found: Sample, kind: str) -> Values:
    """Predict the hits (q, h) of each clip by a curve fitted on clips of other folds."""
    predicted = np.empty_like(found.scores)
    folds = np.random.default_rng(0).permutation(len(found.scores)) % _FOLDS
    for fold in range(_FOLDS):
        own = folds == fold
        predicted[own] = curve_of(Sample(found.scores[~own], found.fits[~own]), kind)(found.scores[own])
    return predicted


def _surprise(predicted: Values, found: Sample) -> float:
    """Negative log-likelihood of what fitted, by rank."""
    return float(-(np.log(np.where(found.fits, predicted, 1 - predicted)) * found.weights).sum())


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
    kinds = ["logistic", *(["posterior", "logistic of log-odds"] if posteriors else [])]
    predicted = {kind: held_out(found, kind) for kind in kinds}
    kind = min(kinds, key=lambda one: _surprise(predicted[one], found))
    best, true = predicted[kind][:, 0], found.fits[:, 0]
    threshold, reached, answered = _threshold(best, true, precision)
    return Calibration(
        asked, to, curve_of(found, kind), relevance, len(best), gallery, calibration_error(best, true), band(best),
        precision, threshold, reached, answered, None if absent is None else auroc(found.scores[:, 0], absent),
    )  # fmt: skip


def auroc(present: Values, absent: Values) -> float | None:
    """Give how often a clip whose class is there scores better than one whose class is not; None without either."""
    from sklearn.metrics import roc_auc_score

    present, absent = present[np.isfinite(present)], absent[np.isfinite(absent)]
    if not len(present) or not len(absent):
        return None
    truth = np.repeat([1, 0], [len(present), len(absent)])
    return float(roc_auc_score(truth, np.concatenate([present, absent])))


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
