"""The CCA family against its sources: covariances, projections, scores, correlation and its gradient."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from aadml.comparison import Comparison
from aadml.comparison.clips import Clips
from aadml.losses.triplet import triplet
from aadml.methods import METHODS
from aadml.methods.correlation.algebra import (
    Canonical,
    canonical,
    centered,
    cluster_cross_covariance,
    covariance,
    cross_covariance,
    mixed_cross_covariance,
)
from aadml.methods.correlation.dcca import total_correlation
from aadml.methods.correlation.tnn_c_cca import without_partners
from aadml.methods.method import Context, Method
from aadml.methods.training.settings import Training
from aadml.objective import reduce
from certificates.certificate import Arrays, Certificate, Errors, error, leaves, value_and_gradients, worst


def fitted(method: str, arrays: Arrays, **options: Any) -> Method:
    """Fit a method on the training rows of a reference; first is audio, second visual."""
    features = {"audio": arrays["in_train_first"], "visual": arrays["in_train_second"]}
    count = len(features["audio"])
    labels = arrays.get("labels", torch.arange(count) % 2).long()
    clips = Clips(features, labels, tuple(f"clip {i}" for i in range(count)), tuple(map(str, range(10))))
    built = METHODS[method](
        Context({m: x.shape[1] for m, x in features.items()}, int(labels.max()) + 1), Training(), **options
    )
    built.fit(clips, clips.select(torch.arange(0)))
    return built


def _projection(of: Method, modality: str) -> Tensor:
    return of.weights[modality]


def _cca(arrays: Arrays) -> Errors:
    options = {"dimension": int(arrays["option_dimension"]), "ridge": float(arrays["option_ridge"])}
    one = fitted("cca", arrays, **options)
    sides = {"audio": "first", "visual": "second"}
    solution = _solved(arrays, options["ridge"], options["dimension"], cross_covariance)
    return {
        "projections": worst([(_projection(one, m), arrays[f"out_projection_{side}"]) for m, side in sides.items()]),
        "embedding": worst([(one.embed(arrays[f"in_test_{s}"], m), arrays[f"out_test_{s}"]) for m, s in sides.items()]),
        "correlations": error(solution.correlations, arrays["out_canonical_correlations"]),
    }


def _solved(arrays: Arrays, ridge: float, dimension: int, cross: Callable[[Tensor, Tensor], Tensor]) -> Canonical:
    (audio, _), (visual, _) = centered(arrays["in_train_first"]), centered(arrays["in_train_second"])
    return canonical(covariance(audio, ridge), covariance(visual, ridge), cross(audio, visual), dimension)


def _without_ridge(arrays: Arrays) -> Errors:
    dimension = int(arrays["option_dimension"])
    solution = _solved(arrays, 0.0, dimension, cross_covariance)
    one = fitted("cca", arrays, dimension=dimension, ridge=0.0)
    scores = [
        (one.embed(arrays[f"in_{split}_{side}"], m), arrays[f"out_{split}_scores_{side}"])
        for split in ("train", "test")
        for m, side in (("audio", "first"), ("visual", "second"))
    ]
    return {
        "correlations": error(solution.correlations, arrays["out_canonical_correlations_train"]),
        "embedding, each direction to unit length": max(_up_to_sign(*pair) for pair in scores),
    }


def _up_to_sign(found: Tensor, reference: Tensor) -> float:
    """One minus the absolute cosine of each direction's scores, the worst of them."""
    units = [torch.nn.functional.normalize(values.double(), dim=0) for values in (found, reference)]
    return float((1 - (units[0] * units[1]).sum(0).abs()).max())


def _c_cca(arrays: Arrays) -> Errors:
    ridge, weight = float(arrays["option_ridge"]), float(arrays["option_beta_pair_weight"])
    dimension = int(arrays["option_dimension"])
    (audio, _), (visual, _) = centered(arrays["in_train_first"]), centered(arrays["in_train_second"])
    mixed = mixed_cross_covariance(audio, visual, arrays["labels"], weight)
    solution = _solved(arrays, ridge, dimension, lambda a, v: mixed)
    rounded = _solved(arrays, ridge, dimension, lambda a, v: _mixed_in_float32(a, v, arrays["labels"], weight))
    one = fitted("c-cca", arrays, dimension=dimension, ridge=ridge, pair_weight=weight)
    return {
        "correlations": error(solution.correlations, arrays["out_singular_values"]),
        "covariances": worst([
            (covariance(audio, ridge), arrays["covariance_first"]),
            (covariance(visual, ridge), arrays["covariance_second"]),
            (cluster_cross_covariance(audio, visual, arrays["labels"]), arrays["cluster_cross_covariance"]),
            (mixed, arrays["mixed_cross_covariance"]),
        ]),
        "projections of the source's sums": worst([
            (rounded.first, arrays["out_projection_first"]), (rounded.second, arrays["out_projection_second"]),
        ]),
        "projections of exact sums": worst(_of_exact_sums(one, arrays)),
    }  # fmt: skip


def _mixed_in_float32(first: Tensor, second: Tensor, labels: Tensor, weight: float) -> Tensor:
    """Mix pairs and clusters as the source does: it adds up and weights the clusters in float32."""
    clusters, pairs = torch.zeros(first.shape[1], second.shape[1]), 0
    for label in labels.unique():
        own = labels == label
        clusters = (clusters.double() + torch.outer(first[own].sum(0), second[own].sum(0))).float()
        pairs += int(own.sum()) ** 2
    return weight * cross_covariance(first, second) + ((1 - weight) * (clusters / pairs)).double()


def _of_exact_sums(one: Method, arrays: Arrays) -> list[tuple[Tensor, Tensor]]:
    """Pair the projections of a fitted method with those of the reference's float64 matrices, solved in NumPy."""
    roots = []
    for side in ("first", "second"):
        values, vectors = np.linalg.eigh(arrays[f"covariance_{side}"].numpy())
        roots.append(vectors / np.sqrt(values) @ vectors.T)
    left, _, right = np.linalg.svd(roots[0] @ arrays["mixed_cross_covariance"].numpy() @ roots[1])
    dimension = int(arrays["option_dimension"])
    found = [roots[0] @ left[:, :dimension], roots[1] @ right[:dimension].T]
    signs = np.sign((found[0] * arrays["out_projection_first"].numpy()).sum(0))
    return [(_projection(one, m), torch.from_numpy(f * signs)) for m, f in zip(("audio", "visual"), found, strict=True)]


def _c_cca_of_unequal_sizes(arrays: Arrays) -> Errors:
    ridge, weight = float(arrays["option_ridge"]), float(arrays["option_beta_pair_weight"])
    unequal = dict(arrays) | {"in_train_first": arrays["unequal_in_train_first"]}
    one = fitted("c-cca", unequal, dimension=int(arrays["option_dimension"]), ridge=ridge, pair_weight=weight)
    sides = {"audio": "first", "visual": "second"}
    return {
        "projections": worst(
            [(_projection(one, m), arrays[f"unequal_out_projection_{side}_by_hand"]) for m, side in sides.items()]
        )
    }


def _dcca(arrays: Arrays) -> Errors:
    ridge = float(arrays["option_ridge"])
    cases = {
        "released_top6": ("source", ridge, 6),
        "released_top3": ("source", ridge, 3),
        "exact_trace_norm": ("trace", ridge, 0),
        "exact_trace_norm_ridge_1em4": ("trace", 1e-4, 0),
        "exact_squared": ("squared", ridge, 0),
    }
    found = {name: _correlation(arrays, name, *case) for name, case in cases.items()}
    trace = _correlation(arrays, "released_top6", "trace", ridge, 0)
    return {
        "loss": max(value for value, _ in found.values()),
        "gradient": max(gradient for _, gradient in found.values()),
        "the sum of the singular values themselves": max(trace),
    }


def _correlation(arrays: Arrays, name: str, objective: str, ridge: float, top: int) -> tuple[float, float]:
    points = leaves(arrays, "in_first", "in_second")
    first, second = (values - values.mean(0) for values in points)
    loss = -total_correlation(
        covariance(first, ridge), covariance(second, ridge), cross_covariance(first, second), objective,
        top=top, ridge=ridge,
    )  # fmt: skip
    value, gradients = value_and_gradients(loss, points)
    wanted = [arrays[f"grad_{name}_wrt_{side}"] for side in ("first", "second")]
    return error(value, arrays[f"loss_{name}"]), worst(list(zip(gradients, wanted, strict=True)))


def _kcca(arrays: Arrays) -> Errors:
    found: dict[str, list[float]] = {"test": [], "train": []}
    for kernel in ("rbf", "polynomial"):
        one = fitted(
            "kcca", arrays, dimension=int(arrays["option_dimension"]), kernel=kernel, ridge=float(arrays["option_c"])
        )
        for m, side in (("audio", "first"), ("visual", "second")):
            for split, stored in (("train", "train_scores_{}_unit"), ("test", "test_scores_{}")):
                scores = one.embed(arrays[f"in_{split}_{side}"], m)
                found[split].append(_up_to_sign(scores, arrays[f"{kernel}_{stored.format(side)}"]))
    return {f"{split} embedding, each direction to unit length": max(errors) for split, errors in found.items()}


def _triplets(arrays: Arrays) -> Errors:
    margin = float(arrays["option_margin"])
    rows = torch.arange(12)  # the first of two batches
    audio_rows = arrays["batch0_anchor_audio_row"]
    place = {int(row): i for i, row in enumerate(arrays["batch0_anchor_audio_row"].unique().tolist())}
    labels = arrays["labels"][torch.tensor(sorted(place))]
    points = leaves(arrays, "in_embedding_audio_batch0", "in_embedding_visual_batch0")
    comparison = Comparison.of_labels(*points, labels, labels, own=rows)
    everything = without_partners(lambda one, _: one)(comparison, torch.Generator())
    found = [triplet(one, margin=margin) for one in (everything, comparison)]
    value, gradients = value_and_gradients(reduce(found[0], "mean"), points)
    wanted = [arrays[f"grad_triplet_mean_wrt_{side}"] for side in ("audio", "visual")]
    count = torch.tensor(float(found[0].possible.sum()))
    return {
        "number of triplets": error(count, torch.tensor(float(len(audio_rows)))),
        "loss": error(value, arrays["triplet_loss_mean"]),
        "gradient": worst(list(zip(gradients, wanted, strict=True))),
        "partners among the positives": error(reduce(found[1], "mean"), arrays["triplet_loss_mean"]),
    }


UNIT = "embedding, each direction to unit length"

CORRELATION_CERTIFICATES = (
    Certificate(
        "cca", "audio_visual/cca_linear", "Michaelvll/DeepCCA @ 63186ba, `linear_cca`",
        ("projections", "embedding", "correlations"), _cca,
    ),
    Certificate(
        "cca without ridge", "audio_visual/cca_zoo_cca", "jameschapman19/cca_zoo @ e8a4c69, `CCA`",
        ("correlations", UNIT), _without_ridge,
    ),
    Certificate(
        "c-cca", "audio_visual/c_cca_linear", "ZenzenDatabase/CMR @ 31963c0, `linear_cca` with clusters",
        ("covariances", "correlations", "projections of the source's sums", "projections of exact sums"), _c_cca,
        deviations="The source adds up the clusters in float32; solved from those very sums, its projections come out. "
        "Here the sums are in float64, which alone moves the projections by 3e-6: they are held against the solution "
        "of the float64 matrices.",
    ),
    Certificate(
        "c-cca of unequal sizes", "audio_visual/c_cca_linear", "written out: the released function fails there",
        ("projections",), _c_cca_of_unequal_sizes, by_hand=True,
    ),
    Certificate(
        "dcca", "audio_visual/dcca", "Michaelvll/DeepCCA @ 63186ba, `cca_loss`; the exact sums are written out",
        ("loss", "gradient"), _dcca, repairs=("the sum of the singular values themselves",),
        deviations="The released sum with `objective: source`: it adds the ridge to the squared singular values and "
        "takes the largest. The default `trace` is the paper's. With all singular values the source takes roots entry "
        "by entry, and its gradient is not finite: not reproduced.",
    ),
    Certificate(
        "kcca", "audio_visual/kcca", "a generalized eigenproblem; jameschapman19/cca_zoo @ e8a4c69, `KCCA`, agrees",
        (f"train {UNIT}", f"test {UNIT}"), _kcca, by_hand=True,
    ),
    Certificate(
        "tnn-c-cca, triplets", "audio_visual/tnn_c_cca_triplets",
        "ZenzenDatabase/CMR @ 31963c0, `myGenerator`, `triplet_loss`", ("number of triplets", "loss", "gradient"),
        _triplets, repairs=("partners among the positives",),
        deviations="With `fidelity: source`: the source never takes an anchor's own partner for positive; by default "
        "it is one. The source's batch-hard form mines over a list of triplets and is not reproduced.",
    ),
)  # fmt: skip
