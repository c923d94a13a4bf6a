"""Whole trainings against released code: from its weights, batches and draws, step by step, to the test vectors."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

from aadml.comparison.clips import Clips
from aadml.comparison.embeddings import Embeddings
from aadml.configuration.files import open_config
from aadml.methods.correlation.dcca import CorrelationOptions
from aadml.methods.networks import layers
from aadml.methods.training.learner import Batch, Epoch, Learner, Player, Stage
from aadml.methods.training.loop import train
from aadml.methods.training.optimization import OPTIMIZERS, Optimization, Step
from aadml.methods.training.session import Session
from aadml.methods.training.settings import Training
from aadml.objective import Embedded
from aadml.objective.objective import Objective
from aadml.retrieval.evaluation import mean_average_precision
from certificates.certificate import Arrays, Certificate, Errors, put, worst
from certificates.losses import objective
from certificates.networks import VAE_NAMES, drawn, learner

Steps = list[Mapping[str, Tensor]]
FOLDER = "training_references"
CURVE = ("loss curve", "gradient norms", "weights after the last step", "test vectors")
SCORED = (*CURVE, "MAP")
DIRECTIONS = (("audio", "visual"), ("visual", "audio"))


def settings(config: str, arrays: Arrays, per_epoch: int, **changes: object) -> Training:
    """Return the schedule of a shipped config with the numbers that the reference changed, and no choice of epochs."""
    steps, batch = arrays["batch_order"].shape
    shipped = open_config(config).resolve().training
    return replace(
        shipped, **{"epochs": steps // per_epoch, "batch": batch, "train_map": 0, "select": "last"} | changes
    )


def trained(
    of: Learner,
    arrays: Arrays,
    training: Training,
    per_epoch: int,
    modalities: Iterable[str],
    factors: Sequence[float] = (),
) -> Steps:
    """Train a learner on the batches of a reference; return the loss, its parts and the gradient norms of each step.

    `factors` are the factors of the rate by epoch, of a schedule that is none of ours.
    """
    order, steps = [rows.long() for rows in arrays["batch_order"]], []
    features = {m: arrays[f"in_train_{m}"] for m in modalities}
    labels = arrays["labels_train"].long()
    clips = Clips(features, labels, tuple(map(str, range(len(labels)))), tuple(map(str, range(int(labels.max()) + 1))))
    batches = lambda train, epoch, generator: list(order[epoch.number * per_epoch :][:per_epoch])  # noqa: E731
    original = Optimization.step

    def recorded(self: Optimization, name: str, *rest: object, **options: object) -> Mapping[str, Tensor]:
        parts = original(self, name, *rest, **options)
        norms = {key: p.grad.norm() for key, p in of.named_parameters() if p.grad is not None}
        steps.append({f"{name} {key}": value.detach() for key, value in parts.items()} | norms)
        return parts

    of.stages = lambda epochs: [Stage("train", epochs, batches=batches)]
    of_epoch = lambda step, own: factors[step.epoch] if own.schedule == training.schedule else 1.0  # noqa: E731
    decay = of_epoch if factors else Step.decay
    with patch.object(Optimization, "step", recorded), patch.object(Step, "decay", decay):
        train(of, clips, clips.select(torch.arange(0)), training, Session(), seed=0)
    return steps


def curve(steps: Steps, name: str) -> Tensor:
    """Return a value of every step that has it, (steps,)."""
    return torch.stack([step[name] for step in steps if name in step])


def held(of: Learner, steps: Steps, arrays: Arrays, losses: Mapping[str, str], names: Mapping[str, str]) -> Errors:
    """Compare loss curves, gradient norms, last weights and test vectors with those of a reference."""
    count, weights = len(arrays["batch_order"]), of.state_dict()
    vectors = [m for m in ("audio", "visual", "text") if f"out_test_{m}" in arrays]
    return {
        "loss curve": worst([(curve(steps, here), arrays[f"loss_{there}"]) for here, there in losses.items()]),
        "gradient norms": worst(
            [(curve(steps, here), arrays[f"gradient_norm_{there}"]) for here, there in names.items()]
        ),
        "weights after the last step": worst(
            [(weights[here], arrays[f"weight_after_{count}_{there}"]) for here, there in names.items()]
        ),
        "test vectors": worst([(of.embed(arrays[f"in_test_{m}"], m), arrays[f"out_test_{m}"]) for m in vectors]),
    } | ({"MAP": score(of, arrays)} if "map_audio_to_visual" in arrays else {})


def score(of: Learner, arrays: Arrays) -> float:
    """Compare MAP of both directions over the test clips with that of a reference."""
    vectors = {m: of.embed(arrays[f"in_test_{m}"], m).detach() for m in ("audio", "visual")}
    labels = arrays["labels_test"].long()
    tested = Embeddings(vectors, labels, tuple(map(str, range(len(labels)))))
    found = [torch.tensor(mean_average_precision(tested, way), dtype=torch.float64) for way in DIRECTIONS]
    return worst([(value, arrays[f"map_{q}_to_{g}"]) for value, (q, g) in zip(found, DIRECTIONS, strict=True)])


def named(pairs: Mapping[str, str]) -> dict[str, str]:
    """Return the names of weights and biases, here -> in the source."""
    return {f"{here}.{part}": f"{there}.{part}" for here, there in pairs.items() for part in ("weight", "bias")}


SIZES = {"visual": 256, "audio": 128}
DSCMR_NAMES = named({"own.visual.0": "img_net.denseL1", "own.audio.0": "text_net.denseL1", "shared": "linearLayer",
                     "classifier": "linearLayer2"})  # fmt: skip


def initial(of: Learner, arrays: Arrays, names: Mapping[str, str]) -> None:
    """Start a learner from the first weights of a reference."""
    put(of, {here: arrays[f"weight_initial_{there}"] for here, there in names.items()})


def _dscmr(arrays: Arrays) -> Errors:
    of = learner("dscmr", SIZES, 10, hidden=(32,), dimension=16)
    initial(of, arrays, DSCMR_NAMES)
    steps = trained(of, arrays, settings("dscmr", arrays, 6, learning_rate=1e-3), 6, SIZES)
    losses = {"loss": "total", "label_loss": "label", "likelihood": "likelihood", "apart": "apart"}
    return held(of, steps, arrays, {f"all {here}": there for here, there in losses.items()}, DSCMR_NAMES)


def _vae_cca(arrays: Arrays) -> Errors:
    of = learner("vae-cca", SIZES, 10, hidden=32, inner=12, dimension=12, fidelity="source")
    initial(of, arrays, VAE_NAMES)
    noise, centers = (
        [arrays[f"{kind}_{m}"][step] for step in range(60) for m in SIZES] for kind in ("noise", "centers")
    )
    with drawn("randn_like", noise), drawn("randn", centers):
        steps = trained(of, arrays, settings("vae_cca", arrays, 6, learning_rate=1e-3), 6, SIZES)
    parts = ("vae", "label", "correlation", "apart", "center")  # weighted in the file, and not here
    plain = {f"loss_{name}": arrays[f"loss_{name}"] / arrays[f"option_weight_{name}"] for name in parts}
    losses = {f"all {name}_loss": name for name in parts}
    return held(of, steps, {**arrays, **plain}, {"all loss": "total", **losses}, VAE_NAMES)


class TensorFlowAdam(torch.optim.Optimizer):
    """Adam of TensorFlow 1 and Keras: epsilon is added to the root of the second moment before its correction.

    torch adds epsilon after the correction, which makes single weights differ by 1e-5 after 60 steps.
    """

    epsilon = 1e-8

    def __init__(self, params: Any, lr: float, betas: tuple[float, float], weight_decay: float = 0.0) -> None:
        assert not weight_decay
        super().__init__(params, {"lr": lr, "betas": betas})

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            first, second = group["betas"]
            for p in (p for p in group["params"] if p.grad is not None):
                state = self.state[p]
                state["step"] = step = state.get("step", 0) + 1
                state["m"] = state.get("m", torch.zeros_like(p)).lerp(p.grad, 1 - first)
                state["v"] = state.get("v", torch.zeros_like(p)).lerp(p.grad.square(), 1 - second)
                rate = group["lr"] * (1 - second**step) ** 0.5 / (1 - first**step)
                p -= rate * state["m"] / (state["v"].sqrt() + self.epsilon)


class KerasAdam(TensorFlowAdam):
    """Adam of Keras, whose epsilon is larger."""

    epsilon = 1e-7


def _acmr(arrays: Arrays) -> Errors:
    of = learner("acmr", SIZES, 10, dimension=16, visual_hidden=(48, 24), hidden=(16, 24), adv_weight=0.0,
                 fidelity="source")  # fmt: skip
    sides = {"visual": "vf", "audio": "le"}
    encoders = named({f"encoders.{m}.{2 * i}": f"{side}_fc_{i}" for m, side in sides.items() for i in range(3)})
    critic = {f"modality_classifier.{i}": f"dc_fc_{i}" for i in range(3)}
    initial(of, arrays, encoders | named({"classifier": "lc_fc_0"} | critic))
    of.classifier.requires_grad_(False)
    with patch.dict(OPTIMIZERS, adam=TensorFlowAdam):
        steps = trained(of, arrays, settings("acmr", arrays, 6, learning_rate=1e-3), 6, SIZES)
    losses = {"loss": "embedding", "label_loss": "label", "triplet_loss": "triplet"}
    encoder_steps = [step for step in steps if "encoders loss" in step]
    return held(of, encoder_steps, arrays, {f"encoders {here}": there for here, there in losses.items()}, encoders)


def _tnn_c_cca(arrays: Arrays) -> Errors:
    of = learner(
        "tnn-c-cca",
        dict(reversed(SIZES.items())),
        10,
        dropout=0.0,
        margin=float(arrays["option_margin"]),
        fidelity="source",
    )
    of.solution.forward = lambda values, modality: values  # the released networks begin with the features
    for m, size in SIZES.items():
        of.branches[m][0][0] = nn.Linear(size, 100).double()
    names = named({f"branches.{m}.0.{2 * i}": f"{m}.{i}" for m in SIZES for i in range(4)})
    initial(of, arrays, names)
    vectors = {f"out_test_{m}": arrays[f"out_network_test_{m}"] for m in SIZES}
    vectors |= {f"map_{q}_to_{g}": arrays[f"map_network_{q}_to_{g}"] for q, g in DIRECTIONS}
    with patch.dict(OPTIMIZERS, adam=KerasAdam):
        steps = trained(of, arrays, settings("tnn_c_cca", arrays, 12), 12, ("audio", "visual"))
    return held(of, steps, {**arrays, **vectors}, {"branches loss": "total"}, names)


def _dcca(arrays: Arrays) -> Errors:
    options = CorrelationOptions(dropout=0.0, objective="source", ridge=float(arrays["option_ridge"]))
    of = learner("dcca", SIZES, 10, options=options)
    names = {}
    for m, model in (("visual", "model1"), ("audio", "model2")):
        of.encoders[m] = released_encoder(SIZES[m]).double()
        names |= named({f"encoders.{m}.{i}": f"{model}.layers.{j}" for i, j in ((0, "0.0"), (3, "1.0"), (7, "2.1"))})
    initial(of, arrays, names)
    per_epoch = 240 // arrays["batch_order"].shape[1]
    decay = float(arrays["option_weight_decay"])
    training = settings("dcca", arrays, per_epoch, weight_decay=decay)
    steps = trained(of, arrays, training, per_epoch, ("visual", "audio"))
    of.ridge = float(arrays["option_linear_ridge"])
    of._solve()
    found = score(of, arrays)
    of.embed = lambda values, m: of._outputs(values, m)
    vectors = {f"out_test_{m}": arrays[f"out_network_test_{m}"] for m in SIZES}
    kept = {here: there for here, there in names.items() if here[-6:] != "7.bias"}  # its gradient is rounding
    return {**held(of, steps, {**arrays, **vectors}, {"encoders loss": "total"}, kept), "MAP": found}


def released_encoder(size: int) -> nn.Sequential:
    """Build the network of Michaelvll/DeepCCA, which has batch normalization without weights after each layer."""
    return nn.Sequential(
        nn.Linear(size, 32), nn.Sigmoid(), nn.BatchNorm1d(32, affine=False),
        nn.Linear(32, 24), nn.Sigmoid(), nn.BatchNorm1d(24, affine=False),
        nn.BatchNorm1d(24, affine=False), nn.Linear(24, 10),
    )  # fmt: skip


def _agah(arrays: Arrays) -> Errors:
    of = learner(
        "agah", dict(reversed(SIZES.items())), 10, hidden=(32, 16), dimension=16,
        critic_learning_rate=float(arrays["option_critic_lr"]),
    )  # fmt: skip
    shorts = {"visual": ("img", (1, 3)), "audio": ("txt", (0, 2))}
    pairs, critics = {}, {}
    for m, (short, numbers) in shorts.items():
        pairs |= {f"encoders.{m}.{2 * i}": f"{short}_module.{number}" for i, number in enumerate(numbers)}
        pairs |= {f"hashes.{m}": f"hash_module.{short}.0", f"classifiers.{m}": f"classifier.{short}.0"}
        critics |= {f"critics.{m}.{i}": f"{short}_discriminator.{i}" for i in (0, 2, 4)}
    initial_of = {here: arrays[f"weight_initial_{there}"] for here, there in named(pairs | critics).items()}
    put(of, initial_of)
    slow, players = list(of.encoders["visual"].parameters()), of.players()
    rates = dict.fromkeys(slow, 1e-3)
    of.players = lambda: {**players, "hashing": replace(players["hashing"], rates=rates)}
    of._features = lambda values, m: (found := of.encoders[m](values)) / found.detach().norm()

    def prepare(train: Clips, epoch: Epoch) -> None:
        of.class_features, of.class_codes = arrays["class_features"][epoch.number], arrays["class_codes"][epoch.number]

    of.before_epoch = prepare
    shares = [arrays[f"share_critic_{short}"][step] for step in range(60) for short in ("txt", "img")]
    factors = (arrays["learning_rate_hashing_0"][::6] / 1e-3).tolist()
    with drawn("rand", shares):
        steps = trained(of, arrays, settings("agah", arrays, 6, learning_rate=1e-2), 6, ("audio", "visual"), factors)
    prepare(None, Epoch("test", 10, 11))
    of.embed = lambda values, m: of._hash(of._features(values, m), m)
    both = {"loss_triplet": arrays["loss_triplet_visual_to_audio"] + arrays["loss_triplet_audio_to_visual"]}
    terms = {"loss": "total"} | {f"{name}_loss": name for name in ("triplet", "balance", "code", "quantization")}
    hashing = [step for step in steps if "hashing loss" in step]
    losses = {f"hashing {here}": there for here, there in terms.items()}
    kept = held(of, hashing, {**arrays, **both}, losses, named(pairs))
    games = [step for step in steps if "critics loss" in step]
    norms = [(curve(games, here), arrays[f"gradient_norm_{there}"]) for here, there in named(critics).items()]
    return {**kept, "gradient norms of the critics": worst(norms)}


class Towers(Learner):
    """A tower a modality under an objective, as the released loops train it."""

    def __init__(self, sizes: Mapping[str, tuple[int, ...]], objective: Objective, relation: str = "label") -> None:
        super().__init__()
        self.relation = relation
        self.towers = nn.ModuleDict({m: layers(size, last=False) for m, size in sizes.items()})
        self.objective = objective

    def players(self) -> Mapping[str, Player]:
        return {"all": Player(list(self.parameters()), self._loss)}

    def embed(self, features: Tensor, modality: str) -> Tensor:
        return self.towers[modality](features)

    def _loss(self, batch: Batch) -> Mapping[str, Tensor]:
        vectors = {m: self.embed(values, m) for m, values in batch.features.items()}
        return self.objective(Embedded(vectors, batch.labels, batch.index, self.relation), batch.generator)


def _supcon(arrays: Arrays) -> Errors:
    of = Towers({m: (size, 32, 16) for m, size in SIZES.items()}, objective({"name": "supcon", "temperature": 0.07}))
    of = of.double()
    names = named({f"towers.{m}.{i}": f"{m}.{i}" for m in SIZES for i in (0, 2)})
    initial(of, arrays, names)
    training = Training(
        epochs=10, batch=40, optimizer="sgd", momentum=0.9, weight_decay=1e-4, learning_rate=0.05, train_map=0,
        select="last",
    )  # fmt: skip
    steps = trained(of, arrays, training, 6, SIZES, factors=[1.0] * 6 + [0.1] * 2 + [0.01] * 2)
    of.embed = lambda values, m: nn.functional.normalize(of.towers[m](values))
    return held(of, steps, arrays, {"all loss": "total"}, names)


TRAINING_CERTIFICATES: tuple[Certificate, ...] = (
    Certificate(
        "training of acmr", "audio_visual/acmr_training", "sunpeng981712364/ACMR_demo @ 14b277f, `train`", SCORED,
        _acmr,
        deviations="With `fidelity: source`, `adv_weight: 0`, the Adam of TensorFlow, and the label classifier held "
        "still, as released. The classifier of modalities is not compared: here it moves after the encoders, there "
        "at once with them.",
        tolerance=1e-10, folder=FOLDER,
    ),
    Certificate(
        "training of agah", "audio_visual/agah_training", "BMC-SDNU/Cross-Modal-Retrieval @ 710256f, `train`",
        (*SCORED, "gradient norms of the critics"), _agah, folder=FOLDER,
        deviations="From the source's features and codes of classes in each epoch, with one norm for the whole batch, "
        "through which it takes no gradient, its rates by layer and by epoch, and the points that it drew.",
    ),
    Certificate(
        "training of tnn-c-cca", "audio_visual/tnn_training",
        "ZenzenDatabase/CMR @ 31963c0, `create_network`, `triplet_loss`, `myGenerator`", SCORED, _tnn_c_cca,
        deviations="Network (tanh, sigmoid at the end) and training of `triplet_ccca.py` with `fidelity: source` and "
        "the Adam of Keras, from features instead of projections.",
        tolerance=1e-10, folder=FOLDER,
    ),
    *(
        Certificate(
            subject, f"audio_visual/{file}", "Michaelvll/DeepCCA @ 63186ba, `Solver.fit`", SCORED, _dcca,
            deviations="With `objective: source` and the released network, which has batch normalization after each "
            "layer; the network here is that of the AADML paper's group.",
            tolerance=1e-8, folder=FOLDER,
        )
        for subject, file in (
            ("training of dcca", "dcca_training"), ("training of dcca, in batches", "dcca_training_batches")
        )
    ),
    Certificate(
        "training of supcon", "audio_visual/supcon_training",
        "HobbitLong/SupContrast @ 66a8fe5, `train`, `set_optimizer`, `adjust_learning_rate`", SCORED, _supcon,
        deviations="Two steps of the rate at epochs that no schedule here has; the rates are those of the source.",
        tolerance=1e-10, folder=FOLDER,
    ),
    Certificate(
        "training of dscmr", "audio_visual/dscmr_training", "penghu-cs/DSCMR @ 0e110b9, `train_model`", SCORED, _dscmr,
        tolerance=1e-10, folder=FOLDER,
    ),
    Certificate(
        "training of vae-cca", "audio_visual/vae_cca_training",
        "zhangjiwei-japan/visual-audio-cross-modal-retrieval @ b6ea8b1, `train_model`", SCORED, _vae_cca,
        deviations="With `fidelity: source`, and the noise and centers that the source drew.",
        tolerance=1e-10, folder=FOLDER,
    ),
)  # fmt: skip
