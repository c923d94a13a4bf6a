"""Rules of relevance, shared by validation, metrics, pages and criteria."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from aadml.feature_extraction.feature_file.content import UNLABELLED
from aadml.feature_extraction.ground.errors import InputError

Rows = NDArray[np.int64]
Grades = NDArray[np.float32]


class Items(Protocol):
    """Items with labels and ids: clips, or their embeddings."""

    @property
    def labels(self) -> Tensor:
        """Class (n,) of each item; UNLABELLED for an item without a class."""

    @property
    def all_labels(self) -> Tensor | None:
        """Mask (n, C) of all classes of each item; None if no item has several classes."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Names of the items."""

    @property
    def clip_names(self) -> Sequence[str]:
        """Clip of each item, by name."""


class Relevant(ABC):
    """Relevance of n gallery items to q queries.

    Attributes:
        shape: numbers of queries q and gallery items n.
        some: (q,) True for a query with relevant items; other queries are skipped and counted.
        graded: True if the grades of relevant items may differ.
    """

    shape: tuple[int, int]
    some: NDArray[np.bool_]
    graded: bool = False

    @abstractmethod
    def block(self, index: Rows) -> NDArray[np.bool_]:
        """Return the mask (b, n) of items relevant to the queries in rows `index` (b,)."""

    @abstractmethod
    def at(self, places: Rows) -> NDArray[np.bool_]:
        """Return flags (q,) from `places` (q,): whether gallery item `places[i]` is relevant to query i."""

    def grades(self, index: Rows) -> Grades:
        """Return the grades (b, n) of items for the queries in rows `index` (b,), 0 for items that are not relevant."""
        return self.block(index).astype(np.float32)


class Grouped(Relevant):
    """Relevance of items to queries of the same group.

    Args:
        queries: (q,) group of each query: a class, or the number of a clip.
        gallery: (n,) group of each item.
    """

    def __init__(self, queries: NDArray[Any], gallery: NDArray[Any]) -> None:
        values, codes = np.unique(gallery, return_inverse=True)
        self._codes = codes.astype(np.int32)
        self.some = np.isin(queries, values)
        self._query_codes = np.where(self.some, np.searchsorted(values, queries), -1).astype(np.int32)
        self.shape = len(queries), len(gallery)

    def block(self, index: Rows) -> NDArray[np.bool_]:
        """Return the mask (b, n) of items relevant to the queries in rows `index` (b,)."""
        return np.asarray(self._query_codes[index, None] == self._codes[None, :])

    def at(self, places: Rows) -> NDArray[np.bool_]:
        """Return flags (q,) from `places` (q,): whether gallery item `places[i]` is relevant to query i."""
        return np.asarray(self._query_codes == self._codes[places])


class Sharing(Relevant):
    """Relevance of items to queries with a class in common.

    Args:
        queries: (q, C) booleans, classes of each query.
        gallery: (n, C) booleans, classes of each item.
        graded: use the Jaccard index of the classes as grade; otherwise every relevant item has grade 1.
    """

    def __init__(self, queries: NDArray[np.bool_], gallery: NDArray[np.bool_], *, graded: bool = False) -> None:
        self._queries, self._gallery = queries.astype(np.float32), gallery.astype(np.float32)
        self.some = np.asarray(queries[:, gallery.any(axis=0)].any(axis=1), dtype=bool)
        self.graded = graded
        self.shape = len(queries), len(gallery)

    def block(self, index: Rows) -> NDArray[np.bool_]:
        """Return the mask (b, n) of items relevant to the queries in rows `index` (b,)."""
        return np.asarray(self._queries[index] @ self._gallery.T > 0)

    def at(self, places: Rows) -> NDArray[np.bool_]:
        """Return flags (q,) from `places` (q,): whether gallery item `places[i]` is relevant to query i."""
        return np.asarray((self._queries * self._gallery[places]).any(axis=1))

    def grades(self, index: Rows) -> Grades:
        """Return the grades (b, n) of items for the queries in rows `index` (b,)."""
        if not self.graded:
            return super().grades(index)
        queries = self._queries[index]
        common = queries @ self._gallery.T
        either = queries.sum(axis=1, keepdims=True) + self._gallery.sum(axis=1) - common
        return np.asarray(common / np.maximum(either, 1), dtype=np.float32)


class Judged(Relevant):
    """Relevance by a list of judgments.

    Args:
        grades: for each query, the columns of its relevant gallery items and their grades, both (m,).
        items: number n of gallery items.
    """

    def __init__(self, grades: Sequence[tuple[Rows, Grades]], items: int) -> None:
        self._grades, self.shape = grades, (len(grades), items)
        self.some = np.array([len(rows) > 0 for rows, _ in grades], dtype=bool)
        self.graded = len(np.unique(np.concatenate([np.empty(0), *(values for _, values in grades)]))) > 1

    def block(self, index: Rows) -> NDArray[np.bool_]:
        """Return the mask (b, n) of items relevant to the queries in rows `index` (b,)."""
        return self.grades(index) > 0

    def at(self, places: Rows) -> NDArray[np.bool_]:
        """Return flags (q,) from `places` (q,): whether gallery item `places[i]` is relevant to query i."""
        return np.array([place in rows for place, (rows, _) in zip(places, self._grades, strict=True)], dtype=bool)

    def grades(self, index: Rows) -> Grades:
        """Return the grades (b, n) of items for the queries in rows `index` (b,)."""
        grades = np.zeros((len(index), self.shape[1]), dtype=np.float32)
        for row, query in enumerate(index.tolist()):
            columns, values = self._grades[query]
            grades[row, columns] = values
        return grades


class Relevance(ABC):
    """Rule that decides which items are relevant to a query.

    Attributes:
        name: name in options and reports.
        words: description, as the end of "a relevant result is ...".
    """

    name: ClassVar[str]
    words: ClassVar[str]

    @abstractmethod
    def between(self, items: Items, queries: Rows, gallery: Rows) -> Relevant:
        """Return the relevance of the items `gallery` to the items `queries`.

        Args:
            items: all items.
            queries: (q,) rows of the queries.
            gallery: (n,) rows of the ranked items.
        """

    def groups(self, items: Items) -> NDArray[np.int64] | None:
        """Return the class (n,) of each item, for tables by class; None for a rule without one class per item."""
        return None


@dataclass(frozen=True)
class OwnPartner(Relevance):
    """Relevance of only the query's own partner: the rows of the query's clip."""

    name = "own"
    words = "the query's own partner only"

    def between(self, items: Items, queries: Rows, gallery: Rows) -> Relevant:
        """Return the relevance of gallery rows (n,) to query rows (q,)."""
        codes = np.unique(np.asarray(items.clip_names), return_inverse=True)[1]
        return Grouped(codes[queries], codes[gallery])


@dataclass(frozen=True)
class SameLabel(Relevance):
    """Relevance of items of the class of the query; an unlabeled clip is relevant to no query."""

    name = "label"
    words = "an item of the query's class"

    def between(self, items: Items, queries: Rows, gallery: Rows) -> Relevant:
        """Return the relevance of gallery rows (n,) to query rows (q,)."""
        labels = items.labels.cpu().numpy()
        absent = UNLABELLED - 1  # a class for unlabeled queries that no item has
        return Grouped(np.where(labels == UNLABELLED, absent, labels)[queries], labels[gallery])

    def groups(self, items: Items) -> NDArray[np.int64]:
        """Return the class (n,) of each item; UNLABELLED for an item without a class."""
        return np.asarray(items.labels.cpu().numpy())


@dataclass(frozen=True)
class SharedLabels(Relevance):
    """Relevance of items that share a class with the query."""

    graded: ClassVar[bool] = False
    name = "labels"
    words = "an item that shares a class with the query"

    def between(self, items: Items, queries: Rows, gallery: Rows) -> Relevant:
        """Return the relevance of gallery rows (n,) to query rows (q,)."""
        marked = labels_of(items)
        return Sharing(marked[queries], marked[gallery], graded=self.graded)


@dataclass(frozen=True)
class GradedLabels(SharedLabels):
    """Relevance of items that share a class with the query, graded by the Jaccard index of the two sets of classes."""

    graded = True
    name = "labels-graded"
    words = "an item that shares a class with the query, graded by the share of their classes in common"


@dataclass(frozen=True)
class Judgments(Relevance):
    """Relevance by the judgments in a file.

    Attributes:
        grades: name of a query -> name of an item -> grade above 0.
    """

    grades: Mapping[str, Mapping[str, float]]
    name = "file"
    words = "an item that the file of judgments lists for the query"

    def between(self, items: Items, queries: Rows, gallery: Rows) -> Relevant:
        """Return the relevance of gallery rows (n,) to query rows (q,)."""
        columns: dict[str, list[int]] = {}
        for column, row in enumerate(gallery.tolist()):
            columns.setdefault(items.ids[row], []).append(column)
        judged = []
        for row in queries.tolist():
            by_name = self.grades.get(items.ids[row], {}).items()
            pairs = [(column, grade) for name, grade in by_name for column in columns.get(name, ())]
            relevant, grades = (np.array([pair[i] for pair in pairs]) for i in (0, 1))
            judged.append((relevant.astype(np.int64), grades.astype(np.float32)))
        return Judged(judged, len(gallery))


OWN, LABEL, LABELS = OwnPartner(), SameLabel(), SharedLabels()
RULES: dict[str, Relevance] = {rule.name: rule for rule in (OWN, LABEL, LABELS, GradedLabels())}
"""Rules without a file, by name."""


def relevance_of(items: Items) -> Relevance:
    """Return the default rule of relevance.

    Returns:
        LABELS for items with `all_labels`. Otherwise, OWN if there are items but no item has a class, and LABEL in
        all other cases.
    """
    if items.all_labels is not None:
        return LABELS
    labels = items.labels
    return OWN if len(labels) and bool((labels == UNLABELLED).all()) else LABEL


def labels_of(items: Items) -> NDArray[np.bool_]:
    """Return the mask (n, C) of all classes of each item."""
    if items.all_labels is not None:
        return np.asarray(items.all_labels.cpu().numpy()).astype(bool)
    labels = items.labels.cpu().numpy()
    return np.asarray(labels[:, None] == np.arange(max(int(labels.max(initial=0)), 0) + 1))


def check_relevance(rule: Relevance, items: Items, place: str) -> None:
    """Check that a rule can be applied to data.

    Args:
        rule: rule of relevance.
        items: all items.
        place: subject of the message.

    Raises:
        InputError: a rule by class for items without any class, or the rule `label` for items with several classes.
    """
    unlabelled = bool((items.labels == UNLABELLED).all())
    if rule.name in RULES and rule is not OWN and unlabelled:
        raise InputError(f"{place}: relevance '{rule.name}' needs class labels, but no clip has a label; choose 'own'")
    if rule.name == "label" and items.all_labels is not None:
        raise InputError(
            f"{place}: relevance 'label' needs one class per clip, but some clips have several classes; choose 'labels'"
        )
