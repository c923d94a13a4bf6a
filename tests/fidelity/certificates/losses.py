"""Losses of label-supervised retrieval against their released code."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from aadml.comparison import Comparison
from aadml.configuration.config import resolve
from aadml.losses.n_pair import n_pair
from aadml.objective import Embedded, Objective
from aadml.objective.composition import Space, compose_objective
from certificates.certificate import Arrays, Certificate, Errors, error, leaves, value_and_gradients, worst

PML = "KevinMusgrave/pytorch-metric-learning @ 216a792"
LABELS = ("audio-visual",)
BOTH_WAYS = ("audio-visual", "visual-audio")


def objective(
    loss: Any, directions: tuple[str, ...] | None = None, selection: Any = None, *, dimension: int = 6, classes: int = 4
) -> Objective:
    """Resolve a loss as a config would, recipes included, and compose its objective."""
    values: dict[str, Any] = {"method": "aadml", "loss": loss}
    values |= {"directions": list(directions)} if directions else {}
    values |= {"selection": selection} if selection else {}
    config = resolve(values)
    sections = {key: vars(config.sections)[key] for key in ("loss", "selection", "directions")}
    text = any("text" in direction for direction in config["directions"])
    modalities = ("audio", "text") if text else ("audio", "visual")
    return compose_objective(Space(modalities, dimension=dimension, features=1, classes=classes), **sections)


def minimized(of: Objective, first: Tensor, second: Tensor, groups: Tensor, relation: Any = "label") -> Tensor:
    """Compute what a batch costs; first is audio, second visual."""
    embedded = Embedded({"audio": first, "visual": second}, groups, torch.arange(len(groups)), relation=relation)
    return of(embedded, torch.Generator().manual_seed(0))["loss"]


def compare(
    of: Objective,
    arrays: Arrays,
    value: str,
    gradient: str,
    *,
    names: tuple[str, str] = ("in_first", "in_second"),
    relation: str = "label",
    sides: tuple[str, str] = ("first", "second"),
) -> tuple[float, float]:
    """Give the errors of a loss and of its gradient by both modalities."""
    points = leaves(arrays, *names)
    groups = arrays["labels"] if relation == "label" else torch.arange(len(points[0]))
    found, gradients = value_and_gradients(minimized(of, *points, groups, relation), points)
    expected = [arrays[gradient.format(side)] for side in sides]
    return error(found, arrays[value]), worst(list(zip(gradients, expected, strict=True)))


def pair(value: tuple[float, float], *more: tuple[float, float]) -> Errors:
    """Name the errors of values and gradients, the worst of several cases."""
    values, gradients = zip(value, *more, strict=True)
    return {"loss": max(values), "gradient": max(gradients)}


def _of_label(loss: Mapping[str, Any], selection: Any = None) -> Any:
    """Compare across modalities and within both together, by label, as pytorch-metric-learning stores it."""

    def measure(arrays: Arrays) -> Errors:
        return pair(
            compare(objective(loss, LABELS, selection), arrays, "loss_cross", "grad_cross_wrt_{}"),
            compare(objective(loss, ("both-both",), selection), arrays, "loss_together", "grad_together_wrt_{}"),
        )

    return measure


def _supcon(arrays: Arrays) -> Errors:
    cases = [
        (0.07, "label", "labels_all"),
        (0.07, "id", "no_labels_simclr"),
        (0.1, "label", "labels_all_temperature_0p1"),
    ]
    found = []
    for temperature, relation, name in cases:
        # the source multiplies the loss by temperature over base temperature
        factor = temperature / float(arrays["option_base_temperature"])
        scaled = {key: values / factor if key.startswith(("loss_", "grad_")) else values
                  for key, values in arrays.items()}  # fmt: skip
        of = objective({"name": "supcon", "temperature": temperature})
        found.append(compare(of, scaled, f"loss_{name}", f"grad_{name}_wrt_{{}}", relation=relation))
    return pair(*found)


def _cross_clr(arrays: Arrays) -> Errors:
    names = ("in_first_video", "in_second_text")
    errors: dict[str, tuple[float, float]] = {}
    for form in ("repaired", "released"):
        found = []
        for text, temperature in (("0p03", 0.03), ("0p2", 0.2)):
            of = objective({"name": "cross-clr", "temperature": temperature})
            value, gradient = f"loss_{form}_temperature_{text}", f"grad_{form}_temperature_{text}_wrt_{{}}"
            found.append(compare(of, arrays, value, gradient, names=names, relation="id"))
        errors[form] = max(value for value, _ in found), max(gradient for _, gradient in found)
    return pair(errors["repaired"]) | {"the anchor's own score left out": max(errors["released"])}


def _dsl(arrays: Arrays) -> Errors:
    found = []
    for prior, text, temperature in ((1000.0, "0p05", 0.05), (100.0, "0p05", 0.05), (1.0, "0p05", 0.05), (1.0, "1", 1)):
        of = objective({"name": "dsl", "temperature": float(temperature), "prior_temperature": prior}, BOTH_WAYS)
        case = f"prior_{prior:.0f}_tau_{text}"
        found.append(compare(of, arrays, f"loss_both_ways_mean_{case}", f"grad_{case}_wrt_{{}}", relation="id"))
    return pair(*found)


def _angular(arrays: Arrays) -> Errors:
    loss = {"name": "angular", "alpha": float(arrays["option_alpha_degrees"]), "fidelity": "source"}
    ours = compare(objective(loss | {"fidelity": "repaired"}, LABELS), arrays, "loss_cross", "grad_cross_wrt_{}")
    return _of_label(loss)(arrays) | {"negatives brought to length 1": ours[0]}


def _n_pair(arrays: Arrays) -> Errors:
    found = []
    for kind in ("unit", "raw"):
        points = leaves(arrays, "in_first", "in_second")
        rows = torch.cat(points)
        rows = torch.nn.functional.normalize(rows, dim=1) if kind == "unit" else rows
        anchors, candidates = (rows[arrays[f"{kind}_drawn_{side}_row"]] for side in ("anchor", "positive"))
        own = torch.arange(len(anchors))
        terms = n_pair(Comparison.of_ids(anchors, candidates, own, own), l2=0.0)
        value, gradients = value_and_gradients(terms.total.mean(), points)
        expected = [arrays[f"{kind}_grad_wrt_{side}"] for side in ("first", "second")]
        found.append((error(value, arrays[f"{kind}_loss"]), worst(list(zip(gradients, expected, strict=True)))))
    return pair(*found)


def _n_pair_with_l2(arrays: Arrays) -> Errors:
    found = []
    for case, several in (("one_a_class", False), ("repeated_class", True)):
        points = leaves(arrays, "in_anchor", "in_positive")
        labels = arrays[f"{case}_labels"]
        comparison = Comparison.of_labels(*points, labels, labels)
        terms = n_pair(comparison, l2=float(arrays["option_l2"]), multi_positive=several)
        assert terms.penalty is not None
        value, gradients = value_and_gradients(terms.total.mean() + terms.penalty, points)
        expected = [arrays[f"{case}_grad_{side}"] for side in ("anchor", "positive")]
        found.append((error(value, arrays[f"{case}_loss"]), worst(list(zip(gradients, expected, strict=True)))))
    return pair(*found)


def _contrastive(arrays: Arrays) -> Errors:
    loss = {"name": "contrastive", "margin": float(arrays["option_margin"])}
    # the source has no factor 1/2 where it takes the mean over all pairs
    doubled = {key: values / 2 if key.startswith(("loss_mean", "grad_mean")) else values
               for key, values in arrays.items()}  # fmt: skip
    return pair(
        compare(
            objective(loss | {"reduction": "mean"}, LABELS), doubled, "loss_mean_over_all_pairs", "grad_mean_wrt_{}"
        ),
        compare(objective(loss, LABELS), arrays, "loss_half_mean_of_active", "grad_half_mean_of_active_wrt_{}"),
    )


def _clip(arrays: Arrays) -> Errors:
    names = ("in_image", "in_text")
    of = objective({"name": "nt-xent", "temperature": 1 / float(arrays["option_logit_scale"])}, BOTH_WAYS)
    return pair(compare(of, arrays, "loss", "grad_wrt_{}", names=names, relation="id", sides=("image", "text")))


def _bic_net(arrays: Arrays) -> Errors:
    names = ("in_first_video", "in_second_text")
    loss = {"name": "triplet", "score": "cosine", "margin": float(arrays["option_margin"])}
    loss |= {"reduction": "sum", "combine": "sum"}
    hardest = {"name": "hardest", "score": "cosine", "positive": "all"}
    return pair(
        compare(objective(loss, BOTH_WAYS), arrays, "loss_all", "grad_all_wrt_{}", names=names, relation="id"),
        compare(
            objective(loss, BOTH_WAYS, hardest), arrays, "loss_hardest", "grad_hardest_wrt_{}", names=names,
            relation="id",
        ),
    )  # fmt: skip


VALUES = ("loss", "gradient")
CLOSE = 1e-10
NO_ACTIVE = "The source takes the mean over the terms above 0, as `mean-of-active` does."

LOSS_CERTIFICATES = (
    Certificate(
        "supcon", "audio_visual/supcon", "HobbitLong/SupContrast @ 66a8fe5, `SupConLoss`", VALUES, _supcon,
        deviations="The source multiplies by temperature / base temperature, 1 by default; taken out here.",
    ),
    Certificate(
        "supcon", "audio_visual/pml_supcon", f"{PML}, `SupConLoss`", VALUES, _of_label({"name": "supcon"}),
    ),
    Certificate(
        "nt-xent", "audio_visual/pml_ntxent", f"{PML}, `NTXentLoss`", VALUES, _of_label({"name": "nt-xent"}),
    ),
    Certificate(
        "nt-xent (clip)", "audio_visual/clip",
        "mlfoundations/open_clip @ 89fb801, `ClipLoss`; openai/CLIP @ d05afc4, `CLIP.forward`", VALUES, _clip,
    ),
    Certificate(
        "cross-clr", "audio_visual/crossclr",
        "amazon-research/crossmodal-contrastive-learning @ c9627a6, `CrossCLR_onlyIntraModality`", VALUES, _cross_clr,
        repairs=("the anchor's own score left out",),
        deviations="The source multiplies the anchor's own score by 0 and so leaves exp(0) in the sum. Pruning and "
        "weighting of influential samples, which the paper adds, are not released.",
    ),
    Certificate("dsl", "audio_visual/dsl_camoe", "starmemda/CAMoE @ 390e5ab, `dual_softmax_loss`", VALUES, _dsl),
    *(
        Certificate(
            f"angular, {degrees} degrees", f"audio_visual/pml_angular_{degrees}", f"{PML}, `AngularLoss`", VALUES,
            _angular, repairs=("negatives brought to length 1",),
            deviations="With `fidelity: source`. The source leaves negatives at their length; the paper has all "
            "vectors of length 1, as the default here (`fidelity: repaired`).",
        )
        for degrees in (40, 45, 60)
    ),
    Certificate(
        "n-pair", "audio_visual/pml_npairs", f"{PML}, `NPairsLoss`", VALUES, _n_pair,
        deviations="On the pairs that the source drew, without the penalty on lengths.",
    ),
    Certificate(
        "n-pair with penalty, and with several positives", "audio_visual/hdml_npair",
        "wzzheng/HDML @ fa03ef0, `new_npair_loss`, `npairs_loss`", VALUES, _n_pair_with_l2, by_hand=True,
    ),
    Certificate(
        "triplet", "audio_visual/pml_triplet_all", f"{PML}, `TripletMarginLoss`", VALUES,
        _of_label({"name": "triplet", "margin": 1.2}), deviations=NO_ACTIVE,
    ),
    Certificate(
        "triplet of cosines", "audio_visual/pml_triplet_cosine", f"{PML}, `TripletMarginLoss`", VALUES,
        _of_label({"name": "triplet", "score": "cosine", "margin": 0.2}), deviations=NO_ACTIVE,
    ),
    Certificate(
        "contrastive", "audio_visual/contrastive_hdml_lossops", "wzzheng/HDML @ fa03ef0, `contrastive_loss`", VALUES,
        _contrastive, by_hand=True,
        deviations="The source has no factor 1/2; which pairs are compared is this project's choice (all).",
    ),
    Certificate(
        "triplet (bic-net)", "audio_visual/bicnet", "lionel-hing/BiC-Net @ 7fa4cb6, `ContrastiveLoss`", VALUES,
        _bic_net,
        deviations="The loss alone; the network works on frames there and on feature vectors here.",
    ),
    Certificate(
        "multi-similarity", "audio_visual/pml_multi_similarity", f"{PML}, `MultiSimilarityLoss`", VALUES,
        _of_label({"name": "multi-similarity"}, "all"), tolerance=CLOSE,
        deviations="Of all pairs; the selection `multi-similarity` is a class of its own there.",
    ),
)  # fmt: skip
