"""What is relevant to what: decided once, and asked by validation, every metric, pages and criteria alike."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from aadml.feature_extraction.feature_file import UNLABELLED
from aadml.feature_extraction.ground.errors import InputError

Rows = NDArray[np.int64]
Grades = NDArray[np.float32]


class Items(Protocol):
    """What relevance may look at: clips, or their embeddings."""

    @property
    def labels(self) -> Tensor:
        """Class of each item (n,); UNLABELLED where it has none."""

    @property
    def all_labels(self) -> Tensor | None:
        """All classes of each item (n, C), where some have several."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Name of each item; rows of one name are of one clip."""


class Relevant(ABC):
    """Which of n gallery items are relevant to each of q queries.

    Attributes:
        some: (q,) whether a query has anything relevant; one that has not is left out and counted.
        graded: whether some items are more relevant than others.
    """

    some: NDArray[np.bool_]
    graded: bool = False

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Queries q and gallery items n."""

    @abstractmethod
    def block(self, index: Rows) -> NDArray[np.bool_]:
        """Say what is relevant to the queries `index` (b,): (b, n)."""

    @abstractmethod
    def at(self, places: Rows) -> NDArray[np.bool_]:
        """Say whether to each query the item in one place (q,) is relevant: (q,)."""

    def grades(self, index: Rows) -> Grades:
        """Say how relevant: (b, n), 0 where not at all."""
        return self.block(index).astype(np.float32)


class Grouped(Relevant):
    """An item is relevant to the queries of its group.

    Args:
        queries: (q,) the group of each query: a class, or the number of a clip.
        gallery: (n,) likewise.
    """

    def __init__(self, queries: NDArray[Any], gallery: NDArray[Any]) -> None:
        values, codes = np.unique(gallery, return_inverse=True)
        self._codes = codes.astype(np.int32)
        own: Rows = np.minimum(np.searchsorted(values, queries), len(values) - 1)
        self.some = np.asarray(values[own] == queries, dtype=bool)
        self._own = np.where(self.some, own, -1).astype(np.int32)

    @property
    def shape(self) -> tuple[int, int]:
        """Queries q and gallery items n."""
        return len(self._own), len(self._codes)

    def block(self, index: Rows) -> NDArray[np.bool_]:
        """Say what is relevant to the queries `index` (b,): (b, n)."""
        return np.asarray(self._own[index, None] == self._codes[None, :])

    def at(self, places: Rows) -> NDArray[np.bool_]:
        """Say whether to each query the item in one place (q,) is relevant: (q,)."""
        return np.asarray(self._own == self._codes[places])


class Sharing(Relevant):
    """An item is relevant to the queries with which it shares a class.

    Args:
        queries: (q, C) booleans, the classes of each query.
        gallery: (n, C) likewise.
        graded: whether the grade is the share of the classes of both that they have in common (Jaccard index);
            otherwise every relevant item has grade 1.
    """

    def __init__(self, queries: NDArray[np.bool_], gallery: NDArray[np.bool_], *, graded: bool = False) -> None:
        self._queries, self._gallery = queries.astype(np.float32), gallery.astype(np.float32)
        self.some = np.asarray(queries[:, gallery.any(axis=0)].any(axis=1), dtype=bool)
        self.graded = graded

    @property
    def shape(self) -> tuple[int, int]:
        """Queries q and gallery items n."""
        return len(self._queries), len(self._gallery)

    def block(self, index: Rows) -> NDArray[np.bool_]:
        """Say what is relevant to the queries `index` (b,): (b, n)."""
        return np.asarray(self._queries[index] @ self._gallery.T > 0)

    def at(self, places: Rows) -> NDArray[np.bool_]:
        """Say whether to each query the item in one place (q,) is relevant: (q,)."""
        return np.asarray((self._queries * self._gallery[places]).any(axis=1))

    def grades(self, index: Rows) -> Grades:
        """Say how relevant: (b, n)."""
        if not self.graded:
            return super().grades(index)
        own = self._queries[index]
        common = own @ self._gallery.T
        either = own.sum(axis=1, keepdims=True) + self._gallery.sum(axis=1) - common
        return np.asarray(common / np.maximum(either, 1), dtype=np.float32)


class Judged(Relevant):
    """What a list of judgments says.

    Args:
        grades: of each query, the gallery's rows that are relevant to it and how much, both (m,).
        items: n.
    """

    def __init__(self, grades: Sequence[tuple[Rows, Grades]], items: int) -> None:
        self._grades, self._items = grades, items
        self.some = np.array([len(rows) > 0 for rows, _ in grades], dtype=bool)
        self.graded = len(np.unique(np.concatenate([np.empty(0), *(values for _, values in grades)]))) > 1

    @property
    def shape(self) -> tuple[int, int]:
        """Queries q and gallery items n."""
        return len(self._grades), self._items

    def block(self, index: Rows) -> NDArray[np.bool_]:
        """Say what is relevant to the queries `index` (b,): (b, n)."""
        return self.grades(index) > 0

    def at(self, places: Rows) -> NDArray[np.bool_]:
        """Say whether to each query the item in one place (q,) is relevant: (q,)."""
        return np.array([place in rows for place, (rows, _) in zip(places, self._grades, strict=True)], dtype=bool)

    def grades(self, index: Rows) -> Grades:
        """Say how relevant: (b, n)."""
        found = np.zeros((len(index), self._items), dtype=np.float32)
        for row, query in enumerate(index.tolist()):
            places, values = self._grades[query]
            found[row, places] = values
        return found


class Relevance(ABC):
    """A rule by which items are relevant to queries.

    Attributes:
        name: by which it is chosen and reported.
        words: what it says, as the end of "relevant is ...".
    """

    name: ClassVar[str]
    words: ClassVar[str]

    @abstractmethod
    def between(self, items: Items, queries: Rows, gallery: Rows) -> Relevant:
        """Apply the rule.

        Args:
            items: all there are.
            queries: (q,) rows that ask.
            gallery: (n,) rows that are ranked.
        """

    def along(self, direction: tuple[str, str], items: Items, queries: Rows, gallery: Rows) -> Relevant:
        """Apply the rule to queries of one modality and a gallery of another; most rules do not tell them apart."""
        return self.between(items, queries, gallery)

    def groups(self, items: Items) -> NDArray[np.int64] | None:
        """Give the class (n,) by which figures are tabled; None where there are none, or several a clip."""
        return None


@dataclass(frozen=True)
class OwnPartner(Relevance):
    """A query's own partner alone is relevant: what else shows the clip of its name."""

    name = "own"
    words = "the query's own partner alone"

    def between(self, items: Items, queries: Rows, gallery: Rows) -> Relevant:
        """Apply the rule."""
        codes = np.unique(np.asarray(items.ids), return_inverse=True)[1]
        return Grouped(codes[queries], codes[gallery])


@dataclass(frozen=True)
class SameLabel(Relevance):
    """What is of the query's class is relevant; an unlabelled clip is relevant to nothing."""

    name = "label"
    words = "of the query's class"

    def between(self, items: Items, queries: Rows, gallery: Rows) -> Relevant:
        """Apply the rule."""
        labels = items.labels.cpu().numpy()
        nobody = UNLABELLED - 1  # the class of queries without one, which no item has
        return Grouped(np.where(labels == UNLABELLED, nobody, labels)[queries], labels[gallery])

    def groups(self, items: Items) -> NDArray[np.int64]:
        """Give the class (n,) of each item."""
        return np.asarray(items.labels.cpu().numpy())


@dataclass(frozen=True)
class SharedLabels(Relevance):
    """What shares a class with the query is relevant."""

    graded: ClassVar[bool] = False
    name = "labels"
    words = "what shares a class with the query"

    def between(self, items: Items, queries: Rows, gallery: Rows) -> Relevant:
        """Apply the rule."""
        marked = labels_of(items)
        return Sharing(marked[queries], marked[gallery], graded=self.graded)


@dataclass(frozen=True)
class GradedLabels(SharedLabels):
    """What shares a class with the query is relevant, the more of the classes of both they share."""

    graded = True
    name = "labels-graded"
    words = "what shares a class with the query, by the share of their classes in common"


@dataclass(frozen=True)
class Judgments(Relevance):
    """What a file says is relevant.

    Attributes:
        grades: name of a query -> name of an item -> how relevant it is, above 0.
    """

    grades: Mapping[str, Mapping[str, float]]
    name = "file"
    words = "what a file of judgments names"

    def between(self, items: Items, queries: Rows, gallery: Rows) -> Relevant:
        """Apply the rule."""
        places: dict[str, list[int]] = {}
        for place, row in enumerate(gallery.tolist()):
            places.setdefault(items.ids[row], []).append(place)
        found = []
        for row in queries.tolist():
            named = self.grades.get(items.ids[row], {}).items()
            pairs = [(place, grade) for name, grade in named for place in places.get(name, ())]
            rows, grades = (np.array([pair[i] for pair in pairs]) for i in (0, 1))
            found.append((rows.astype(np.int64), grades.astype(np.float32)))
        return Judged(found, len(gallery))


@dataclass(frozen=True)
class Perceived(Relevance):
    """What shares an event with the query is relevant, where both sides let it be perceived.

    An event that is heard but not seen is none of the clip's picture: in the gallery of pictures the clip is not
    relevant to whom asks for that event by a sound, not even to its own.

    Attributes:
        events: modality -> name of a clip -> the events that are perceived in that modality of it; a clip that is not
            named is relevant to nothing.
    """

    events: Mapping[str, Mapping[str, frozenset[str]]]
    name = "events"
    words = "what lets an event be perceived that the query lets be perceived"

    def between(self, items: Items, queries: Rows, gallery: Rows) -> Relevant:
        """Refuse: what is relevant depends on the modalities."""
        raise InputError("relevance 'events': what is relevant depends on the modalities of queries and gallery")

    def along(self, direction: tuple[str, str], items: Items, queries: Rows, gallery: Rows) -> Relevant:
        """Apply the rule to queries of one modality and a gallery of another."""
        sides = [self._of(modality, items, rows) for modality, rows in zip(direction, (queries, gallery), strict=True)]
        places = {event: number for number, event in enumerate(sorted(set().union(*sides[0], *sides[1])))}
        marked = []
        for side in sides:
            marks = np.zeros((len(side), max(len(places), 1)), dtype=bool)
            for row, events in enumerate(side):
                marks[row, [places[event] for event in events]] = True
            marked.append(marks)
        return Sharing(*marked)

    def _of(self, modality: str, items: Items, rows: Rows) -> list[frozenset[str]]:
        if modality not in self.events:
            raise InputError(f"relevance 'events': says nothing of {modality}; it names {', '.join(self.events)}")
        return [self.events[modality].get(items.ids[row], frozenset()) for row in rows.tolist()]


OWN, LABEL, LABELS = OwnPartner(), SameLabel(), SharedLabels()
RULES: dict[str, Relevance] = {rule.name: rule for rule in (OWN, LABEL, LABELS, GradedLabels())}
"""Rules that need no file, by name."""


def relevance_of(items: Items) -> Relevance:
    """Decide by the data what is relevant: a shared class, the class, or the own partner where there are no classes."""
    if items.all_labels is not None:
        return LABELS
    labels = items.labels
    return OWN if len(labels) and bool((labels == UNLABELLED).all()) else LABEL


def labels_of(items: Items) -> NDArray[np.bool_]:
    """Mark all classes of each item: (n, C)."""
    if items.all_labels is not None:
        return np.asarray(items.all_labels.cpu().numpy()).astype(bool)
    labels = items.labels.cpu().numpy()
    return np.asarray(labels[:, None] == np.arange(max(int(labels.max(initial=0)), 0) + 1))


def check_relevance(rule: Relevance, items: Items, place: str) -> None:
    """Refuse a rule that the data cannot follow.

    Raises:
        InputError: classes are asked for where there are none, or one class where there are several.
    """
    unlabelled = bool((items.labels == UNLABELLED).all())
    if rule.name in RULES and rule is not OWN and unlabelled:
        raise InputError(f"{place}: relevance '{rule.name}' needs class labels, and its clips have none; take own")
    if rule.name == "label" and items.all_labels is not None:
        raise InputError(f"{place}: relevance 'label' needs one class a clip, and some have several; take labels")
