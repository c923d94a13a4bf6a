"""The index in use: opened, asked, brought up to date, exported."""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.comparison.arrays import ArrayLike
from aadml.comparison.features import Modality
from aadml.data.reading import SYNTHETIC
from aadml.feature_extraction.ground.argument_types import checked_call
from aadml.feature_extraction.ground.consent import named_in, trusting
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import typed
from aadml.model.model import Model
from aadml.search.best_moment import best_moment, read_moments
from aadml.search.build_index import build
from aadml.search.embed_query import check, question
from aadml.search.encoders import IndexEncoder, load_encoder
from aadml.search.exact_search import Gallery
from aadml.search.export import export
from aadml.search.filters import SECONDS, Value, columns_to_ask, matching
from aadml.search.items import items_of, meta_of
from aadml.search.results import Found, Hit
from aadml.search.snapshot import Where, read_state
from aadml.search.store import Item, connect, reading
from aadml.search.updates import Changes

_FILTERS = 32  # conditions whose items are remembered


class Index:
    """An index of clips. Searching is of one state of the file, the latest, and exact unless cells were asked for.

    Args:
        path: of the index.
        model: where its model lies now, if it was moved; or the model.
        trust_code: import the code from outside aadml that the index or its model names as `module:name`.

    Attributes:
        path: of the index.
        filter_seconds: of processor time that the condition of a search may take.

    Raises:
        InputError: no index there.

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
        self._model, self._trust_code = model, trust_code
        self._lock = threading.RLock()
        self._database = connect(self.path)
        self._encoder: IndexEncoder | None = None
        with reading(self._database, self.path):
            self._state = read_state(self._database, self.path)

    @classmethod
    @checked_call
    def build(cls, source: str | Path, output: str | Path, **choices: Any) -> "Index":
        """Make an index, or bring one up to date, and open it.

        Args:
            source: a feature file, a manifest, or a folder of media.
            output: the index file.
            choices: see `aadml.search.build_index.build`.
        """
        build(source, output, **choices)
        return cls(output, model=choices.get("model"), trust_code=choices.get("trust_code", False))

    def update(self, **choices: Any) -> Changes:
        """Bring the index up to date with its source: new, changed and removed clips are found by their content."""
        return build(self.source, self.path, model=self._model, trust_code=self._trust_code, **choices)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> "Index":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        with self._lock, reading(self._database, self.path):
            return int(self._database.execute("SELECT count(*) FROM item").fetchone()[0])

    @property
    def source(self) -> str:
        """Where its clips come from."""
        place = typed(self._state.meta["source"], "path", str)
        return place if place.startswith(SYNTHETIC) else str(self.path.parent / place)

    @property
    def similarity(self) -> str:
        """Name how its vectors are compared."""
        return typed(self._state.meta["state"], "similarity", str)

    @property
    def modalities(self) -> tuple[Modality, ...]:
        """Modalities of which it has vectors."""
        return tuple(self._state.galleries)

    def counts(self) -> dict[str, int]:
        """Count the items that have a vector, by modality."""
        return {m: len(numbers) for m, (numbers, _) in self._state.galleries.items()}

    def columns(self) -> list[str]:
        """Name the columns that a condition may use."""
        with self._lock:
            return columns_to_ask(self._database)

    def has_labels(self) -> bool:
        """Tell whether any item has a class."""
        with self._lock, reading(self._database, self.path):
            return self._database.execute("SELECT 1 FROM item WHERE label != '' LIMIT 1").fetchone() is not None

    @property
    def encoder(self) -> IndexEncoder:
        """What embeds the questions; loaded when the first one is asked."""
        with self._lock:
            if self._encoder is None:
                with trusting(self._trust_code), named_in(self.path):
                    self._encoder = load_encoder(self._state.meta["encoder"], self.path.parent, self._model)
            return self._encoder

    @checked_call
    def search(
        self,
        *,
        audio: str | Path | ArrayLike | None = None,
        visual: str | Path | ArrayLike | None = None,
        clip: str | Path | None = None,
        text: str | ArrayLike | None = None,
        to: Modality | None = None,
        k: int = 10,
        where: str | None = None,
        parameters: Sequence[Value] = (),
        exact: bool = False,
    ) -> Found:
        """Find the k items that fit best.

        Args:
            audio: a sound: the path of a file, or features (d,).
            visual: a picture or a video: the path of a file, or features (d,).
            clip: a video that asks with sound and picture: the scores are averaged.
            text: words, where the model reads them, or features (d,).
            to: modality of the items; may be left out where there is only one.
            k: how many.
            where: an SQL condition on the columns of the items, as "label = 'dog'".
            parameters: values for each `?` in it.
            exact: look at every item, where the index was made to look at a part.

        Raises:
            InputError: no question or several, a modality that cannot be asked for, a file that cannot be read, or a
                condition that is none.
        """
        target = self._target(to)
        with named_in(self.path):
            vectors = question(self.encoder, {"audio": audio, "visual": visual, "clip": clip, "text": text}, target)
        return self.nearest(vectors, target, k=k, where=where, parameters=parameters, exact=exact)

    @checked_call
    def like(self, number: int, modality: Modality, *, to: Modality, k: int = 10, where: str | None = None) -> Found:
        """Find the k items that fit best to one of the index, which is among them where it can be."""
        with self._lock:
            numbers, gallery = self._gallery(modality)
            place = np.flatnonzero(numbers == number)
            if not len(place):
                raise InputError(f"there is no clip number {number} with {modality} in this index")
            check(self.encoder, modality, to)
            return self.nearest({modality: gallery.vectors[place]}, to, k=k, where=where)

    @checked_call
    def nearest(
        self,
        vectors: Mapping[Modality, Tensor],
        to: Modality,
        *,
        k: int = 10,
        where: str | None = None,
        parameters: Sequence[Value] = (),
        exact: bool = False,
    ) -> Found:
        """Find the k items whose vectors are nearest to one vector (1, e) of each modality of a question."""
        if k < 1:
            raise InputError(f"k: {k} given; a whole number from 1 is wanted")
        with self._lock, reading(self._database, self.path):
            self._refresh()
            numbers, gallery = self._gallery(to)
            rows = None if where is None else self._rows(to, (where, tuple(parameters)))
            asked = torch.cat([one.float() for one in vectors.values()])
            if asked.shape[1] != gallery.vectors.shape[1]:
                raise InputError(
                    f"the question has {asked.shape[1]} dimensions, the items of the index {gallery.vectors.shape[1]}"
                )
            looked = self._looked_at(to, asked, int(k)) if rows is None and not exact else rows
            places, scores = gallery.best(asked, int(k), looked)
            found = numbers[places].tolist()
            items = list(items_of(self._database, found))
            curve = self._state.calibrations.get((tuple(vectors), to))
            moments = [best_moment(read_moments(self._database, to, one), asked, self.similarity) for one in found]
        among = len(gallery) if rows is None else len(rows)
        chances = [None] * len(found) if curve is None else curve.probability(scores, among).tolist()
        hits = (
            Hit(item, number, float(score), chance, self._places(item), moment)
            for item, number, score, chance, moment in zip(items, found, scores, chances, moments, strict=True)
        )
        looked_at = among if looked is None else len(looked)
        return Found(tuple(hits), tuple(vectors), to, among, self.similarity, curve, looked_at)

    @checked_call
    def item(self, number: int) -> tuple[Item, dict[str, str]]:
        """Give an item by its number, and where its files are.

        Raises:
            InputError: there is none.
        """
        with self._lock, reading(self._database, self.path):
            (item,) = items_of(self._database, [number])
        return item, self._places(item)

    @checked_call
    def export(self, output: str | Path, *, kind: str = "npy") -> list[Path]:
        """Write the vectors with their ids; see `aadml.search.export`.

        Args:
            output: the files' common name: `<output>.<modality>.npy` and `.ids.txt`, or `<output>.<modality>.parquet`.
            kind: `npy` or `parquet`, which has the columns of the items too.

        Returns:
            The files.

        Raises:
            InputError: another kind, or no pyarrow for Parquet.
        """
        with self._lock, reading(self._database, self.path):
            self._refresh()
            return export(self._database, self._state.galleries, output, kind)

    def _refresh(self) -> None:
        """Read the index again if another process has changed it; a transaction must be open."""
        known = meta_of(self._database).get("state")
        if known is None or typed(known, "generation", int) != self._state.generation:
            before, self._state = self._state, read_state(self._database, self.path)
            if before.meta["encoder"] != self._state.meta["encoder"]:
                self._encoder = None

    def _rows(self, to: Modality, where: Where) -> NDArray[np.int64]:
        """Find the rows of a gallery that meet a condition; the last conditions are remembered."""
        kept = self._state.filters
        if (to, where) not in kept:
            if len(kept) >= _FILTERS:
                kept.pop(next(iter(kept)))
            numbers = matching(self._database, *where, seconds=self.filter_seconds)
            kept[to, where] = np.flatnonzero(np.isin(self._gallery(to)[0], numbers)).astype(np.int64)
        return kept[to, where]

    def _looked_at(self, to: Modality, asked: Tensor, k: int) -> NDArray[np.int64] | None:
        """Name the items of the cells near a question; None where there are no cells, or too few items in them."""
        cells = self._state.cells.get(to)
        rows = None if cells is None else cells.candidates(asked)
        return None if rows is None or len(rows) < k else rows

    def _gallery(self, modality: Modality) -> tuple[NDArray[np.int64], Gallery]:
        if modality not in self._state.galleries:
            raise InputError(f"{modality}: this index holds {', '.join(self._state.galleries) or 'nothing'}")
        return self._state.galleries[modality]

    def _target(self, to: Modality | None) -> Modality:
        there = self.modalities
        if to is None and len(there) != 1:
            raise InputError(f"--to is needed: {', '.join(there)}")
        if to is not None and to not in there:
            raise InputError(f"--to {to}: this index holds {', '.join(there)}")
        return to or there[0]

    def _places(self, item: Item) -> dict[str, str]:
        return {m: str(self.path.parent / path) for m, path in item.media.items()}


@checked_call
def search(
    index: str | Path,
    *,
    audio: str | Path | ArrayLike | None = None,
    visual: str | Path | ArrayLike | None = None,
    clip: str | Path | None = None,
    text: str | ArrayLike | None = None,
    to: Modality | None = None,
    k: int = 10,
    where: str | None = None,
    exact: bool = False,
    model: Model | str | Path | None = None,
    trust_code: bool = False,
) -> Found:
    """Open an index, ask it one question, and close it.

    Args:
        index: the file.
        audio: see `Index.search`, as all that follow.
        visual: a picture or a video.
        clip: a video that asks with sound and picture.
        text: words.
        to: modality of the items.
        k: how many.
        where: an SQL condition.
        exact: look at every item.
        model: where the model of the index lies now, if it was moved.
        trust_code: import the code from outside aadml that the index or its model names as `module:name`.
    """
    with Index(index, model=model, trust_code=trust_code) as opened:
        return opened.search(audio=audio, visual=visual, clip=clip, text=text, to=to, k=k, where=where, exact=exact)
