"""Losses that generate negatives, HDML and DAML, against their sources: on triples given one a row."""

import torch
from torch import Tensor, nn

from aadml.comparison import Comparison
from aadml.losses.daml import Daml
from aadml.losses.hdml import Hdml
from aadml.losses.kernels.generated_negatives import GenerativeLoss
from certificates.certificate import Arrays, Certificate, Errors, error, put, value_and_gradients, worst

Rows = tuple[Tensor, Tensor, Tensor]


def of_triples(features: Tensor, head: nn.Linear, rows: Rows, labels: Tensor) -> Comparison:
    """Lay out m triples: m anchors against m positives and m negatives, each anchor with its own of both alone."""
    anchor, others = features[rows[0]], features[torch.cat(rows[1:])]
    count = len(anchor)
    mine = torch.eye(count, dtype=torch.bool)
    none = torch.zeros_like(mine)
    return Comparison(
        anchors=head(anchor), candidates=head(others), positives=torch.cat([mine, none], 1),
        negatives=torch.cat([none, mine], 1), own=torch.full((count,), -1), anchor_features=anchor,
        candidate_features=others, candidate_head=head, anchor_class=labels[rows[0]],
        candidate_class=labels[torch.cat(rows[1:])],
    )  # fmt: skip


def linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    """Make a layer of given weights (out, in) and biases (out,)."""
    layer = nn.Linear(weight.shape[1], weight.shape[0], dtype=weight.dtype)
    put(layer, {"weight": weight, "bias": bias})
    return layer


def generator_gradient(loss: nn.Module, comparison: Comparison, arrays: Arrays, names: dict[str, str]) -> float:
    """Compare the gradients of the generator's cost by its weights with those of the source."""
    assert isinstance(loss, GenerativeLoss)
    parameters = dict(loss.named_parameters())
    _, found = value_and_gradients(loss.generator_loss(comparison), [parameters[name] for name in names])
    return worst([(g, arrays[name]) for g, name in zip(found, names.values(), strict=True)])


def _hdml_of(arrays: Arrays, fidelity: str) -> Hdml:
    loss = Hdml(
        dimension=6, features=14, classes=5, hidden=9, fidelity=fidelity, margin=float(arrays["option_margin"]),
        pull=float(arrays["option_alpha"]),
    ).double().eval()  # fmt: skip
    named = {"generator.0": "generator1", "generator.2": "generator2", "classifier": "softmax"}
    put(loss, {f"{a}.{part}": arrays[f"weight_{b}_{part}"] for a, b in named.items() for part in ("weight", "bias")})
    loss.metric_average.copy_(arrays["option_J_avg"])
    loss.generator_average.copy_(arrays["option_J_gen"])
    return loss


def _hdml(arrays: Arrays) -> Errors:
    stored = "without_batchnorm_"
    features = arrays["in_features"].clone().requires_grad_()
    head = linear(arrays["weight_fc1_weight"], arrays["weight_fc1_bias"])
    rows = tuple(torch.arange(30).split(10))
    comparison = of_triples(features, head, rows, arrays["labels"])
    loss = _hdml_of(arrays, "source")
    value, found = value_and_gradients(loss(comparison).total.sum(), [features, *head.parameters()])
    names = ("features", "fc1_weight", "fc1_bias")
    wanted = [arrays[f"{stored}grad_J_metric_wrt_{name}"] for name in names]
    vectors = [head(features[part]) for part in rows]
    known = arrays[f"{stored}loss_softmax_cross_entropy"]
    cost = loss.generator_loss(comparison)
    # the classifier's own cost is that of the positives and negatives here, of all rows in the source
    own = torch.nn.functional.cross_entropy(loss.classifier(features[10:]), arrays["labels"][10:])
    made = {f"generator.{i}.{part}": f"{stored}grad_J_gen_wrt_generator{n}_{part}"
            for i, n in ((0, 1), (2, 2)) for part in ("weight", "bias")}  # fmt: skip
    all_rows = torch.nn.functional.cross_entropy(loss.classifier(features), arrays["labels"])
    pulls = [f"pulled_negative_at_Javg_{text}" for text in ("0.5", "1", "5", "50", "1e+06")]
    return {
        "pulled negatives": worst([(_pulled(loss, vectors, name), arrays[name]) for name in pulls]),
        "loss": worst([
            (value, arrays[f"{stored}loss_J_metric_without_weight_decay"]),
            (cost - own, arrays[f"{stored}loss_J_gen"]),
            (all_rows, known),
        ]),
        "gradient": max(
            worst(list(zip(found, wanted, strict=True))), generator_gradient(loss, comparison, arrays, made),
        ),
        "anchor and positive kept": error(
            _hdml_of(arrays, "repaired")(comparison).total.sum(),
            arrays[f"{stored}loss_J_metric_without_weight_decay"],
        ),
        "no batch normalization": error(value, arrays["source_loss_J_metric_without_weight_decay"]),
    }  # fmt: skip


def _pulled(loss: Hdml, vectors: list[Tensor], name: str) -> Tensor:
    kept = loss.metric_average.clone()
    loss.metric_average.fill_(float(name.rpartition("_")[2]))
    pulled = loss.pulled(*vectors)
    loss.metric_average.copy_(kept)
    return pulled


def _daml(arrays: Arrays) -> Errors:
    features = arrays["in_features"].clone().requires_grad_()
    head = linear(arrays["weight_embedder_weight"], arrays["weight_embedder_bias"])
    rows = tuple(arrays[f"triplet_{role}"] for role in ("anchor", "positive", "negative"))
    comparison = of_triples(features, head, rows, arrays["labels"])
    loss = Daml(features=9, hidden=10, margin=float(arrays["option_alpha_margin"])).double().eval()
    layers = {f"generator.{2 * i}.{part}": f"generator_{i}_{part}" for i in range(3) for part in ("weight", "bias")}
    put(loss, {here: arrays[f"weight_{there}"] for here, there in layers.items()})
    terms = loss(comparison)
    value, found = value_and_gradients(terms.total.mean(), [features, *head.parameters()])
    wanted = [arrays[f"grad_paper_metric_loss_wrt_{name}"] for name in ("features", "embedder_weight", "embedder_bias")]
    made = {here: f"grad_paper_generator_loss_wrt_{there}" for here, there in layers.items()}
    return {
        "loss of each triple": error(terms.total, arrays["paper_metric_per_triplet"]),
        "loss": worst([
            (value, arrays["paper_metric_loss"]), (loss.generator_loss(comparison), arrays["paper_generator_loss"]),
        ]),
        "gradient": max(
            worst(list(zip(found, wanted, strict=True))), generator_gradient(loss, comparison, arrays, made),
        ),
        "margin added, distances of embeddings": error(value, arrays["gedml_loss_m"]),
    }  # fmt: skip


def _pull_of_pairs(arrays: Arrays) -> Errors:
    anchors, positives = arrays["in_anchor"], arrays["in_positive"]
    count = len(anchors)
    # each anchor with every candidate as its negative, in the order of the source
    rows = torch.arange(count).repeat_interleave(count)
    loss = Hdml(dimension=6, features=6, classes=2, form="n-pair", pull=float(arrays["option_alpha"])).double().eval()
    found = []
    for text in ("5", "50", "1e+06"):
        loss.metric_average.fill_(float(text))
        pulled = loss.pulled(anchors[rows], positives[rows], positives.repeat(count, 1))
        found.append((pulled, arrays[f"pulled_negatives_at_Javg_{text}"]))
    return {"pulled negatives": worst(found)}


GENERATED_CERTIFICATES = (
    Certificate(
        "hdml-triplet", "audio_visual/hdml_triplet", "wzzheng/HDML @ fa03ef0, `main_triplet.py`, `Pulling`",
        ("pulled negatives", "loss", "gradient"), _hdml, by_hand=True,
        repairs=("anchor and positive kept", "no batch normalization"),
        deviations="With `fidelity: source`, reduction `sum`, without the batch normalization that the source has in "
        "the generator and before the last layer, and without weight decay. J_avg and J_gen are running means here, "
        "means over blocks of 64 steps there. By default (`repaired`) the real anchor and positive are kept, since "
        "across modalities the generator makes features of the candidates' modality alone.",
    ),
    Certificate(
        "hdml-n-pair, pull", "audio_visual/hdml_npair", "wzzheng/HDML @ fa03ef0, `Pulling`", ("pulled negatives",),
        _pull_of_pairs, by_hand=True,
    ),
    Certificate(
        "daml-triplet", "audio_visual/daml", "the paper, and zbr17/GeDML @ 5ce0a09, `DAMLCollector`",
        ("loss of each triple", "loss", "gradient"), _daml, by_hand=True,
        repairs=("margin added, distances of embeddings",),
        deviations="Of the paper's formulas. GeDML subtracts the margin in the metric loss and takes the adversary's "
        "distance between features; its configuration also puts batch normalization after each layer of the generator.",
    ),
)  # fmt: skip
