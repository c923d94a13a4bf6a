"""Detection of labels that features encode beside the measured values.

Labels can be encoded in low-order bits and digits, in columns with one value per class, or as counters.

Values of a column are compared in pairs of clips that are neighbors in the rounded column. The labels of a pair are
exchangeable if the remainder of the rounding is independent of the label. A rule is learned on one half of the
pairs and predicts the other half. For exchangeable labels, the number of correct predictions is binomial with
probability 1/2. The test is an exact permutation test within pairs. The p values of the test are corrected over
columns, scales and halves (Holm, 1979), for each modality separately. Counters are detected by a separate test
without this correction.

Reference: Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 1979, https://www.jstor.org/stable/4615733
"""

import math
from collections.abc import Iterator

import torch
from scipy.special import betainc
from torch import Tensor

from aadml.retrieval.significance import holm

LEVEL = 1e-3
"""Probability of a false alarm: over all columns of a modality for low-order digits, per column for counters."""

PRECISION = 8
"""Number of bits of a value, and of the spread of its column, that rounding keeps."""

NEARLY_CONSTANT = 2.0**-13
"""A column whose spread is at most this share of its mean counts as constant."""

ROWS = 500
"""Largest number of clips in the tests; further clips are left out at random."""


def carried_columns(values: Tensor, labels: Tensor) -> dict[int, str]:
    """Return the columns that encode labels in low-order digits, in values determined by the class, or as counters.

    Args:
        values: features (n, d).
        labels: class (n,) of each clip.

    Returns:
        column number -> pattern, in words.
    """
    values, labels = _distinct(values.double(), labels)
    columns = dict.fromkeys(_low_order(values, labels), "low-order digits")
    columns |= dict.fromkeys(_spelled(values, labels), "determined by the class")
    return columns | dict.fromkeys(_counters(values, labels), "a counter of clips in order of class")


def can_be_tested(values: Tensor, labels: Tensor) -> bool:
    """Return whether the test can find labels in the low-order digits of a column of the features.

    The smallest possible corrected p value must be at most `LEVEL`. Half of the possible pairs of different classes are
    tested.

    Args:
        values: features (n, d).
        labels: class (n,) of each clip.
    """
    values, labels = _distinct(values.double(), labels)
    largest = max(labels.unique(return_counts=True)[1].tolist(), default=0)
    pairs = min(len(labels) // 2, len(labels) - largest) // 2  # a rule is learned on the other half
    return 2.0**-pairs * 2 * _SCALES * values.shape[1] <= LEVEL


def runs_of_classes(labels: Tensor) -> int:
    """Return the number of runs of equal labels (n,), n at least 1, in the order of the clips."""
    return int((labels[1:] != labels[:-1]).sum()) + 1


def is_sorted_by_class(labels: Tensor) -> bool:
    """Return whether labels (n,) are grouped by class; False for a single class, or for one clip per class.

    Data without leaks are often grouped by class too.
    """
    return 1 < len(labels.unique()) == runs_of_classes(labels) < len(labels)


def _distinct(values: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the distinct rows of `values` and their labels, in the original order.

    Of more than ROWS distinct rows, ROWS random rows are returned.
    """
    _, group = torch.unique(values, dim=0, return_inverse=True)
    order = torch.argsort(group, stable=True)
    first = order[torch.cat([torch.ones(1, dtype=torch.bool), group[order].diff() != 0])] if len(group) else order
    rows = first[torch.randperm(len(first), generator=torch.Generator().manual_seed(19))[:ROWS]].sort().values
    return values[rows], labels[rows]


def _low_order(values: Tensor, labels: Tensor) -> list[int]:
    """Return the columns whose rounding remainders predict labels."""
    cell = _cells(values)
    order = _shuffled_order((values / cell).floor() * cell)
    pairs = order[: len(order) // 2 * 2].unflatten(0, (-1, 2))  # neighbors (p, 2, d)
    p_values: dict[tuple[int, int, int], float] = {}
    for scale, rest in enumerate(_rests(values, cell)):
        first, second = (torch.gather(rest, 0, pairs[:, side]) for side in (0, 1))
        signs = (second - first).sign()
        for half in (0, 1):
            for column, p in enumerate(_tail(*_predicted(signs, labels[pairs], half)).tolist()):
                p_values[column, scale, half] = p
    return sorted({key[0] for key, p in holm(p_values).items() if p <= LEVEL})


def _cells(values: Tensor) -> Tensor:
    """Return the rounding width (n, d) of every value, a power of 2.

    Rounding keeps PRECISION bits of the value. If the spread of the column is smaller than the value, rounding keeps
    PRECISION bits of the spread instead. The spread of a nearly constant column is ignored.
    """
    middle = (values.quantile(0.75, dim=0) - values.quantile(0.25, dim=0)) / 1.35
    spread = torch.where(middle > 0, torch.minimum(middle, values.std(0)), values.std(0))
    spread = torch.where(spread > NEARLY_CONSTANT * values.mean(0).abs(), spread, math.inf)
    sizes = torch.minimum(values.abs(), spread.expand_as(values))
    return 2.0 ** (sizes.clamp_min(2.0**-126).log2().floor() - PRECISION)


_BINARY = range(0, 15)
_OF_SPREAD = range(0, 15, 2)
_DECIMAL = range(2, 8)
_SCALES = len(_BINARY) + len(_OF_SPREAD) + len(_DECIMAL)


def _rests(values: Tensor, cell: Tensor) -> Iterator[Tensor]:
    """Yield the remainders of values (n, d) at each scale; 0 at scales coarser than the rounding."""
    mantissa = 2.0 ** (values.abs().clamp_min(2.0**-126).log2().floor() - PRECISION)
    widths = [mantissa * 2.0**-bits for bits in _BINARY]
    widths += [cell.max(0).values.expand_as(cell) * 2.0**-bits for bits in _OF_SPREAD]
    widths += [torch.full_like(cell, 10.0**-digits) for digits in _DECIMAL]
    for width in widths:
        rest = (values / width + 1 / 8).frac() % 1  # without the eighth, rounding errors could turn 0 into almost 1
        # rounding removes the errors of decimal numbers in binary floats
        yield torch.where(width <= cell.max(0).values, (rest * 256).round(), 0)


def _shuffled_order(rounded: Tensor) -> Tensor:
    """Return the order (n, d) of each rounded column, with ties in random order."""
    shuffled = torch.randperm(len(rounded), generator=torch.Generator().manual_seed(23))
    return shuffled[rounded[shuffled].argsort(dim=0, stable=True)]


def _predicted(signs: Tensor, labels: Tensor, half: int) -> tuple[Tensor, Tensor]:
    """Learn class scores on half of the pairs; return counts (d,) of correct and compared pairs of the other half.

    Args:
        signs: sign (p, d) of the second value minus the first value.
        labels: labels (p, 2, d).
        half: 0 or 1, the half whose pairs are predicted.
    """
    tested = (torch.arange(len(signs)) % 2) == half
    scores = torch.zeros(int(labels.max()) + 1 if labels.numel() else 1, signs.shape[1], dtype=signs.dtype)
    learned, predicted = labels[~tested], labels[tested]
    scores.scatter_add_(0, learned[:, 1], signs[~tested]).scatter_add_(0, learned[:, 0], -signs[~tested])
    known = torch.gather(scores, 0, predicted[:, 1]) - torch.gather(scores, 0, predicted[:, 0])
    product = signs[tested] * known.sign()
    return (product > 0).sum(0), (product != 0).sum(0)


def _tail(correct: Tensor, compared: Tensor) -> Tensor:
    """Return the probability (d,) of at least `correct` successes in `compared` trials with probability 1/2."""
    tail = torch.from_numpy(betainc(correct.clamp_min(1).numpy(), (compared - correct + 1).numpy(), 0.5))
    return torch.where(correct > 0, tail, 1.0)


def _spelled(values: Tensor, labels: Tensor) -> list[int]:
    """Return the columns whose values the class determines; [] unless there are at least 20 more clips than classes.

    Such a column has one value per class. The column either is nearly constant, or has different values for all of at
    least four classes.
    """
    classes, codes, counts = labels.unique(return_inverse=True, return_counts=True)
    if len(labels) < len(classes) + 20:
        return []
    means = torch.zeros(len(classes), values.shape[1], dtype=values.dtype).index_add_(0, codes, values)
    means /= counts[:, None]
    within = (values - means[codes]).abs().amax(0)
    ordered = means.sort(0).values
    gaps, span = ordered.diff(dim=0).amin(0), ordered[-1] - ordered[0]
    is_constant = span < NEARLY_CONSTANT * values.mean(0).abs()
    determined = within < 1e-6 * torch.where(is_constant, span, gaps * (len(classes) > 3))
    return [int(column) for column in determined.nonzero()[:, 0]]


def _counters(values: Tensor, labels: Tensor) -> list[int]:
    """Return the columns that number the clips in an order with significantly few runs of classes.

    A column numbers the clips if at least 90 % of the steps between sorted values are nearly equal. An order has
    significantly few runs if each of 999 random orders has more runs. For fewer than 20 clips, the result is [].
    """
    if len(values) < 20:
        return []
    ordered = values.sort(0)
    steps = ordered.values.diff(dim=0)
    smallest = steps.min(0).values
    counters = ((smallest > 0) & ((steps - smallest).abs() <= 1e-3 * smallest).double().mean(0).ge(0.9)).nonzero()
    return [int(column) for column in counters[:, 0] if _is_together(labels[ordered.indices[:, column]])]


def _is_together(labels: Tensor) -> bool:
    """Return whether none of 999 permutations of the labels has as few runs of classes as the labels."""
    generator = torch.Generator().manual_seed(29)
    runs = runs_of_classes(labels)
    orders = (torch.randperm(len(labels), generator=generator) for _ in range(round(1 / LEVEL) - 1))
    return all(runs_of_classes(labels[order]) > runs for order in orders)
