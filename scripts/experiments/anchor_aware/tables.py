"""The tables of the experiment's page, computed from rows of the ledger alone."""

import json
from collections.abc import Mapping, Sequence

import numpy as np

from aadml.reports.tables import Cell, Table, markdown
from aadml.retrieval.significance import LEVEL, Difference, Pair, paired_t, seeds_and_clips, spread
from aadml.runs.run_names import file_name
from aadml.studies.results import signed
from scripts.experiments.anchor_aware.contenders import ANCHOR_AWARE, CONTENDERS, RIVALS
from scripts.experiments.anchor_aware.experiment import PROTOCOLS
from scripts.experiments.anchor_aware.finals import (
    BEST_READINGS,
    CONTROL_SEEDS,
    FULL,
    FULL_SEEDS,
    LAST_READINGS,
    LAST_RIVALS,
    LAST_SHARES,
    LOOKS,
    SECOND,
    SHARE_SEEDS,
    THIRD,
    finals,
)
from scripts.experiments.anchor_aware.ledger import Ledger, Row
from scripts.experiments.anchor_aware.r5 import STAGE as R5
from scripts.experiments.anchor_aware.search import SEARCHES, SHARES, chosen_options, rounds_by_stage
from scripts.experiments.anchor_aware.sets import SetFacts
from scripts.experiments.anchor_aware.shipped import (
    BUDGET,
    CAP,
    CAPPED,
    FEW_LABELS,
    FIFTH,
    LABELS_A_CLASS,
    METHOD_SEEDS,
    PAIRS,
    WITH_FEW,
    WITHOUT_LABELS,
)
from scripts.experiments.anchor_aware.statistics import PRIMARY, ByMethod, Compared, complete_seeds, corrected_flips

_ALL = {
    SECOND: ("the chosen contenders", f"{LOOKS[0] * len(CONTENDERS)} to {LOOKS[-1] * len(CONTENDERS)}"),
    FULL: ("the same without the stop", str(FULL_SEEDS * len(CONTENDERS))),
    THIRD: ("controls of the chosen AA", f"{CONTROL_SEEDS} to {LOOKS[-1]} a control"),
    LAST_RIVALS: ("the chosen rivals", str(CONTROL_SEEDS * len(RIVALS))),
    LAST_READINGS: ("the best readings under sums, and two controls", str(CONTROL_SEEDS * (BEST_READINGS + 2))),
    PAIRS: ("without labels, on natural pairs", str(CONTROL_SEEDS * len(WITHOUT_LABELS))),
    FEW_LABELS: ("few labels, on natural pairs", str(CONTROL_SEEDS * len(WITH_FEW) * len(LABELS_A_CLASS))),
    LAST_SHARES: ("the chosen three", str(SHARE_SEEDS * len(SEARCHES[SHARES].methods))),
    FIFTH: ("all methods at their own schedules", f"{METHOD_SEEDS} a method"),
    CAPPED: (f"those of more than {CAP} steps, ended there", f"{METHOD_SEEDS} a method"),
    R5: ("R5, no proxy, and six controls", "160 to 320"),
}
"""Stage without a search -> description, and number of runs per data set."""

_ORDER = [*CONTENDERS, *RIVALS]
_FIGURES = {
    "steps": "steps", "epoch": "chosen epoch", "valid_map": "valid MAP", "train_map": "train MAP",
    "audio_visual": "audio-visual", "visual_audio": "visual-audio", "test_map": "test MAP",
}  # fmt: skip
"""Column of a row -> its name in a table."""


def figure_name(data_set: str, kind: str) -> str:
    """Return the file name of a figure, which is an address in Markdown."""
    return file_name(f"{data_set}-{kind}".replace(" ", "-")) + ".svg"


def set_table(facts: Mapping[str, SetFacts], ledger: Ledger) -> Table:
    """Return the table of facts about the data sets."""
    scored = [row for stage in (SECOND, LAST_SHARES) for row in ledger.rows(stage) if row.chance is not None]
    chance = {row.data_set: row.chance for row in scored}
    rows: list[tuple[Cell, ...]] = [
        (one.name, one.train, one.valid, one.test, one.classes, chance.get(one.name)) for one in facts.values()
    ]
    return Table(("set", "training clips", "validation", "test", "classes", "chance of MAP"), tuple(rows))


def progress_table(names: Sequence[str], stages: Sequence[str], ledger: Ledger) -> Table:
    """Return the number of finished runs of stages, with the number of planned runs."""
    rows: list[tuple[Cell, ...]] = []
    for stage in stages:
        own = ledger.rows(stage)
        counts = [_count([row for row in own if row.data_set == name]) for name in names]
        hours = sum(row.seconds or 0.0 for row in own) / 3600
        rows.append((stage, *_planned(stage), *counts, round(hours, 2)))
    finished = (f"{name}: finished" for name in names)
    return Table(("stage", "what", "runs planned a set", *finished, "hours"), tuple(rows), digits=2)


def _planned(stage: str) -> tuple[str, str]:
    """Return the description of a stage, and its number of runs per data set."""
    if stage in _ALL:
        return _ALL[stage]
    prefix, number = rounds_by_stage()[stage]
    search = SEARCHES[prefix]
    one = search.rounds[number]
    return f"{one.kept} points a method, {one.steps} steps", str(one.kept * len(search.methods))


def _count(rows: Sequence[Row]) -> str:
    failed = sum(bool(row.failed) for row in rows)
    return f"{len(rows)} ({failed} failed)" if failed else str(len(rows)) if rows else "not run"


def option_table(prefix: str, name: str, ledger: Ledger) -> Table:
    """Return the options that a search chose on a data set, and the results of its rounds, by validation MAP alone."""
    rows: list[tuple[Cell, ...]] = []
    rounds = SEARCHES[prefix].rounds
    for method in SEARCHES[prefix].methods:
        options = chosen_options(prefix, name, method, ledger)
        written = json.dumps(options, sort_keys=True)
        by_round = [
            [row for row in ledger.rows(prefix + one.ending) if (row.data_set, row.method) == (name, method)]
            for one in rounds
        ]
        first = [row.valid_map for row in by_round[0] if row.valid_map is not None]
        later = [next((row.valid_map for row in own if row.options == written), None) for own in by_round]
        if first:
            drawn = {
                k: v for k, v in (options or {}).items() if len(SEARCHES[prefix].methods[method].whole_space[k]) > 1
            }
            said = ", ".join(f"{k.split('.')[-1]} {v}" for k, v in drawn.items()) or "not chosen yet"
            rows.append((method, len(first), spread(first), max(first), *later[1:], said))
    columns = ("method", "points", "valid MAP of all points", "best", *(f"chosen, {one.ending}" for one in rounds[1:]))
    return Table((*columns, "chosen options"), tuple(rows))


def final_table(rows: ByMethod, seeds: Sequence[int]) -> Table:
    """Return the finalists' scores over some seeds, with their steps, validation MAP and train MAP."""
    lines: list[tuple[Cell, ...]] = []
    for method in sorted(rows, key=lambda one: (_ORDER.index(one) if one in _ORDER else len(_ORDER), one)):
        own = rows[method]
        kept = [own[seed] for seed in seeds if seed in own and own[seed].test_map is not None]
        if kept:
            lines.append((method, len(kept), *(_over(kept, name) for name in _FIGURES)))
    return Table(("method", "seeds", *_FIGURES.values()), tuple(lines))


def budget_table(rows: ByMethod) -> Table:
    """Return the scores of complete schedules, with the number of epochs of each schedule."""
    lines = []
    for line in final_table(rows, every_seed(rows)).rows:
        known = [row for row in rows[str(line[0])].values() if row.test_map is not None]
        budgets = {str(dict(json.loads(row.options))[BUDGET]) for row in known}
        budget = ", ".join(sorted(budgets)) if any(row.epochs for row in known) else None  # closed forms have none
        lines.append((*line[:2], budget, _over(known, "epochs"), *line[2:]))
    return Table(("method", "seeds", "epochs of its schedule", "taken", *_FIGURES.values()), tuple(lines))


def every_seed(rows: ByMethod) -> list[int]:
    """Return the seeds of any method."""
    return sorted({seed for own in rows.values() for seed in own})


def _over(rows: Sequence[Row], name: str) -> Cell:
    values = [getattr(row, name) for row in rows]
    known = [float(value) for value in values if value is not None]
    if not known:
        return None
    found = spread(known)
    return f"{found.mean:.0f}" if name in ("steps", "epoch", "epochs") else found


def difference_table(found: Sequence[Compared], *, tested: bool) -> Table:
    """Return comparisons with their intervals and their power; without p if no look is complete."""
    flips = corrected_flips(found)
    rows: list[tuple[Cell, ...]] = []
    for one in found:
        both = (one.over_both.low, one.over_both.high)
        p: tuple[Cell, ...] = (_p(one.over_seeds.p), _p(one.over_seeds.equal), _p(flips[one.pair]))
        rows.append(
            (" - ".join(one.pair), len(one.values), signed(one.over_seeds.mean), interval(both), interval(one.at_look),
             *(p if tested else (None, None, None)), one.deviation, f"{one.power(0.01):.2f}", f"{one.power(0.02):.2f}")
        )  # fmt: skip
    columns = ("difference", "seeds", "mean", "95 %, seeds and queries", "98.2 %, seeds", "p", "p equal",
               "p sign-flip (Holm)", "sd over seeds", "power for 0.01", "for 0.02")  # fmt: skip
    return Table(columns, tuple(rows))


def clip_table(
    name: str, ledger: Ledger, seeds: Sequence[int], pairs: Sequence[Pair] = PRIMARY, stage: str = SECOND
) -> Table:
    """Return differences with seeds and test clips (or clusters) as random factors.

    Args:
        name: data set.
        ledger: rows of the stage, with the pseudo-value of every clip.
        seeds: seeds on which all methods have a row; seeds without pseudo-values are omitted.
        pairs: (first, second) methods; a pair with values of fewer than two seeds has no line.
        stage: stage of the rows.
    """
    rows, values = finals(name, ledger, stage), ledger.pseudo_values(stage)
    lines: list[tuple[Cell, ...]] = []
    for pair in pairs:
        keys = [[rows[method][seed].key for method in pair] for seed in seeds]
        complete = [key for key in keys if all(one in values for one in key)]
        if len(complete) < 2:
            continue
        sides = (np.stack([values[key] for key in side]) for side in zip(*complete, strict=True))
        found, units = seeds_and_clips(*sides), len(values[complete[0][0]])
        lines.append((" - ".join(pair), len(complete), units, signed(found.mean), ends(found), _p(found.p)))
    return Table(("difference", "seeds", "clips or clusters", "mean", "95 %, seeds and clips", "p"), tuple(lines))


def part_table(rows: ByMethod, seeds: Sequence[int]) -> Table:
    """Return paired differences of each direction and of validation MAP, with t intervals over seeds."""
    lines: list[tuple[Cell, ...]] = []
    for pair in PRIMARY:
        cells: list[Cell] = []
        for part in ("audio_visual", "visual_audio", "valid_map"):
            sides = [[getattr(rows[method][seed], part) for seed in seeds] for method in pair]
            known = [values for values in zip(*sides, strict=True) if None not in values]
            if len(known) < 2:
                cells.append(None)
                continue
            over = paired_t([a for a, _ in known], [b for _, b in known])
            cells.append(f"{signed(over.mean)} {ends(over)}")
        lines.append((" - ".join(pair), *cells))
    known_rows = tuple(line for line in lines if any(line[1:]))
    return Table(("difference", "audio-visual", "visual-audio", "validation"), known_rows)


def control_table(found: Sequence[Compared]) -> Table:
    """Return comparisons of AA, with p of random signs corrected within the table."""
    return exploratory_table(found, "AA minus", [one.pair[1] for one in found])


def exploratory_table(found: Sequence[Compared], title: str, names: Sequence[str]) -> Table:
    """Return exploratory comparisons under their names, with p of random signs corrected within the table."""
    flips = corrected_flips(found)
    rows = [
        (name, len(one.values), signed(one.over_seeds.mean), interval((one.over_both.low, one.over_both.high)),
         _p(flips[one.pair]), "yes" if flips[one.pair] < LEVEL else "no")
        for name, one in zip(names, found, strict=True)
    ]  # fmt: skip
    columns = (title, "seeds", "mean", "95 %, seeds and queries", "p sign-flip (Holm)", "found")
    return Table(columns, tuple(rows))


def full_table(name: str, ledger: Ledger) -> Table:
    """Compare every complete training run with the same run with early stopping."""
    stopped, full = finals(name, ledger), finals(name, ledger, FULL)
    rows: list[tuple[Cell, ...]] = []
    for method in CONTENDERS:
        for seed in complete_seeds({method: full.get(method, {})}, [method]):
            if seed in stopped.get(method, {}):
                a, b = stopped[method][seed], full[method][seed]
                rows.append((method, str(seed), a.steps, str(a.epoch), a.test_map, b.steps, str(b.epoch), b.test_map))
    columns = ("method", "seed", "steps, stopped", "epoch", "test MAP", "steps, full", "epoch of full", "MAP of full")
    return Table(columns, tuple(rows))


def protocol_table(rows: ByMethod, seeds: Sequence[int]) -> Table:
    """Return the test MAP of the anchor-aware runs under each protocol, with that of the inductive protocol."""
    own = [row for seed in seeds if (row := rows.get(ANCHOR_AWARE, {}).get(seed)) and row.bank is not None]
    lines: list[tuple[Cell, ...]] = [("inductive", len(own), _over(own, "test_map"))] if own else []
    lines += [(PROTOCOLS[name], len(own), _over(own, name)) for name in PROTOCOLS if own]
    return Table(("protocol", "seeds", "test MAP of AA"), tuple(lines))


def interval(ends: tuple[float, float]) -> str:
    """Return an interval as text."""
    return f"[{signed(ends[0])}, {signed(ends[1])}]"


def ends(one: Difference) -> str:
    """Return the interval of a difference as text."""
    return interval((one.low, one.high))


def gain(one: Compared) -> str:
    """Return a mean difference with its interval over seeds and queries, as text."""
    return f"{signed(one.over_seeds.mean)} {ends(one.over_both)}"


def chance_of(rows: ByMethod) -> float | None:
    """Return the chance level of the scored runs; None without such runs."""
    return next((row.chance for own in rows.values() for row in own.values() if row.chance is not None), None)


def titled(title: str, table: Table) -> list[str]:
    """Return a table below its title; empty for a table without rows."""
    return [f"### {title}", markdown(table)] if table.rows else []


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
