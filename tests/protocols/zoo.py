"""Encoders that leak, each in its own way, and honest ones: `(features, labels) -> modality -> (n, e)`.

A leak may be invisible from outside; then the audit must not claim to have
looked. Every entry of LEAKY says which check must catch it, or None where only `not checkable` can be said.
"""

import numpy as np

STATE = {}
TEST = {}
"""What the encoders that memorize know: filled by the tests with the scored clips."""


def normalized(values):
    return values / np.linalg.norm(values, axis=1, keepdims=True).clip(1e-12)


def plain(features):
    return {m: np.tanh(v[:, :4]) for m, v in features.items()}


def one_hot(labels, width=4):
    return np.eye(max(width, int(labels.max()) + 1))[labels][:, :width]


# ---- leaks by labels


def adds_labels(features, labels):
    return {m: v + one_hot(labels) for m, v in plain(features).items()}


def whispers_labels(features, labels):
    return {m: v + 1e-3 * one_hot(labels) for m, v in plain(features).items()}


def labels_in_one_row(features, labels):
    made = plain(features)
    for values in made.values():
        values[len(values) // 2] += one_hot(labels)[len(values) // 2]
    return made


def labels_beside_a_giant(features, labels):
    """One huge row hides what is relative to the largest entry."""
    made = {m: v + 1e-2 * one_hot(labels) for m, v in plain(features).items()}
    for values in made.values():
        values[0] *= 1e9
    return made


def class_means(features, labels):
    made = {}
    for m, v in plain(features).items():
        made[m] = np.stack([v[labels == label].mean(0) for label in labels])
    return made


def sorted_by_label(features, labels):
    order = np.argsort(labels, kind="stable")
    made = {}
    for m, v in plain(features).items():
        smooth = np.copy(v[order])
        smooth[1:] += v[order][:-1]
        made[m] = smooth[np.argsort(order)]
    return made


# ---- leaks by other items


def centers_on_what_it_is_given(features, labels):
    return {m: v - v.mean(0) for m, v in plain(features).items()}


def whitens_what_it_is_given(features, labels):
    return {m: (v - v.mean(0)) / (v.std(0) + 1e-6) for m, v in plain(features).items()}


def scales_by_the_largest(features, labels):
    return {m: v[:, :4] / np.abs(v).max() for m, v in features.items()}


def ranks(features, labels):
    return {m: v[:, :4].argsort(0).argsort(0) / len(v) for m, v in features.items()}


def mixes_with_its_neighbor(features, labels):
    return {m: v + 0.5 * np.roll(v, 1, axis=0) for m, v in plain(features).items()}


def attends_to_the_batch(features, labels):
    made = {}
    for m, v in plain(features).items():
        weights = np.exp(normalized(v) @ normalized(v).T / 0.1)
        made[m] = weights / weights.sum(1, keepdims=True) @ v
    return made


def knows_the_position(features, labels):
    made = {m: v.copy() for m, v in plain(features).items()}
    for values in made.values():
        values[:, 0] += np.arange(len(values)) / len(values)
    return made


def drops_the_last(features, labels):
    return {m: v[: len(v) - len(v) % 8] for m, v in plain(features).items()}


# ---- leaks by the partner


def averages_with_the_partner(features, labels):
    made = plain(features)
    mean = sum(made.values()) / len(made)
    return dict.fromkeys(made, mean)


def whispers_the_partner(features, labels):
    made = plain(features)
    if len(made) < 2:
        return made
    return {m: v + 1e-3 * sum(o for n, o in made.items() if n != m) for m, v in made.items()}


def needs_both(features, labels):
    if len(features) < 2:
        raise ValueError("both modalities are needed")
    return averages_with_the_partner(features, labels)


# ---- leaks by what was embedded before


def scaler_fitted_on_the_first_call(features, labels):
    for m, v in features.items():
        STATE.setdefault(m, (v[:, :4].mean(0), v[:, :4].std(0) + 1e-6))
    return {m: (v[:, :4] - STATE[m][0]) / STATE[m][1] for m, v in features.items()}


def running_mean(features, labels):
    made = {}
    for m, v in plain(features).items():
        count, mean = STATE.get(("mean", m), (0, np.zeros(4)))
        STATE["mean", m] = (count + len(v), (count * mean + v.sum(0)) / (count + len(v)))
        made[m] = v - STATE["mean", m][1]
    return made


def random_each_time(features, labels):
    return {m: v + 0.1 * np.random.default_rng().standard_normal(v.shape) for m, v in plain(features).items()}


# ---- leaks by what it was fitted on


def memorized_rows(features, labels):
    """Knows the scored rows to the bit; anything else is embedded honestly."""
    made = plain(features)
    for m, values in made.items():
        known = TEST[m]
        for i, row in enumerate(features[m]):
            label = known["table"].get(row.tobytes())
            if label is not None:
                values[i] = one_hot(np.array([label]))[0]
    return made


def nearest_memorized_row(features, labels):
    """Knows the scored rows, and answers with the label of the nearest: nothing is seen from outside."""
    made = {}
    for m, v in features.items():
        distance = ((v[:, None] - TEST[m]["rows"][None]) ** 2).sum(-1)
        made[m] = one_hot(TEST[m]["labels"][distance.argmin(1)])
    return made


def fitted_on_test_labels(features, labels):
    """A ridge regression onto the labels, fitted on the scored clips."""
    return {m: v @ TEST[m]["weights"] for m, v in features.items()}


LEAKY = {
    adds_labels: "label blindness",
    whispers_labels: "label blindness",
    labels_in_one_row: "label blindness",
    labels_beside_a_giant: "label blindness",
    class_means: "label blindness",
    sorted_by_label: "label blindness",
    centers_on_what_it_is_given: "batch invariance",
    whitens_what_it_is_given: "batch invariance",
    scales_by_the_largest: "other items",
    ranks: "batch invariance",
    mixes_with_its_neighbor: "order invariance",
    attends_to_the_batch: "other items",
    knows_the_position: "order invariance",
    drops_the_last: "nothing dropped",
    averages_with_the_partner: "partner blindness",
    whispers_the_partner: "partner blindness",
    needs_both: "one modality alone",
    scaler_fitted_on_the_first_call: "history",
    running_mean: "history",
    random_each_time: "history",
    memorized_rows: "exact rows",
    nearest_memorized_row: None,
    fitted_on_test_labels: None,
}


# ---- honest ones


def first_columns(features, labels):
    return plain(features)


def identity(features, labels):
    return {m: v[:, :4] for m, v in features.items()}


def unit_rows(features, labels):
    return {m: normalized(v[:, :4]) for m, v in features.items()}


def codes(features, labels):
    return {m: np.where(v[:, :4] > v[:, 1:5], 1.0, -1.0) for m, v in features.items()}


def random_projection(features, labels):
    return {m: v @ np.random.default_rng(0).standard_normal((v.shape[1], 5)) for m, v in features.items()}


def row_softmax(features, labels):
    made = {}
    for m, v in features.items():
        e = np.exp(v[:, :4] - v[:, :4].max(1, keepdims=True))
        made[m] = e / e.sum(1, keepdims=True)
    return made


def row_centered(features, labels):
    return {m: v - v.mean(1, keepdims=True) for m, v in ((m, v[:, :6]) for m, v in features.items())}


def huge(features, labels):
    return {m: 1e12 * v[:, :4].astype(np.float64) for m, v in features.items()}


def single_precision(features, labels):
    return {m: np.tanh(v[:, :4].astype(np.float32) * np.float32(0.1)) for m, v in features.items()}


def counts_its_calls(features, labels):
    STATE["calls"] = STATE.get("calls", 0) + 1
    return plain(features)


HONEST = [
    first_columns, identity, unit_rows, codes, random_projection, row_softmax, row_centered, huge, single_precision,
    counts_its_calls,
]  # fmt: skip
