"""The page of the experiment, written from its CSV files alone: docs/lab/experiments/results.md and its figures."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from aadml.feature_extraction.ground.atomic import write_text
from aadml.reports.tables import Table, markdown
from aadml.retrieval.significance import LEVEL
from scripts.experiments.anchor_aware.answers import Findings, answers, findings_of
from scripts.experiments.anchor_aware.clip_groups import group_table
from scripts.experiments.anchor_aware.contenders import ANCHOR_AWARE, MEMORY, PLAIN
from scripts.experiments.anchor_aware.drawings import SHARES, drawings, share_drawing
from scripts.experiments.anchor_aware.finals import LOOKS
from scripts.experiments.anchor_aware.hypotheses import sections_of_set
from scripts.experiments.anchor_aware.ledger import Ledger
from scripts.experiments.anchor_aware.r5_answer import r5_section
from scripts.experiments.anchor_aware.search import MAIN, finalists
from scripts.experiments.anchor_aware.sets import SHARED, SetFacts, drawn_name, is_drawn, read_facts
from scripts.experiments.anchor_aware.shares import section_of_shares
from scripts.experiments.anchor_aware.stages import STAGES, is_of_shares
from scripts.experiments.anchor_aware.statistics import Compared, corrected_flips, overall, verdict
from scripts.experiments.anchor_aware.tables import (
    clip_table,
    control_table,
    difference_table,
    every_seed,
    figure_name,
    final_table,
    full_table,
    option_table,
    part_table,
    progress_table,
    protocol_table,
    set_table,
    titled,
)

PAGE = "results.md"
PRIMARY_SETS = ("corsmal", "av_digits")
"""Sets of docs/lab/experiments/plan.md."""
OTHER_SETS = ("av_digits by speakers", "uci_digits_views", "mosi")
DESCRIBED = 5  # seeds of the contenders on the other sets (stage 4)


def write_plan_page(folder: Path) -> Path:
    """Write the page and the figures of an experiment.

    Args:
        folder: folder of the ledger.

    Returns:
        Path of the page.
    """
    ledger = Ledger((folder,))
    figures = {SHARES: share_drawing(ledger)}
    for name in _given(folder):
        for kind, drawing in drawings(name, findings_of(name, ledger), ledger).items():
            figures[figure_name(name, kind)] = drawing
    for place, drawing in figures.items():
        if drawing:  # matplotlib is installed
            write_text(folder / place, drawing + "\n")
    write_text(folder / PAGE, page_of(folder))
    return folder / PAGE


def summary(folder: Path) -> tuple[Table, ...]:
    """Return the answers so far, and the table of runs."""
    ledger, names = Ledger((folder,)), _given(folder)
    found = {name: findings_of(name, ledger) for name in names}
    return answers(found, ledger), progress_table(names, [one for one in STAGES if not is_of_shares(one)], ledger)


def _given(folder: Path) -> list[str]:
    """Return the data sets that the plan did not generate."""
    return [name for name in _facts(folder) if not is_drawn(name)]


def _facts(folder: Path) -> dict[str, SetFacts]:
    """Read the facts of the data sets: those of the plan in its order, then others."""
    found = read_facts(folder)
    own = [name for name in (*PRIMARY_SETS, *OTHER_SETS) if name in found]
    return {name: found[name] for name in (*own, *(name for name in found if name not in own))}


def page_of(folder: Path) -> str:
    """Return the text of the page from the CSV files of a folder."""
    ledger, names = Ledger((folder,)), _given(folder)
    found = {name: findings_of(name, ledger) for name in names}
    of_r5 = r5_section(ledger)
    parts = [_INTRODUCTION, "## Where it stands", _standing(found, names, of_r5[1] if of_r5 else "")]
    parts += ["## The questions", markdown(answers(found, ledger))]
    parts += ["## What was run, and what was not", markdown(set_table(_facts(folder), ledger))]
    drawn = [drawn_name(share) for share in SHARED]
    for sets, of_shares in ((names, False), (drawn, True)):
        stages = [stage for stage in STAGES if is_of_shares(stage) == of_shares]
        parts.append(markdown(progress_table(sets, stages, ledger)))
    parts += [_not_run(names), _cost(ledger)]
    for name in names:
        parts += _of_set(name, found[name], ledger)
    parts += of_r5
    parts += section_of_shares(ledger)
    return "\n\n".join(part.rstrip("\n") for part in [*parts, _LAST] if part) + "\n"


def _standing(found: Mapping[str, Findings], names: Sequence[str], cause: str) -> str:
    lines = []
    for name, one in found.items():
        if name in OTHER_SETS:
            lines.append(f"- **{name}**: described, not tested ({len(one.seeds)} of the {DESCRIBED} seeds planned).")
            continue
        if not one.rows and _is_own(names) and name not in PRIMARY_SETS:
            lines.append(f"- **{name}**: no contender was run, only what stands below.")
            continue
        count = len(one.seeds)
        looked = f"{count} seeds" if one.looked else f"{count} of its {LOOKS[0]} seeds are finished"
        reading = f"; AA is reading {one.reading}" if one.reading else ""
        lines.append(f"- **{name}**: {verdict(one.primary)} ({looked}{reading}).")
    lines += [f"- **{name}**: not run yet." for name in PRIMARY_SETS if name not in names and _is_own(names)]
    if _is_own(names):
        both = overall({name: found[name].primary if name in found else () for name in PRIMARY_SETS})
        lines.append(f"- **Both primary sets, by the plan's rule**: {both}.")
    lines += [f"- **Cause of a gain of R5**: {cause}"] if cause else []
    readings = _READINGS if any(one.reading for one in found.values()) else ""
    return "\n".join([*lines, *([f"\n{readings}"] if readings else [])])


def _is_own(names: Sequence[str]) -> bool:
    """Return whether the experiment is on the sets of the plan, and not on those of a user."""
    return bool({*names} & {*PRIMARY_SETS, *OTHER_SETS})


def _not_run(names: Sequence[str]) -> str:
    if not _is_own(names):
        return ""
    absent = [name for name in (*PRIMARY_SETS, *OTHER_SETS) if name not in names]
    return f"Not run at all: {'; '.join(f'every stage on {name}' for name in absent)}." if absent else ""


def _cost(ledger: Ledger) -> str:
    rows = [row for stage in STAGES for row in ledger.rows(stage)]
    hours = sum(row.seconds or 0.0 for row in rows) / 3600
    commits = sorted({row.commit[:7] for row in rows if row.commit})
    return (
        f"{len(rows)} runs are finished, {hours:.2f} hours of training in all: on the clock of one process with one "
        f"thread, on a machine that had other work. Commits of the code: {', '.join(commits) or 'none'}."
    )


def _of_set(name: str, found: Findings, ledger: Ledger) -> list[str]:
    """Return the sections of one data set."""
    parts = [f"## {name}", *titled("Options, chosen by validation MAP", option_table("stage-", name, ledger))]
    if found.rows and not finalists(MAIN, name, ledger):
        parts.append(_FROZEN)
    parts += _of_contenders(name, found, ledger) if found.rows else []
    parts += titled("Controls of the chosen AA", final_table(found.control_rows, every_seed(found.control_rows)))
    parts += [markdown(control_table(found.controls)), *_nothing_found(found.controls)] if found.controls else []
    parts += [f"{control}: the same training as the chosen AA, not run ({why})." for control, why in found.same.items()]
    parts += titled("Options of the rivals", option_table("rivals-", name, ledger))
    parts += titled("Rivals", final_table(found.rival_rows, every_seed(found.rival_rows)))
    parts += [markdown(control_table(found.rivals))] if found.rivals else []
    return parts + sections_of_set(name, ledger)


def _nothing_found(controls: Sequence[Compared]) -> list[str]:
    if any(p < LEVEL for p in corrected_flips(controls).values()):
        return []
    return [
        f"None of the {len(controls)} differences is found after the correction for their number: these rows show "
        "neither what a gain of AA is due to, nor that any part of AA has no effect."
    ]


def _of_contenders(name: str, found: Findings, ledger: Ledger) -> list[str]:
    """Return the results of stage 2 and of its longer training runs on a data set."""
    parts = ["### Contenders", _seeds_said(found), markdown(final_table(found.rows, found.seeds))]
    if found.primary:
        parts += [markdown(difference_table(found.primary, tested=found.looked)), _HOW]
        parts += titled("Over test clips in both roles, or clusters of them", clip_table(name, ledger, found.seeds))
        parts += titled(
            "By direction and on validation clips (exploratory; 95 %, seeds alone)", part_table(found.rows, found.seeds)
        )
        parts += titled(
            "By person and container (exploratory; 95 %, seeds alone)", group_table(name, ledger, found.seeds)
        )
        parts += [f"![test MAP of every seed]({figure_name(name, 'map')})"]
        parts += [f"![paired differences]({figure_name(name, 'differences')})"]
    parts += titled("What the stop leaves out", full_table(name, ledger))
    of_protocols = titled("Protocols (H7)", protocol_table(found.rows, found.seeds))
    parts += of_protocols + ([_BANK] if of_protocols else [])
    return parts + ([_BANK_OF_R5] if of_protocols and found.reading == "R5" else [])


def _seeds_said(found: Findings) -> str:
    count, over = len(found.seeds), "Mean and standard deviation over seeds."
    if not found.looked:
        return f"{count} seeds, before the first look at {LOOKS[0]}: described, not tested. {over}"
    waiting = found.complete - count
    more = f"; {waiting} more are finished and wait for the next look" if waiting else ""
    return f"The look at {count} seeds{more}. {over}"


_INTRODUCTION = f"""# Does AA help? What the plan has found so far

Made by `python -m scripts.experiments.anchor_aware` from the CSV files beside this page; nothing on it is written by
hand, and a test compares them. [plan.md](plan.md) is older than every run, and each of its amendments older than the
runs it speaks of. `{PLAIN}` is the loss alone,
`{ANCHOR_AWARE}` the loss on anchor-aware proxies, `{MEMORY}` the loss with a memory of the whole training set. MAP is
exact over the full gallery, the mean of both directions, protocol `inductive`; test clips chose nothing, and the runs
that chose options were not scored on them."""

_HOW = """p: Student's t over seeds, to be held against 0.0182 (four looks); p equal: both one-sided tests at 0.01;
power: of that t at 5 % and one look, at the standard deviation seen here."""

_BANK = """`bank` chooses the number of neighbors by validation MAP and may choose none; its figure is then that of
`inductive`."""

_BANK_OF_R5 = """Under R5 an item alone has no proxy: `bank` uses attention without parameters, not what was trained."""

_READINGS = """AA's reading of Equation 7 was chosen on each set by validation MAP. Under R5 the values of a proxy are
all clips of the batch, of all classes, and neighbors of the class act as keys alone. Under R6 the anchor and its
neighbors are keys and values."""

_FROZEN = """Frozen options: nothing was chosen on this set; its options are those that `--frozen` took from another set
of the plan. The planned intervals hold the sampling of seeds and queries; a further table resamples clips as
queries and as gallery items, or the clusters of `--set cluster=COLUMN`."""

_LAST = """## Going on

`python -m scripts.experiments.anchor_aware --data corsmal.h5 -o FOLDER` (further sets by further `--data`, a part by
`--only stage-2`) trains what has no row in FOLDER, and writes this page there. `python -m
scripts.experiments.anchor_aware.fold FOLDER` adds rows that were finished elsewhere to this folder, and writes the page
again; without FOLDER it writes the page alone."""
