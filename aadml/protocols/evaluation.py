"""Evaluation of a split under a protocol, or under several leaks at once."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from aadml.comparison.embeddings import Embeddings
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.registry import lookup
from aadml.protocols import PROTOCOLS
from aadml.protocols.protocol import Protocol, Subject, read_out, vectors_of
from aadml.retrieval.evaluation import evaluate, per_query
from aadml.retrieval.frame_word import FRAME_WORD
from aadml.retrieval.galleries import sides_of
from aadml.retrieval.legacy_running_map import running_average_precision, running_by_chance
from aadml.retrieval.metric_names import OTHER_GALLERIES, place_of
from aadml.retrieval.ranking import Ranking
from aadml.retrieval.results import Evaluation
from aadml.retrieval.sampling import drawn
from aadml.retrieval.ties import Values


def evaluate_under(subject: Subject, name: str, *, split: str = "test", **options: Any) -> Evaluation:
    """Evaluate a split under a protocol, or under several leaks at once ("legacy:partner+legacy:running-map").

    Args:
        subject: trained encoder and data.
        name: keys of PROTOCOLS joined by "+".
        split: "train", "valid" or "test".
        options: options of `aadml.retrieval.evaluate`.

    Raises:
        InputError: a protocol that is unknown or does not apply to the subject, parts that cannot be joined, a required
            split that is empty or scored, or embeddings rejected by `aadml.retrieval.evaluate`.
    """
    subject, parts = prepare_subject(subject, name, split)
    embeddings = embed_under(subject, parts, split)
    embeddings = replace(embeddings, clusters=subject.splits.clusters)
    evaluation = evaluate(embeddings, protocol=name, split=split, **options)
    return _running(evaluation, embeddings) if any(part.metric == "running" for part in parts) else evaluation


def prepare_subject(subject: Subject, name: str, split: str) -> tuple[Subject, Sequence[Protocol]]:
    """Apply the steps of a protocol that precede embedding; return the subject and the parts of the protocol.

    Raises:
        InputError: see `evaluate_under`.
    """
    parts = protocols_of(name)
    # training comes first, because it replaces the encoder that the other parts change
    for key, part in sorted(zip(name.split("+"), parts, strict=True), key=lambda pair: not pair[1].trains):
        for needed in part.needs:
            if needed == split or not len(subject.splits[needed]):
                problem = "is scored itself; score another split, or" if needed == split else "is empty;"
                raise InputError(
                    f"protocol {key} needs clips in the {needed} split, but the split {problem} choose another protocol"
                )
        subject = part.before(subject, split) if part.before is not None else subject
    return subject, parts


def protocols_of(name: str) -> Sequence[Protocol]:
    """Return the protocols of a name, or of several names joined by "+".

    Raises:
        InputError: a name is unknown or repeated, or a joined protocol of aadml is not `legacy:`.
    """
    names = name.split("+")
    parts = [lookup(PROTOCOLS, part, "protocol") for part in names]
    others = [part for part in names if part in set(PROTOCOLS) and not part.startswith("legacy:")]
    if (is_repeated := len(set(names)) < len(names)) or (len(names) > 1 and others):
        problem = "equal protocols" if is_repeated else f"{others[0]} with another protocol"
        raise InputError(
            f"protocol: '{name}' joins {problem}; join different leaks, as in legacy:partner+legacy:drop-last"
        )
    return parts


def embed_under(subject: Subject, parts: Sequence[Protocol], split: str) -> Embeddings:
    """Embed a split, and apply the steps `mix`, `correct` and `keep` of all `parts` of a protocol.

    Raises:
        InputError: a part does not apply to the clips.
    """
    clips = subject.splits[split]
    mixes = [part.mix for part in parts if part.mix is not None]
    if not mixes:
        embeddings = subject.encoder.embed_clips(clips)
    elif subject.encoder.method.similarity == FRAME_WORD:
        raise InputError(
            f"the protocol mixes vectors, but the embeddings of the model are sequences ({FRAME_WORD}); choose another "
            "protocol"
        )
    else:
        vectors = vectors_of(subject.encoder, clips)
        for mix in mixes:
            vectors = mix(subject, clips, vectors)
        embeddings = read_out(subject, vectors, clips)
    for part in parts:
        embeddings = part.correct(subject, embeddings) if part.correct is not None else embeddings
    for part in parts:
        embeddings = part.keep(embeddings) if part.keep is not None else embeddings
    return embeddings


def _running(evaluation: Evaluation, embeddings: Embeddings) -> Evaluation:
    """Replace MAP and its chance level by the values of the running variant, under every gallery.

    Both bounds of a query are replaced by the running average precision of the query. The interval then covers the
    draw of queries alone, because the influence of items is known for MAP only.
    """
    results = []
    for result in evaluation.directions:
        direction, sample = result.direction, evaluation.sample
        sides = sides_of(embeddings, direction, evaluation.gallery)
        queries = drawn(sides, direction, sample.queries) if sample else None
        running = partial(per_query, embeddings, direction, _with_chance, rows=queries)
        values, chance = running(gallery=evaluation.gallery).T
        computed = dict[tuple[str, ...], float]()
        for metric, gallery in OTHER_GALLERIES.items():
            if (place := place_of(metric)) in result.figures:
                means = running(gallery=gallery).mean(axis=0).tolist()
                computed |= dict(zip((place, (place[0], "chance")), means, strict=True))
        results.append(
            replace(
                result, average_precision=values, bounds=np.stack([values, values]), chance=chance,
                by_item=np.zeros_like(result.by_item), figures={**result.figures, **computed},
            )
        )  # fmt: skip
    return replace(evaluation, directions=tuple(results))


def _with_chance(ranking: Ranking) -> Values:
    """Return the running variant and its chance level (b, 2)."""
    return np.stack([running_average_precision(ranking), running_by_chance(ranking.relevant, ranking.items)], axis=1)
