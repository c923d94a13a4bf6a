"""Protocols that correct hubs with the training clips, without labels, partners or other scored items."""

from collections.abc import Sequence
from functools import partial

from aadml.comparison.embeddings import Embeddings
from aadml.protocols.protocol import BANK_SPLITS, Protocol, Subject
from aadml.retrieval.evaluation import mean_figure
from aadml.retrieval.hubness import Bias, corrected, csls, inverted_softmax

SCALES = (1.0, 3.0, 10.0, 30.0, 100.0)
NEIGHBORS = (1, 3, 10, 30, 100)


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
"""Scores divided by each item's scores against the training queries (QB-Norm); the scale is chosen on valid."""

CSLS = _by([partial(csls, k=k) for k in NEIGHBORS])
"""Scores less half the mean of each item's k nearest training queries (CSLS); k is chosen on valid."""
