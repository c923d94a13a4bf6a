"""Methods written a second time in plain torch, from the papers and the released networks alone.

Nothing of the product is imported. Where the product decomposes a covariance by eigenvectors, these formulas use
Cholesky factors. Where the product sums class means, they sum pairs.
"""

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional

Weights = Mapping[str, Tensor]


def factors(first: Tensor, second: Tensor, labels: Tensor, ridge: float, pair_weight: float) -> list[Tensor]:
    """Return both Cholesky factors of the covariances, and the whitened mixed cross-covariance of cluster CCA."""
    x, y = first - first.mean(0), second - second.mean(0)
    below = len(x) - 1
    roots = [torch.linalg.cholesky(v.T @ v / below + ridge * torch.eye(v.shape[1], dtype=v.dtype)) for v in (x, y)]
    same = (labels[:, None] == labels).to(x.dtype)
    cross = pair_weight * (x.T @ y) / below + (1 - pair_weight) * (x.T @ same @ y) / same.sum()
    left = torch.linalg.solve_triangular(roots[0], cross, upper=False)
    return [*roots, torch.linalg.solve_triangular(roots[1], left.T, upper=False).T]


def cluster_correlation(first: Tensor, second: Tensor, labels: Tensor, ridge: float, pair_weight: float) -> Tensor:
    """Return the sum of all canonical correlations of cluster CCA, each at least the root of 1e-9."""
    squares = torch.linalg.svdvals(factors(first, second, labels, ridge, pair_weight)[2]).square()
    return (squares + 1e-9).sqrt().sum()


def cluster_projections(
    first: Tensor, second: Tensor, labels: Tensor, ridge: float, pair_weight: float, dimension: int
) -> tuple[Tensor, Tensor]:
    """Return the projections of cluster CCA, (d1, dimension) and (d2, dimension), each column up to its sign."""
    left, right, whitened = factors(first, second, labels, ridge, pair_weight)
    u, _, v = torch.linalg.svd(whitened)
    return (
        torch.linalg.solve_triangular(left.T, u[:, :dimension], upper=True),
        torch.linalg.solve_triangular(right.T, v.T[:, :dimension], upper=True),
    )


def normalized(values: Tensor, w: Weights, statistics: dict[str, Tensor], prefix: str, training: bool) -> Tensor:
    """Return values after batch normalization; in training, running statistics below `prefix` move by a tenth."""
    mean, variance = statistics[f"{prefix}mean"], statistics[f"{prefix}var"]
    if training:
        own, spread = values.mean(0), values.var(0)
        with torch.no_grad():
            mean.lerp_(own, 0.1)
            variance.lerp_(spread, 0.1)
        mean, variance = own, spread * (len(values) - 1) / len(values)
    scaled = (values - mean) / (variance + 1e-5).sqrt()
    return scaled * w[f"{prefix}scale"] + w[f"{prefix}shift"] if f"{prefix}scale" in w else scaled


def deep_encoder(values: Tensor, w: Weights, statistics: dict[str, Tensor], m: str, training: bool) -> Tensor:
    """Return the output of an encoder of C-DCCA: batch normalization, two sigmoid layers, and a linear layer."""
    values = normalized(values, w, statistics, f"{m}.", training)
    for layer in range(1, 4):
        values = values @ w[f"{m}.{layer}.weight"].T + w[f"{m}.{layer}.bias"]
        values = torch.sigmoid(values) if layer < 3 else values
    return values


def triplet_branch(values: Tensor, w: Weights, m: str) -> Tensor:
    """Return the output of a branch of TNN-C-CCA without dropout: four tanh layers, and a sigmoid at the end."""
    for layer in range(1, 5):
        values = torch.tanh(values @ w[f"{m}.{layer}.weight"].T + w[f"{m}.{layer}.bias"])
    return torch.sigmoid(values)


def active_triplets(audio: Tensor, visual: Tensor, labels: Tensor, margin: float) -> Tensor:
    """Return the mean over all triplets above 0, with audio anchors and visual positives and negatives."""
    distance = (audio[:, None] - visual).square().sum(2)
    same = labels[:, None] == labels
    costs = (margin + distance[:, :, None] - distance[:, None]).relu()[same[:, :, None] & ~same[:, None]]
    return costs[costs > 0].mean()


def scales(values: Tensor, w: Weights) -> list[Tensor]:
    """Return the three scales of SMSA-VA-CMR's convolutions over a vector of 128 numbers, (n, 128) each."""
    pool = functional.max_pool1d
    wide = pool(functional.conv1d(values[:, None], w["conv1.weight"], w["conv1.bias"], stride=2, padding=4), 2)
    found = []
    for kernel in (3, 5, 7):
        maps = wide
        for layer in (1, 2):
            name = f"conv{kernel}_{layer}"
            maps = pool(functional.conv1d(maps, w[f"{name}.weight"], w[f"{name}.bias"], padding=kernel // 2), 2)
        found.append(pool(maps, 8, 1).flatten(1))
    return found


def scale_attention(own: Tensor, other: Tensor, w: Weights) -> Tensor:
    """Return a scale after attention over the batch, whose scores also contain the partners' features."""
    scores = (own @ w["Q"].T) @ (own @ w["K"].T).T
    mixed = (own @ w["Q"].T) @ ((own + other) @ w["M"].T).T
    return torch.softmax(scores + mixed.T, 1) @ (own @ w["V"].T) + own


def co_attention(audio: Tensor, visual: Tensor, w: Weights) -> tuple[Tensor, Tensor]:
    """Return both modalities after attention over the batch of joined features."""
    joined = torch.cat((audio, visual), 1)
    keys, values = joined @ w["K_c"].T, joined @ w["V_c"].T
    read = [torch.softmax((x @ w["Q_a"].T) @ keys.T, 1) @ values for x in (audio, visual)]  # Q_a serves both
    return w["t_a"] * (read[0] @ w["W_ac"].T) + audio, w["t_v"] * (read[1] @ w["W_vc"].T) + visual


def last_attention(audio: Tensor, visual: Tensor, w: Weights) -> tuple[Tensor, Tensor]:
    """Return both modalities after attention of one to the batch of the other."""
    shares = torch.softmax((audio @ w["B_a"].T) @ (visual @ w["A_v"].T).T, 1)
    return shares @ (visual @ w["B_v"].T) + audio, shares.T @ (audio @ w["A_a"].T) + visual


def smsa_input(
    values: Tensor, w: Weights, statistics: dict[str, Tensor], m: str, *, training: bool, relu: bool
) -> Tensor:
    """Return the input of the convolutions without dropout, (n, 128); `relu` for the released audio layer."""
    if f"{m}.first" in w:
        values = values @ w[f"{m}.first"].T
    values = normalized(values, w, statistics, f"{m}.", training)
    return (values.relu() if relu or m == "visual" else values) @ w[f"{m}.last"].T @ w["shared_1"].T


def item_attention(query: Tensor, tokens: Tensor, w: Weights) -> Tensor:
    """Return queries (n, 128) plus what each reads from its own tokens (n, t, 128), item by item."""
    found = []
    for one, own in zip(query, tokens, strict=True):
        scores = (own @ w["key.weight"].T + w["key.bias"]) @ (w["query.weight"] @ one + w["query.bias"])
        read = torch.softmax(scores / len(one) ** 0.5, 0) @ (own @ w["value.weight"].T + w["value.bias"])
        found.append(one + w["output.weight"] @ read + w["output.bias"])
    return torch.stack(found)


def within(weights: Weights, prefix: str) -> dict[str, Tensor]:
    """Return the weights below a prefix."""
    return {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}


def smsa(
    features: Weights, w: Weights, statistics: dict[str, Tensor], *, training: bool
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return embeddings (n, 64) and class scores of SMSA-VA-CMR, whose attention runs over the batch, by modality."""
    maps = {
        m: scales(smsa_input(x, w, statistics, m, training=training, relu=True), within(w, f"{m}.scales."))
        for m, x in features.items()
    }
    joined = {}
    for m, other in (("audio", "visual"), ("visual", "audio")):
        pairs = zip(maps[m], maps[other], strict=True)
        joined[m] = torch.cat([scale_attention(x, y, within(w, f"{m}.attention.")) for x, y in pairs], 1)
        joined[m] = joined[m] @ w["shared_2"].T
    attended = last_attention(*co_attention(joined["audio"], joined["visual"], within(w, "co.")), within(w, "cross."))
    embedded = {m: (x + joined[m]) @ w["shared_3"].T for m, x in zip(joined, attended, strict=True)}
    return embedded, {m: class_scores(x, w, m) for m, x in embedded.items()}


def class_scores(embedded: Tensor, w: Weights, m: str) -> Tensor:
    """Return the class scores of embeddings (n, 64), without dropout."""
    return (embedded @ w[f"{m}.classifier.0"].T).relu() @ w[f"{m}.classifier.1"].T


def partner_free(values: Tensor, w: Weights, statistics: dict[str, Tensor], m: str, *, training: bool) -> Tensor:
    """Return embeddings (n, 64) of the same network, whose attention is among the three scales of an item."""
    inputs = smsa_input(values, w, statistics, m, training=training, relu=False)
    tokens = torch.stack(scales(inputs, within(w, f"{m}.scales.")), 1)
    own = within(w, "across.")
    attended = torch.stack([item_attention(tokens[:, t], tokens, own) for t in range(3)], 1)
    joined = attended.flatten(1) @ w["shared_2"].T
    return item_attention(joined, attended, within(w, "back.")) @ w["shared_3"].T


def msnsca_loss(embedded: Weights, w: Weights, labels: Tensor, center_weight: float) -> Tensor:
    """Return the cross-entropies, the distance to the centers, and a tenth of the distance of partners."""
    total = 0.1 * (embedded["visual"] - embedded["audio"]).norm(dim=1).mean()
    for m, vectors in embedded.items():
        likelihood = torch.log_softmax(class_scores(vectors, w, m), 1)
        total = total - likelihood[torch.arange(len(labels)), labels].mean()
        total = total + center_weight * (vectors - w["centers"][labels]).square().sum(1).mean() / 2
    return total
