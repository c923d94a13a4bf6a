"""The tables of the experiment's page, each made of rows of the ledger alone."""

import json
from collections.abc import Mapping, Sequence

from aadml.reports.plan.statistics import ByMethod, Compared, complete_seeds, corrected_flips
from aadml.reports.tables import Cell, Table
from aadml.retrieval.significance import LEVEL, spread
from aadml.sweeps.plan.contenders import ANCHOR_AWARE, CONTENDERS, RIVALS
from aadml.sweeps.plan.experiment import PROTOCOLS
from aadml.sweeps.plan.ledger import Ledger, Row
from aadml.sweeps.plan.sets import SetFacts
from aadml.sweeps.plan.stages import (
    CONTROL_SEEDS,
    FULL,
    FULL_SEEDS,
    LOOKS,
    ROUNDS,
    SECOND,
    STAGES,
    THIRD,
    chosen_options,
    finals,
)

WHAT = {
    SECOND: "the chosen contenders",
    FULL: "the same without the stop",
    THIRD: "controls of the chosen AA",
    "rivals-2": "the chosen rivals",
}

_ORDER = [*CONTENDERS, *RIVALS]


def set_table(facts: Mapping[str, SetFacts], ledger: Ledger) -> Table:
    """Say what the data sets are."""
    rows: list[tuple[Cell, ...]] = []
    for one in facts.values():
        chances = [row.chance for row in ledger.rows(SECOND) if row.data_set == one.name and row.chance is not None]
        rows.append((one.name, one.train, one.valid, one.test, one.classes, chances[0] if chances else None))
    return Table(("set", "training clips", "validation", "test", "classes", "chance of MAP"), tuple(rows))


def progress_table(names: Sequence[str], ledger: Ledger) -> Table:
    """Count what is finished of every stage, beside what the plan has."""
    rows: list[tuple[Cell, ...]] = []
    for stage in STAGES:
        own = ledger.rows(stage)
        counts = [_count([row for row in own if row.data_set == name]) for name in names]
        hours = sum(row.seconds or 0.0 for row in own) / 3600
        rows.append((stage, _what(stage), planned(stage), *counts, round(hours, 2)))
    finished = (f"{name}: finished" for name in names)
    return Table(("stage", "what", "runs planned a set", *finished, "hours"), tuple(rows), digits=2)


def planned(stage: str) -> str:
    """Say how many runs a stage has on each data set."""
    methods = len(RIVALS if stage.startswith("rivals") else CONTENDERS)
    for one in ROUNDS:
        if stage.endswith(one.ending):
            return str(one.kept * methods)
    if stage == SECOND:
        return f"{LOOKS[0] * methods} to {LOOKS[-1] * methods}"
    if stage == THIRD:
        return f"{CONTROL_SEEDS} a control"
    return str((FULL_SEEDS if stage == FULL else CONTROL_SEEDS) * methods)


def _what(stage: str) -> str:
    for one in ROUNDS:
        if stage.endswith(one.ending):
            return f"{one.kept} points a method, {one.steps} steps"
    return WHAT[stage]


def _count(rows: Sequence[Row]) -> str:
    failed = sum(bool(row.failed) for row in rows)
    return f"{len(rows)} ({failed} failed)" if failed else str(len(rows)) if rows else "not run"


def option_table(prefix: str, name: str, ledger: Ledger) -> Table:
    """Lay out what a search chose on a data set, and how well its rounds went, by validation MAP alone."""
    rows: list[tuple[Cell, ...]] = []
    for method in RIVALS if prefix == "rivals-" else CONTENDERS:
        options = chosen_options(prefix, name, method, ledger)
        written = json.dumps(options, sort_keys=True)
        by_round = [
            [row for row in ledger.rows(prefix + one.ending) if (row.data_set, row.method) == (name, method)]
            for one in ROUNDS
        ]
        first = [row.valid_map for row in by_round[0] if row.valid_map is not None]
        later = [next((row.valid_map for row in own if row.options == written), None) for own in by_round]
        if first:
            said = ", ".join(f"{k.split('.')[-1]} {v}" for k, v in (options or {}).items()) or "not chosen yet"
            rows.append((method, len(first), spread(first), max(first), *later[1:], said))
    columns = ("method", "points", "valid MAP of all points", "best", *(f"chosen, {one.ending}" for one in ROUNDS[1:]))
    return Table((*columns, "chosen options"), tuple(rows))


def final_table(rows: ByMethod, seeds: Sequence[int]) -> Table:
    """Lay out the finalists' figures over some seeds, each beside its steps, validation MAP and train MAP."""
    lines: list[tuple[Cell, ...]] = []
    for method in sorted(rows, key=lambda one: (_ORDER.index(one) if one in _ORDER else len(_ORDER), one)):
        own = rows[method]
        kept = [own[seed] for seed in seeds if seed in own and own[seed].test_map is not None]
        if kept:
            lines.append((method, len(kept), *(_over(kept, name) for name in ("steps", "epoch")),
                          *(_over(kept, name) for name in ("valid_map", "train_map", "audio_visual", "visual_audio",
                                                           "test_map"))))  # fmt: skip
    columns = ("method", "seeds", "steps", "chosen epoch", "valid MAP", "train MAP", "audio-visual", "visual-audio")
    return Table((*columns, "test MAP"), tuple(lines))


def _over(rows: Sequence[Row], name: str) -> Cell:
    values = [getattr(row, name) for row in rows]
    known = [float(value) for value in values if value is not None]
    if not known:
        return None
    found = spread(known)
    return f"{found.mean:.0f}" if name in ("steps", "epoch") else found


def difference_table(found: Sequence[Compared], *, tested: bool) -> Table:
    """Lay out comparisons, their intervals and their power; no p where no look is complete."""
    flips = corrected_flips(found)
    rows: list[tuple[Cell, ...]] = []
    for one in found:
        both = (one.over_both.low, one.over_both.high)
        p: tuple[Cell, ...] = (_p(one.over_seeds.p), _p(one.over_seeds.equal), _p(flips[one.pair]))
        rows.append(
            (" - ".join(one.pair), len(one.values), _signed(one.over_seeds.mean), interval(both), interval(one.at_look),
             *(p if tested else (None, None, None)), one.deviation, f"{one.power(0.01):.2f}", f"{one.power(0.02):.2f}")
        )  # fmt: skip
    columns = ("difference", "seeds", "mean", "95 %, seeds and queries", "98.2 %, seeds", "p", "p equal",
               "p sign-flip (Holm)", "sd over seeds", "power for 0.01", "for 0.02")  # fmt: skip
    return Table(columns, tuple(rows))


def control_table(found: Sequence[Compared]) -> Table:
    """Lay out exploratory comparisons: sign-flips, corrected within the table."""
    flips = corrected_flips(found)
    rows = [
        (one.pair[1], len(one.values), _signed(one.over_seeds.mean), interval((one.over_both.low, one.over_both.high)),
         _p(flips[one.pair]), "yes" if flips[one.pair] < LEVEL else "no")
        for one in found
    ]  # fmt: skip
    columns = ("AA minus", "seeds", "mean", "95 %, seeds and queries", "p sign-flip (Holm)", "found")
    return Table(columns, tuple(rows))


def full_table(name: str, ledger: Ledger) -> Table:
    """Set every training to the last step beside the same one that was stopped."""
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
    """Set the anchor-aware runs' test MAP under each protocol beside the inductive one."""
    own = [row for seed in seeds if (row := rows.get(ANCHOR_AWARE, {}).get(seed)) and row.bank is not None]
    lines: list[tuple[Cell, ...]] = [("inductive", len(own), _over(own, "test_map"))] if own else []
    lines += [(PROTOCOLS[name], len(own), _over(own, name)) for name in PROTOCOLS if own]
    return Table(("protocol", "seeds", "test MAP of AA"), tuple(lines))


def interval(ends: tuple[float, float]) -> str:
    """Write an interval."""
    return f"[{_signed(ends[0])}, {_signed(ends[1])}]"


def _signed(value: float) -> str:
    return f"{round(value, 3) + 0.0:+.3f}"


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
