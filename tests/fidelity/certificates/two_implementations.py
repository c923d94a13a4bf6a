"""Methods without a released training, held against their second implementation: network, training and score."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from aadml.methods.correlation.dcca import CorrelationOptions
from aadml.methods.training.learner import Learner
from certificates import second_implementations as second
from certificates.certificate import Arrays, Certificate, Errors, value_and_gradients, worst
from certificates.networks import learner
from certificates.training import CURVE, SCORED, held, settings, trained

Loss = Callable[[Mapping[str, Tensor], Tensor], Tensor]
"""Weights, and rows of the training clips -> loss."""
SIZES = {"audio": 12, "visual": 20}
STEPS, RIDGE, SHARE = 20, 1e-3, 0.2


def drawn_learner(method: str, **options: object) -> Learner:
    """Return a learner whose first weights are the same in every run."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return learner(method, SIZES, 5, **options)


def drawn_clips() -> dict[str, Any]:
    """Draw 120 training and 40 test clips of 5 classes of unequal size, and batches of half of the clips."""
    generator = torch.Generator().manual_seed(41)
    orders = [torch.randperm(120, generator=generator)[:60] for _ in range(STEPS)]
    found: dict[str, Any] = {"batch_order": torch.stack(orders)}
    for split, count in (("train", 120), ("test", 40)):
        found[f"labels_{split}"] = torch.arange(count).sqrt().long() % 5
    for m, size in SIZES.items():
        centers = torch.randn(5, size, generator=generator, dtype=torch.float64)
        for split in ("train", "test"):
            labels = found[f"labels_{split}"]
            noise = torch.randn(len(labels), size, generator=generator, dtype=torch.float64)
            found[f"in_{split}_{m}"] = centers[labels] + noise
    return found


def average_precision(queries: Tensor, gallery: Tensor, labels: Tensor) -> Tensor:
    """Return MAP by cosine, by its definition: the mean of the precisions at the relevant ranks."""
    order = (nn.functional.normalize(queries) @ nn.functional.normalize(gallery).T).argsort(1, descending=True)
    relevant = (labels[order] == labels[:, None]).double()
    precision = relevant.cumsum(1) / torch.arange(1, len(labels) + 1)
    return ((precision * relevant).sum(1) / relevant.sum(1)).mean()


def start(of: Learner, names: Mapping[str, str]) -> dict[str, Tensor]:
    """Return the first weights of a learner as points, by the names of the second implementation."""
    state = of.state_dict()
    return {there: state[here].detach().clone().requires_grad_() for here, there in names.items()}


def statistics(*sizes: tuple[str, int]) -> dict[str, Tensor]:
    """Return the running statistics of batch normalizations before training, by prefix."""
    return {
        f"{prefix}{kind}": start_(size, dtype=torch.float64)
        for prefix, size in sizes
        for kind, start_ in (("mean", torch.zeros), ("var", torch.ones))
    }


def second_training(
    w: dict[str, Tensor], optimizer: torch.optim.Optimizer, loss: Loss, arrays: Arrays
) -> dict[str, Any]:
    """Train the second implementation; return its curves and last weights under the names of the references."""
    values: list[Tensor] = []
    norms: dict[str, list[Tensor]] = {name: [] for name in w}
    for rows in arrays["batch_order"]:
        optimizer.zero_grad()
        value = loss(w, rows)
        value.backward()
        values.append(value.detach())
        for name, p in w.items():
            assert p.grad is not None, name
            norms[name].append(p.grad.norm())
        optimizer.step()
    found = {"loss_total": torch.stack(values)} | {f"gradient_norm_{k}": torch.stack(v) for k, v in norms.items()}
    return found | {f"weight_after_{STEPS}_{name}": p.detach() for name, p in w.items()}


def tested(arrays: Mapping[str, Any], embed: Callable[[Tensor, str], Tensor]) -> dict[str, Any]:
    """Return the test vectors of the second implementation, and their MAP."""
    with torch.no_grad():
        vectors = {m: embed(arrays[f"in_test_{m}"], m) for m in SIZES}
    labels = arrays["labels_test"]
    return {f"out_test_{m}": v for m, v in vectors.items()} | {
        f"map_{q}_to_{g}": average_precision(vectors[q], vectors[g], labels)
        for q, g in (("audio", "visual"), ("visual", "audio"))
    }


def batches(arrays: Arrays, rows: Tensor) -> dict[str, Tensor]:
    """Return the features of a batch by modality."""
    return {m: arrays[f"in_train_{m}"][rows] for m in SIZES}


def layer_names(pairs: Mapping[str, str]) -> dict[str, str]:
    """Return the names of weights and biases, here -> in the second implementation."""
    return {f"{here}.{part}": f"{there}.{part}" for here, there in pairs.items() for part in ("weight", "bias")}


def _deep(method: str, share: float, **hidden: tuple[int, int]) -> Errors:
    """Compare deep CCA, or its cluster form if `share` is below 1: the weight of pairs beside clusters."""
    arrays = drawn_clips()
    options = CorrelationOptions(dropout=0.0, outputs=8, dimension=5, ridge=RIDGE)
    of = drawn_learner(method, options=options, **hidden)
    names = layer_names({f"encoders.{m}.{i}": f"{m}.{j}" for m in SIZES for i, j in (("1.0", 1), ("1.2", 2), ("2", 3))})
    affine = (("weight", "scale"), ("bias", "shift"))
    names |= {f"encoders.{m}.0.{here}": f"{m}.{there}" for m in SIZES for here, there in affine}
    w, running = start(of, names), statistics(*((f"{m}.", size) for m, size in SIZES.items()))

    def outputs(features: Mapping[str, Tensor], *, training: bool) -> list[Tensor]:
        return [second.deep_encoder(x, w, running, m, training) for m, x in features.items()]

    def loss(w: Mapping[str, Tensor], rows: Tensor) -> Tensor:
        encoded = outputs(batches(arrays, rows), training=True)
        return -second.cluster_correlation(*encoded, arrays["labels_train"][rows], RIDGE, share)

    found = second_training(w, torch.optim.RMSprop(list(w.values()), lr=1e-3), loss, arrays)
    steps = trained(of, arrays, settings(method.replace("-", "_"), arrays, 2), 2, SIZES)
    with torch.no_grad():
        encoded = outputs({m: arrays[f"in_train_{m}"] for m in SIZES}, training=False)
    solved = second.cluster_projections(*encoded, arrays["labels_train"], RIDGE, share, 5)
    ours = of.embed(arrays["in_train_audio"], "audio").double() * ((encoded[0] - encoded[0].mean(0)) @ solved[0])
    signs = ours.sum(0).sign()  # of each direction, common to both modalities
    maps = {m: (own.mean(0), weights * signs) for m, own, weights in zip(SIZES, encoded, solved, strict=True)}
    encode = lambda x, m: second.deep_encoder(x, w, running, m, False)  # noqa: E731
    found |= tested(arrays, lambda x, m: (encode(x, m) - maps[m][0]) @ maps[m][1])
    kept = {here: there for here, there in names.items() if not here.endswith("2.bias") or ".1." in here}
    return held(of, steps, {**arrays, **found}, {"encoders loss": "total"}, kept)


def _tnn_c_cca(_: Arrays) -> Errors:
    arrays = drawn_clips()
    of = drawn_learner("tnn-c-cca", dimension=6, hidden=(16, 14, 12), dropout=0.0)
    names = layer_names({f"branches.{m}.0.{2 * i}": f"{m}.{i + 1}" for m in SIZES for i in range(4)})
    w, features = start(of, names), {m: arrays[f"in_train_{m}"] for m in SIZES}
    solved = second.cluster_projections(*features.values(), arrays["labels_train"], 1e-4, SHARE, 6)
    of.solution.solve(features, arrays["labels_train"])
    signs = (of.solution.get_buffer("weights_audio") * solved[0]).sum(0).sign()
    projections = {m: weights * signs for m, weights in zip(SIZES, solved, strict=True)}
    # rounded to float32, as here; otherwise triplets near the margin differ
    project = lambda x, m: ((x - features[m].mean(0)) @ projections[m]).float().double()  # noqa: E731
    of.solution.forward = lambda x, m: (  # the same in double precision
        ((x - of.solution.get_buffer(f"mean_{m}")) @ of.solution.get_buffer(f"weights_{m}")).float().double()
    )

    def loss(w: Mapping[str, Tensor], rows: Tensor) -> Tensor:
        vectors = [second.triplet_branch(project(x, m), w, m) for m, x in batches(arrays, rows).items()]
        return second.active_triplets(*vectors, arrays["labels_train"][rows], 0.5)

    found = second_training(w, torch.optim.Adam(list(w.values()), lr=1e-3), loss, arrays)
    found |= tested(arrays, lambda x, m: second.triplet_branch(project(x, m), w, m))
    steps = trained(of, arrays, settings("tnn_c_cca", arrays, 2), 2, SIZES)
    return held(of, steps, {**arrays, **found}, {"branches loss": "total"}, names)


def _multi_scale() -> tuple[Learner, dict[str, str]]:
    """Return a small learner of the method msnsca, and its names in the second implementation."""
    of = drawn_learner("msnsca", visual_hidden=10, dropout=0.0)
    names = {"shared.weight": "shared_1", "joined.weight": "shared_2", "last.weight": "shared_3", "centers": "centers"}
    names |= {
        "own.visual.0.weight": "visual.first",
        "own.visual.4.weight": "visual.last",
        "own.audio.2.weight": "audio.last",
    }
    layers_ = {"across_scales": "across", "looking_back": "back"}
    pairs = {
        f"{here}.{part}": f"{there}.{part}"
        for here, there in layers_.items()
        for part in ("query", "key", "value", "output")
    }
    for m in SIZES:
        names |= {f"classifiers.{m}.{3 * i}.weight": f"{m}.classifier.{i}" for i in (0, 1)}
        pairs[f"scales.{m}.stem.0"] = f"{m}.scales.conv1"
        pairs |= {
            f"scales.{m}.branches.{i}.{2 * j}": f"{m}.scales.conv{kernel}_{j + 1}"
            for i, kernel in enumerate((3, 5, 7)) for j in (0, 1)
        }  # fmt: skip
    return of, names | layer_names(pairs)


def _msnsca(_: Arrays) -> Errors:
    arrays = drawn_clips()
    of, names = _multi_scale()
    w, running = start(of, names), statistics(("audio.", SIZES["audio"]), ("visual.", 10))

    def loss(w: Mapping[str, Tensor], rows: Tensor) -> Tensor:
        features = batches(arrays, rows)
        vectors = {m: second.partner_free(x, w, running, m, training=True) for m, x in features.items()}
        return second.msnsca_loss(vectors, w, arrays["labels_train"][rows], 0.01)

    found = second_training(w, torch.optim.Adam(list(w.values()), lr=1e-4), loss, arrays)
    found |= tested(arrays, lambda x, m: second.partner_free(x, w, running, m, training=False))
    steps = trained(of, arrays, settings("msnsca", arrays, 2), 2, SIZES)
    found = {key: values for key, values in found.items() if not key.startswith("map_")}
    return held(of, steps, {**arrays, **found}, {"all loss": "total"}, names)


def attention_weights() -> dict[str, Tensor]:
    """Draw weights of the released attention, whose scales start at 1."""
    generator = torch.Generator().manual_seed(43)
    sizes = {f"{m}.attention.{name}": (128, 128) for m in SIZES for name in "QKVM"}
    sizes |= {f"co.{name}": (128, 256) for name in ("W_ac", "W_vc", "K_c")}
    sizes |= {"co.Q_a": (128, 128), "co.V_c": (256, 256)} | {
        f"cross.{name}": (128, 128) for name in ("A_a", "A_v", "B_a", "B_v")
    }
    drawn = {name: torch.randn(size, generator=generator, dtype=torch.float64) / 12 for name, size in sizes.items()}
    return drawn | {"co.t_a": torch.tensor(1.0).double(), "co.t_v": torch.tensor(1.0).double()}


def _smsa(_: Arrays) -> Errors:
    """Put the released attention between the layers of msnsca, with the released ReLU on sound."""
    arrays = drawn_clips()
    of, names = _multi_scale()
    attention, w = attention_weights(), start(of, names)
    own = of.own["audio"]
    of.own["audio"] = nn.Sequential(own[0], nn.ReLU(), *own[1:])
    features, labels = batches(arrays, arrays["batch_order"][0]), arrays["labels_train"][arrays["batch_order"][0]]
    of.train()
    tokens = {m: of.scales[m](of.shared(of.own[m](x))) for m, x in features.items()}
    joined = {}
    for m, other in (("audio", "visual"), ("visual", "audio")):
        weights = second.within(attention, f"{m}.attention.")
        joined[m] = of.joined(torch.cat(
            [second.scale_attention(tokens[m][:, t], tokens[other][:, t], weights) for t in range(3)], 1
        ))  # fmt: skip
    mixed = second.co_attention(joined["audio"], joined["visual"], second.within(attention, "co."))
    ended = second.last_attention(*mixed, second.within(attention, "cross."))
    vectors = {m: of.last(x + joined[m]) for m, x in zip(joined, ended, strict=True)}
    running = statistics(("audio.", SIZES["audio"]), ("visual.", 10))
    expected, scores = second.smsa(features, w | attention, running, training=True)
    cost = lambda found: sum(nn.functional.cross_entropy(x, labels) for x in found.values())  # noqa: E731
    kept = {
        here: there for here, there in names.items() if there.partition(".")[0] not in ("across", "back", "centers")
    }
    parameters = {name.replace("own.audio.3", "own.audio.2"): p for name, p in of.named_parameters()}
    ours = {m: of.classifiers[m](x) for m, x in vectors.items()}
    _, gradients = value_and_gradients(cost(ours), [parameters[here] for here in kept])
    _, wanted = value_and_gradients(cost(scores), [w[there] for there in kept.values()])
    return {
        "embedding": worst([(vectors[m], expected[m]) for m in vectors]),
        "class scores": worst([(ours[m], scores[m]) for m in ours]),
        "gradient": worst(list(zip(gradients, wanted, strict=True))),
        "attention among the scales of an item": worst([(of.embed(x, m), expected[m]) for m, x in features.items()]),
    }


SECOND = "a second implementation"
TWO_CERTIFICATES: tuple[Certificate, ...] = (
    Certificate(
        "dcca, the default", "", SECOND, SCORED,
        lambda _: _deep("dcca", 1.0, hidden_audio=(16, 14), hidden_visual=(18, 10)), by_hand=True,
        deviations="With the floor of 1e-9 below squared correlations. Vectors in float32.",
    ),
    Certificate(
        "c-dcca", "", SECOND, SCORED, lambda _: _deep("c-dcca", 0.2, hidden=(16, 14)), by_hand=True,
        deviations="With the floor of 1e-9 below squared correlations. Vectors in float32.",
    ),
    Certificate(
        "tnn-c-cca, the default", "", SECOND, SCORED, _tnn_c_cca, by_hand=True,
        deviations="From the projections of cluster CCA to the sigmoid, with partners among the positives.",
    ),
    Certificate(
        "msnsca", "", SECOND, CURVE, _msnsca, by_hand=True,
        deviations="Of this project's attention, among the scales of an item. MAP is not compared: in float32, some "
        "scores tie.",
    ),
    Certificate(
        "smsa-va-cmr", "", "zhangjiwei-japan/SMSA-VA-CMR @ dc29955, `cross_modal_net`",
        ("embedding", "class scores", "gradient"), _smsa, by_hand=True,
        repairs=("attention among the scales of an item",),
        deviations="The layers of msnsca around the released attention, which runs over the batch and is not offered "
        "here. The ReLU on sound, which msnsca omits, is put in.",
    ),
)  # fmt: skip
