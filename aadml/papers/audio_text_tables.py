"""The tables of the audio-text papers: configuration of every row, and our results next to the published results."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from aadml.configuration.overrides import with_setting
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import Json, JsonObject, nested, read_as
from aadml.feature_extraction.ground.options import schema
from aadml.methods import METHODS
from aadml.methods.training.settings import Training
from aadml.reports.published import read_paper
from aadml.reports.tables import Cell, Table
from aadml.retrieval.record import EvaluationRecord
from aadml.studies.comparison_rows import NAMED
from aadml.studies.results import mean_count, spread_of

DATASETS = {"audiocaps": "AudioCaps", "clotho": "Clotho"}
"""Name of a data set in aadml -> name in the papers."""


@dataclass(frozen=True)
class PaperRow:
    """A row of a paper's table.

    Attributes:
        cells: text of each naming column.
        method: name in METHODS.
        changes: keys and values that differ from the starting config.
        changes_on: data set -> further changes.
        published: data set -> published results, in the order of the columns, separated by spaces.
        weights: whether the row has published weights; it is left out if no weights are configured.
        stage: stage whose best weights are scored, if several rows share one run; "" is the last stage.
    """

    cells: tuple[str, ...]
    method: str
    changes: JsonObject
    changes_on: Mapping[str, JsonObject] = field(default_factory=dict)
    published: Mapping[str, str] = field(default_factory=dict)
    weights: bool = False
    stage: str = ""

    def changed(self, dataset: str) -> JsonObject:
        """Return all changes on a data set."""
        return {**self.changes, **self.changes_on.get(dataset, {})}


@dataclass(frozen=True)
class PaperTable:
    """The table of a paper, as stored in its YAML file.

    Attributes:
        title: short title of the paper.
        source: paper, tables and unit, as text.
        configs: data set with published results -> preset of the published sizes.
        narrow: preset of narrow networks.
        naming: columns that name a row.
        digits: decimal places.
        figures: column -> direction, metric, factor from the metric to the unit of the paper.
        rows: rows of the table.
    """

    title: str
    source: str
    configs: Mapping[str, str]
    narrow: str
    naming: tuple[str, ...]
    digits: int
    figures: Mapping[str, tuple[str, str, float]]
    rows: tuple[PaperRow, ...]

    def printed_on(self, dataset: str) -> str:
        """Return the data set of the published results: `dataset`, or else the first data set of the paper."""
        return dataset if dataset in self.configs else next(iter(self.configs))


PAPER_TABLES = {name: read_as(PaperTable, read_paper(name), f"{name}.yaml") for name in ("mei", "3cmlf", "xie")}


def starting_config(name: str, dataset: str | None) -> str:
    """Return the starting preset of the rows: published sizes, or narrow networks if `dataset` is None."""
    table = PAPER_TABLES[name]
    return table.narrow if dataset is None else table.configs[table.printed_on(dataset)]


def planned(name: str, values: JsonObject, dataset: str) -> list[tuple[PaperRow, dict[str, Json]]]:
    """Return the rows of a table with their config values.

    Args:
        name: a key of PAPER_TABLES.
        values: values of the starting config; options that the method of a row does not have are left out.
        dataset: "AudioCaps" or "Clotho".
    """
    networks = nested(values, "method") or {"name": values.get("method")}
    pairs = []
    for row in PAPER_TABLES[name].rows:
        if row.weights and networks.get("audio_weights", "untrained") == "untrained":
            continue
        known = schema(METHODS[row.method])
        options = {key: value for key, value in networks.items() if key in known}
        config: dict[str, Json] = {**values, "method": {"name": row.method, **options}}
        if row.method == "3cmlf":  # one model mines the batches of all rows, whose own batch sizes may differ
            batch = networks.get("ancillary_batch") or nested(values, "training").get("batch") or Training().batch
            config = with_setting(config, "method.ancillary_batch", batch)
        for key, value in row.changed(dataset).items():
            config = with_setting(config, key, value)
        pairs.append((row, config))
    return pairs


def refuse_overridden(name: str, keys: Iterable[str], dataset: str) -> None:
    """Raise InputError if every row of a table sets one of `keys` itself.

    Args:
        name: a key of PAPER_TABLES.
        keys: keys that were set for all rows.
        dataset: "AudioCaps" or "Clotho".
    """
    changes = [row.changed(dataset) for row in PAPER_TABLES[name].rows]
    for key in keys:
        if key in NAMED or all(any(f"{key}.".startswith(f"{other}.") for other in changed) for changed in changes):
            raise InputError(f"--set {key}: every row of {name} has its own {key}; leave out this setting")


def laid_out(
    name: str, rows: Sequence[PaperRow], results: Sequence[Sequence[EvaluationRecord]], *, dataset: str, data: str
) -> Table:
    """Return a table: our results over the seeds, epochs and steps, and the published results.

    Args:
        name: a key of PAPER_TABLES.
        rows: rows of the table.
        results: evaluations of each row, one per seed.
        dataset: data set of the runs, by its name in the papers.
        data: location of the data of the runs.
    """
    table = PAPER_TABLES[name]
    printed_on = table.printed_on(dataset)
    lines: list[tuple[Cell, ...]] = []
    for row, records in zip(rows, results, strict=True):
        ours = [
            spread_of(_scaled(record.figure(metric, direction), factor) for record in records)
            for direction, metric, factor in table.figures.values()
        ]
        steps = [mean_count(record.epochs for record in records), mean_count(record.steps for record in records)]
        printed: Sequence[Cell] = row.published.get(printed_on, "").split() or [None] * len(table.figures)
        lines.append((*row.cells, *ours, *steps, len(records), *printed))
    chances = [record.chance for records in results for record in records]
    level = f" The chance level of mAP in our runs is {sum(chances) / len(chances):.3f}." if chances else ""
    seeds = max(map(len, results), default=0)
    published = (f"published {column}" for column in table.figures)
    return Table(
        columns=(*table.naming, *table.figures, "epochs", "steps", "seeds", *published),
        rows=tuple(lines),
        caption=f"{table.source}. Ours: {data}, test split, protocol inductive, {seeds} seed(s).",
        notes=(f"The published columns are results on {printed_on}, ours are results on the data named above, with "
               f"each item embedded on its own.{level}",),
        digits=table.digits,
    )  # fmt: skip


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else factor * value


def slug(cells: Sequence[str]) -> str:
    """Return the name of a row in file names."""
    return re.sub("[^a-z0-9]+", "-", " ".join(cells).lower()).strip("-")
