"""The ledger of the experiment: a row for every finished run, in one small CSV file per stage, in the repository.

Statistics, page and figures are computed from rows alone. A run that has a row is not repeated.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np

from aadml.feature_extraction.ground.atomic import write_text
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import Json, read_as
from aadml.retrieval.significance import Values

QUERIES = "-queries"
"""End of the name of the file with the average precision of every query."""
CLIPS = "-clips"
"""End of the name of the file with the pseudo-value of every test clip (or cluster), as query and as gallery item."""
_COLUMNS = {QUERIES: "average_precision", CLIPS: "pseudo_value"}
_UNIT = 10_000
_TEXT = (str,)


@dataclass(frozen=True, order=True)
class Key:
    """Identity of a run within a stage; `options` are the drawn settings, as JSON."""

    data_set: str
    method: str
    seed: int
    options: str


@dataclass(frozen=True, kw_only=True)
class Row:
    """A finished run.

    Attributes:
        data_set: name of the data set.
        method: a contender, a rival, or a control.
        options: the drawn settings, as JSON.
        seed: seed of the run.
        steps: number of training steps.
        epochs: number of epochs with these steps.
        epoch: epoch that was selected on validation clips.
        seconds: duration of the fit.
        valid_map: mean MAP of the validation clips in the selected epoch.
        train_map: mean MAP of the training clips.
        test_map: mean MAP of the test clips; None in stages that do not score test clips.
        audio_visual: test MAP from audio to visual.
        visual_audio: test MAP from visual to audio.
        chance: chance level on the test clips.
        bank: test MAP under the protocol `bank`, if requested.
        label_graph: test MAP under `legacy:label-graph`.
        partner: test MAP under `legacy:partner`.
        commit: commit of the code.
        failed: reason why there are no scores; empty if there are scores.
    """

    data_set: str
    method: str
    options: str
    seed: int
    steps: int | None = None
    epochs: int | None = None
    epoch: int | None = None
    seconds: float | None = None
    valid_map: float | None = None
    train_map: float | None = None
    test_map: float | None = None
    audio_visual: float | None = None
    visual_audio: float | None = None
    chance: float | None = None
    bank: float | None = None
    label_graph: float | None = None
    partner: float | None = None
    commit: str = ""
    failed: str = ""

    @property
    def key(self) -> Key:
        """Return the identity of the run within its stage."""
        return Key(self.data_set, self.method, self.seed, self.options)


Precisions = dict[Key, Values]
"""Run -> average precision (q,) of every test query, or pseudo-value (u,) of every test clip or cluster."""


@dataclass(frozen=True)
class Ledger:
    """The CSV files of several folders: rows are read from all folders and written into the first.

    Attributes:
        folders: folder of this process, then those of other shards.
    """

    folders: tuple[Path, ...]

    def rows(self, stage: str) -> list[Row]:
        """Return the distinct rows of a stage, in the order of their keys.

        Raises:
            InputError: a file is damaged.
        """
        found = {row.key: row for folder in reversed(self.folders) for row in _read_rows(folder / f"{stage}.csv")}
        return [found[key] for key in sorted(found)]

    def precisions(self, stage: str) -> Precisions:
        """Return the average precision of every query of the runs of a stage."""
        return self._values(stage, QUERIES)

    def pseudo_values(self, stage: str) -> Precisions:
        """Return the pseudo-values of the test clips, for the runs of a stage that have such values."""
        return self._values(stage, CLIPS)

    def _values(self, stage: str, ending: str) -> Precisions:
        found: Precisions = {}
        for folder in reversed(self.folders):
            found |= _read_values(folder / f"{stage}{ending}.csv", _COLUMNS[ending])
        return found

    def add(
        self, stage: str, rows: Iterable[Row], precisions: Precisions, pseudo_values: Precisions | None = None
    ) -> None:
        """Add rows to the first folder; values are written first, so that every row in the file is complete."""
        own = Ledger(self.folders[:1])
        for ending, values in ((QUERIES, precisions), (CLIPS, pseudo_values)):
            if values:
                whole = own._values(stage, ending) | values
                _write(self.folders[0] / f"{stage}{ending}.csv", _value_lines(whole, _COLUMNS[ending]))
        merged = {row.key: row for row in [*own.rows(stage), *rows]}
        if merged:
            header = [one.name for one in fields(Row)]
            lines = [[_written(value) for value in astuple(merged[key])] for key in sorted(merged)]
            _write(self.folders[0] / f"{stage}.csv", [header, *lines])

    def absorb(self, stages: Sequence[str]) -> None:
        """Copy the rows of the other folders into the first folder."""
        for stage in stages:
            self.add(stage, self.rows(stage), self.precisions(stage), self.pseudo_values(stage))


def _read_rows(path: Path) -> tuple[Row, ...]:
    return _rows_of(_text(path), str(path))


@lru_cache(maxsize=64)
def _rows_of(text: str, place: str) -> tuple[Row, ...]:
    """Parse rows; equal texts are parsed once, because every stage reads those before it."""
    kinds = get_type_hints(Row)
    rows = []
    for number, cells in enumerate(_dictionaries(text, place), 2):
        try:
            values = {name: _value(cells[name], get_args(kinds[name]) or (kinds[name],)) for name in kinds}
            rows.append(read_as(Row, values, place))
        except (KeyError, ValueError, TypeError) as error:
            raise InputError(f"{place}, line {number}: damaged ({error}); take it out to run it again") from error
    return tuple(rows)


def _value(text: str, kinds: tuple[type, ...]) -> Json:
    if kinds == _TEXT:
        return text
    if not text and type(None) in kinds:
        return None
    return int(text) if int in kinds else float(text)


def _read_values(path: Path, column: str) -> Precisions:
    return _values_of(_text(path), str(path), column)


@lru_cache(maxsize=64)
def _values_of(text: str, place: str, column: str) -> Precisions:
    """Parse values of queries or clips; equal texts are parsed once, because every table reads them."""
    found: Precisions = {}
    for number, cells in enumerate(_dictionaries(text, place), 2):
        try:
            key = Key(cells["data_set"], cells["method"], int(cells["seed"]), cells["options"])
            found[key] = np.array(cells[column].split(), dtype=np.int64) / _UNIT
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise InputError(f"{place}, line {number}: damaged ({error}); take it out to run it again") from error
        found[key].setflags(write=False)
    return found


def _value_lines(found: Precisions, column: str) -> list[list[str]]:
    """Return lines with values in ten-thousandths, which is finer than any reported difference of means."""
    lines = [["data_set", "method", "seed", "options", column]]
    for key in sorted(found):
        values = " ".join(str(round(value * _UNIT)) for value in found[key])
        lines.append([key.data_set, key.method, str(key.seed), key.options, values])
    return lines


def _text(path: Path) -> str:
    """Read a file; "" if the file does not exist."""
    try:
        return path.read_text(encoding="utf-8") if path.is_file() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read ({error})") from error


def _dictionaries(text: str, place: str) -> list[dict[str, str]]:
    csv.field_size_limit(1 << 30)
    try:
        return list(csv.DictReader(io.StringIO(text, newline="")))
    except csv.Error as error:
        raise InputError(f"{place} cannot be read ({error})") from error


def _write(path: Path, lines: Sequence[Sequence[str]]) -> None:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, stream.getvalue())


def _written(value: str | int | float | None) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
