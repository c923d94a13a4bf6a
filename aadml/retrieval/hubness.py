"""Corrections of hubs (items close to every query) by the scores of gallery items against training items.

Every correction adds a bias to a score. The bias depends on the gallery item, not on the query or on other items.
The correction is therefore inductive. It ranks items g for a query q by s(q, g) + b(g), with the score s and the
bias b. (Correcting a query by its mean score, as in CSLS, does not change the ranking.) Dynamic inverted softmax
(Bogolin et al., QB-Norm, CVPR 2022) corrects a query only if the item nearest to this query is a hub. This
condition depends on the whole gallery. Dynamic inverted softmax is therefore not inductive, and is omitted.

Reference: Bogolin et al., Cross modal retrieval with querybank normalisation, CVPR 2022, https://doi.org/10.1109/CVPR52688.2022.00513
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Modality
from aadml.comparison.pairwise import TINY
from aadml.feature_extraction.ground.errors import InputError

Bias = Callable[[Tensor, Tensor], Tensor]
"""(gallery (n, d), bank of queries (m, d)) -> b (n,)."""

ROWS = 1024


def inverted_softmax(gallery: Tensor, bank: Tensor, *, scale: float) -> Tensor:
    """Return the bias that normalizes the scores of an item over a bank (Smith et al., ICLR 2017; QB-Norm).

        exp(t s(q, g)) / sum over b of exp(t s(b, g))   ranks as   s(q, g) - log(mean over b of exp(t s(b, g))) / t

    Reference: Smith et al., Offline bilingual word vectors, orthogonal transformations and the inverted softmax, ICLR
    2017, https://arxiv.org/abs/1702.03859

    Args:
        gallery: (n, d).
        bank: (m, d) queries b of the training set; s is the inner product.
        scale: t, an inverse temperature.

    Returns:
        Bias (n,) float64.
    """
    scores = (scale * part for part in _scores(gallery, bank))
    count = torch.tensor(float(len(bank)), dtype=torch.float64)
    return torch.cat([-(torch.logsumexp(part, 1) - count.log()) / scale for part in scores])


def csls(gallery: Tensor, bank: Tensor, *, k: int) -> Tensor:
    """Return minus half the mean score of the k bank queries nearest to each item (Conneau et al., ICLR 2018).

        2 s(q, g) - r(q) - r(g)   ranks as   s(q, g) - r(g) / 2,   r(g) = mean of the k largest s(b, g)

    Reference: Conneau et al., Word translation without parallel data, ICLR 2018, https://arxiv.org/abs/1710.04087

    Args:
        gallery: (n, d).
        bank: (m, d) queries b of the training set; s is the inner product.
        k: number of nearest queries; all if the bank has fewer.

    Returns:
        Bias (n,) float64.
    """
    return torch.cat([-part.topk(min(k, len(bank)), 1).values.mean(1) / 2 for part in _scores(gallery, bank)])


def corrected(embeddings: Embeddings, bank: Mapping[Modality, Tensor], bias: Bias) -> Embeddings:
    """Return embeddings whose inner products rank items by corrected scores, in every direction.

    The bias of a vector is computed against the training embeddings of all other modalities. Each vector receives
    one coordinate per modality: the bias b for the modality of the vector, and 1 for every other modality. The
    inner product s of two vectors becomes s + b(query) + b(item) + a constant. The term b(query) changes no
    ranking. Under "cosine", vectors are first scaled to length 1. The similarity of the result is "dot".

    Args:
        embeddings: (n, d) per modality.
        bank: modality -> (m, d) embeddings of the training set, with the same similarity.
        bias: function of gallery (n, d) and queries (k, d), which returns the bias (n,) of each gallery item.

    Raises:
        InputError: the similarity is not an inner product.
    """
    if embeddings.similarity not in ("cosine", "dot"):
        raise InputError(
            f"hubness: similarity {embeddings.similarity} is not an inner product; choose another protocol, or pass "
            "embeddings with the similarity cosine or dot"
        )
    prepare = partial(F.normalize, dim=1, eps=TINY) if embeddings.similarity == "cosine" else Tensor.double
    items = {m: prepare(values.double()) for m, values in embeddings.vectors.items()}
    banks = {m: prepare(bank[m].double()) for m in items}
    vectors: dict[Modality, Tensor] = {}
    for column, (modality, values) in enumerate(items.items()):
        others = torch.cat([queries for other, queries in banks.items() if other != modality])
        extra = values.new_ones(len(values), len(items))
        extra[:, column] = bias(values, others)
        vectors[modality] = torch.cat([values, extra], 1)
    return replace(embeddings, vectors=vectors, similarity="dot")


def _scores(gallery: Tensor, bank: Tensor) -> list[Tensor]:
    return [part.double() @ bank.double().T for part in gallery.split(ROWS)]
