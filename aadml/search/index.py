"""Index that is open for search, updates and export."""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.comparison.arrays import ArrayLike
from aadml.comparison.features import Modality
from aadml.comparison.options import Count
from aadml.feature_extraction.ground.argument_types import checked_call
from aadml.feature_extraction.ground.atomic import target_of
from aadml.feature_extraction.ground.consent import consent_to, is_trusting, named_in, trusting
from aadml.feature_extraction.ground.errors import InputError
from aadml.model.model import Model
from aadml.retrieval.exact_search import Gallery
from aadml.retrieval.posteriors import second_keys
from aadml.search.best_moment import best_moment, read_moments
from aadml.search.browsing import Browsed, browse
from aadml.search.build_index import build
from aadml.search.calibration import Calibration
from aadml.search.captions import as_clips, clips_of_captions
from aadml.search.embed_query import check, embed_query, single_query
from aadml.search.encoders import IndexEncoder, load_encoder
from aadml.search.export import export
from aadml.search.facts import IndexFacts, located, read_facts
from aadml.search.filters import SECONDS, Value, matching, searchable_columns
from aadml.search.fit_calibration import Query, read_calibrations, why_uncalibrated
from aadml.search.fusion import DEPTH, fused
from aadml.search.items import Galleries, galleries_of, items_of
from aadml.search.latest_state import LatestState
from aadml.search.results import Found, Hit
from aadml.search.store import Item
from aadml.search.updates import Changes
from aadml.search.vector_maps import VectorMap, vector_map

_FILTERS = 32  # conditions whose rows are cached


Where = tuple[str, tuple[Value, ...]]
"""An SQL condition, and the values of its parameters."""


@dataclass(frozen=True)
class _State:
    """Vectors and facts of one state of an index.

    Attributes:
        folder: folder of the file, to which stored paths are relative; a symbolic link to the file may be elsewhere.
        facts: facts of the index.
        galleries: numbers and vectors of the items, by modality.
        calibrations: (modalities of the query, modality of the items) -> calibration.
        clips: number of a caption -> number of its clip.
        filters: (modality, condition as text) -> rows of the gallery that meet the condition, and a copy of their
            vectors, for the latest conditions.
    """

    folder: Path
    facts: IndexFacts
    galleries: Galleries
    calibrations: dict[Query, Calibration]
    clips: dict[int, int]
    filters: dict[tuple[Modality, str], tuple[NDArray[np.int64], Gallery]] = field(default_factory=dict)

    @cached_property
    def clips_with(self) -> dict[Modality, NDArray[np.int64]]:
        """Modality -> sorted numbers of the clips that have, or have a caption with, a vector of the modality."""
        return {m: np.sort(as_clips(numbers, self.clips)) for m, (numbers, _) in self.galleries.items()}


def _read_state(database: sqlite3.Connection, path: Path) -> _State:
    """Read an index in an open transaction.

    Raises:
        InputError: the index is damaged, or another version of aadml fitted its probabilities.
    """
    facts = read_facts(database, path)
    galleries = galleries_of(database, facts.state.similarity)
    calibrations = read_calibrations(facts.calibration, path)
    return _State(target_of(path).parent, facts, galleries, calibrations, clips_of_captions(database))


def _no_maps(_: sqlite3.Connection) -> dict[Modality, VectorMap]:
    return {}


def _queries(vectors: Mapping[Modality, Tensor], gallery: Gallery) -> Tensor:
    """Return the vectors of a query as a matrix (q, e).

    Raises:
        InputError: there are no vectors, or a vector has a wrong type or width.
    """
    if not isinstance(vectors, Mapping) or not all(isinstance(v, Tensor) and v.ndim == 2 for v in vectors.values()):
        raise InputError(
            f"vectors (type {type(vectors).__name__}) does not map modalities to matrices; pass "
            "{modality: tensor (1, e)}"
        )
    if not vectors:
        raise InputError("vectors is empty; pass {modality: tensor (1, e)}")
    width = gallery.vectors.shape[1]
    if other := [vector.shape[1] for vector in vectors.values() if vector.shape[1] != width]:
        raise InputError(
            f"the query has {other[0]} dimensions, but the items of the index have {width}; pass "
            "vectors of the model or the extractors of the index"
        )
    return torch.cat([vector.float() for vector in vectors.values()])


class Index:
    """An index of clips. A search is exact and reads the latest state of the file.

    Args:
        path: path of the index.
        model: the model or its current path, if the model was moved.
        trust_code: import the code from outside aadml that the index or its model names as `module:name`.

    Attributes:
        path: path of the index.
        filter_seconds: limit of the processor time of a condition, in seconds; higher in a large index.

    Raises:
        InputError: the file does not exist, or cannot be read as an index of this version.

    Example:
        >>> from aadml.search import Index
        >>> index = Index.build("synthetic:ave", "ave.index")
        >>> audio = aadml.read("synthetic:ave").test["audio"][0]
        >>> found = index.search(audio=audio.numpy(), to="audio", k=3)
        >>> len(found.hits), round(found.hits[0].score, 3)
        (3, 1.0)
    """

    @checked_call
    def __init__(self, path: str | Path, *, model: Model | str | Path | None = None, trust_code: bool = False) -> None:
        self.path = Path(path)
        self.filter_seconds = SECONDS
        self._model, self._trust_code = model, trust_code or is_trusting()
        self._encoder: tuple[object, IndexEncoder] | None = None
        self._search = LatestState(self.path, partial(_read_state, path=self.path))
        self._reading = self._search.reading
        # a second connection, so that pages do not delay searches; its state is the maps by modality
        self._pages = LatestState(self.path, _no_maps)

    @property
    def _state(self) -> _State:
        return self._search.state

    @classmethod
    @checked_call
    def build(cls, source: str | Path, output: str | Path, **choices: Any) -> "Index":
        """Build or update an index, and open it.

        Args:
            source: a feature file, a manifest, or a folder of media.
            output: the index file.
            choices: keyword arguments of `aadml.search.build_index.build`.

        Raises:
            InputError: see `aadml.search.build_index.build`.
        """
        consent_to(choices.get("audio"), choices.get("visual"))
        consent_to(str(source), paths=True)
        build(source, output, **choices)
        return cls(output, model=choices.get("model"), trust_code=choices.get("trust_code", False))

    def update(self, **choices: Any) -> Changes:
        """Update the index from its source, and return the changes. Clips are compared by id and content.

        Args:
            choices: keyword arguments of `aadml.search.build_index.build`, except `model` and `trust_code`.

        Raises:
            InputError: see `aadml.search.build_index.build`.
        """
        return build(self.source, self.path, model=self._model, trust_code=self._trust_code, **choices)

    def close(self) -> None:
        """Close the file."""
        self._search.database.close()
        self._pages.database.close()

    def __enter__(self) -> "Index":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """Return the number of clips; a caption is not a clip."""
        with self._reading() as database:
            return int(database.execute("SELECT count(*) FROM item").fetchone()[0]) - len(self._state.clips)

    @property
    def source(self) -> str:
        """Indexed source: the path of a feature file, manifest or folder, or an address such as "synthetic:ave"."""
        return located(self._state.facts.source.path, self._state.folder)

    @property
    def similarity(self) -> str:
        """Similarity of the vectors, by name."""
        return self._state.facts.state.similarity

    @property
    def modalities(self) -> tuple[Modality, ...]:
        """Modalities of the vectors."""
        return tuple(self._state.galleries)

    def counts(self) -> dict[str, int]:
        """Return the number of vectors of each modality; every caption counts as one vector."""
        return {m: len(numbers) for m, (numbers, _) in self._state.galleries.items()}

    def columns(self) -> list[str]:
        """Return the columns that describe the items, for use in conditions."""
        with self._reading() as database:
            return searchable_columns(database)

    @property
    def encoder(self) -> IndexEncoder:
        """Encoder of the queries, loaded at its first use, and again if a changed index has another encoder.

        Raises:
            InputError: the model cannot be loaded or is not the model of the index, or a model was passed for an
                index without a model.
        """
        with self._search.lock:
            record = self._state.facts.encoder
            if self._encoder is None or self._encoder[0] != record:
                with trusting(self._trust_code), named_in(self.path):
                    self._encoder = record, load_encoder(record, self._state.folder, self._model)
            return self._encoder[1]

    @checked_call
    def search(
        self,
        *,
        audio: str | Path | ArrayLike | None = None,
        visual: str | Path | ArrayLike | None = None,
        clip: str | Path | None = None,
        text: str | ArrayLike | None = None,
        to: Modality | None = None,
        k: Count = 10,
        where: str | None = None,
        parameters: Sequence[Value] = (),
    ) -> Found:
        """Return the k items that match a query best.

        Args:
            audio: path of a sound file, or features (d,).
            visual: path of a picture or video, or features (d,).
            clip: path of a video. The score of an item is the mean over the modalities of the video that can be
                compared with the items.
            text: words, or features (d,). Words require an index that can be searched by words.
            to: modality of the items; optional if the index has only one modality. A text query without `to`
                searches every modality that can be compared with text, also modalities of different pretrained
                models. With several such modalities, clips are ranked by their largest probability, or by
                reciprocal rank fusion if a modality has no probabilities.
            k: number of items.
            where: an SQL condition on the columns of the items, such as "label = 'dog'".
            parameters: a value for each `?` in the condition.

        Raises:
            InputError: an invalid argument, a query that cannot be read or compared with the items, or an index or
                model that cannot be loaded. Exactly one of `audio`, `visual`, `clip` and `text` must be passed.
        """
        self.refresh()
        kind, value = single_query({"audio": audio, "visual": visual, "clip": clip, "text": text})
        targets = [self._target(to)] if to or text is None else self._compared_with("text")
        depth = k if len(targets) == 1 else max(k, DEPTH)
        results = []
        for target in targets:
            with trusting(self._trust_code), named_in(self.path):
                vectors = embed_query(self.encoder, kind, value, target)
            results.append(self.nearest(vectors, target, k=depth, where=where, parameters=parameters))
        return results[0] if len(results) == 1 else fused(results, k)

    @checked_call
    def like(
        self, clip: int | str, modality: Modality, *, to: Modality, k: Count = 10, where: str | None = None
    ) -> Found:
        """Return the k items that match an item of the index best. The results may contain that item.

        If the item lacks `modality`, another item is the query: the clip of a caption, or the first caption of a
        clip.

        Args:
            clip: id or number of the item.
            modality: modality of the query.
            to: modality of the hits.
            k: number of hits.
            where: an SQL condition on the columns of the items.

        Raises:
            InputError: an absent item, an item without a vector of the modality, modalities that cannot be
                compared, or an invalid condition.
        """
        with self._search.lock:
            with self._reading() as database:
                number = self._number(database, clip)
                numbers, gallery = self._gallery(modality)
                place = np.flatnonzero(numbers == number)
                if not len(place) and (clips := self._state.clips):
                    place = np.flatnonzero(as_clips(numbers, clips) == clips.get(number, number))[:1]
                    self._search.items.check([number, *numbers[place].tolist()])  # the mapping was read unverified
            if not len(place):
                name = repr(clip[:80]) if isinstance(clip, str) else f"number {clip}"
                raise InputError(f"this index has no clip {name} with {modality}; pass a clip with {modality}")
            check(self.encoder, modality, to)
            return self.nearest({modality: gallery.vectors[place]}, to, k=k, where=where)

    @checked_call
    def nearest(
        self,
        vectors: Mapping[Modality, Tensor],
        to: Modality,
        *,
        k: Count = 10,
        where: str | None = None,
        parameters: Sequence[Value] = (),
    ) -> Found:
        """Return the k items that match the vectors of a query best.

        Args:
            vectors: modality of the query -> vector (1, e). The score of an item is the mean over the modalities.
            to: modality of the items.
            k: number of items.
            where: an SQL condition on the columns of the items.
            parameters: a value for each `?` in the condition.

        Raises:
            InputError: vectors that are not finite matrices of the width of the index, an index without vectors of
                `to`, or an invalid condition.
        """
        with self._reading() as database:
            numbers, gallery = self._gallery(to)
            queries = _queries(vectors, gallery)
            if where is not None:
                rows, gallery = self._filtered(database, to, (where, tuple(parameters)))
                numbers = numbers[rows]
            places, scores = gallery.best(queries, int(k))
            second = second_keys(queries, gallery.vectors[torch.from_numpy(places)], self.similarity)
            nearest = numbers[places].tolist()
            self._search.items.check(nearest)
            items = list(items_of(database, nearest))
            stretches = read_moments(database, to, nearest)
            moments = [best_moment(vectors_over_time, queries, self.similarity) for vectors_over_time in stretches]
            calibration = self._state.calibrations.get((tuple(vectors), to))
        chances = [None] * len(items) if calibration is None else calibration.probability(scores, len(gallery)).tolist()
        keys = [None] * len(items) if second is None else second.tolist()
        media = [self._places(item) for item in items]
        columns = zip(items, nearest, scores.tolist(), chances, media, moments, keys, strict=True)
        hits = tuple(Hit(*values) for values in columns)
        reason = "" if calibration else why_uncalibrated(self._state.facts.calibration)
        return Found(hits, tuple(vectors), to, len(gallery), self.similarity, calibration, reason)

    @checked_call
    def item(self, clip: int | str) -> tuple[Item, dict[str, str], int]:
        """Return an item, the paths of its files by modality, and its number.

        Args:
            clip: id or number of the item.

        Raises:
            InputError: the index has no such item.
        """
        with self._reading() as database:
            number = self._number(database, clip)
            self._search.items.check([number])
            (item,) = items_of(database, [number])
        return item, self._places(item), number

    @checked_call
    def queries_of(self, numbers: Sequence[int]) -> list[list[Modality]]:
        """Return the modalities in which each item can be the query of `like`."""
        with self._reading():
            clips = as_clips(np.asarray(numbers, dtype=np.int64), self._state.clips)
            has = {
                m: np.searchsorted(with_vector, clips, "right") > np.searchsorted(with_vector, clips)
                for m, with_vector in self._state.clips_with.items()
            }
        return [[m for m in has if has[m][n]] for n in range(len(numbers))]

    def _number(self, database: sqlite3.Connection, clip: int | str) -> int:
        if not isinstance(clip, str):
            return clip
        row = database.execute("SELECT number FROM item WHERE id = ?", (clip,)).fetchone()
        if row is None:
            raise InputError(f"clip {clip[:80]!r} is not in this index; pass the id of a clip")
        self._search.items.check(row)
        return int(row[0])

    @checked_call
    def browse(self, *, where: str | None = None, offset: int = 0, limit: int = 24) -> Browsed:
        """Return a page of the clips that meet a condition, with counts of the values of their columns.

        Args:
            where: an SQL condition on the columns of the clips; None for all clips.
            offset: number of clips before the page.
            limit: largest number of clips of the page.

        Raises:
            InputError: the condition is invalid, or a number is negative or above 64 bits.
        """
        if min(offset, limit) < 0:
            raise InputError(f"browse: offset {offset} or limit {limit} is negative; pass numbers from 0 on")
        with self._pages.reading() as database:
            self._pages.items.check_all()
            numbers = None if where is None else matching(database, where, seconds=self.filter_seconds).tolist()
            return browse(database, numbers, offset, limit)

    @checked_call
    def layout(self, modality: Modality) -> VectorMap:
        """Return the 2-D map of the vectors of a modality.

        Raises:
            InputError: the index has no vectors of the modality.
        """
        self.refresh()
        self._gallery(modality)
        with self._pages.reading() as database:
            self._pages.items.check_all()
            maps = self._pages.state
            if modality not in maps:
                maps[modality] = vector_map(database, modality)
            return maps[modality]

    @checked_call
    def export(self, output: str | Path, *, kind: str = "npy") -> list[Path]:
        """Write the vectors, and the ids of their items.

        Args:
            output: beginning of the file names: `<output>.<modality>.npy` and `.ids.txt`, or
                `<output>.<modality>.parquet`. In `.ids.txt`, backslashes and line breaks are escaped as in Python.
            kind: `npy`, or `parquet`, which includes the columns of the items.

        Returns:
            The files.

        Raises:
            InputError: an unknown kind, `parquet` without pyarrow, a column with the name `vector`, or a file that
                cannot be written or is not an earlier export.
        """
        with self._reading() as database:
            self._search.items.check_all()
            return export(database, self._state.galleries, output, kind)

    def refresh(self) -> None:
        """Read the index again if its file was changed or replaced.

        Raises:
            InputError: the file was removed, or cannot be read as an index of this version.
        """
        with self._reading():
            pass

    def _filtered(self, database: sqlite3.Connection, to: Modality, where: Where) -> tuple[NDArray[np.int64], Gallery]:
        """Return the rows of a gallery that meet a condition, and a gallery of these rows.

        The latest conditions are cached. All cached copies together have at most as many vectors as the gallery of
        `to`.
        """
        cache, (numbers, gallery) = self._state.filters, self._gallery(to)
        key = to, repr(where)  # SQLite distinguishes 1 from 1.0, but a key (1,) equals (1.0,)
        if key not in cache:
            self._search.items.check_all()
            matches = matching(database, *where, seconds=self.filter_seconds)
            rows = np.flatnonzero(np.isin(numbers, matches)).astype(np.int64)
            while len(cache) >= _FILTERS or (
                cache and sum(len(r) for r, _ in cache.values()) + len(rows) > len(gallery)
            ):
                cache.pop(next(iter(cache)))
            cache[key] = rows, gallery.only(rows)
        return cache[key]

    def _gallery(self, modality: Modality) -> tuple[NDArray[np.int64], Gallery]:
        if modality not in self._state.galleries:
            known = ", ".join(self._state.galleries)
            raise InputError(
                f"{modality}: this index has no {modality} vectors; "
                + (f"choose from {known}" if known else "build the index again from items that can be read")
            )
        return self._state.galleries[modality]

    def _compared_with(self, modality: Modality) -> list[Modality]:
        """Return the modalities that queries of `modality` can search.

        If queries can search no modality, return the first modality of the index.
        """
        comparable = [target for target in self.modalities if self.encoder.can_query(modality, target)]
        return comparable or [self._target(next(iter(self.modalities), None))]

    def _target(self, to: Modality | None) -> Modality:
        if to is None and len(self.modalities) != 1:
            known = ", ".join(self.modalities)
            raise InputError(
                f"the modality to search is missing; choose `to` from {known}"
                if known
                else "this index has no vectors; build the index again from items that can be read"
            )
        target = to or self.modalities[0]
        self._gallery(target)
        return target

    def _places(self, item: Item) -> dict[str, str]:
        return {m: str(self._state.folder / path) for m, path in item.media.items()}
