"""Whole trainings of towers against released code: pytorch-metric-learning, CLIP, and the heads of Mei et al."""

from collections.abc import Mapping
from typing import Any
from unittest.mock import patch

import torch

from aadml.comparison.embeddings import Embeddings
from aadml.methods.training.learner import Learner
from aadml.methods.training.settings import OPTIMIZERS, Training
from aadml.retrieval.evaluation import evaluate
from certificates.audio_text import BOTH_WAYS, MEI, OBJECTIVES, released
from certificates.certificate import Arrays, Certificate, Errors, worst
from certificates.losses import LABELS, PML, objective
from certificates.networks import learner
from certificates.training import CURVE, DIRECTIONS, FOLDER, SCORED, Towers, held, initial, named, settings, trained

SIZES = {"audio": 128, "visual": 256}
FLOAT32 = 1e-6
"""Weights in these files are rounded to float32."""


def renamed(arrays: Arrays) -> dict[str, Any]:
    """Return the arrays of an audio-text reference under the names of the audio-visual ones."""
    last = len(arrays["step/batch_items"])
    found = {"batch_order": arrays["step/batch_items"], "loss_total": arrays["step/loss"]}
    for number, name in enumerate(arrays["parameter_names"]):
        found[f"gradient_norm_{name}"] = arrays["step/gradient_norms"][:, number]
        found[f"weight_initial_{name}"] = arrays[f"weights_0/{name}"]
        found[f"weight_after_{last}_{name}"] = arrays[f"weights_{last}/{name}"]
    for key, values in arrays.items():
        side, _, name = key.partition("/")
        if side == "in":
            found["_".join(("labels", name[:-7])) if name.endswith("_labels") else f"in_{name}"] = values
        elif side == "test" and name in ("audio", "visual", "text"):
            found[f"out_test_{name}"] = values
        elif side == "test" and name in ("audio_to_visual", "visual_to_audio"):
            found[name] = values
        elif side == "test" and "MAP" in arrays["columns"]:
            found[f"map_{name.replace('_', '_to_')}"] = values[arrays["columns"].index("MAP")]
    return found


def _pml(file: str, source: str, loss: Mapping[str, Any]) -> Certificate:
    def measure(arrays: Arrays) -> Errors:
        given = renamed(arrays)
        of = Towers({m: (size, 64, 10) for m, size in SIZES.items()}, objective(loss, LABELS)).double()
        names = named({f"towers.{m}.{i}": f"{m}.{i}" for m in SIZES for i in (0, 2)})
        initial(of, given, names)
        training = Training(epochs=8, batch=24, learning_rate=1e-3, train_map=0, select="last")
        return held(of, trained(of, given, training, 8, SIZES), given, {"all loss": "total"}, names)

    return Certificate(
        f"training of {loss['name']} (towers)", f"audio_text/train_pml_{file}", f"{PML}, `{source}`", SCORED, measure,
        deviations="The loop of the reference is not the library's.", tolerance=FLOAT32, folder=FOLDER,
    )  # fmt: skip


class ReleasedAdamW(torch.optim.AdamW):
    """AdamW as open_clip builds it: epsilon 1e-6, and no decay of parameters of one dimension or none."""

    def __init__(self, params: Any, lr: float, betas: tuple[float, float], weight_decay: float) -> None:
        parameters = list(params)
        decayed = [p for p in parameters if p.dim() > 1]
        rest = [p for p in parameters if p.dim() <= 1]
        groups = [{"params": rest, "weight_decay": 0.0}, {"params": decayed, "weight_decay": weight_decay}]
        super().__init__(groups, lr=lr, betas=betas, eps=1e-6)


def _clip(arrays: Arrays) -> Errors:
    given = renamed(arrays)
    given["labels_train"] = torch.arange(len(given["in_train_audio"])) % 10
    of = learner("clip", SIZES, 10, hidden=(64,), dimension=10, dropout=0.0)
    names = named({f"heads.{m}.{i}": f"{m}.{i}" for m in SIZES for i in (0, 2)})
    initial(of, given, names | {"log_scale": "logit_scale"})
    training = Training(
        epochs=15, batch=24, optimizer="adamw", learning_rate=float(arrays["option/learning_rate"]), betas=(0.9, 0.98),
        weight_decay=0.2, schedule="cosine", warmup=2.5, train_map=0, select="last",
    )  # fmt: skip
    with patch.dict(OPTIMIZERS, adamw=ReleasedAdamW):
        steps = trained(of, given, training, 4, SIZES)
    losses = {"all loss": "total", "all scale": "scale"}
    given["loss_scale"] = torch.cat([arrays["weights_0/logit_scale"].reshape(1), arrays["step/logit_scale"][:-1]]).exp()
    return {**held(of, steps, given, losses, names), "recall": _recall(of, given)}


def _recall(of: Learner, given: Arrays) -> float:
    """Compare the recall at 1, 5 and 10 of both directions with that of a reference."""
    vectors = {m: of.embed(given[f"in_test_{m}"], m).detach() for m in SIZES}
    count = len(vectors["audio"])
    found = evaluate(Embeddings(vectors, torch.arange(count), tuple(map(str, range(count)))), cutoffs=(1, 5, 10))
    rates = {way: torch.as_tensor(found["-".join(way)].curves.at((1, 5, 10)).hit_rate) for way in DIRECTIONS}
    return worst([(rate, given["_to_".join(way)][:3]) for way, rate in rates.items()])


def _heads(name: str, given: Arrays, epochs: int) -> Errors:
    """Train the heads of Mei et al. for some epochs of two batches."""
    of = Towers({"audio": (512, 16, 16), "text": (32, 32, 16)}, objective(released(name), BOTH_WAYS), relation="id")
    names = named({f"towers.{m}.{i}": f"{m}_linear.{i}" for m in ("audio", "text") for i in (0, 2)})
    initial(of.double(), given, names)
    training = settings("mei_clotho", given, 2, learning_rate=1e-3, epochs=epochs)
    return held(of, trained(of, given, training, 2, ("audio", "text")), given, {"all loss": "total"}, names)


def _mei(name: str) -> Certificate:
    def measure(arrays: Arrays) -> Errors:
        given = renamed(arrays)
        given["in_train_audio"] = given["in_train_audio"].repeat_interleave(5, 0)
        given["labels_train"] = torch.arange(80) // 5
        clipped = (float(arrays["option/clip_norm"]) / (arrays["step/gradient_norm_total"] + 1e-6)).clamp_max(1)
        given |= {key: values * clipped for key, values in given.items() if key.startswith("gradient_norm_")}
        found, best = _heads(name, given, 25), int(arrays["best_epoch"])
        if best < 25:  # the source scores its best weights
            short = {key: values[: 2 * best] for key, values in given.items()
                     if key.startswith(("gradient_norm_", "loss_", "batch_order"))}  # fmt: skip
            after = {key.replace("_50_", f"_{2 * best}_"): values for key, values in given.items()}
            found = {**found, "test vectors": _heads(name, {**after, **short}, best)["test vectors"]}
        return found

    return Certificate(
        f"training of {name} (mei)", f"audio_text/train_mei_{name.replace('-', '_')}", f"{MEI}, `train`", CURVE,
        measure,
        deviations="Heads on stored vectors, with the schedule and clipping of `configs/mei_clotho.yaml`.",
        tolerance=FLOAT32, folder=FOLDER,
    )  # fmt: skip


PAIR_TRAINING_CERTIFICATES: tuple[Certificate, ...] = (
    _pml("triplet_all", "TripletMarginLoss", {"name": "triplet", "margin": 1.2}),
    _pml("ntxent", "NTXentLoss", {"name": "nt-xent", "temperature": 0.07}),
    _pml("supcon", "SupConLoss", {"name": "supcon", "temperature": 0.1}),
    _pml("angular", "AngularLoss", {"name": "angular", "alpha": 40.0, "fidelity": "source"}),
    *(
        Certificate(
            "training of clip", f"audio_text/train_clip_{form}",
            "mlfoundations/open_clip @ 89fb801, `train_one_epoch`, `create_optimizer`, `cosine_lr`",
            (*CURVE, "recall"), _clip,
            deviations="With the released epsilon and without decay of biases, which are no options here.",
            tolerance=FLOAT32, folder=FOLDER,
        )
        for form in ("plain", "clamped")
    ),
    *(_mei(name) for name in OBJECTIVES),
)  # fmt: skip
