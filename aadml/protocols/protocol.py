"""Protocols: rules for embedding the items of a split, and the metric that is reported as MAP."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property

from torch import Tensor

from aadml.comparison.clips import Clips, Splits
from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Modality
from aadml.model.model import Model
from aadml.proxies.anchor_aware import AnchorAware
from aadml.proxies.attention import AttentionOptions
from aadml.proxies.correlation import CorrelationGraph, GraphOptions
from aadml.proxies.mixture import MixtureOptions

Vectors = dict[Modality, Tensor]
"""Modality -> (n, e)."""


@dataclass(frozen=True)
class Subject:
    """Trained encoder with its data.

    Attributes:
        encoder: the trained encoder.
        splits: the data, unscaled.
        retrain: splits -> encoder trained again with the same config, for leaks that act in training; None if the
            encoder cannot be trained again.
    """

    encoder: Model
    splits: Splits
    retrain: Callable[[Splits], Model] | None = None

    @cached_property
    def once(self) -> tuple[Modality, ...]:
        """Modalities that the encoder ranks once per label."""
        clips = next(part for part in (self.splits.test, self.splits.valid, self.splits.train) if len(part))
        return self.encoder.embed_clips(clips.select([0])).once


@dataclass(frozen=True)
class Protocol:
    """Steps of an evaluation; the defaults leak no information.

    Attributes:
        before: (subject, split) -> subject, applied before embedding (training or scaling on other clips).
        mix: (subject, clips, vectors) -> vectors, applied between the encoder and the read-out.
        correct: (subject, embeddings) -> embeddings, applied after the read-out, with statistics of other splits.
        keep: embeddings -> embeddings of the items that are scored.
        metric: "map", or "running" for the running variant of MAP.
        needs: splits that must not be empty. None of these splits can be scored.
        trains: whether `before` trains the encoder again, so that an audit can repeat the training.
    """

    before: Callable[[Subject, str], Subject] | None = None
    mix: Callable[[Subject, Clips, Vectors], Vectors] | None = None
    correct: Callable[[Subject, Embeddings], Embeddings] | None = None
    keep: Callable[[Embeddings], Embeddings] | None = None
    metric: str = "map"
    needs: tuple[str, ...] = ()
    trains: bool = False


BANK_SPLITS = ("train", "valid")
"""Splits that a protocol with a bank needs: one as the bank, and one for choosing its parameters."""

INDUCTIVE = Protocol()
"""Every item is embedded without labels, partner or other items. The default."""


def vectors_of(encoder: Model, clips: Clips) -> Vectors:
    """Return the encoded vectors (n, e) of n clips by modality, without the read-out of the method.

    Each modality is encoded separately.
    """
    scaled = encoder.scaling.clips(clips)
    return {m: encoder.method.encode(scaled, m) for m in clips.modalities}


def read_out(subject: Subject, vectors: Mapping[Modality, Tensor], clips: Clips) -> Embeddings:
    """Apply the read-out of the method to vectors (n, e) by modality, and return the embeddings of the clips.

    Modalities that the encoder ranks once per label are also ranked once after mixing, by the first row of a label.
    """
    method = subject.encoder.method
    read = {m: method.read_off(v) for m, v in vectors.items()}
    return clips.embedded(read, method.similarity, once=tuple(m for m in subject.once if m in read))


def bank_proxy(encoder: Model, vectors: Vectors) -> AnchorAware:
    """Return a copy of the trained proxy of a run, with the item itself as query and with an empty bank.

    The copy finds the nearest neighbors in the space of the embeddings. The method `remember` fills the bank. Without
    a trained anchor-aware proxy, or with reading R5 (which mixes the batch), the result is that of
    `parameterless_proxy`.
    """
    trained = encoder.method.proxy()
    if isinstance(trained, AnchorAware) and trained.reading != "R5":
        proxy = deepcopy(trained).cpu()
        proxy.query = "self"
        options = proxy.graph.options
        proxy.graph = CorrelationGraph(tuple(vectors), replace(options, space="embedding", neighbors="nearest"))
        return proxy.eval()
    return parameterless_proxy(vectors)


def parameterless_proxy(vectors: Vectors, *, k: int = 3) -> AnchorAware:
    """Return a proxy without parameters.

    The proxy of an item is (x + A) / 2. Here x is the item, and A is the mean of its k nearest neighbors with weights
    softmax(cosine / 0.1).
    """
    graph, attending, mixture = GraphOptions(k=k), AttentionOptions(attention="free"), MixtureOptions(residual="convex")
    dimension = next(iter(vectors.values())).shape[1]
    proxy = AnchorAware(dimension, tuple(vectors), graph=graph, attending=attending, mixture=mixture, reading="R3")
    return proxy.eval()
