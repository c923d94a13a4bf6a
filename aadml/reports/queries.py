"""Queries and their results, with the clips to look at and listen to."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Direction
from aadml.feature_extraction.feature_file import UNLABELLED
from aadml.reports.page import Section, text
from aadml.reports.players import Gallery, Players, make_players
from aadml.retrieval import DirectionResult, Evaluation, score_source
from aadml.retrieval.galleries import items
from aadml.retrieval.summary import RELEVANCE_IN_WORDS

QUERIES = 6
RESULTS = 6
STYLE = """
.row { display: flex; gap: .7rem; padding: .2rem .2rem .8rem; } .row figure { margin: 0; width: 8.4rem; flex: none; }
.row figure.query { margin-right: .8rem; } figcaption { font-size: .85rem; line-height: 1.35; padding-top: .3rem; }
figcaption span { display: block; } .id, .score { color: var(--muted); font-size: .78rem; }
.hit .found { color: var(--good); font-weight: 600; } .miss .found { color: var(--bad); font-weight: 600; }
.query .found { font-weight: 600; }
.row figure { border-top: 4px solid var(--ink); padding-top: 4px; }
.row figure.hit { border-color: var(--good); } .row figure.miss { border-color: var(--bad); }
h4 { font-size: .95rem; font-weight: 600; margin: 1rem 0 0; }
"""


@dataclass(frozen=True)
class Result:
    """An item that was found: its row, its score, whether it is of the query's class, whether it is its own partner."""

    row: int
    score: float
    hit: bool
    own: bool


@dataclass(frozen=True)
class Shown:
    """A query with its first results.

    Attributes:
        row: of the query.
        average_precision: of its ranking.
        own_rank: where its own partner stands: the first and the last place that ties leave it; None where the
            gallery does not hold it.
        results: the best first.
    """

    row: int
    average_precision: float
    own_rank: tuple[int, int] | None
    results: tuple[Result, ...]


def queries(
    embeddings: Embeddings,
    evaluation: Evaluation,
    gallery: Gallery,
    room: int,
    *,
    on_note: Callable[[str], None] | None = None,
) -> tuple[Section, Players]:
    """Show the best, middle and worst queries of each direction with their first results.

    Args:
        embeddings: that were ranked.
        evaluation: of them.
        gallery: the media of the clips.
        room: characters that the media may take.
        on_note: called with notes for the user.

    Returns:
        The part of the page, and the players it refers to.
    """
    shown = {result.direction: list(picked(embeddings, result)) for result in evaluation.directions}
    rows = [row for several in shown.values() for one in several for row in (one.row, *(r.row for r in one.results))]
    players = make_players(gallery, [embeddings.ids[row] for row in rows], room, on_note=on_note)
    html = "".join(_direction(embeddings, direction, several, players) for direction, several in shown.items())
    notes = [
        "The best, middle and worst queries of each direction, by average precision (AP), with their first results. "
        f"A hit is {RELEVANCE_IN_WORDS[evaluation.relevance]}; the own clip is the other modality of the query itself. "
        f"Scores: {evaluation.similarity}{'' if evaluation.similarity == 'cosine' else ', scaled by a power of two'}."
    ]
    if not gallery.media:
        notes.append("No media are at hand: give --media MANIFEST to see and hear the clips.")
    return Section("Queries and their results", html, [*notes, *players.notes()]), players


def picked(embeddings: Embeddings, result: DirectionResult) -> Iterator[Shown]:
    """Pick queries of a direction, from the best to the worst, each with its first results."""
    query, candidates = result.direction
    labels, ids = embeddings.labels.cpu().numpy(), np.asarray(embeddings.ids)
    asking, ranked = items(embeddings, query), items(embeddings, candidates)
    asked = asking[embeddings.relevant.along(result.direction, embeddings, asking, ranked).some]
    order = np.argsort(-result.average_precision, kind="stable")
    picks = order[np.unique(np.linspace(0, len(order) - 1, min(QUERIES, len(order))).round().astype(int))]
    rows = asked[picks]
    source = score_source(
        embeddings.of(query, torch.from_numpy(rows)),
        embeddings.of(candidates, torch.from_numpy(ranked)),
        embeddings.similarity,
    )
    hits = embeddings.relevant.along(result.direction, embeddings, rows, ranked).block(np.arange(len(rows)))
    for pick, row, line, hit in zip(picks, rows, np.asarray(source.block(0, len(rows))), hits, strict=True):
        is_own = labels[ranked] == labels[row] if candidates in embeddings.once else ids[ranked] == ids[row]
        own = line[is_own].max() if is_own.any() else None
        found = [
            Result(int(ranked[n]), float(line[n]), bool(hit[n]), bool(is_own[n]))
            for n in np.argsort(-line, kind="stable")[:RESULTS]
        ]
        places = None if own is None else (int((line > own).sum()) + 1, int((line >= own).sum()))
        yield Shown(int(row), float(result.average_precision[pick]), places, tuple(found))


def _direction(embeddings: Embeddings, direction: Direction, several: Sequence[Shown], players: Players) -> str:
    query, candidates = direction
    return f"<h3>{text(query)} to {text(candidates)}</h3>" + "".join(
        _query(embeddings, direction, one, players) for one in several
    )


def _query(embeddings: Embeddings, direction: Direction, one: Shown, players: Players) -> str:
    query, candidates = direction
    title = f"AP {one.average_precision:.3f}, own clip {_place(one.own_rank)}"
    cells = [_card(embeddings, one.row, players, "query", f"query: {query}", "")]
    for place, found in enumerate(one.results, 1):
        word = "✓ hit" if found.hit else "✗ miss"
        words = f"{word}, own clip" if found.own else word
        kind = "hit" if found.hit else "miss"
        cells.append(
            _card(embeddings, found.row, players, kind, words, f"{place}. {candidates}, score {found.score:.3f}")
        )
    name = text(embeddings.ids[one.row])
    return (
        f'<h4><bdi>{name}</bdi>: {title}</h4><div class="scroll row" tabindex="0" role="group" '
        f'aria-label="Results of {name}">{"".join(cells)}</div>'
    )


def _place(own: tuple[int, int] | None) -> str:
    if own is None:
        return "not in the gallery"
    first, last = own
    return f"at rank {first}" if first == last else f"at rank {first} to {last} (tied)"


def _card(embeddings: Embeddings, row: int, players: Players, kind: str, words: str, score: str) -> str:
    label = int(embeddings.labels[row])
    names = embeddings.class_names
    shown = f"<bdi>{text(names[label] if names else label)}</bdi>" if label != UNLABELLED else ""
    parts = [("found", text(words)), ("name", shown),
             ("id", f"<bdi>{text(embeddings.ids[row])}</bdi>"), ("score", text(score))]  # fmt: skip
    caption = "".join(f'<span class="{name}">{content}</span>' for name, content in parts if content)
    return f'<figure class="{kind}">{players.show(embeddings.ids[row])}<figcaption>{caption}</figcaption></figure>'
