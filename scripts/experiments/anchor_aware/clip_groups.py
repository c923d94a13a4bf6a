"""Differences between contenders on the queries of one person, or of one container: clips.csv names them."""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from aadml.feature_extraction.ground.errors import InputError
from aadml.reports.tables import Table
from aadml.retrieval.significance import Pair, paired_t
from scripts.experiments.anchor_aware.finals import SECOND, finals
from scripts.experiments.anchor_aware.ledger import Ledger
from scripts.experiments.anchor_aware.statistics import PRIMARY
from scripts.experiments.anchor_aware.tables import ends, signed

CLIPS = "clips.csv"
COLUMNS = ("person", "container")


def group_table(
    name: str, ledger: Ledger, seeds: Sequence[int], pairs: Sequence[Pair] = PRIMARY, stage: str = SECOND
) -> Table:
    """Return paired differences of the mean average precision of each group's queries, over seeds.

    Args:
        name: data set.
        ledger: rows of the stage, with the average precision of every query.
        seeds: seeds on which all methods have a row; fewer than two result in an empty table.
        pairs: (first, second) methods; a difference is first minus second.
        stage: stage of the rows.

    Raises:
        InputError: the number of clips in clips.csv differs from the number of queries of the rows.
    """
    clips = _clips(ledger.folders[0], name)
    header = ("queries of", "clips", *(" - ".join(pair) for pair in pairs))
    if not clips or len(seeds) < 2:
        return Table(header, ())
    rows, precisions = finals(name, ledger, stage), ledger.precisions(stage)
    by_method = {
        method: np.stack([precisions[rows[method][seed].key] for seed in seeds]) for pair in pairs for method in pair
    }
    if {len(clips)} != (counts := {values.shape[1] for values in by_method.values()}):
        raise InputError(
            f"{ledger.folders[0] / CLIPS}: {name} has {len(clips)} clips, but rows of {max(counts)} queries; list "
            "every test clip once"
        )
    lines = []
    for column in COLUMNS:
        for value in sorted({clip[column] for clip in clips}):
            own = np.array([clip[column] == value for clip in clips])
            maps = {method: values[:, own].mean(1) for method, values in by_method.items()}
            found = [paired_t(maps[first], maps[second]) for first, second in pairs]
            lines.append((f"{column} {value}", int(own.sum()), *(f"{signed(one.mean)} {ends(one)}" for one in found)))
    return Table(header, tuple(lines))


def _clips(folder: Path, name: str) -> list[dict[str, str]]:
    """Return the test clips of a data set, in the order of its rows' queries; empty if none are listed."""
    path = folder / CLIPS
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [clip for clip in csv.DictReader(file) if clip["data_set"] == name]
