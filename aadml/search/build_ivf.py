"""Making the cells of an index that is written, in a transaction of its own: until then every search is exact."""

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from aadml.comparison.features import Modality
from aadml.feature_extraction.feature_file import MODALITIES
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject, number, read_as, typed
from aadml.model.model import Model
from aadml.search.encoders import load_encoder
from aadml.search.exact_search import Gallery
from aadml.search.items import Vectors, cells_of, meta_of, vectors_of
from aadml.search.ivf import QUESTIONS, Cells, K, RecallQueries, make_cells
from aadml.search.store import WrittenCells, connect, reading, set_meta

APPROXIMATE = "approximate"
"""Name of the fact that holds what was asked for: the recall, and the generation the cells were made for."""


@dataclass(frozen=True)
class _Facts:
    """What is written down beside centers and cells."""

    probes: int
    recall: Mapping[str, float]
    dimensions: int


def approximate_index(
    path: Path,
    recall: float | None = None,
    *,
    model: Model | str | Path | None = None,
    on_note: Callable[[str], None] | None = None,
) -> None:
    """Make the cells of an index, unless that was done since its last change.

    Args:
        path: of the index.
        recall: share of the ten best items that a search must find; None: as before, if there are cells at all.
        model: the model of the index, if it was moved.
        on_note: called with notes for the user.
    """
    note = on_note or (lambda _: None)
    with closing(connect(path)) as database, reading(database, path):
        meta = meta_of(database)
        before = meta.get(APPROXIMATE)
        wanted = recall if recall is not None else None if before is None else number(before["recall"])
        generation = typed(meta["state"], "generation", int)
        if wanted is None or before == {"recall": wanted, "generation": generation}:
            return
        vectors = {m: one for m in MODALITIES if (one := vectors_of(database, m)) is not None}
    encoder = load_encoder(meta["encoder"], path.parent, model)
    similarity = typed(meta["state"], "similarity", str)
    made: dict[Modality, Cells] = {}
    for modality in vectors:
        asking = {m: _questions(one, vectors[modality]) for m, one in vectors.items() if encoder.may_ask(m, modality)}
        gallery = Gallery(torch.from_numpy(vectors[modality].values), similarity)
        cells = make_cells(gallery, asking, recall=wanted)
        note(f"{modality}: {cells if isinstance(cells, str) else summary(cells)}")
        if isinstance(cells, Cells):
            made[modality] = cells
    facts: dict[str, JsonObject] = {
        APPROXIMATE: {"recall": wanted, "generation": generation + 1},
        "state": {**meta["state"], "generation": generation + 1},
    }
    set_meta(path, facts, {m: _written(one) for m, one in made.items()})


def read_cells(
    database: sqlite3.Connection, meta: Mapping[str, JsonObject], items: Mapping[Modality, int], place: Path
) -> dict[Modality, Cells]:
    """Read the cells of an index with so many items of each modality; none where it has changed since they were made.

    Raises:
        InputError: they are damaged.
    """
    state = meta["state"]
    if meta.get(APPROXIMATE, {}).get("generation") != state["generation"]:
        return {}
    similarity, written = typed(state, "similarity", str), cells_of(database)
    return {m: _read(written[m], similarity, count, place) for m, count in items.items() if m in written}


def summary(cells: Cells) -> str:
    """Say in one line how much is looked at and what is found."""
    looked = f"{cells.probes} of {len(cells.centers):,} cells"
    found = ", ".join(f"{share:.3f} asked with {modality}" for modality, share in cells.recall.items())
    return f"approximate search in {looked}, recall@{K} {found}"


def _questions(asking: Vectors, gallery: Vectors) -> RecallQueries:
    """Draw items that ask, with their own rows in the gallery."""
    drawn = np.sort(np.random.default_rng(0).permutation(len(asking.numbers))[:QUESTIONS])
    rows = {int(number): row for row, number in enumerate(gallery.numbers)}
    own = [rows.get(int(asking.numbers[place]), -1) for place in drawn]
    return RecallQueries(torch.from_numpy(asking.values[drawn]), np.asarray(own, dtype=np.int64))


def _written(cells: Cells) -> WrittenCells:
    facts = _Facts(probes=cells.probes, recall=cells.recall, dimensions=cells.centers.shape[1])
    return asdict(facts), cells.centers.astype("<f4").tobytes(), cells.own.astype("<i4").tobytes()


def _read(written: WrittenCells, similarity: str, items: int, place: Path) -> Cells:
    facts, centers, own = read_as(_Facts, written[0], place), *written[1:]
    count, rest = divmod(len(centers), 4 * max(facts.dimensions, 1))
    numbers = np.frombuffer(own, dtype="<i4") if len(own) == 4 * items else None
    if rest or not 1 <= facts.probes <= count or numbers is None or not ((numbers >= 0) & (numbers < count)).all():
        raise InputError(f"{place}: the cells of this index are damaged; remove the index and build it again")
    matrix = np.frombuffer(centers, dtype="<f4").reshape(count, facts.dimensions)
    return Cells(matrix.astype(np.float32), numbers.astype(np.int32), facts.probes, facts.recall, similarity)
