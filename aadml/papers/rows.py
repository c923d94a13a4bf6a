"""Runs of the AADML paper on one data set. Tables and figures share runs with the same config."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from aadml.configuration.config import DEFAULT_METHOD, Config, resolve
from aadml.feature_extraction.ground.errors import InputError
from aadml.papers.fidelity import FIDELITY, READINGS
from aadml.protocols import PROTOCOLS
from aadml.reports.published import PAPER
from aadml.studies.ablation_grid import run_folder
from aadml.studies.comparison_rows import ComparisonRow, RowSettings, named_rows, published_losses, published_methods
from aadml.studies.grid import Cell, Overrides
from aadml.studies.job import Job

SELECTION = "legacy:test-selection"
"""The leak that needs no further evaluation: the best test MAP in the log of a run."""
LEAKS = tuple(name for name in PROTOCOLS if name.startswith("legacy:") and name != SELECTION)
"""The other leaks. Every row of a table is also scored under each leak."""
LOOKS = 40
"""Approximate number of evaluations of the test clips in a training run, written only to the log.

The runs of figure 5 evaluate the test clips after every epoch.
"""

_CURVES = tuple(name for loss in PAPER.best_k for name in (loss, loss.removeprefix("aa-")))
"""Losses of figure 5, each with its anchor-aware proxies and without."""


@dataclass(frozen=True)
class PaperRuns:
    """Runs on one data set.

    Attributes:
        data_set: "vegas" or "ave".
        methods: rows of table 1.
        losses: rows of table 2 or 3.
        readings: rows of the readings of Equation 7, beginning with aadml.
        neighbors: cells of figure 4: loss or reading -> k -> cell.
        draws: seed that draws the clips of the AVE class Clock -> rows. Seed 0 is left out, as the tables use it.
        notes: notes on the rows.
    """

    data_set: str
    methods: tuple[ComparisonRow, ...]
    losses: tuple[ComparisonRow, ...]
    readings: tuple[ComparisonRow, ...]
    neighbors: Mapping[str, Mapping[int, Cell]]
    draws: Mapping[int, Sequence[ComparisonRow]]
    notes: tuple[str, ...] = ()

    @property
    def curves(self) -> dict[str, Cell]:
        """Cells of figure 5 by loss: every loss of figure 4, with and without its anchor-aware proxies."""
        cells = {row.item: row.cell for row in self.losses}
        return {name: cells[name] for name in _CURVES if name in cells}

    @property
    def all_draws(self) -> dict[int, Sequence[ComparisonRow]]:
        """Rows by the seed that draws the clips of the AVE class Clock, with seed 0; empty if `draws` is empty."""
        first = [row for row in self.losses if row.item in PAPER.drawn_losses]
        return {0: first, **self.draws} if self.draws else {}

    def cells(self, part: str) -> list[Cell]:
        """Return the distinct cells of a part of the paper; empty if the part does not use the data set."""
        if self.data_set not in PAPER.parts[part].data_sets:
            return []
        cells = {
            "methods": [row.cell for row in (*self.methods, *self.readings)],
            "losses": [row.cell for row in (*self.losses, *self.readings)],
            "neighbors": [cell for by_k in self.neighbors.values() for cell in by_k.values()],
            "curves": list(self.curves.values()),
            "draws": [row.cell for rows in self.all_draws.values() for row in rows],
        }[PAPER.parts[part].rows]
        return list({cell.name: cell for cell in cells}.values())

    def jobs(self, parts: Sequence[str], seeds: Sequence[int], folder: Path) -> list[Job]:
        """Return the jobs of parts of the paper, ordered by seed. The log of a run does not depend on the parts."""
        cells = {cell.name: cell for part in parts for cell in self.cells(part)}
        tabulated = {row.cell.name for row in (*self.methods, *self.losses, *self.readings)}
        watched = {cell.name for cell in self.curves.values()}
        return [
            Job(
                run_folder(folder, cell, seed),
                cell.config.seeded(seed),
                protocols=LEAKS if cell.name in tabulated else (),
                diagnosis=1 if cell.name in watched else max(1, cell.config.training.epochs // LOOKS),
            )
            for seed in seeds
            for cell in cells.values()
        ]


def _prepare(shared: RowSettings, shorten: Callable[[Config], Config]) -> Callable[[str, str, Config], Config]:
    """Return a function that adds the paper's settings to the config of a row and applies `shorten`.

    The arguments of the function are the table, item and config of the row.
    """
    batch = resolve(shared.base.values).training.batch

    def prepare(table: str, item: str, config: Config) -> Config:
        if table == "losses" and item in PAPER.best_k and "proxy.k" not in shared.changes.values:
            with suppress(InputError):  # the user's config has another proxy
                config = Overrides({"proxy.k": PAPER.best_k[item]}).applied(config)
        if item in (*_CURVES, DEFAULT_METHOD) and "training.train_map" not in shared.changes.values:
            config = Overrides({"training.train_map": 1}).applied(config)
        if item in READINGS and "training.batch" not in shared.changes.values:
            config = Overrides({"training.batch": batch}).applied(config)
        return shorten(config)

    return prepare


def paper_runs(
    data_set: str, shared: RowSettings, *, shorten: Callable[[Config], Config], draws: Mapping[int, str]
) -> PaperRuns:
    """Return the runs on a data set.

    Args:
        data_set: "vegas" or "ave".
        shared: settings of all rows. The losses replace the metric loss of `shared.config`.
        shorten: function from a config to a config with a shorter schedule.
        draws: seed -> path of the AVE features with clips of the class Clock drawn by this seed.

    Raises:
        InputError: see `named_rows`.
    """
    rows, notes = named_rows([*published_methods(), *READINGS], published_losses(), shared, _prepare(shared, shorten))
    cells = {row.cell.config.yaml(): row.cell for row in rows}

    def cell(name: str, config: Config) -> Cell:
        short = shorten(config)
        return cells.setdefault(short.yaml(), Cell(name, short))

    methods, by_loss = ({row.item: row for row in rows if row.table == table} for table in ("methods", "losses"))
    losses = [by_loss[name] for name in PAPER.published["losses"] if name in by_loss]
    neighbors = {
        row.item: {
            k: cell(f"{row.item}-k{k}", Overrides({"proxy.k": k}).applied(row.cell.config)) for k in PAPER.neighbors
        }
        for row in (*losses, *(methods[name] for name in READINGS))
        if row.item in (*PAPER.best_k, *READINGS)
    }
    drawn = {
        seed: [
            replace(row, cell=cell(f"{row.item}-draw{seed}", row.cell.config.on(place)))
            for row in losses
            if row.item in PAPER.drawn_losses
        ]
        for seed, place in draws.items()
    }
    readings = tuple(methods[name] for name in FIDELITY.readings)
    published = tuple(row for name, row in methods.items() if name not in READINGS)
    return PaperRuns(data_set, published, tuple(losses), readings, neighbors, drawn, tuple(notes))
