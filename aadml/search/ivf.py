"""Approximate search: items lie in cells, and a query is compared only with the items of the nearest cells.

The method is the inverted file of Sivic and Zisserman (ICCV 2003) in the form of faiss (Johnson et al., 2021): centers
are computed by k-means, and each item is in the cell of its nearest center. The items of the probed cells are scored
exactly. Items in other cells are not found. The share of items that are found is measured when the cells are built.
"""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.comparison.features import Modality
from aadml.feature_extraction.ground.errors import DamagedFileError
from aadml.feature_extraction.ground.import_paths import optional
from aadml.feature_extraction.ground.json_values import parse_object, read_as
from aadml.feature_extraction.ground.strings import Note
from aadml.search.encoders import IndexEncoder
from aadml.search.exact_search import Gallery
from aadml.search.facts import CellsRecord, IndexFacts, read_facts, write_facts
from aadml.search.items import Galleries, galleries_of
from aadml.search.store import connect, reading, writing

SMALLEST = 100_000
"""Smallest number of items with cells; an exact search of fewer items takes milliseconds."""

LARGEST_SHARE = 0.25
"""Largest share of items in probed cells; above this share, exact search is as fast."""

K, QUERIES = 10, 200
_PER_CENTER, _ROUNDS, _PART = 64, 10, 1 << 14


@dataclass(frozen=True)
class Cells:
    """Cells of one modality.

    Attributes:
        centers: (c, d) float32.
        cell_of: (n,) cell of each item, in the order of the gallery.
        probes: number of cells that a query is compared with.
        recall: recall@10 against exact search, by modality of the query.
        similarity: similarity of the items, by name.
    """

    centers: NDArray[np.float32]
    cell_of: NDArray[np.int32]
    probes: int
    recall: Mapping[str, float]
    similarity: str

    def candidates(self, queries: Tensor) -> NDArray[np.int64]:
        """Return the items of the cells nearest to any of the queries (q, d), ascending."""
        nearest = np.concatenate([self._nearest(query) for query in queries.numpy()])
        parts = [self._order[self._begins[cell] : self._begins[cell + 1]] for cell in np.unique(nearest)]
        return np.sort(np.concatenate(parts))

    def _nearest(self, query: NDArray[np.float32]) -> NDArray[np.int64]:
        scores = Gallery(torch.from_numpy(self.centers), self.similarity).scores(torch.from_numpy(query)[None])
        return np.asarray(np.argpartition(-scores, self.probes - 1)[: self.probes])

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        return np.argsort(self.cell_of, kind="stable")

    @cached_property
    def _begins(self) -> NDArray[np.int64]:
        return np.searchsorted(self.cell_of[self._order], np.arange(len(self.centers) + 1))


@dataclass(frozen=True)
class RecallQueries:
    """Queries that measure the recall of cells.

    Attributes:
        vectors: (q, d).
        self_rows: (q,) row of the gallery that is the query itself and is not counted; -1 if there is none.
    """

    vectors: Tensor
    self_rows: NDArray[np.int64]


@dataclass(frozen=True)
class _ProbedCells:
    """Facts of cells in an index, beside centers and assignments."""

    probes: int
    recall: Mapping[str, float]
    dimensions: int


def make_cells(
    gallery: Gallery, queries: Mapping[Modality, RecallQueries], *, recall: float, smallest: int
) -> Cells | str:
    """Build 2 sqrt(n) cells, and choose the smallest number of probes that reaches a recall.

    Args:
        gallery: n items.
        queries: queries by modality.
        recall: share of the ten best items to be found, on average over the queries of every modality.
        smallest: smallest number of items for building cells.

    Returns:
        The cells, or the reason why no cells are built.

    Raises:
        InputError: faiss is not installed.
    """
    if len(gallery) < smallest:
        return f"{len(gallery):,} items are searched exactly, because approximate search needs {smallest:,} items"
    points = _points(gallery)
    centers = _centers(points, 2 * round(len(gallery) ** 0.5))
    cells = Cells(centers, _assigned(points, centers), 1, {}, gallery.similarity)
    exact = {m: _exact(gallery, several) for m, several in queries.items()}
    for probes in _growing(len(centers)):
        cells = replace(cells, probes=probes)
        shares = {str(m): _recall(cells, queries[m].vectors, best) for m, best in exact.items()}
        if min(shares.values()) >= recall:
            return replace(cells, recall=shares)
    return (
        f"the items are searched exactly, because {cells.probes} of {len(centers)} cells reach a recall@{K} of only "
        f"{min(shares.values()):.3f}, and more cells take as long as all items"
    )


def _growing(cells: int) -> list[int]:
    """Return numbers of probes that grow by a quarter, up to the largest number that is faster than exact search."""
    most = max(1, int(LARGEST_SHARE * cells / 2))  # probed cells are larger than most cells
    return sorted({*(min(most, round(1.25**n)) for n in range(1 + int(np.log(most) / np.log(1.25) + 1))), most})


def _points(gallery: Gallery) -> NDArray[np.float32]:
    """Return points whose nearest center by distance is the best by similarity: unit vectors, or codes of -1 and 1."""
    vectors = gallery.vectors.numpy()
    if gallery.similarity == "cosine":
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0))
    if gallery.similarity == "hamming":
        return np.where(vectors > 0, 1, -1).astype(np.float32)
    return np.asarray(vectors)


def _centers(points: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    faiss = optional("faiss", "--approximate", "aadml[faiss]")
    clustering = faiss.Kmeans(
        points.shape[1], count, niter=_ROUNDS, seed=0, min_points_per_centroid=1, max_points_per_centroid=_PER_CENTER
    )
    clustering.train(np.ascontiguousarray(points))
    return np.asarray(clustering.centroids, dtype=np.float32).copy()


def _assigned(points: NDArray[np.float32], centers: NDArray[np.float32]) -> NDArray[np.int32]:
    """Return the nearest center of each item (n,), computed in blocks."""
    half = (centers**2).sum(1) / 2
    parts = [(points[begin : begin + _PART] @ centers.T - half).argmax(1) for begin in range(0, len(points), _PART)]
    return np.concatenate(parts).astype(np.int32)


def _exact(gallery: Gallery, queries: RecallQueries) -> list[set[int]]:
    best = [gallery.best(query, K + 1)[0] for query in queries.vectors[:, None]]
    return [set(rows[rows != row][:K].tolist()) for rows, row in zip(best, queries.self_rows, strict=True)]


def _recall(cells: Cells, queries: Tensor, exact: list[set[int]]) -> float:
    held = [set(cells.candidates(query).tolist()) for query in queries[:, None]]
    return float(np.mean([len(best & rows) / len(best) for best, rows in zip(exact, held, strict=True)]))


def approximate_index(path: Path, recall: float | None, encoder: IndexEncoder, on_note: Note | None = None) -> None:
    """Build the cells of an index in their own transaction, if the index has changed since the last build.

    Args:
        path: path of the index.
        recall: share of the ten best items that a search must find; None keeps the recall of an index with cells.
        encoder: encoder of the index.
        on_note: called with notes for the user.
    """
    note = on_note or (lambda _: None)
    with closing(connect(path)) as database, reading(database, path):
        facts = read_facts(database, path)
        before, state = facts.approximate, facts.state
        recall = recall if recall is not None or before is None else before.recall
        if recall is None or before == CellsRecord(recall, state.generation):
            return
        galleries = galleries_of(database, encoder.similarity)
    rows: list[tuple[str, str, bytes, bytes]] = []
    for modality, (_, gallery) in galleries.items():
        cells = make_cells(gallery, _queries(galleries, modality, encoder), recall=recall, smallest=SMALLEST)
        note(f"{modality}: {cells if isinstance(cells, str) else summary(cells)}")
        if isinstance(cells, Cells):
            probed = _ProbedCells(cells.probes, cells.recall, cells.centers.shape[1])
            blobs = (cells.centers.astype("<f4").tobytes(), cells.cell_of.astype("<i4").tobytes())
            rows.append((modality, json.dumps(asdict(probed)), *blobs))
    with writing(path) as database:
        cells_record = CellsRecord(recall, state.generation + 1)
        write_facts(database, replace(facts, approximate=cells_record, state=state.next()))
        database.execute("DROP TABLE IF EXISTS cells")
        database.execute("CREATE TABLE cells (modality TEXT PRIMARY KEY, facts TEXT, centers BLOB, own BLOB)")
        database.executemany("INSERT INTO cells VALUES (?, ?, ?, ?)", rows)


def _queries(galleries: Galleries, to: Modality, encoder: IndexEncoder) -> dict[Modality, RecallQueries]:
    """Draw query items of every modality that can be compared with the items of modality `to`."""
    rows = {int(item): row for row, item in enumerate(galleries[to][0])}
    queries = {}
    for modality, (numbers, gallery) in galleries.items():
        if encoder.can_query(modality, to):
            drawn = np.sort(np.random.default_rng(0).permutation(len(numbers))[:QUERIES])
            self_rows = np.asarray([rows.get(int(numbers[place]), -1) for place in drawn], dtype=np.int64)
            queries[modality] = RecallQueries(gallery.vectors[torch.from_numpy(drawn)], self_rows)
    return queries


def read_cells(
    database: sqlite3.Connection, facts: IndexFacts, galleries: Galleries, place: Path
) -> dict[Modality, Cells]:
    """Read the cells of an index; an empty mapping if the index has changed since they were built.

    Raises:
        InputError: the cells are damaged.
    """
    if facts.approximate is None or facts.approximate.generation != facts.state.generation:
        return {}
    rows = {row[0]: row[1:] for row in database.execute("SELECT modality, facts, centers, own FROM cells")}
    return {m: _read(rows[m], gallery, place) for m, (_, gallery) in galleries.items() if m in rows}


def _read(row: tuple[str, bytes, bytes], gallery: Gallery, place: Path) -> Cells:
    content, centers, cell_of = row
    facts = read_as(_ProbedCells, parse_object(content, place), place)
    count, rest = divmod(len(centers), 4 * max(facts.dimensions, 1))
    cells = np.frombuffer(cell_of, dtype="<i4") if len(cell_of) == 4 * len(gallery) else None
    if rest or not 1 <= facts.probes <= count or cells is None or not ((cells >= 0) & (cells < count)).all():
        raise DamagedFileError(f"{place}: the cells are damaged; build the index again")
    matrix = np.frombuffer(centers, dtype="<f4").reshape(count, facts.dimensions)
    return Cells(matrix.astype(np.float32), cells.astype(np.int32), facts.probes, facts.recall, gallery.similarity)


def summary(cells: Cells) -> str:
    """Return a line on the number of probes and the recall."""
    shares = ", ".join(f"{share:.3f} for queries of {modality}" for modality, share in cells.recall.items())
    return f"approximate search in {cells.probes} of {len(cells.centers):,} cells, recall@{K} {shares}"
