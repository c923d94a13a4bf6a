"""Protocols that use training clips without their labels as a bank.

The clips of the bank are neighbors of an item, or serve to correct hubs. A training sound is in the bank once for each
of its captions.
"""

from collections.abc import Sequence
from functools import partial

from aadml.comparison.clips import Clips
from aadml.comparison.embeddings import Embeddings
from aadml.protocols.protocol import BANK_SPLITS, Protocol, Subject, Vectors, bank_proxy, read_out, vectors_of
from aadml.proxies.query_expansion import expand
from aadml.retrieval.evaluation import mean_figure
from aadml.retrieval.hubness import Bias, corrected, csls, inverted_softmax

NEIGHBORS = (1, 3, 5, 10, 20, 50)
ALPHAS = (0.0, 3.0)


def anchor_aware(subject: Subject, clips: Clips, vectors: Vectors) -> Vectors:
    """Replace every item by its proxy from the k nearest training items; k is chosen on validation clips.

    With k = 0, the items are not replaced.
    """
    bank = _bank(subject)
    proxy = bank_proxy(subject.encoder, bank)
    proxy.remember(bank)

    def mixed(values: Vectors, k: int) -> Vectors:
        return {m: proxy.from_bank(v, m, k=k) if k else v for m, v in values.items()}

    valid = vectors_of(subject.encoder, subject.splits.valid)
    choices = [0, *(k for k in NEIGHBORS if k <= len(subject.splits.train.whole))]
    return mixed(vectors, max(choices, key=lambda k: _score(subject, mixed(valid, k))))


def expansion(subject: Subject, clips: Clips, vectors: Vectors) -> Vectors:
    """Expand every item by its nearest training items (average query expansion).

    The number k of neighbors and the exponent alpha of their weights are chosen on validation clips.
    """
    bank = _bank(subject)

    def mixed(values: Vectors, k: int, alpha: float) -> Vectors:
        return {m: expand(v, bank[m], k=k, alpha=alpha) if k else v for m, v in values.items()}

    valid = vectors_of(subject.encoder, subject.splits.valid)
    choices = [(0, 0.0), *((k, a) for k in NEIGHBORS for a in ALPHAS if k <= len(subject.splits.train))]
    return mixed(vectors, *max(choices, key=lambda choice: _score(subject, mixed(valid, *choice))))


def _bank(subject: Subject) -> Vectors:
    train = subject.splits.train
    return vectors_of(subject.encoder, train.select(train.whole) if train.present else train)


def _score(subject: Subject, vectors: Vectors) -> float:
    return mean_figure(read_out(subject, vectors, subject.splits.valid), "map")


BANK = Protocol(mix=anchor_aware, needs=BANK_SPLITS)
"""Proxies from the training bank: same modality, no labels, no partner; k is chosen on validation clips."""

BANK_EXPANSION = Protocol(mix=expansion, needs=BANK_SPLITS)
"""Average query expansion with the same training bank: the control of `bank`."""

SCALES = (1.0, 3.0, 10.0, 30.0, 100.0)
CSLS_NEIGHBORS = (1, 3, 10, 30, 100)


def _best(subject: Subject, embeddings: Embeddings, choices: Sequence[Bias]) -> Embeddings:
    """Apply the correction with the highest validation MAP, or none if no correction improves MAP.

    Args:
        subject: subject whose training clips are the bank.
        embeddings: embeddings to correct.
        choices: the corrections.
    """
    bank = subject.encoder.embed_clips(subject.splits.train)
    queries = {modality: bank.there(modality) for modality in bank.vectors}
    valid = subject.encoder.embed_clips(subject.splits.valid)

    def apply(embeddings: Embeddings, bias: Bias | None) -> Embeddings:
        return corrected(embeddings, queries, bias) if bias else embeddings

    return apply(embeddings, max([None, *choices], key=lambda bias: mean_figure(apply(valid, bias), "map")))


def _by(choices: Sequence[Bias]) -> Protocol:
    return Protocol(correct=partial(_best, choices=choices), needs=BANK_SPLITS)


INVERTED_SOFTMAX = _by([partial(inverted_softmax, scale=scale) for scale in SCALES])
"""Scores divided by the item's scores against training queries (QB-Norm); the scale is chosen on validation clips."""

CSLS = _by([partial(csls, k=k) for k in CSLS_NEIGHBORS])
"""Scores minus half the mean score of the item's k nearest training queries (CSLS); k is chosen on validation clips."""
