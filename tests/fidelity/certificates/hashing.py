"""AGAH against its released code: codes, losses, critics, and the step on the codes of classes."""

import torch

from aadml.methods.adversarial.class_codes import fitted_codes
from aadml.methods.adversarial.critics import critic_loss
from aadml.methods.networks import layers
from aadml.methods.training.learner import Learner
from aadml.objective import Embedded
from certificates.certificate import Arrays, Certificate, Errors, put, value_and_gradients, worst
from certificates.networks import drawn, learner


def _agah_learner(arrays: Arrays) -> Learner:
    one = learner("agah", {"visual": 7, "text": 6}, 4, hidden=(8,), dimension=6)
    modules = {"encoders": "{}_module.0", "hashes": "hash_module.{}.0", "classifiers": "classifier.{}.0"}
    sides = {"visual": ("img", "image"), "text": ("txt", "text")}
    state = {}
    for part in ("weight", "bias"):
        for modality, (short, _) in sides.items():
            for here, there in modules.items():
                inner = ".0" if here == "encoders" else ""
                state[f"{here}.{modality}{inner}.{part}"] = arrays[f"weight_{there.format(short)}.{part}"]
    own = one.state_dict()
    maps = {"class_features": arrays["feature_map"], "class_codes": arrays["code_map"]}
    critics = {name: values for name, values in own.items() if "critics" in name}
    put(one, {name: values.reshape(own[name].shape) for name, values in state.items()} | maps | critics)
    return one


def _agah(arrays: Arrays) -> Errors:
    one = _agah_learner(arrays)
    sides = {"visual": "image", "text": "text"}
    features = {m: arrays[f"out_feature_{side}"] for m, side in sides.items()}
    labels, rows = arrays["labels"], torch.arange(len(arrays["labels"]))
    hashes = {m: one._hash(x, m).detach().requires_grad_() for m, x in features.items()}
    triplet = one.objective(Embedded(hashes, labels, rows), torch.Generator())["loss"]
    costs = one._clip_losses(features, hashes, labels)
    expected = {name: arrays[f"loss_{name}"] for name in ("balance", "code", "quantization")}
    both = arrays["loss_triplet_image_to_text"] + arrays["loss_triplet_text_to_image"]
    gradients = [
        (loss, [sum(arrays[f"grad_{name}_wrt_hash_{side}"] for name in names) for side in sides.values()])
        for loss, names in (
            (triplet, ("triplet_image_to_text", "triplet_text_to_image")),
            *((costs[name], (name,)) for name in expected),
        )
    ]
    inputs = {m: arrays[f"in_{side}"] for m, side in sides.items()}
    own_norm = [(one._features(x, m), features[m]) for m, x in inputs.items()]
    codes = arrays["code_step_codes_before"]
    vectors = torch.cat([arrays["code_step_U_image"], arrays["code_step_V_text"]])
    fitted = fitted_codes(torch.where(vectors > 0, 1.0, -1.0), arrays["code_step_labels"].repeat(2), codes)
    different = (fitted != arrays["code_step_codes_after_one"]).double()
    return {
        "code": worst([(hashes[m], arrays[f"out_hash_{side}"]) for m, side in sides.items()]),
        "loss": worst([(triplet, both), *((costs[name], value) for name, value in expected.items())]),
        "gradient": max(
            worst(list(zip(value_and_gradients(loss, list(hashes.values()))[1], wanted, strict=True)))
            for loss, wanted in gradients
        ),
        "features divided by their own norm": worst(own_norm),
        "codes of classes by descent on ±1 labels": float(different.mean()),
    }


def _critics(arrays: Arrays) -> Errors:
    losses, slopes = [], []
    for side, other, short in (("image", "text", "img"), ("text", "image", "txt")):
        critic = layers((8, 8, 5, 1), last=False).double()
        own = critic.state_dict()
        stored = {k: f"{short}_discriminator.{k}" for k in own}
        put(critic, {k: arrays[f"weight_{name}"].reshape(own[k].shape) for k, name in stored.items()})
        real, fake = arrays[f"critic_in_features_{side}"], arrays[f"critic_in_features_{other}"]
        with drawn("rand", [arrays[f"critic_{side}_interpolation_shares"]]):
            cost = critic_loss(critic, real, fake, torch.Generator(), penalty=float(arrays["option_gradient_penalty"]))
        losses.append((cost, arrays[f"critic_{side}_loss"]))
        _, found = value_and_gradients(cost, list(critic.parameters()))
        names = [f"grad_critic_{side}_loss_wrt_weight_{side}_discriminator_{k}" for k in own]
        slopes += [(g, arrays[name].reshape(g.shape)) for g, name in zip(found, names, strict=True)]
    return {"loss": worst(losses), "gradient": worst(slopes)}


HASHING_CERTIFICATES = (
    Certificate(
        "agah", "audio_visual/agah", "BMC-SDNU/Cross-Modal-Retrieval @ 710256f, `AGAH.forward`, `TripletAllLoss`",
        ("code", "loss", "gradient"), _agah,
        repairs=("features divided by their own norm", "codes of classes by descent on ±1 labels"),
        deviations="From the source's features on: it divides them by the norm of the whole batch, so that a code "
        "depends on who else is there. Its step on the codes of classes mixes 0/1 with ±1 labels; the cost after the "
        "step here is lower (11,552 against 12,368). The class loss has weight 0 in the total and is not compared.",
    ),
    Certificate(
        "agah, critics", "audio_visual/agah", "BMC-SDNU/Cross-Modal-Retrieval @ 710256f, `dis_img`, `dis_txt`",
        ("loss", "gradient"), _critics,
        deviations="At the points between real and fake that the source drew, one share a component; here one a clip.",
    ),
)  # fmt: skip
