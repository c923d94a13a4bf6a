"""The leaks seen in published code around this task, each by name, so that the inflation can be measured.

None of them gives a result. What each does is described where the toolkit's decisions are (design of the protocols,
catalogue L1 to L7); every number made under one carries its name.
"""

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from aadml.comparison.clips import Clips
from aadml.comparison.embeddings import Embeddings
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.inputs import fit_scaling
from aadml.protocols.protocol import Protocol, Subject, Vectors, parameterless_proxy

BATCH = 32
NEIGHBORS = 3
TEMPERATURE = 0.1
PARTNER_SHARE = 0.5


def label_graph(subject: Subject, clips: Clips, vectors: Vectors) -> Vectors:
    """L1: neighbors among the scored items themselves, restricted to their true class (Equation 1 at test).

    Half the item, half its three neighbors weighted by softmax(cosine / 0.1): no parameter is needed for the effect.
    """
    if clips.unlabelled:
        raise InputError(
            f"legacy:label-graph looks for neighbors of one class; {clips.unlabelled} of {len(clips)} have no label"
        )
    largest = int(torch.bincount(clips.labels).max()) - 1
    proxy = parameterless_proxy(vectors, k=max(1, min(NEIGHBORS, largest)))
    proxy.refresh(vectors, clips.labels)
    with torch.no_grad():
        return dict(proxy(vectors, torch.arange(len(clips))))


def batch_attention(subject: Subject, clips: Clips, vectors: Vectors) -> Vectors:
    """L2: attention over the rows of a batch, of items that lie class by class, as in the authors' files."""
    order = torch.argsort(clips.labels, stable=True)
    return {m: _attended(v[order])[torch.argsort(order)] for m, v in vectors.items()}


def _attended(values: Tensor) -> Tensor:
    parts = []
    for batch in values.split(BATCH):
        unit = F.normalize(batch, dim=1)
        parts.append(torch.softmax(unit @ unit.T / TEMPERATURE, 1) @ batch)
    return torch.cat(parts)


def partner(subject: Subject, clips: Clips, vectors: Vectors) -> Vectors:
    """L3: every item is mixed with its own partner, so that a query holds its answer."""
    if len(vectors) != 2 or len({v.shape[1] for v in vectors.values()}) != 1:
        raise InputError("legacy:partner mixes two modalities of one embedding space")
    (first, a), (second, b) = vectors.items()
    share = torch.zeros(len(clips), 1, dtype=a.dtype)  # who has no partner stays as it is
    share[clips.whole] = PARTNER_SHARE
    return {first: share * b + (1 - share) * a, second: share * a + (1 - share) * b}


def test_selection(subject: Subject, split: str) -> Subject:
    """L4: the epoch (and whatever else is chosen on validation clips) is chosen on the scored clips."""
    if subject.retrain is None:
        raise InputError("legacy:test-selection trains again; it needs a run, not embeddings")
    splits = replace(subject.splits, valid=subject.splits[split])
    return replace(subject, encoder=subject.retrain(splits))


def test_scaling(subject: Subject, split: str) -> Subject:
    """L6: inputs are scaled as in training, but by statistics of the scored clips instead of the training clips."""
    own = fit_scaling(subject.splits[split], subject.encoder.facts.inputs)
    return replace(subject, encoder=subject.encoder.with_scaling(own))


def drop_last(embeddings: Embeddings) -> Embeddings:
    """L7: items of the last, smaller batch vanish."""
    kept = len(embeddings) // BATCH * BATCH or len(embeddings)
    vectors = {m: v if m in embeddings.rows else v[:kept] for m, v in embeddings.vectors.items()}
    rows = {m: own[:kept] for m, own in embeddings.rows.items()}
    present = {m: there[:kept] for m, there in embeddings.present.items()}
    labels, ids = embeddings.labels[:kept], embeddings.ids[:kept]
    return replace(embeddings, vectors=vectors, rows=rows, labels=labels, ids=ids, present=present)


LABEL_GRAPH = Protocol(mix=label_graph)
"""L1: a neighbor graph of the scored items, restricted by their labels."""

BATCH_ATTENTION = Protocol(mix=batch_attention)
"""L2: attention over class-sorted batches of scored items."""

PARTNER = Protocol(mix=partner)
"""L3: every item mixed with its own partner."""

TEST_SELECTION = Protocol(before=test_selection)
"""L4: epoch and temperature chosen on the scored clips."""

RUNNING_MAP = Protocol(metric="running")
"""L5: AP averaged over all cutoffs instead of taken at the end."""

TEST_SCALING = Protocol(before=test_scaling)
"""L6: inputs scaled by statistics of the scored clips."""

DROP_LAST = Protocol(keep=drop_last)
"""L7: the items of the last, smaller batch are left out."""
