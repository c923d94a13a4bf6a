"""Learners with networks of their own against the released code: embedding, loss, and gradient to every weight."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from unittest.mock import patch

import torch
from torch import Tensor

from aadml.methods import METHODS
from aadml.methods.correlation.vae_cca import center_loss
from aadml.methods.method import Context
from aadml.methods.training.learner import Batch, Epoch, Learner
from aadml.methods.training.settings import Training
from certificates.certificate import Arrays, Certificate, Errors, error, put, value_and_gradients, worst

Names = Mapping[str, str]
"""A parameter's name here -> in the source."""


def learner(method: str, dimensions: Mapping[str, int], classes: int, **options: object) -> Learner:
    """Build a method's learner in double precision."""
    built = METHODS[method](Context(dimensions, classes), Training(), **options)
    return built.learner.double()


def batch(features: Mapping[str, Tensor], labels: Tensor) -> Batch:
    """Make a batch of given features, at the start of training."""
    return Batch(features, labels, torch.arange(len(labels)), torch.Generator(), Epoch("train", 0, 1))


def weights_error(of: Learner, loss: Tensor, names: Names, arrays: Arrays, prefix: str) -> float:
    """Compare the gradients of a loss by the learner's weights with those of the source."""
    parameters = dict(of.named_parameters())
    points = [parameters[name] for name in names]
    _, gradients = value_and_gradients(loss, points)
    pairs = zip(gradients, names.values(), strict=True)
    return worst([(g, arrays[f"{prefix}{name}"].reshape(g.shape)) for g, name in pairs])


@contextmanager
def drawn(function: str, values: list[Tensor]) -> Iterator[None]:
    """Hand out what the source drew, in order, in place of what a function of torch draws."""
    with patch(f"torch.{function}", side_effect=values):
        yield


def _dscmr(arrays: Arrays) -> Errors:
    one = learner("dscmr", {"visual": 10, "text": 6}, 4, hidden=(8,), dimension=5)
    names = {
        f"{here}.{part}": f"{there}.{part}"
        for here, there in (
            ("own.visual.0", "img_net.denseL1"),
            ("own.text.0", "text_net.denseL1"),
            ("shared", "linearLayer"),
            ("classifier", "linearLayer2"),
        )
        for part in ("weight", "bias")
    }
    put(one, {here: arrays[f"weight_{there}"] for here, there in names.items()})
    features = {"visual": arrays["in_first_image"], "text": arrays["in_second_text"]}
    parts = one.players()["all"].loss(batch(features, arrays["labels"]))
    stored = {"loss": "total", "label_loss": "label", "likelihood": "likelihood", "apart": "apart"}
    return {
        "embedding": worst(
            [(one.embed(x, m), arrays[f"out_common_{side}"]) for (m, x), side in _sides(features, "first", "second")]
        ),
        "loss and its parts": worst([(parts[here], arrays[f"loss_{there}"]) for here, there in stored.items()]),
        "gradient": weights_error(one, parts["loss"], names, arrays, "grad_total_wrt_weight_"),
    }


def _sides(features: Mapping[str, Tensor], *sides: str) -> list[tuple[tuple[str, Tensor], str]]:
    return list(zip(features.items(), sides, strict=True))


VAE_NAMES = {
    f"{here}.{part}": f"{there}.{part}"
    for here, there in (
        ("own.visual.0", "visual_net.denseL1"),
        ("own.audio.0", "audio_net.denseL1"),
        ("shared", "linearLayer1"),
        ("mean", "mu"),
        ("log_variance", "var"),
        ("classifier", "linearLayer2"),
        ("decoder", "linearLayer4"),
        ("outputs.visual", "visual_out"),
        ("outputs.audio", "audio_out"),
    )
    for part in ("weight", "bias")
}


def _vae_cca(arrays: Arrays) -> Errors:
    options = {"hidden": 9, "inner": 5, "dimension": 5, "fidelity": "source"}
    one = learner("vae-cca", {"visual": 12, "audio": 7}, 4, **options)
    put(one, {here: arrays[f"weight_{there}"] for here, there in VAE_NAMES.items()})
    features = {m: arrays[f"in_{m}"] for m in ("visual", "audio")}
    noise, centers = ([arrays[f"{kind}_{m}"] for m in features] for kind in ("noise", "centers"))
    with drawn("randn_like", noise), drawn("randn", centers):
        parts = one.players()["all"].loss(batch(features, arrays["labels"]))
    names = ("vae", "label", "correlation", "apart", "center")
    pairs = [(parts[f"{name}_loss"], arrays[f"loss_{name}"]) for name in names]
    return {
        "embedding": worst([(one.embed(x, m), arrays[f"eval_mean_{m}"]) for m, x in features.items()]),
        "loss and its parts": worst([(parts["loss"], arrays["loss_total"]), *pairs]),
        "gradient": weights_error(one, parts["loss"], VAE_NAMES, arrays, "grad_total_wrt_weight_"),
        "centers learned, not drawn": _with_learned_centers(arrays, features, noise),
    }


def _with_learned_centers(arrays: Arrays, features: Mapping[str, Tensor], noise: list[Tensor]) -> float:
    """Measure what learned centers, at their first draw, make of the loss."""
    one = learner("vae-cca", {"visual": 12, "audio": 7}, 4, hidden=9, inner=5, dimension=5)
    centers = torch.randn(4, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    put(one, {here: arrays[f"weight_{there}"] for here, there in VAE_NAMES.items()} | {"centers": centers})
    with drawn("randn_like", noise):
        parts = one.players()["all"].loss(batch(features, arrays["labels"]))
    return error(parts["loss"], arrays["loss_total"])


def _center_loss(arrays: Arrays) -> Errors:
    features = arrays["in_features"].clone().requires_grad_()
    loss = center_loss(features, arrays["labels"].long(), arrays["centers"])
    value, (gradient,) = value_and_gradients(loss, [features])
    return {"loss": error(value, arrays["loss"]), "gradient": error(gradient, arrays["grad_features"])}


ACMR_NAMES = {
    f"{here}.{part}": f"{there}_{part}"
    for here, there in (
        *((f"encoders.visual.{2 * i}", f"vf_fc_{i}") for i in range(3)),
        *((f"encoders.text.{2 * i}", f"le_fc_{i}") for i in range(3)),
        ("classifier", "lc_fc_0"),
    )
    for part in ("weight", "bias")
}
ACMR_CRITIC = {f"modality_classifier.{i}.{part}": f"dc_fc_{i}_{part}" for i in range(3) for part in ("weight", "bias")}


def _acmr_learner(arrays: Arrays, fidelity: str) -> Learner:
    one = learner("acmr", {"text": 11, "visual": 20}, 4, dimension=8, visual_hidden=(12, 10), hidden=(8, 10),
                  adv_weight=0.0, fidelity=fidelity)  # fmt: skip
    put(one, {here: arrays[f"weight_{there}"] for here, there in (ACMR_NAMES | ACMR_CRITIC).items()})
    return one


def _acmr(arrays: Arrays) -> Errors:
    one = _acmr_learner(arrays, "source")
    features = {m: arrays[f"in_{m}"] for m in ("text", "visual")}
    given = batch(features, arrays["labels"])
    players = one.players()
    parts, domain = players["encoders"].loss(given), players["modality_classifier"].loss(given)["loss"]
    ours = _acmr_learner(arrays, "repaired").players()["encoders"].loss(given)["loss"]
    pairs = [(parts["loss"], "embedding"), (parts["label_loss"], "label"), (parts["triplet_loss"], "triplet")]
    return {
        "embedding": worst([(one.embed(x, m), arrays[f"out_embedding_{m}"]) for m, x in features.items()]),
        "loss and its parts": worst([(found, arrays[f"loss_{name}"]) for found, name in [*pairs, (domain, "domain")]]),
        "gradient": max(
            weights_error(one, parts["loss"], ACMR_NAMES, arrays, "grad_embedding_loss_wrt_weight_"),
            weights_error(one, domain, ACMR_CRITIC, arrays, "grad_domain_loss_wrt_weight_"),
        ),
        "a hinge per clip, not per batch": error(ours, arrays["loss_embedding"]),
    }


LEARNED = ("embedding", "loss and its parts", "gradient")

NETWORK_CERTIFICATES = (
    Certificate(
        "dscmr", "audio_visual/dscmr", "penghu-cs/DSCMR @ 0e110b9, `IDCM_NN`, `calc_loss`", LEARNED, _dscmr,
    ),
    Certificate(
        "vae-cca", "audio_visual/vae_cca",
        "zhangjiwei-japan/visual-audio-cross-modal-retrieval @ b6ea8b1, `DEEP_C_CENTER_NN`, `calc_loss`", LEARNED,
        _vae_cca, repairs=("centers learned, not drawn",),
        deviations="With `fidelity: source`. By default centers are learned; the source draws them anew for every "
        "batch. Log-variances are held within ±10 here, which these numbers do not reach.",
    ),
    Certificate(
        "center loss (vae-cca)", "audio_visual/center_loss",
        "zhangjiwei-japan/visual-audio-cross-modal-retrieval @ b6ea8b1, `center_loss`", ("loss", "gradient"),
        _center_loss,
    ),
    Certificate(
        "acmr", "audio_visual/acmr", "sunpeng981712364/ACMR_demo @ 14b277f, `AdvCrossModalSimple`", LEARNED, _acmr,
        repairs=("a hinge per clip, not per batch",), by_hand=True,
        deviations="With `fidelity: source` and `adv_weight: 0`. In the source no adversarial gradient reaches the "
        "encoders, and the label classifier is not trained; here both are by default.",
    ),
)  # fmt: skip
