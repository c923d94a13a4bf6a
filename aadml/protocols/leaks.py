"""Leaks of published code (L1 to L7), each as a separate protocol, so that the inflation of MAP can be measured.

Scores under a leak are not results. Each of these scores is stored with the name of its protocol.
"""

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from aadml.comparison.clips import Clips
from aadml.comparison.embeddings import Embeddings
from aadml.feature_extraction.ground.errors import InputError
from aadml.protocols.protocol import Protocol, Subject, Vectors, parameterless_proxy
from aadml.proxies.contract import TrainingSet

BATCH = 32
NEIGHBORS = 3
TEMPERATURE = 0.1
PARTNER_SHARE = 0.5


def label_graph(subject: Subject, clips: Clips, vectors: Vectors) -> Vectors:
    """Mix every item with neighbors of its true class among the scored items (L1: Equation 1 of AADML at test time).

    Half of the mixture is the item. The other half is the mean of at most three neighbors with weights
    softmax(cosine / 0.1). An item without neighbors is unchanged. The mixture has no parameters.

    Raises:
        InputError: a clip has no label, or no class has two clips.
    """
    if clips.unlabelled:
        raise InputError(
            f"legacy:label-graph needs a label for every clip, but {clips.unlabelled} of {len(clips)} clips have none; "
            "choose another protocol"
        )
    largest = int(torch.bincount(clips.labels).max()) - 1
    proxy = parameterless_proxy(vectors, k=max(1, min(NEIGHBORS, largest)))
    proxy.refresh(TrainingSet(vectors, clips.labels))
    with torch.no_grad():
        return dict(proxy(vectors, torch.arange(len(clips))))


def batch_attention(subject: Subject, clips: Clips, vectors: Vectors) -> Vectors:
    """Sort the items by class, and replace each item by attention over its batch of BATCH items (leak L2).

    The files of published code are sorted by class too. The order of the returned rows is that of `vectors`.
    """
    order = torch.argsort(clips.labels, stable=True)
    return {m: _attended(v[order])[torch.argsort(order)] for m, v in vectors.items()}


def _attended(values: Tensor) -> Tensor:
    parts = []
    for batch in values.split(BATCH):
        unit = F.normalize(batch, dim=1)
        parts.append(torch.softmax(unit @ unit.T / TEMPERATURE, 1) @ batch)
    return torch.cat(parts)


def partner(subject: Subject, clips: Clips, vectors: Vectors) -> Vectors:
    """Mix every item with its own partner, so that a query contains its answer (L3).

    Items without a partner are unchanged.

    Raises:
        InputError: there are not exactly two modalities, or the dimensions of their embeddings differ.
    """
    if len(vectors) != 2 or len({v.shape[1] for v in vectors.values()}) != 1:
        widths = " and ".join(f"{modality} ({values.shape[1]} dimensions)" for modality, values in vectors.items())
        raise InputError(
            f"legacy:partner needs two modalities of equal embedding dimension, but there are embeddings of {widths}; "
            "choose another protocol"
        )
    (first, a), (second, b) = vectors.items()
    share = torch.zeros(len(clips), 1, dtype=a.dtype)  # items without a partner are not changed
    share[clips.whole] = PARTNER_SHARE
    return {first: share * b + (1 - share) * a, second: share * a + (1 - share) * b}


def test_selection(subject: Subject, split: str) -> Subject:
    """Train again, and choose epoch and temperature by the scored clips instead of the validation clips (L4).

    Raises:
        InputError: the subject cannot be trained again, or its method chooses neither epoch nor temperature.
    """
    if subject.retrain is None:
        raise InputError(
            "legacy:test-selection trains the run again, but a model on other data was passed; evaluate a run on its "
            "own data"
        )
    if subject.encoder.method.fits_validation:
        raise InputError(
            "legacy:test-selection chooses epoch and temperature on the scored clips, but "
            f"{subject.encoder.facts.label} chooses neither; choose another protocol"
        )
    splits = replace(subject.splits, valid=subject.splits[split])
    return replace(subject, encoder=subject.retrain(splits))


def test_scaling(subject: Subject, split: str) -> Subject:
    """Scale inputs by statistics of the scored clips instead of the training clips (L6)."""
    return replace(subject, encoder=subject.encoder.rescaled(subject.splits[split]))


def drop_last(embeddings: Embeddings) -> Embeddings:
    """Drop the items after the last full batch (L7). Without a full batch, no item is dropped."""
    count = len(embeddings) // BATCH * BATCH or len(embeddings)
    vectors = {m: v if m in embeddings.rows else v[:count] for m, v in embeddings.vectors.items()}
    rows = {m: numbers[:count] for m, numbers in embeddings.rows.items()}
    present = {m: mask[:count] for m, mask in embeddings.present.items()}
    several = None if embeddings.all_labels is None else embeddings.all_labels[:count]
    labels, ids = embeddings.labels[:count], embeddings.ids[:count]
    return replace(embeddings, vectors=vectors, rows=rows, labels=labels, ids=ids, present=present, all_labels=several)


LABEL_GRAPH = Protocol(mix=label_graph)
"""L1: a neighbor graph of the scored items, restricted by their labels."""

BATCH_ATTENTION = Protocol(mix=batch_attention)
"""L2: attention over class-sorted batches of scored items."""

PARTNER = Protocol(mix=partner)
"""L3: every item mixed with its own partner."""

TEST_SELECTION = Protocol(before=test_selection, trains=True)
"""L4: epoch and temperature chosen on the scored clips."""

RUNNING_MAP = Protocol(metric="running")
"""L5: AP averaged over all cutoffs instead of computed over the full list."""

TEST_SCALING = Protocol(before=test_scaling)
"""L6: inputs scaled by statistics of the scored clips."""

DROP_LAST = Protocol(keep=drop_last)
"""L7: the items of the last, smaller batch are left out."""
