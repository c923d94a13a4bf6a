"""Whole trainings of towers against released code: pytorch-metric-learning, CLIP, and the heads of Mei et al."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

from aadml.comparison.embeddings import Embeddings
from aadml.methods.training.learner import Batch, Learner
from aadml.methods.training.settings import OPTIMIZERS, Training
from aadml.objective import Objective
from aadml.objective.objective import ObjectiveOptions
from aadml.proxies.memory import Memory
from aadml.retrieval.evaluation import evaluate
from aadml.selections.all_pairs import everything
from certificates.audio_text import BOTH_WAYS, MEI, OBJECTIVES, released
from certificates.certificate import Arrays, Certificate, Errors, worst
from certificates.losses import LABELS, PML, objective
from certificates.memories import released_contrastive
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


def clipped(given: dict[str, Any], arrays: Arrays) -> dict[str, Any]:
    """Return the arrays with gradient norms after clipping, as the loop here records them."""
    if "step/gradient_norm_total" not in arrays:
        return given
    factor = (float(arrays["option/clip_norm"]) / (arrays["step/gradient_norm_total"] + 1e-6)).clamp_max(1)
    return given | {key: values * factor for key, values in given.items() if key.startswith("gradient_norm_")}


def _pml(file: str, source: str, loss: Mapping[str, Any], selection: Any = None, proxies: str = "") -> Certificate:
    """Hold a training of two towers; `proxies` is the source's name of proxies, which both modalities together have."""

    def measure(arrays: Arrays) -> Errors:
        given = renamed(arrays)
        objective_ = objective(loss, None if proxies else LABELS, selection, dimension=10, classes=8)
        tower = UnitTowers if "step/pair_rows" in arrays else Towers
        of = tower({m: (size, 64, 10) for m, size in SIZES.items()}, objective_).double()
        names = named({f"towers.{m}.{i}": f"{m}.{i}" for m in SIZES for i in (0, 2)})
        if proxies:
            names["objective.owned.0.proxies"] = f"loss.{proxies}"
            columns = [key for key, values in given.items() if key.endswith(f"_loss.{proxies}") and values.dim() == 2]
            given |= {key: given[key].T for key in columns if given[key].shape[1] != 10}
        initial(of, given, names)
        training = Training(epochs=8, batch=24, learning_rate=1e-3, train_map=0, select="last")
        steps = trained(of, given | _of_pairs(arrays), training, 8, SIZES)
        return held(of, steps, given, {"all loss": "total"}, names)

    return Certificate(
        f"training of {loss['name']} (towers)", f"audio_text/train_pml_{file}", f"{PML}, `{source}`", SCORED, measure,
        deviations="The loop of the reference is not the library's."
        + (" On the pairs that the source drew, of unit vectors." if file == "npairs" else ""),
        tolerance=FLOAT32, folder=FOLDER,
    )  # fmt: skip


class UnitTowers(Towers):
    """Towers whose objective compares unit vectors; their embeddings keep their lengths."""

    def embed(self, features: Tensor, modality: str) -> Tensor:
        vectors = super().embed(features, modality)
        return nn.functional.normalize(vectors, dim=1) if self.training else vectors


def _of_pairs(arrays: Arrays) -> dict[str, Any]:
    """Return the batches of the pairs that the source drew, one of each class; nothing if it drew none."""
    if "step/pair_rows" not in arrays:
        return {}
    batches = zip(arrays["step/batch_items"].long(), arrays["step/pair_rows"].long(), strict=True)
    return {"batch_order": [items[rows[rows >= 0]] for items, rows in batches]}


class ReleasedAdamW(torch.optim.AdamW):
    """AdamW as open_clip builds it: epsilon 1e-6, and no decay of parameters of one dimension or none."""

    def __init__(self, params: Any, lr: float, betas: tuple[float, float], weight_decay: float) -> None:
        parameters = list(params)
        decayed = [p for p in parameters if p.dim() > 1]
        rest = [p for p in parameters if p.dim() <= 1]
        groups = [{"params": rest, "weight_decay": 0.0}, {"params": decayed, "weight_decay": weight_decay}]
        super().__init__(groups, lr=lr, betas=betas, eps=1e-6)


def _clip(arrays: Arrays) -> Errors:
    given = clipped(renamed(arrays), arrays)
    given["labels_train"] = torch.arange(len(given["in_train_audio"])) % 10
    of = learner("clip", SIZES, 10, hidden=(64,), dimension=10, dropout=0.0)
    normalized = "weights_0/audio.3.weight" in arrays  # layer norm after the first layer
    parts = (0, 1, 3) if normalized else (0, 2)
    if normalized:
        for m, size in SIZES.items():
            of.heads[m] = nn.Sequential(nn.Linear(size, 64), nn.LayerNorm(64), nn.ReLU(), nn.Linear(64, 10)).double()
    names = named({f"heads.{m}.{i}": f"{m}.{i}" for m in SIZES for i in parts})
    initial(of, given, names | {"log_scale": "logit_scale"})
    training = Training(
        epochs=15, batch=24, optimizer="adamw", learning_rate=float(arrays["option/learning_rate"]), betas=(0.9, 0.98),
        weight_decay=0.2, schedule="cosine", warmup=2.5, clip_norm=float(arrays["option/clip_norm"]), train_map=0,
        select="last",
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
        given = clipped(renamed(arrays), arrays)
        given["in_train_audio"] = given["in_train_audio"].repeat_interleave(5, 0)
        given["labels_train"] = torch.arange(80) // 5
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


class NewClips(Towers):
    """Towers that take each clip of a batch for a new one, so that the memory keeps it beside its stored embedding."""

    steps = 0

    def _loss(self, batch: Batch) -> Mapping[str, Tensor]:
        self.steps += 1
        return super()._loss(replace(batch, index=batch.index + 1000 * self.steps))


def _xbm(arrays: Arrays) -> Errors:
    kept = _with_memory(NewClips, arrays)
    return {**kept, "a clip of the batch is a candidate once": _with_memory(Towers, arrays)["loss curve"]}


def _with_memory(tower: type[Towers], arrays: Arrays) -> Errors:
    given = renamed(arrays)
    both = Objective(
        released_contrastive,
        everything,
        Memory(10, tuple(SIZES), size=int(arrays["option/memory_size"]), batch="fixed"),
        directions=("audio-visual", "visual-audio"),
        reduced=ObjectiveOptions(reduction="sum", combine="sum"),
    )
    of = tower({m: (size, 64, 10) for m, size in SIZES.items()}, both).double()
    names = named({f"towers.{m}.{i}": f"{m}.{i}" for m in SIZES for i in (0, 2)})
    initial(of, given, names)
    training = Training(epochs=8, batch=24, learning_rate=1e-3, train_map=0, select="last")
    return held(of, trained(of, given, training, 8, SIZES), given, {"all loss": "total"}, names)


PAIR_TRAINING_CERTIFICATES: tuple[Certificate, ...] = (
    _pml("triplet_all", "TripletMarginLoss", {"name": "triplet", "margin": 1.2}),
    _pml("ntxent", "NTXentLoss", {"name": "nt-xent", "temperature": 0.07}),
    _pml("supcon", "SupConLoss", {"name": "supcon", "temperature": 0.1}),
    _pml("angular", "AngularLoss", {"name": "angular", "alpha": 40.0, "fidelity": "source"}),
    _pml("npairs", "NPairsLoss", {"name": "n-pair", "l2": 0.0}),
    _pml(
        "triplet_batch_hard", "TripletMarginLoss`, `BatchHardMiner",
        {"name": "triplet", "score": "cosine", "margin": 0.2}, {"name": "batch-hard", "score": "cosine"},
    ),
    _pml(
        "multi_similarity", "MultiSimilarityLoss`, `MultiSimilarityMiner",
        {"name": "multi-similarity", "reduction": "per-anchor"}, "multi-similarity",
    ),
    _pml("proxy_nca", "ProxyNCALoss", {"name": "proxy-nca", "temperature": 1 / 3}, proxies="proxies"),
    _pml("proxy_anchor", "ProxyAnchorLoss", {"name": "proxy-anchor"}, proxies="proxies"),
    _pml("soft_triple", "SoftTripleLoss", {"name": "soft-triple", "centers": 3, "merge": 0.0}, proxies="fc"),
    _pml("arcface", "ArcFaceLoss", {"name": "arcface"}, proxies="W"),
    Certificate(
        "training of xbm (towers)", "audio_text/train_pml_xbm_contrastive", f"{PML}, `CrossBatchMemory`", SCORED, _xbm,
        repairs=("a clip of the batch is a candidate once",), tolerance=FLOAT32, folder=FOLDER,
        deviations="With the source's contrastive loss, which is not the one here. Stored embeddings of clips of the "
        "batch are left out here, and kept there.",
    ),
    *(
        Certificate(
            "training of clip", f"audio_text/train_clip_{form}",
            "mlfoundations/open_clip @ 89fb801, `train_one_epoch`, `create_optimizer`, `cosine_lr`",
            (*CURVE, "recall"), _clip,
            deviations="With the released epsilon and without decay of biases, which are no options here."
            + (" The towers have layer norm." if form == "layer_norm" else ""),
            tolerance=FLOAT32, folder=FOLDER,
        )
        for form in ("plain", "clamped", "layer_norm")
    ),
    *(_mei(name) for name in OBJECTIVES),
)  # fmt: skip
