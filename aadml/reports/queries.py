"""Example queries with their first results, and the media of their clips."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from aadml.comparison.embeddings import Embeddings
from aadml.feature_extraction.feature_file.content import UNLABELLED
from aadml.reports.page import Section, render
from aadml.reports.players import ClipMedia, Players, make_players
from aadml.retrieval.frame_word import FRAME_WORD, frame_word_scores
from aadml.retrieval.galleries import Sides, items
from aadml.retrieval.posteriors import second_keys
from aadml.retrieval.results import DirectionResult, Evaluation
from aadml.retrieval.sampling import QuerySample, drawn
from aadml.retrieval.scores import pair_scores
from aadml.retrieval.summary import RELEVANCE_IN_WORDS

QUERIES = 6
RESULTS = 6


@dataclass(frozen=True)
class Result:
    """Ranked item.

    Attributes:
        row: row of the item.
        score: score of the item for the query.
        hit: whether the item is relevant.
        is_partner: whether the item is the query's own clip.
    """

    row: int
    score: float
    hit: bool
    is_partner: bool


@dataclass(frozen=True)
class RankedQuery:
    """Query with its first results.

    Attributes:
        row: row of the query.
        average_precision: average precision of the ranking.
        partner_rank: first and last possible rank of the query's own clip, different for tied scores; None without that
            clip in the gallery.
        results: results, the best first.
    """

    row: int
    average_precision: float
    partner_rank: tuple[int, int] | None
    results: tuple[Result, ...]

    @property
    def rank_in_words(self) -> str:
        """Rank of the query's own clip, in words."""
        if self.partner_rank is None:
            return "not in the gallery"
        first, last = self.partner_rank
        return f"at rank {first}" if first == last else f"at rank {first} to {last} (tied)"


def queries(
    embeddings: Embeddings,
    evaluation: Evaluation,
    media: ClipMedia,
    room: int,
    *,
    on_note: Callable[[str], None] | None = None,
) -> tuple[Section, Players]:
    """Render the best, middle and worst queries of each direction with their first results.

    Args:
        embeddings: ranked embeddings.
        evaluation: evaluation of the embeddings.
        media: media files of the clips.
        room: largest number of characters of the media.
        on_note: called with notes for the user.

    Returns:
        The section of the page, and the players that the section refers to.

    Raises:
        InputError: the installed PyAV lacks the encoders for the players.
    """
    sample = evaluation.sample
    ranked = {result.direction: list(ranked_queries(embeddings, result, sample)) for result in evaluation.directions}
    shown = [query for examples in ranked.values() for query in examples]
    rows = [row for query in shown for row in (query.row, *(result.row for result in query.results))]
    players = make_players(media, [embeddings.ids[row] for row in rows], room, on_note=on_note)
    clips = {row: _shown(embeddings, row, players) for row in rows}
    html = render("queries.html", ranked=ranked, clips=clips)
    notes = [
        "The best, middle and worst queries of each direction, by average precision (AP), with their first results. "
        f"A hit is {RELEVANCE_IN_WORDS[evaluation.relevance]}; 'own clip' marks the query's clip in the other "
        f"modality. Scores: {evaluation.similarity}."
    ]
    if not media:
        notes.append("No media files of the clips were found; pass --media MANIFEST to show players.")
    return Section("Queries and their results", html, [*notes, *players.notes()]), players


def ranked_queries(
    embeddings: Embeddings, result: DirectionResult, sample: QuerySample | None = None
) -> Iterator[RankedQuery]:
    """Yield example queries of a direction, from the best to the worst, each with its first results.

    Args:
        embeddings: ranked embeddings.
        result: result of the direction, with the full gallery.
        sample: the sample of queries in `result`; None for all queries.
    """
    query, candidates = result.direction
    clips = np.asarray(embeddings.clip_names)
    all_queries, gallery = items(embeddings, query), items(embeddings, candidates)
    if sample is not None:
        all_queries = drawn([Sides(all_queries, gallery)], result.direction, sample.queries)
    evaluated = all_queries[embeddings.relevant.between(embeddings, all_queries, gallery).some]
    order = np.argsort(-result.average_precision, kind="stable")
    picks = order[np.unique(np.linspace(0, len(order) - 1, min(QUERIES, len(order))).round().astype(int))]
    rows = evaluated[picks]
    sides = (embeddings.of(query, torch.from_numpy(rows)), embeddings.of(candidates, torch.from_numpy(gallery)))
    if embeddings.similarity == FRAME_WORD:
        blocks = [scores.double().numpy() for scores in frame_word_scores(*sides)]
    else:
        blocks = [pair_scores(query.expand_as(sides[1]), sides[1], embeddings.similarity) for query in sides[0]]
    hits = embeddings.relevant.between(embeddings, rows, gallery).block(np.arange(len(rows)))
    for place, (pick, row, scores, hit) in enumerate(zip(picks, rows, blocks, hits, strict=True)):
        keys = second_keys(sides[0][place : place + 1], sides[1], embeddings.similarity)
        order = np.lexsort((-scores,) if keys is None else (-keys, -scores))
        partner = clips[gallery] == clips[row]
        best = scores[partner].max() if partner.any() else None
        results = tuple(
            Result(int(gallery[n]), float(scores[n]), bool(hit[n]), bool(partner[n])) for n in order[:RESULTS]
        )
        rank = None if best is None else (int((scores > best).sum()) + 1, int((scores >= best).sum()))
        yield RankedQuery(int(row), float(result.average_precision[pick]), rank, results)


def _shown(embeddings: Embeddings, row: int, players: Players) -> dict[str, str | None]:
    """Return the id of a clip, its class name (None without class), and its player as HTML."""
    label, names, name = int(embeddings.labels[row]), embeddings.class_names, embeddings.ids[row]
    class_name = None if label == UNLABELLED else names[label] if names else str(label)
    return {"id": name, "class_name": class_name, "player": players.show(name)}
