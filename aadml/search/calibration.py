"""Probability that a hit is relevant, computed from its score by a curve fitted on validation clips.

Validation clips query the index. If hits of the same class are relevant, each querying clip is excluded from its
hits. The curve is a logistic function of two inputs: the score of a hit and the best score of its query. The curve
is fitted to the best hits. The best score is an input because the level of scores differs between queries. The
weight of the best score is fitted and may have either sign. Probabilities of a common class, used as scores, stay
unchanged unless a fitted curve predicts held-out clips better. The index stores the curve.

Reference: Platt, Probabilistic outputs for support vector machines and comparisons to regularized likelihood methods,
Advances in Large Margin Classifiers, MIT Press 1999, https://www.cs.colorado.edu/~mozer/Teaching/syllabi/6622/papers/Platt1999.pdf
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from aadml.comparison.features import Modality

Values = NDArray[np.float64]
Truths = NDArray[np.bool_]

Kind = Literal["logistic", "logistic of log-odds", "posterior"]
"""Form of a curve, see `Curve`."""

HITS = 10
"""Number of hits per validation clip to which the curve is fitted."""

FEWEST = 30
"""Smallest number of validation clips of a calibration."""

_FOLDS, _BINS, _DRAWS = 5, 10, 2000


@dataclass(frozen=True)
class Sample:
    """Best hits of q validation clips.

    Attributes:
        scores: (q, h) in descending order.
        fits: (q, h) whether a hit is relevant.
    """

    scores: Values
    fits: Truths

    @property
    def weights(self) -> Values:
        """Weights of the hits (q, h): 1 / rank, since people look mostly at the first hits."""
        return np.broadcast_to(1 / np.arange(1.0, self.scores.shape[1] + 1), self.scores.shape)


@dataclass(frozen=True)
class Curve:
    """Probability that a hit is relevant: 1 / (1 + exp(-(by_score x + by_best b + level))).

    Attributes:
        kind: form of the curve. With `logistic`, x is the score of the hit and b is the best score of its query. With
            `logistic of log-odds`, x and b are the log-odds of these scores. With `posterior`, the score is the
            probability.
        by_score: weight of the score. The weight is never negative, so that a better hit is never less probable
            than a worse hit of the same query.
        by_best: weight of the best score, of either sign.
        level: constant of the log-odds.
        margin: smallest distance of a probability from 0 and 1.
    """

    kind: Kind
    by_score: float = 0.0
    by_best: float = 0.0
    level: float = 0.0
    margin: float = 0.0

    def __call__(self, scores: Values) -> Values:
        """Compute the probabilities (..., h) of hits from their scores (..., h), which are in descending order."""
        probabilities = scores
        if self.kind != "posterior":
            x = _inputs(scores, self.kind)
            log_odds = self.by_score * x + self.by_best * x[..., :1] + self.level
            probabilities = np.exp(-np.logaddexp(0.0, -log_odds))  # 1 / (1 + exp) overflows if the hits are separable
        return np.asarray(np.clip(probabilities, self.margin, 1 - self.margin))


@dataclass(frozen=True)
class Calibration:
    """Score-to-probability curve and threshold of one kind of query, with measurements on validation clips.

    Attributes:
        asked: modalities of the query.
        to: modality of the items.
        curve: curve that predicts held-out clips best.
        relevance: `class` if items that share a class with the query are relevant. `pair` if only the query's own
            partner is relevant.
        clips: number of validation clips.
        gallery: number of gallery items per query.
        error: expected calibration error of the best hits, by cross-validation.
        band: 95th percentile of the error of perfectly calibrated scorers with `clips` clips.
        precision: requested share of relevant hits among the best hits at or above the threshold.
        threshold: probability from which a best hit counts as relevant; None if the precision is not reached.
        reached: share of relevant hits among the best hits at or above the threshold, and the bounds of the 95 %
            interval of the share; None without a threshold.
        answered: share of clips whose best hit reaches the threshold.
        absent: AUROC of the best score for distinguishing searches of all items from searches without the relevant
            items. None for relevance `pair`, or if one of the two kinds of search has no finite scores.
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
        """Compute the probabilities (..., h) that hits are relevant.

        Args:
            scores: (..., h) scores of the hits of each query, in descending order.
            items: number of items that are searched; None for the number `gallery` of the calibration. For
                relevance `pair`, the odds are inversely proportional to this number.
        """
        probabilities = self.curve(scores)
        if self.relevance == "class" or not items:
            return probabilities
        odds = probabilities / (1 - probabilities) * self.gallery / items
        return np.asarray(odds / (1 + odds))


def curve_of(hits: Sample, kind: Kind) -> Curve:
    """Fit a curve of one kind (see `Curve`) to hits."""
    margin = 1 / (hits.fits.size + 2)
    if kind == "posterior":
        return Curve(kind, margin=margin)
    if hits.fits.all() or not hits.fits.any():
        certain = float(np.log(1 / margin - 1))
        return Curve(kind, level=certain if hits.fits.all() else -certain, margin=margin)
    x = _inputs(hits.scores, kind)
    columns = np.stack([x, np.broadcast_to(x[:, :1], x.shape)], axis=-1)
    by_score, by_best, level = _logistic(columns, hits)
    if by_score < 0:
        by_score, (by_best, level) = 0.0, _logistic(columns[..., 1:], hits)
    return Curve(kind, by_score, by_best, level, margin)


def _inputs(scores: Values, kind: Kind) -> Values:
    if kind == "logistic":
        return scores
    inside = np.clip(scores, 1e-6, 1 - 1e-6)
    return np.asarray(np.log(inside / (1 - inside)))


def _logistic(columns: Values, hits: Sample) -> tuple[float, ...]:
    """Fit a logistic function of the columns (q, h, c); return c weights and the constant."""
    from sklearn.linear_model import LogisticRegression

    flat = columns.reshape(-1, columns.shape[-1])
    center, scale = flat.mean(axis=0), flat.std(axis=0)
    scale[scale == 0] = 1
    fitted = LogisticRegression().fit((flat - center) / scale, hits.fits.ravel(), hits.weights.ravel())
    slopes = fitted.coef_[0] / scale
    return (*slopes.tolist(), float(fitted.intercept_[0] - slopes @ center))


def held_out(hits: Sample, kind: Kind) -> Values:
    """Predict the probabilities (q, h) that hits are relevant, by five-fold cross-validation over the clips."""
    predicted = np.empty_like(hits.scores)
    folds = np.random.default_rng(0).permutation(len(hits.scores)) % _FOLDS
    for fold in range(_FOLDS):
        test, train = folds == fold, folds != fold
        predicted[test] = curve_of(Sample(hits.scores[train], hits.fits[train]), kind)(hits.scores[test])
    return predicted


def _negative_log_likelihood(predicted: Values, hits: Sample) -> float:
    return float(-(np.log(np.where(hits.fits, predicted, 1 - predicted)) * hits.weights).sum())


def calibration_error(probabilities: Values, fits: Truths) -> float:
    """Compute the expected calibration error of n hits over ten bins of equal width.

    The error of a bin is |mean probability - share of relevant hits|. The result is the mean of the errors of the
    bins, weighted by the number of hits in each bin.

    Reference: Naeini et al., Obtaining well calibrated probabilities using Bayesian binning, AAAI 2015, https://doi.org/10.1609/aaai.v29i1.9602

    Args:
        probabilities: (n,).
        fits: (n,) whether a hit is relevant.
    """
    bins = np.minimum((probabilities * _BINS).astype(int), _BINS - 1)
    gaps = np.bincount(bins, weights=probabilities - fits, minlength=_BINS)
    return float(np.abs(gaps).sum() / max(len(probabilities), 1))


def band(probabilities: Values) -> float:
    """Estimate the 95th percentile of the calibration error of perfectly calibrated scorers with probabilities (n,)."""
    generator, count = np.random.default_rng(0), len(probabilities)
    errors = [calibration_error(probabilities, generator.random(count) < probabilities) for _ in range(_DRAWS)]
    return float(np.quantile(errors, 0.95))


def calibrate(
    asked: tuple[Modality, ...],
    to: Modality,
    hits: Sample,
    *,
    posteriors: bool,
    relevance: str,
    gallery: int,
    absent: Values | None = None,
    precision: float = 0.9,
) -> Calibration:
    """Fit the score-to-probability curve and the threshold of one kind of query.

    Args:
        asked: modalities of the queries.
        to: modality of the items.
        hits: the best hits of q validation clips.
        posteriors: whether the scores are inner products of posteriors, and thus probabilities.
        relevance: `class` or `pair`, see `Calibration`.
        gallery: number of gallery items per query.
        absent: (q,) best score of each clip among items that are not relevant; None for relevance `pair`.
        precision: requested share of relevant hits among the best hits at or above the threshold.
    """
    kinds: list[Kind] = ["logistic", "posterior", "logistic of log-odds"] if posteriors else ["logistic"]
    predicted = {kind: held_out(hits, kind) for kind in kinds}
    kind = min(kinds, key=lambda name: _negative_log_likelihood(predicted[name], hits))
    best, true = predicted[kind][:, 0], hits.fits[:, 0]
    threshold, reached, answered = _threshold(best, true, precision)
    return Calibration(
        asked, to, curve_of(hits, kind), relevance, len(best), gallery, calibration_error(best, true), band(best),
        precision, threshold, reached, answered, None if absent is None else auroc(hits.scores[:, 0], absent),
    )  # fmt: skip


def auroc(present: Values, absent: Values) -> float | None:
    """Return the AUROC: the share of pairs in which the score of `present` is higher than the score of `absent`.

    Ties count half, and infinite scores are left out. The result is None if there are no pairs.

    Args:
        present: (m,) scores.
        absent: (n,) scores.
    """
    from sklearn.metrics import roc_auc_score

    present, absent = present[np.isfinite(present)], absent[np.isfinite(absent)]
    if not len(present) or not len(absent):
        return None
    truth = np.repeat([1, 0], [len(present), len(absent)])
    return float(roc_auc_score(truth, np.concatenate([present, absent])))


def _threshold(
    probabilities: Values, fits: Truths, precision: float
) -> tuple[float | None, tuple[float, float, float] | None, float]:
    """Return the lowest threshold that reaches `precision` with at least ten hits, and two shares of hits.

    The first share is the share of relevant hits among the hits at or above the threshold, with the bounds of the
    95 % interval of this share. The second share is the share of hits at or above the threshold. If no threshold
    reaches the precision, the results are None, None and 0.
    """
    order = np.argsort(-probabilities, kind="stable")
    shares = np.cumsum(fits[order]) / np.arange(1, len(order) + 1)
    last = np.append(np.diff(probabilities[order]) < 0, True)  # equal probabilities are on one side of the threshold
    enough = np.flatnonzero((shares >= precision) & last & (np.arange(len(order)) >= 9))
    if not len(enough):
        return None, None, 0.0
    count = int(enough[-1]) + 1
    share = float(shares[count - 1])
    return float(probabilities[order[count - 1]]), (share, *wilson(share, count)), count / len(order)


def wilson(share: float, count: int) -> tuple[float, float]:
    """Compute the 95 % interval of a share of `count` trials.

    Reference: Wilson, Probable inference, the law of succession, and statistical inference, Journal of the American
    Statistical Association 1927, https://doi.org/10.1080/01621459.1927.10502953
    """
    z = 1.959964
    center, spread = share + z * z / (2 * count), z * np.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return float((center - spread) / (1 + z * z / count)), float((center + spread) / (1 + z * z / count))
