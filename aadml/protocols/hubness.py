"""Protocols that correct hubs by the training clips: labels, partners and other scored items are not looked at."""

from functools import partial

import torch

from aadml.comparison.types import Embeddings
from aadml.protocols.protocol import Protocol, Subject
from aadml.retrieval import mean_average_precision
from aadml.retrieval.hubness import (
    Bias,
    corrected,
    csls,
    dual_bank_sinkhorn,
    dual_inverted_softmax,
    inverted_softmax,
)

SCALES = (1.0, 3.0, 10.0, 30.0, 100.0)
NEIGHBORS = (1, 3, 10, 30, 100)


def by_inverted_softmax(subject: Subject, embeddings: Embeddings) -> Embeddings:
    """Divide by what an item scores against the training queries; the scale is chosen on valid, or no correction."""
    return _best(subject, embeddings, [partial(inverted_softmax, scale=scale) for scale in SCALES])


def by_csls(subject: Subject, embeddings: Embeddings) -> Embeddings:
    """Take off an item's mean score with its nearest training queries; k is chosen on valid, or no correction."""
    return _best(subject, embeddings, [partial(csls, k=k) for k in NEIGHBORS])


def by_random_queries(subject: Subject, embeddings: Embeddings) -> Embeddings:
    """Correct by inverted softmax with random directions in the place of the training queries."""
    return _best(subject, embeddings, [partial(inverted_softmax, scale=scale) for scale in SCALES], random_bank=True)


def by_dual_inverted_softmax(subject: Subject, embeddings: Embeddings) -> Embeddings:
    """Divide by what an item scores against training queries and training items; the scale is chosen on valid."""
    return _best(subject, embeddings, [partial(dual_inverted_softmax, scale=scale) for scale in SCALES])


def by_dual_bank_sinkhorn(subject: Subject, embeddings: Embeddings) -> Embeddings:
    """Correct by both banks of the training set, balanced; the scale is chosen on valid, or no correction."""
    return _best(subject, embeddings, [partial(dual_bank_sinkhorn, scale=scale) for scale in SCALES])


def by_random_banks(subject: Subject, embeddings: Embeddings) -> Embeddings:
    """Correct by two banks of random directions, balanced."""
    return _best(subject, embeddings, [partial(dual_bank_sinkhorn, scale=scale) for scale in SCALES], random_bank=True)


def _best(subject: Subject, embeddings: Embeddings, choices: list[Bias], *, random_bank: bool = False) -> Embeddings:
    """Apply the correction of the highest validation MAP, or none where none is higher than without."""
    bank = subject.encoder.embed_clips(subject.splits.train)
    queries = {modality: bank.there(modality) for modality in bank.vectors}
    if random_bank:
        generator = torch.Generator().manual_seed(0)
        lengths = {m: values.norm(dim=1, keepdim=True) for m, values in queries.items()}
        drawn = {m: torch.randn(v.shape, generator=generator, dtype=v.dtype) for m, v in queries.items()}
        queries = {m: drawn[m] / drawn[m].norm(dim=1, keepdim=True) * lengths[m] for m in queries}
    if not len(subject.splits.valid):
        return embeddings
    valid = subject.encoder.embed_clips(subject.splits.valid)
    best, highest = embeddings, _score(valid)
    for bias in choices:
        score = _score(corrected(valid, queries, bias))
        if score > highest:
            best, highest = corrected(embeddings, queries, bias), score
    return best


def _score(embeddings: Embeddings) -> float:
    scores = [mean_average_precision(embeddings, direction) for direction in embeddings.directions()]
    return float(torch.tensor(scores).mean())


INVERTED_SOFTMAX = Protocol(correct=by_inverted_softmax)
"""Scores divided by what each item scores against the training queries (QB-Norm); the scale is chosen on valid."""

CSLS = Protocol(correct=by_csls)
"""Scores less half the mean of each item's k nearest training queries (CSLS); k is chosen on valid."""

INVERTED_SOFTMAX_RANDOM = Protocol(correct=by_random_queries)
"""Inverted softmax with random queries: the control of `inverted-softmax` and `csls`."""

DUAL_INVERTED_SOFTMAX = Protocol(correct=by_dual_inverted_softmax)
"""Inverted softmax by a bank of queries and a bank of items (DBNorm's DualIS); the scale is chosen on valid."""

DUAL_BANK_SINKHORN = Protocol(correct=by_dual_bank_sinkhorn)
"""Inverted softmax whose queries weigh as Sinkhorn iterations between both banks say (DBSN)."""

DUAL_BANK_RANDOM = Protocol(correct=by_random_banks)
"""`dual-bank-sinkhorn` with random banks: the control of both dual ones."""
