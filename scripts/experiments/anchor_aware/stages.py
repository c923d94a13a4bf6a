"""STAGES of the plan: the runs of each stage that finished runs determine. No option is chosen on test clips."""

from collections.abc import Callable
from functools import partial

from aadml.feature_extraction.ground.errors import InputError
from scripts.experiments.anchor_aware.experiment import DataSet, Experiment, Run
from scripts.experiments.anchor_aware.finals import (
    FULL,
    LAST_READINGS,
    LAST_RIVALS,
    LAST_SHARES,
    SECOND,
    THIRD,
    controlled,
    full,
    reading_finals,
    rival_finals,
    sequential,
    share_finals,
)
from scripts.experiments.anchor_aware.r5 import STAGE as R5
from scripts.experiments.anchor_aware.r5 import r5_controls
from scripts.experiments.anchor_aware.search import MAIN, RIVALRY, SEARCHES, SHARES, SUMS, searched
from scripts.experiments.anchor_aware.shipped import (
    CAPPED,
    FEW_LABELS,
    FIFTH,
    PAIRS,
    all_methods,
    capped_methods,
    few_labels,
    without_labels,
)

Lister = Callable[[str, DataSet, Experiment], list[Run]]


def _rounds(prefix: str) -> dict[str, Lister]:
    """Return the stages of a search: name -> function that lists the runs."""
    return {
        prefix + one.ending: partial(searched, prefix, number) for number, one in enumerate(SEARCHES[prefix].rounds)
    }


STAGES: dict[str, Lister] = {
    **_rounds(MAIN), SECOND: sequential, FULL: full, THIRD: controlled, **_rounds(RIVALRY), LAST_RIVALS: rival_finals,
    **_rounds(SUMS), LAST_READINGS: reading_finals, PAIRS: without_labels, FEW_LABELS: few_labels,
    **_rounds(SHARES), LAST_SHARES: share_finals, FIFTH: all_methods, CAPPED: capped_methods, R5: r5_controls,
}  # fmt: skip
"""Name of a stage, which is that of its CSV file -> function that lists its runs."""


def is_of_shares(stage: str) -> bool:
    """Return whether a stage is on the sets that the plan generates."""
    return stage.startswith(SHARES)


def runs_of(stage: str, experiment: Experiment) -> list[Run]:
    """Return the runs of a stage that are known to be required, including finished runs.

    A stage that depends on others has no runs for data sets on which those are not finished. `stage-2` grows while
    looks are undecided.
    """
    sets = experiment.drawn if is_of_shares(stage) else experiment.sets
    return [run for name, data_set in sets.items() for run in STAGES[stage](name, data_set, experiment)]


def stage_before(stage: str) -> str:
    """Return the search stage that a stage takes its options from; empty for a stage that needs none."""
    if stage in (FIFTH, CAPPED, PAIRS, FEW_LABELS):
        return ""
    prefix = MAIN if stage in (FULL, R5) else stage[: stage.index("-") + 1]
    rounds = [prefix + one.ending for one in SEARCHES[prefix].rounds]
    return ["", *rounds][rounds.index(stage) if stage in rounds else -1]


def chosen_stages(only: str | None) -> list[str]:
    """Parse "stage-1,full" of `--only`: names of stages, or their common prefixes.

    Raises:
        InputError: no stage begins with a name.
    """
    if not only:
        return list(STAGES)
    wanted = [part.strip() for part in only.split(",") if part.strip()]
    for part in wanted:
        if not any(stage.startswith(part) for stage in STAGES):
            raise InputError(f"no stage '{part}'; there are: {', '.join(STAGES)}")
    return [stage for stage in STAGES if any(stage.startswith(part) for part in wanted)]
