"""Metadata of an index: source, encoder, state and calibrations, each a row of the table `meta`."""

import json
import os
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

from aadml.data.reading import is_address
from aadml.feature_extraction.foreign.tables import shown_address
from aadml.feature_extraction.ground.errors import DamagedFileError
from aadml.feature_extraction.ground.json_values import Json, JsonObject, read_as

OF_INDEX = "the index"
"""Value of `data` for a calibration by validation clips of the index itself."""
_REMOVED = "approximate"  # fact of earlier versions on cells for approximate search


@dataclass(frozen=True)
class SourceRecord:
    """Source of the items.

    Attributes:
        path: path of the feature file, manifest or folder, or an address. A path inside the folder of the index is
            relative to this folder.
        media: path of the manifest with the media of a feature file, relative like `path`; None without a manifest.
        moments: `kept` if the index has features over time; None otherwise.
    """

    path: str
    media: str | None = None
    moments: Literal["kept"] | None = None


@dataclass(frozen=True, kw_only=True)
class ModelReference:
    """Model of an index: folder of the model, and the checksum of all parts that determine the vectors."""

    kind: Literal["model"] = "model"
    path: str
    digest: str


@dataclass(frozen=True, kw_only=True)
class PlainRecord:
    """Extractors of an index without a model.

    Attributes:
        kind: constant that identifies the kind of record.
        features: modality -> fingerprint of its extractor.
        dimensions: modality -> number of feature dimensions.
        scaling: state of the scaling (see `Scaling.state`).
    """

    kind: Literal["plain"] = "plain"
    features: Mapping[str, JsonObject]
    dimensions: Mapping[str, int]
    scaling: Mapping[str, list[float]]


@dataclass(frozen=True)
class StateRecord:
    """Number of the latest change of an index, and the similarity of its vectors."""

    generation: int
    similarity: str

    def next(self) -> "StateRecord":
        """Return the state after one more change."""
        return replace(self, generation=self.generation + 1)


@dataclass(frozen=True)
class CalibrationRecord:
    """Calibrations of an index. A change of the index removes all but `data` and `precision`.

    Attributes:
        form: version of the curves.
        data: feature file with the validation clips, or OF_INDEX.
        precision: requested share of relevant hits among the best hits above the threshold.
        clips: number of validation clips.
        curves: a `Calibration` for every kind of query, as JSON values, because another version may have written the
            curves.
        content: checksum of the feature file; None without a file.
    """

    form: int | None = None
    data: str = OF_INDEX
    precision: float | None = None
    clips: int | None = None
    curves: list[Json] = field(default_factory=list)
    content: str | None = None


@dataclass(frozen=True)
class IndexFacts:
    """Metadata of an index; each attribute is a row of the table `meta`.

    Attributes:
        source: source of the items.
        encoder: encoder of items and queries.
        state: latest change and similarity.
        calibration: calibrations of the probabilities.
    """

    source: SourceRecord
    encoder: ModelReference | PlainRecord
    state: StateRecord
    calibration: CalibrationRecord = field(default_factory=CalibrationRecord)


def read_facts(database: sqlite3.Connection, path: Path) -> IndexFacts:
    """Read the metadata of an index in an open transaction.

    Raises:
        InputError: the metadata are damaged.
    """
    try:
        rows = database.execute("SELECT name, value FROM meta WHERE name != ?", (_REMOVED,))
        content = {name: json.loads(value) for name, value in rows}
    except (TypeError, ValueError, RecursionError) as error:
        raise DamagedFileError(
            f"{path}: the metadata of the index are damaged ({error}); build the index again"
        ) from error
    return read_as(IndexFacts, content, path)


def write_facts(database: sqlite3.Connection, facts: IndexFacts) -> None:
    """Insert or replace the metadata of an index."""
    for name, record in asdict(facts).items():
        content = json.dumps({key: value for key, value in record.items() if value is not None})
        database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, content))


def near(path: str | Path, folder: Path) -> str:
    """Return the relative path of a file inside `folder`, or the absolute path of any other file.

    An address is returned without user, query and fragment, which may contain secrets.
    """
    if is_address(path):
        return shown_address(path)
    absolute = os.path.abspath(path)  # noqa: PTH100 - does not resolve links
    relative = os.path.relpath(absolute, folder.absolute())
    return absolute if relative.startswith("..") else relative


def located(path: str, folder: Path) -> str:
    """Return the path of a file from the text that `near` returned."""
    return path if is_address(path) else str(folder / path)
