"""Losses as an expert writes them in plain torch for two modalities with labels: (x, r, labels, proxies) -> scalar.

Every function computes what the loss of the same name in `aadml.losses` computes with its defaults, reduced to the mean
over possible terms, for batches in which every class has several clips. No function loops over rows: triplets are
sorted, and posteriors are summed by class.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

CENTERS = 10


def cosines(x: Tensor, r: Tensor) -> Tensor:
    return F.normalize(x) @ F.normalize(r).T


def distances(x: Tensor, r: Tensor) -> Tensor:
    squared = x.square().sum(1, keepdim=True) + r.square().sum(1) - 2 * x @ r.T
    return (squared.clamp_min(0) + 1e-12).sqrt()


def mean_of_positives(scores: Tensor, labels: Tensor) -> Tensor:
    same = (labels[:, None] == labels).float()
    return -((F.log_softmax(scores, 1) * same).sum(1) / same.sum(1)).mean()


def against_negatives(scores: Tensor, labels: Tensor) -> Tensor:
    same = labels[:, None] == labels
    rivals = scores.masked_fill(same, -torch.inf).logsumexp(1, keepdim=True)
    return (F.softplus(rivals - scores) * same).sum() / same.sum()


def hinges(far: Tensor, labels: Tensor, margin: float) -> Tensor:
    """Return the sum over all triplets; its gradient counts the violations of each pair, from one sort of each row."""
    same = labels[:, None] == labels
    with torch.no_grad():
        order = (far + margin * same).argsort(1)
        chosen = same.gather(1, order)
        after = chosen.sum(1, keepdim=True) - chosen.cumsum(1)
        count = torch.where(chosen, (~chosen).cumsum(1), -after).to(far.dtype)
        slope = torch.empty_like(far).scatter_(1, order, count)
    return (slope * far).sum() + margin * count.clamp_min(0).sum()


def supcon(x: Tensor, r: Tensor, labels: Tensor, proxies: Tensor) -> Tensor:
    return mean_of_positives(cosines(x, r) / 0.07, labels)


def nt_xent(x: Tensor, r: Tensor, labels: Tensor, proxies: Tensor) -> Tensor:
    return against_negatives(cosines(x, r) / 0.07, labels)


def nt_xent_of_pairs(x: Tensor, r: Tensor) -> Tensor:
    """Compute NT-Xent in both directions, where only the partner of a clip is positive, from one score matrix."""
    scores, partners = cosines(x, r) / 0.07, torch.arange(len(x), device=x.device)
    return (F.cross_entropy(scores, partners) + F.cross_entropy(scores.T, partners)) / 2


def n_pair(x: Tensor, r: Tensor, labels: Tensor, proxies: Tensor) -> Tensor:
    lengths = x.square().sum(1).mean() + r.square().sum(1).mean()
    return against_negatives(x @ r.T, labels) + 0.25 * 3e-3 * lengths


def cross_clr(x: Tensor, r: Tensor, labels: Tensor, proxies: Tensor) -> Tensor:
    within = torch.arange(len(r), device=r.device) % 2 == 0
    same = (labels[:, None] == labels) & ~within
    rivals = same | (labels[:, None] != labels)
    scores = cosines(x, r) / 0.03 * torch.where(within, 0.8, 1.0)
    logs = F.log_softmax(scores.masked_fill(~rivals, -torch.inf), 1)
    count = same.sum(1)
    means = -(torch.where(same, logs, 0)).sum(1) / count.clamp_min(1)
    return means.sum() / (count > 0).sum()


def dsl(x: Tensor, r: Tensor, labels: Tensor, proxies: Tensor) -> Tensor:
    scores = cosines(x, r) / 0.05
    return mean_of_positives(scores * F.softmax(scores / 1000, 0) * len(scores), labels)


def contrastive(x: Tensor, r: Tensor, labels: Tensor, proxies: Tensor) -> Tensor:
    distance = distances(x, r)
    return 0.5 * torch.where(labels[:, None] == labels, distance, (1 - distance).relu()).square().mean()


def hinge(x: Tensor, r: Tensor, labels: Tensor, proxies: Tensor) -> Tensor:
    distance = distances(x, r)
    return torch.where(labels[:, None] == labels, (distance - 0.3).relu(), (1.3 - distance).relu()).mean()


def triplet(x: Tensor, r: Tensor, labels: Tensor, proxies: Tensor) -> Tensor:
    same = labels[:, None] == labels
    squared = x.square().sum(1, keepdim=True) + r.square().sum(1) - 2 * x @ r.T
    return hinges(squared.clamp_min(0), labels, 1.2) / (same.sum(1) * (~same).sum(1)).sum()


def ranking(x: Tensor, r: Tensor, labels: Tensor, proxies: Tensor) -> Tensor:
    same = labels[:, None] == labels
    return hinges(-x @ r.T, labels, 1.0) / (~same).sum(1)[0] / same.sum()


def triplet_weighted(x: Tensor, r: Tensor, labels: Tensor, proxies: Tensor) -> Tensor:
    same, scores = labels[:, None] == labels, cosines(x, r)
    nearest = scores.masked_fill(same, -torch.inf).amax(1, keepdim=True)
    cost = (0.5 - 0.7 * scores + 0.2 * scores.square()).relu()
    cost = cost + (0.03 - 0.4 * nearest + 0.9 * nearest.square()).relu()
    return torch.where(same & (nearest + 0.2 > scores) & (scores < 1 - 1e-5), cost, 0).sum() / same.sum()


def multi_similarity(x: Tensor, r: Tensor, labels: Tensor, proxies: Tensor) -> Tensor:
    same, above = labels[:, None] == labels, cosines(x, r) - 0.5
    pulled = torch.where(same, (-2 * above).exp(), 0).sum(1).log1p() / 2
    return (pulled + torch.where(same, 0, (50 * above).exp()).sum(1).log1p() / 50).mean()


def angular(x: Tensor, r: Tensor, labels: Tensor, proxies: Tensor) -> Tensor:
    same, x, r = labels[:, None] == labels, F.normalize(x), F.normalize(r)
    scores = x @ r.T
    crowd = torch.where(same, 0, (4 * scores).exp()) @ (4 * r @ r.T).exp()
    return (F.softplus(crowd.log() - 4 * scores) * same).sum() / same.sum()


def posterior_nca(x: Tensor, r: Tensor, labels: Tensor, proxies: Tensor) -> Tensor:
    """Compute the shares of positives by class sums of the candidates, in time linear in the batch."""
    left, right = x.softmax(1), r.softmax(1)
    sums = right.new_zeros(len(proxies), right.shape[1]).index_add(0, labels, right)
    alike = (left * sums[labels]).sum(1)
    return -(alike.log() - (left @ sums.sum(0)).log()).mean()


def proxy_nca(x: Tensor, r: Tensor, labels: Tensor, proxies: Tensor) -> Tensor:
    return F.cross_entropy(2 * cosines(torch.cat([x, r]), proxies) - 2, torch.cat([labels, labels]))


def proxy_anchor(x: Tensor, r: Tensor, labels: Tensor, proxies: Tensor) -> Tensor:
    scores, labels = cosines(torch.cat([x, r]), proxies), torch.cat([labels, labels])
    same = labels[:, None] == torch.arange(len(proxies), device=x.device)
    pulled = torch.where(same, (-32 * (scores - 0.1)).exp(), 0).sum(0).log1p()
    pushed = torch.where(same, 0, (32 * (scores + 0.1)).exp()).sum(0).log1p()
    return pulled.sum() / same.any(0).sum() + pushed.mean()


def soft_triple(x: Tensor, r: Tensor, labels: Tensor, proxies: Tensor) -> Tensor:
    classes = len(proxies) // CENTERS
    labels, centers = torch.cat([labels, labels]), F.normalize(proxies)
    scores = (F.normalize(torch.cat([x, r])) @ centers.T).view(len(labels), classes, CENTERS)
    similar = ((scores / 0.1).softmax(2) * scores).sum(2)
    cost = F.cross_entropy(20 * (similar - 0.01 * F.one_hot(labels, classes)), labels)
    centers = centers.view(classes, CENTERS, -1)
    first, second = torch.triu_indices(CENTERS, CENTERS, 1, device=x.device)
    apart = torch.linalg.vector_norm(centers[:, first] - centers[:, second] + 1e-9, dim=2)
    return cost + 0.2 * apart.sum() / (classes * CENTERS * (CENTERS - 1))


def arcface(x: Tensor, r: Tensor, labels: Tensor, proxies: Tensor) -> Tensor:
    scores, labels = cosines(torch.cat([x, r]), proxies).clamp(-1 + 1e-6, 1 - 1e-6), torch.cat([labels, labels])
    margin = math.radians(28.6)
    mine = scores.gather(1, labels[:, None])
    widened = torch.where(mine >= -math.cos(margin), (mine.acos() + margin).cos(), mine - margin * math.sin(margin))
    return F.cross_entropy(64 * scores.scatter(1, labels[:, None], widened), labels)


OF_PAIRS = (
    supcon, nt_xent, n_pair, cross_clr, dsl, contrastive, hinge, triplet, ranking, triplet_weighted, multi_similarity,
    angular, posterior_nca,
)  # fmt: skip
OF_PROXIES = (proxy_nca, proxy_anchor, soft_triple, arcface)
PLAIN = {loss.__name__.replace("_", "-"): loss for loss in OF_PAIRS + OF_PROXIES}
