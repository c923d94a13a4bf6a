"""What is trained on one data set of the AADML paper: cells that tables and figures share are one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from aadml.configuration.config import Config, resolve
from aadml.configuration.overrides import with_setting
from aadml.feature_extraction.ground.errors import InputError
from aadml.protocols import PROTOCOLS
from aadml.studies.ablation_grid import run_folder
from aadml.studies.comparison_rows import ComparisonRow, RowSettings, named_rows, published_losses, published_methods
from aadml.studies.grid import Cell
from aadml.studies.job import Job
from aadml.studies.published_figures import published

SELECTION = "legacy:test-selection"
"""The leak that needs no evaluation: the best of the MAPs that the log of a run has of its test clips."""
LEAKS = tuple(name for name in PROTOCOLS if name.startswith("legacy:") and name != SELECTION)
"""The other leaks, under which every row of a table is scored too."""

BEST_K = {"aa-triplet": 3, "aa-hard-triplet": 3, "aa-complete-triplet": 2}
"""The three losses of Figures 4 and 5, with the k that the paper found best for each and uses in its tables."""
K_SWEPT = range(1, 8)
DRAWN = ("triplet", "aa-triplet")
"""Rows that are trained on several draws of Clock."""
LOOKS = 40
"""How often the test clips are looked at in a training, for the log alone; after every epoch for Figure 5."""


@dataclass(frozen=True)
class PaperRuns:
    """What is trained on one data set.

    Attributes:
        data_set: "vegas" or "ave".
        methods: rows of Table 1.
        losses: rows of Table 2 or 3.
        neighbors: loss -> k -> cell, Figure 4.
        draws: seed of a draw of Clock -> rows; that of seed 0 is in the tables.
        notes: what people should know of the rows.
    """

    data_set: str
    methods: tuple[ComparisonRow, ...]
    losses: tuple[ComparisonRow, ...]
    neighbors: Mapping[str, Mapping[int, Cell]]
    draws: Mapping[int, tuple[ComparisonRow, ...]]
    notes: tuple[str, ...] = ()

    @property
    def curves(self) -> dict[str, Cell]:
        """Give the cells of Figure 5, by loss."""
        return {row.item: row.cell for row in self.losses if row.item in BEST_K}

    def cells(self, part: str) -> list[Cell]:
        """List the cells of a part of the paper, each once; nothing where the part is not of this data set."""
        drawn = [row for row in self.losses if row.item in DRAWN]
        found = {
            "table-1": [row.cell for row in self.methods],
            "table-2": [row.cell for row in self.losses] if self.data_set == "vegas" else [],
            "table-3": [row.cell for row in self.losses] if self.data_set == "ave" else [],
            "figure-3": [row.cell for row in self.methods],
            "figure-4": [cell for cells in self.neighbors.values() for cell in cells.values()],
            "figure-5": list(self.curves.values()),
            "clock-draw": [row.cell for rows in (drawn, *self.draws.values()) for row in rows] if self.draws else [],
        }[part]
        return list({cell.name: cell for cell in found}.values())

    def jobs(self, parts: Sequence[str], seeds: Sequence[int], folder: Path) -> list[Job]:
        """List the runs of parts, seed by seed. What a run logs does not depend on which parts are asked for."""
        cells = {cell.name: cell for part in parts for cell in self.cells(part)}
        tabulated = {row.cell.name for row in (*self.methods, *self.losses)}
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


def paper_runs(
    data_set: str,
    shared: RowSettings,
    *,
    shorten: Callable[[Config], Config],
    draws: Mapping[int, str],
) -> PaperRuns:
    """Lay out what is trained on a data set.

    Args:
        data_set: "vegas" or "ave".
        shared: what all rows share; its config is that of the losses.
        shorten: config -> config, with a shorter schedule where one is asked for.
        draws: seed -> the data of a further draw of Clock.

    Raises:
        InputError: a setting that fits no row.
    """
    known = _Cells(shorten)
    rows, notes = _rows(published_methods(), published_losses(), shared, known)
    losses = [row for row in rows if row.table == "losses" and row.item in published("losses")]
    order = list(published("losses"))
    losses.sort(key=lambda row: order.index(row.item))
    neighbors: dict[str, dict[int, Cell]] = {}
    for row in losses:
        if row.item in BEST_K:
            neighbors[row.item] = {
                k: known.cell(f"{row.item}-k{k}", resolve(with_setting(row.cell.config.values, "proxy.k", k)))
                for k in K_SWEPT
            }
    others = {
        seed: tuple(
            replace(row, cell=known.cell(f"{row.item}-draw{seed}", row.cell.config.on(place)))
            for row in losses
            if row.item in DRAWN
        )
        for seed, place in draws.items()
    }
    methods = tuple(row for row in rows if row.table == "methods")
    return PaperRuns(data_set, methods, tuple(losses), neighbors, others, tuple(notes))


def _rows(
    methods: Sequence[str], losses: Sequence[str], shared: RowSettings, known: "_Cells"
) -> tuple[list[ComparisonRow], list[str]]:
    """Lay out rows as `compare` does, each loss of Figure 4 with the k that the paper's tables have."""
    rows, notes = named_rows(methods, losses, shared)
    chosen = {key for key, _ in shared.changes}
    found = []
    for row in rows:
        config = row.cell.config
        if row.table == "losses" and row.item in BEST_K and "proxy.k" not in chosen:
            config = _with_k(config, BEST_K[row.item])
        found.append(replace(row, cell=known.cell(row.cell.name, config)))
    return found, notes


def _with_k(config: Config, k: int) -> Config:
    try:
        return resolve(with_setting(config.values, "proxy.k", k))
    except InputError:  # another proxy, named by a config of the user's
        return config


class _Cells:
    """Cells by config: equal configs are one cell, under the name of the first."""

    def __init__(self, shorten: Callable[[Config], Config]) -> None:
        self._shorten = shorten
        self._found: dict[str, Cell] = {}
        self._names: set[str] = set()

    def cell(self, name: str, config: Config) -> Cell:
        """Give the cell of a config."""
        short = self._shorten(config)
        written = short.yaml()
        if written not in self._found:
            own = name if name not in self._names else f"loss-{name}"
            self._names.add(own)
            self._found[written] = Cell(own, short, {})
        return self._found[written]
