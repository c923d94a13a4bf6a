"""Corrections of hubs, items that are near to every query, by how they score against items of the training set.

All corrections below change a score by a number that belongs to the gallery item alone, which no other query and no
other item of the gallery has a part in, so that they are inductive: s'(q, g) ranks as s(q, g) + b(g). (The corrections
of a query by its own mean, as in CSLS, do not change its ranking.) The switch of dynamic inverted softmax (DBSN;
Bogolin et al., QB-Norm, CVPR 2022), which asks what is nearest to the query in the whole gallery, is not of this kind
and is not part of this.
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
    """Divide a score by what the item scores against all queries of a bank (Smith et al., ICLR 2017; QB-Norm).

        exp(t s(q, g)) / sum over b of exp(t s(b, g))   ranks as   s(q, g) - log(mean over b of exp(t s(b, g))) / t

    Args:
        gallery: (n, d).
        bank: (m, d) queries of the training set; s is the inner product.
        scale: t, an inverse temperature.

    Returns:
        b (n,) float64.
    """
    scores = (scale * part for part in _scores(gallery, bank))
    count = torch.tensor(float(len(bank)), dtype=torch.float64)
    return torch.cat([-(torch.logsumexp(part, 1) - count.log()) / scale for part in scores])


def csls(gallery: Tensor, bank: Tensor, *, k: int) -> Tensor:
    """Take off half the mean score of the k bank queries nearest to the item (Conneau et al., ICLR 2018).

        2 s(q, g) - r(q) - r(g)   ranks as   s(q, g) - r(g) / 2,   r(g) = mean of the k largest s(b, g)

    Args:
        gallery: (n, d).
        bank: (m, d) queries of the training set; s is the inner product.
        k: how many; all where there are fewer.

    Returns:
        b (n,) float64.
    """
    return torch.cat([-part.topk(min(k, len(bank)), 1).values.mean(1) / 2 for part in _scores(gallery, bank)])


def corrected(embeddings: Embeddings, bank: Mapping[Modality, Tensor], bias: Bias) -> Embeddings:
    """Give the embeddings whose inner products are the corrected scores, in every direction.

    Each modality's queries are those of all others in the bank. A coordinate a modality is added: an item has its own
    b in that of its modality and 1 in the others, so that a score is s + b(query) + b(item) + a constant, and the first
    b changes no ranking.

    Args:
        embeddings: (n, d) a modality.
        bank: modality -> (m, d) embeddings of the training set, compared in the same way.
        bias: of gallery and queries.

    Raises:
        InputError: a similarity that is no inner product.
    """
    if embeddings.similarity not in ("cosine", "dot"):
        raise InputError(f"hubness: similarity {embeddings.similarity} is no inner product; cosine and dot are")
    prepare = partial(F.normalize, dim=1, eps=TINY) if embeddings.similarity == "cosine" else Tensor.double
    items = {m: prepare(values.double()) for m, values in embeddings.vectors.items()}
    asking = {m: prepare(bank[m].double()) for m in items}
    made: dict[Modality, Tensor] = {}
    for place, (modality, values) in enumerate(items.items()):
        others = torch.cat([queries for other, queries in asking.items() if other != modality])
        extra = values.new_ones(len(values), len(items))
        extra[:, place] = bias(values, others)
        made[modality] = torch.cat([values, extra], 1)
    return replace(embeddings, vectors=made, similarity="dot")


def _scores(gallery: Tensor, bank: Tensor) -> list[Tensor]:
    """Score items against a bank, some at a time: (rows, m) each."""
    return [part.double() @ bank.double().T for part in gallery.split(ROWS)]
