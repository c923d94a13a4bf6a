"""An approximate index: items lie in cells, and a question looks into the nearest cells alone.

The inverted file of Sivic and Zisserman (ICCV 2003) as faiss builds it (Johnson et al., 2021): centers by k-means, each
item in the cell of its nearest center. The items of the cells that are looked into are scored exactly, so a score is
never approximate; an item in another cell is missed. How often is measured where the cells are made.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.comparison.features import Modality
from aadml.feature_extraction.ground.errors import InputError
from aadml.search.exact_search import Gallery

SMALLEST = 100_000
"""Items below which exact search takes milliseconds, and no cells are made."""

LARGEST_SHARE = 0.25
"""Share of the items from which on looking into cells is no faster than looking at everything."""

K, QUESTIONS = 10, 200
_PER_CENTER, _ROUNDS, _PART = 64, 10, 1 << 14


@dataclass(frozen=True)
class Cells:
    """The cells of one modality.

    Attributes:
        centers: (c, d) float32.
        own: (n,) the cell of each item, in the order of the gallery.
        probes: how many cells a question looks into.
        recall: recall@10 against exact search, by modality of the question.
        similarity: by which the items are compared.
    """

    centers: NDArray[np.float32]
    own: NDArray[np.int32]
    probes: int
    recall: Mapping[str, float]
    similarity: str

    def candidates(self, queries: Tensor) -> NDArray[np.int64]:
        """Name the items of the cells that are nearest to any of the queries (q, d), ascending."""
        near = np.concatenate([self._nearest(query) for query in queries.numpy()])
        parts = [self._order[self._begins[cell] : self._begins[cell + 1]] for cell in np.unique(near)]
        return np.sort(np.concatenate(parts))

    def _nearest(self, query: NDArray[np.float32]) -> NDArray[np.int64]:
        scores = Gallery(torch.from_numpy(self.centers), self.similarity).scores(torch.from_numpy(query)[None])
        return np.asarray(np.argpartition(-scores, self.probes - 1)[: self.probes])

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        return np.argsort(self.own, kind="stable")

    @cached_property
    def _begins(self) -> NDArray[np.int64]:
        return np.searchsorted(self.own[self._order], np.arange(len(self.centers) + 1))


@dataclass(frozen=True)
class RecallQueries:
    """What is asked to measure a recall.

    Attributes:
        vectors: (q, d).
        own: (q,) the row of the gallery that is the question itself and is not counted; -1 where there is none.
    """

    vectors: Tensor
    own: NDArray[np.int64]


def make_cells(
    gallery: Gallery,
    asking: Mapping[Modality, RecallQueries],
    *,
    recall: float,
    smallest: int | None = None,
    seed: int = 0,
) -> Cells | str:
    """Make twice the square root of n cells, and look into as few as reach a recall.

    Args:
        gallery: n items.
        asking: questions by their modality.
        recall: share of the ten best items that must be found, on average over the questions of every modality.
        smallest: items below which no cells are made; by default `SMALLEST`.
        seed: of the clustering.

    Returns:
        The cells, or why there are none.

    Raises:
        InputError: faiss is not installed.
    """
    smallest = SMALLEST if smallest is None else smallest
    if len(gallery) < smallest:
        return f"{len(gallery):,} items: searched exactly, as all sets below {smallest:,}"
    points = _points(gallery)
    centers = _centers(points, 2 * round(len(gallery) ** 0.5), seed)
    cells = Cells(centers, _assigned(points, centers), 1, {}, gallery.similarity)
    exact = {m: _exact(gallery, one) for m, one in asking.items()}
    for probes in _growing(len(centers)):
        cells = replace(cells, probes=probes)
        found = {m: _recall(cells, asking[m].vectors, wanted) for m, wanted in exact.items()}
        if min(found.values()) >= recall:
            return replace(cells, recall={str(m): share for m, share in found.items()})
    return (
        f"searched exactly: {cells.probes} of {len(centers)} cells give a recall@{K} of {min(found.values()):.3f}, and "
        "more cells take as long as all items"
    )


def _growing(cells: int) -> list[int]:
    """Give numbers of cells that grow by a quarter, up to the share that pays."""
    most = max(1, int(LARGEST_SHARE * cells / 2))  # a cell that is looked into is larger than most
    return sorted({*(min(most, round(1.25**n)) for n in range(1 + int(np.log(most) / np.log(1.25) + 1))), most})


def _points(gallery: Gallery) -> NDArray[np.float32]:
    """Give vectors whose nearest center by distance is the best by the similarity: of length one, or as codes."""
    vectors = gallery.vectors.numpy()
    if gallery.similarity == "cosine":
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0))
    if gallery.similarity == "hamming":
        return np.where(vectors > 0, 1, -1).astype(np.float32)
    return np.asarray(vectors)


def _centers(points: NDArray[np.float32], count: int, seed: int) -> NDArray[np.float32]:
    try:
        import faiss
    except ImportError as error:
        raise InputError("--approximate needs faiss; pip install 'aadml[faiss]'") from error
    found = faiss.Kmeans(
        points.shape[1], count, niter=_ROUNDS, seed=seed, min_points_per_centroid=1, max_points_per_centroid=_PER_CENTER
    )
    found.train(np.ascontiguousarray(points))
    return np.asarray(found.centroids, dtype=np.float32).copy()


def _assigned(points: NDArray[np.float32], centers: NDArray[np.float32]) -> NDArray[np.int32]:
    """Find the nearest center of each item (n,), block by block."""
    half = (centers**2).sum(1) / 2
    parts = [(points[begin : begin + _PART] @ centers.T - half).argmax(1) for begin in range(0, len(points), _PART)]
    return np.concatenate(parts).astype(np.int32)


def _exact(gallery: Gallery, asking: RecallQueries) -> list[set[int]]:
    """Find the ten best items of each question."""
    found = [gallery.best(query, K + 1)[0] for query in asking.vectors[:, None]]
    return [set(rows[rows != own][:K].tolist()) for rows, own in zip(found, asking.own, strict=True)]


def _recall(cells: Cells, queries: Tensor, exact: list[set[int]]) -> float:
    """Average the share of the ten best that the cells hold."""
    held = [set(cells.candidates(query).tolist()) for query in queries[:, None]]
    return float(np.mean([len(best & rows) / len(best) for best, rows in zip(exact, held, strict=True)]))
