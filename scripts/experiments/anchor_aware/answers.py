"""Answers of the experiment to each question of the plan, by data set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aadml.configuration.config import DEFAULT_METHOD
from aadml.configuration.files import ConfigFile, open_config
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.reports.tables import Table
from aadml.retrieval.significance import paired_t
from aadml.studies.control_rows import AFFINE, RANDOM, UNIFORM
from aadml.studies.grid import Overrides
from aadml.studies.results import signed
from scripts.experiments.anchor_aware.contenders import ANCHOR_AWARE, MEMORY, PLAIN, current
from scripts.experiments.anchor_aware.finals import LOOKS, SECOND, THIRD, finals, same_training
from scripts.experiments.anchor_aware.hypotheses import graph_answer, readings_answer
from scripts.experiments.anchor_aware.ledger import Ledger
from scripts.experiments.anchor_aware.search import MAIN, chosen_options
from scripts.experiments.anchor_aware.sequential import LOOK_LEVEL
from scripts.experiments.anchor_aware.shares import slope_answer
from scripts.experiments.anchor_aware.statistics import (
    ByMethod,
    Compared,
    by_look,
    compared,
    complete_seeds,
    seeds_of_look,
)
from scripts.experiments.anchor_aware.tables import interval

QUESTIONS = {
    "H1": ("Does AA raise the triplet loss where both are tuned alike?", PLAIN),
    "H2": ("Is it AA, or the bank?", MEMORY),
    "H3": ("Is it attention?", f"{ANCHOR_AWARE}, {UNIFORM}"),
    "H4": ("Is it the graph?", f"{ANCHOR_AWARE}, {RANDOM}"),
    "H5": ("Is it the neighbors at all?", f"{ANCHOR_AWARE}, {AFFINE}"),
}
"""Question -> its text, and the method that AA is compared with."""
READING = "Does any reading of Equation 7 train under the paper's own sums?"
GRAPH = "Does the graph help without labels, or with few?"
WHERE = "Where should AA help, if its idea is right?"
BANK = "Does the test-time use of the bank help?"


@dataclass(frozen=True)
class Findings:
    """Results on one data set.

    Attributes:
        rows: contender -> seed -> row.
        seeds: seeds of the last complete look; before the first look, the complete seeds.
        complete: number of seeds that all contenders have.
        primary: comparisons of the contenders.
        control_rows: control -> seed -> row.
        controls: AA against each control.
        rival_rows: rival -> seed -> row.
        rivals: AA against each rival.
        same: control that was not run -> why it is the same training as the chosen AA.
        reading: reading of Equation 7 of the chosen AA; empty before options are chosen.
    """

    rows: ByMethod
    seeds: Sequence[int]
    complete: int
    primary: Sequence[Compared]
    control_rows: ByMethod
    controls: Sequence[Compared]
    rival_rows: ByMethod
    rivals: Sequence[Compared]
    same: Mapping[str, str]
    reading: str

    @property
    def looked(self) -> bool:
        """Return whether a look is complete."""
        return len(self.seeds) in LOOKS


def findings_of(name: str, ledger: Ledger) -> Findings:
    """Read the results on a data set."""
    rows = finals(name, ledger)
    others = {stage: finals(name, ledger, stage) for stage in (THIRD, "rivals-2")}
    against = {stage: _against(rows, others[stage], stage, ledger) for stage in others}
    options = chosen_options(MAIN, name, ANCHOR_AWARE, ledger) or {}
    return Findings(
        rows, seeds_of_look(rows), len(complete_seeds(rows)), by_look(name, ledger), others[THIRD], against[THIRD],
        others["rivals-2"], against["rivals-2"], _same(name, others[THIRD], options),
        str(options.get("proxy.reading", "")),
    )  # fmt: skip


def _same(name: str, there: ByMethod, options: JsonObject) -> dict[str, str]:
    """Return the controls that were not run because they are the same training as the chosen AA, with the reasons."""
    if not options:
        return {}
    base = ConfigFile({**open_config(DEFAULT_METHOD).values, "data": name})
    config = Overrides({"loss": ANCHOR_AWARE, **current(options)}).applied(base)
    same = {f"{ANCHOR_AWARE}, {control}": reason for control, reason in same_training(config).items()}
    return {control: reason for control, reason in same.items() if control not in there}


def _against(rows: ByMethod, others: ByMethod, stage: str, ledger: Ledger) -> list[Compared]:
    """Compare AA with the methods of another stage, on the seeds that both have."""
    precisions, found = ledger.precisions(SECOND) | ledger.precisions(stage), []
    for method in others:
        both = {**others, ANCHOR_AWARE: rows.get(ANCHOR_AWARE, {})}
        one = compared(both, precisions, (ANCHOR_AWARE, method), complete_seeds(both, (ANCHOR_AWARE, method)))
        found += [one] if one else []
    return found


def answers(found: Mapping[str, Findings], ledger: Ledger) -> Table:
    """Answer every question of the plan on every data set."""
    rows = [(key, words, *(_answer(one, other) for one in found.values())) for key, (words, other) in QUESTIONS.items()]
    rows += [("H7", BANK, *(_bank(one) for one in found.values()))]
    rows += [("H6", READING, *(readings_answer(name, ledger) for name in found))]
    rows += [("H8", GRAPH, *(graph_answer(name, ledger) for name in found))]
    rows += [("H9", WHERE, *([slope_answer(ledger), *["as left"] * (len(found) - 1)] if found else []))]
    return Table(("", "question", *found), tuple(sorted(rows)))


def _answer(found: Findings, other: str) -> str:
    compared_with = {one.pair[1]: one for one in (*found.primary, *found.controls) if one.pair[0] == ANCHOR_AWARE}
    one = compared_with.get(other)
    if one is None:
        return f"the same training as AA, not run: {found.same[other]}" if other in found.same else "not run"
    mean = f"{signed(one.over_seeds.mean)} {interval((one.over_both.low, one.over_both.high))}, {len(one.values)} seeds"
    if len(one.values) < LOOKS[0]:
        return f"{mean}; not tested"
    if other not in (PLAIN, MEMORY):
        return f"{mean}; exploratory, see the table"
    word = {1: "yes: AA is above", -1: "no: AA is below", 0: "not decided"}[one.sign]
    return f"{mean}; {'no: equal within 0.01' if one.over_seeds.equal < LOOK_LEVEL else word}"


def _bank(found: Findings) -> str:
    pairs = [
        (row.bank, row.test_map)
        for seed in found.seeds
        if (row := found.rows[ANCHOR_AWARE][seed]).bank is not None and row.test_map is not None
    ]
    if len(pairs) < 2:
        return "not run"
    one = paired_t([bank for bank, _ in pairs if bank is not None], [own for _, own in pairs])
    return f"bank - inductive: {signed(one.mean)} {interval((one.low, one.high))} over {len(pairs)} seeds"
