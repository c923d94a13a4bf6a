"""Audit leaks, honest encoders and all methods, and write a page with the verdicts.

The encoders are those of tests/protocols/channel_zoo.py. A leak must gain MAP without checks, and its verdict in an
audit must be failed or unknown; without isolation by the kernel, no leak may pass. No honest encoder and no method may
fail. The page is written after each case. An interrupted run continues if its page has the same seed and the same code
of aadml/protocols. Cases that were judged wrongly are repeated.

Usage: PYTHONPATH=. python scripts/soak/audit.py [--seed 0] [-o docs/lab/soak/audit.md]
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import torch
import trainings

from aadml.comparison.clips import Splits
from aadml.data.splitting.splits import to_splits
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.training.session import Session
from aadml.protocols.audit import AuditReport, audit
from aadml.protocols.audit_checks import CHECKS, label_blindness, one_modality_alone, partner_blindness
from aadml.protocols.carried_labels import carried_columns
from aadml.protocols.pipelines import ProtocolPipeline
from aadml.protocols.protocol import Subject
from aadml.runs.prepare import prepare
from aadml.runs.train import fit_model
from tests.protocols import channel_zoo as zoo
from tests.protocols import channels
from tests.protocols.carried_sets import CLEAN, LEAKS, drawn

FOR_LEAKS = (label_blindness, partner_blindness, one_modality_alone)
"""Checks of leaks; further checks could only add failures."""

SECONDS = 900.0
"""Time limit of a pass, for machines under load."""

CLEAN_SETS = 200
GAIN = 0.1
"""Smallest gain of MAP at which an encoder counts as a leak."""


@dataclass
class Part:
    """Part of the page: a table with one row per case.

    Attributes:
        title: heading, with the claim of the part.
        head: names of the columns.
        cases: name of each case.
        row: case -> cells of its row, and whether the audit judged the case correctly.
        rows: rows of the completed cases.
        wrong: cases that were judged wrongly.
    """

    title: str
    head: tuple[str, ...]
    cases: list[str]
    row: Callable[[str], tuple[tuple[str, ...], bool]]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def run(self) -> Iterator[str]:
        """Judge each case without a row, and yield its row."""
        done = {row[0] for row in self.rows}
        for case in (case for case in self.cases if case not in done):
            cells, is_right = self.row(case)
            self.rows.append((case, *cells))
            self.wrong += [] if is_right else [case]
            yield _line(self.rows[-1])

    def resume(self, page: str) -> None:
        """Copy the rows of an earlier page whose cases were judged correctly."""
        section = page.partition(f"## {self.title}\n")[2].partition("\n## ")[0]
        wrong = section.partition("judged wrongly: ")[2].partition(".\n")[0].split(", ")
        rows = [tuple(line[2:-2].split(" | ")) for line in section.splitlines() if line.startswith("| ")]
        self.rows += [row for row in rows if row[0] in self.cases and row[0] not in wrong]

    def __str__(self) -> str:
        counts = f"{len(self.rows)} of {len(self.cases)} cases; judged wrongly: {', '.join(self.wrong) or 'none'}."
        lines = [_line(self.head), _line(("---",) * len(self.head)), *map(_line, self.rows)]
        return f"## {self.title}\n\n{counts}\n\n" + "\n".join(lines) + "\n"


def _line(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def verdict(splits: Splits, name: str, checks: list[object], **order: object) -> tuple[str, str]:
    """Return the verdict on inference on an encoder of the zoo, and the failed checks or open channels."""
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, channels.planted(splits)):
        weights = channels.ridge_weights(splits, Path(folder) / "ridge.npz")
        try:
            return _of(channels.report(name, splits, checks, weights=weights, seconds=SECONDS, **order))
        except InputError as error:
            return "refused", str(error)


def _of(report: AuditReport) -> tuple[str, str]:
    failed = ", ".join(finding.check for finding in report if finding.failed)
    channel = next(finding.evidence for finding in report if finding.check == "channels")
    return report.inference, failed or (channel.partition("data by ")[2][:100] if report.inference == "unknown" else "")


def gain(splits: Splits, name: str) -> float:
    """Return the gain of a leak in MAP over the honest encoder, without checks and isolation."""
    environment, loaded = channels.planted(splits), {"aadml.protocols.audit": None}
    with (
        tempfile.TemporaryDirectory() as folder, chdir(folder), patch.dict(sys.modules, loaded),
        patch.dict(os.environ, environment | {"HOME": folder}),
    ):  # fmt: skip
        honest, leaking = (channels.scores(one, splits.test)[0] for one in ("plain_encoder", name))
    return leaking - honest


def leaks(splits: Splits) -> Part:
    """Return the part on leaks, with their gain and their verdicts with and without isolation by the kernel."""

    def row(name: str) -> tuple[tuple[str, ...], bool]:
        gained = gain(splits, name)
        isolated, evidence = verdict(splits, name, FOR_LEAKS)
        open_, _ = verdict(splits, name, [label_blindness], by_kernel=False)
        is_right = gained > GAIN and not {"passed", "refused"} & {isolated, open_}
        return (f"{gained:+.3f}", isolated, evidence, open_), is_right

    head = ("leak", "gain of MAP unchecked", "inference", "failed checks, or channel", "without the kernel")
    return Part(f"Leaks: each gains more than {GAIN} unchecked, and none passes", head, list(zoo.NAMES), row)


def honest(splits: Splits) -> Part:
    """Return the part on honest encoders."""

    def row(name: str) -> tuple[tuple[str, ...], bool]:
        cells = verdict(splits, name, CHECKS)
        return cells, cells[0] == "passed"

    names = [*zoo.HONEST, *zoo.WITH_TORCH, "compiled"]
    return Part("Honest encoders: none fails", ("encoder", "inference", "failed checks, or channel"), names, row)


def methods(folder: Path) -> Part:
    """Return the part on small trainings of all methods, audited under their own protocol."""
    features = folder / "audited.h5"
    write_features(features, synthetic(classes=3, train=48, valid=12, test=45, dimensions=(6, 8), difficulty=0.2))
    data = trainings.Data(features, trainings.write_data(folder).captions)

    def row(name: str) -> tuple[tuple[str, ...], bool]:
        prepared = prepare(trainings.config(name, data))
        subject = Subject(fit_model(prepared, Session()), prepared.splits)
        report = audit(ProtocolPipeline(subject, subject.encoder.facts.protocol), prepared.splits, CHECKS)
        return _of(report), not report.failed

    head = ("training", "inference", "failed checks, or channel")
    return Part("Methods, small trainings: none fails", head, list(trainings.NAMES), row)


def carried(seed: int) -> Part:
    """Return the part on labels in features: clean sets, at most one of which may be accused, and leaks."""

    def row(name: str) -> tuple[tuple[str, ...], bool]:
        if name == "clean":
            alarms = sum(_is_accused(seed, number) for number in range(CLEAN_SETS))
            return (f"{alarms} of {CLEAN_SETS}",), alarms <= 1
        draws = [drawn(1000 * seed + number) for number in range(10)]
        count = sum(3 in carried_columns(LEAKS[name](values, labels), labels) for values, labels in draws)
        return (f"{count} of {len(draws)}",), count == len(draws)

    title = f"Labels in features: all are found, and at most one of {CLEAN_SETS} clean sets is accused"
    return Part(title, ("labels in", "accused"), ["clean", *LEAKS], row)


def _is_accused(seed: int, number: int) -> bool:
    """Return whether a clean set is accused; half of the sets are in order of class."""
    values, labels = drawn(1000 * seed + number)
    order = labels.argsort() if number // len(CLEAN) % 2 else torch.arange(len(labels))
    return bool(carried_columns(CLEAN[list(CLEAN)[number % len(CLEAN)]](values)[order], labels[order]))


def main() -> int:
    """Write the page; return 1 if a case was judged wrongly."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0, help="seed of the data")
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/lab/soak/audit.md"))
    options = parser.parse_args()
    output = options.output.absolute()
    commit, tree = (_git("describe", "--always", "--dirty"), _git("rev-parse", "HEAD:aadml/protocols"))
    content = synthetic(classes=4, train=80, valid=24, test=44, dimensions=(7, 9), difficulty=0.5, seed=options.seed)
    splits = to_splits(content)
    with tempfile.TemporaryDirectory() as folder:
        parts = [methods(Path(folder)), leaks(splits), honest(splits), carried(options.seed)]
        page = output.read_text() if output.is_file() else ""
        for part in parts if f"--seed {options.seed}`" in page and tree[:12] in page else []:
            part.resume(page)
        for part in parts:
            for line in part.run():
                print(line, flush=True)
                write(output, options.seed, f"{commit} (tree of aadml/protocols: {tree[:12]})", parts)
    channels.remove_traces()
    return int(any(part.wrong for part in parts))


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout.strip()


def write(output: Path, seed: int, commit: str, parts: list[Part]) -> None:
    """Write the page of the completed cases."""
    missing = sum(len(part.cases) - len(part.rows) for part in parts)
    state = f"unfinished: {missing} cases are missing" if missing else "finished"
    head = f"# Soak of the audit\n\nWritten by `scripts/soak/audit.py --seed {seed}` at commit {commit}; {state}.\n"
    output.write_text("\n".join([head, *map(str, parts)]))


if __name__ == "__main__":
    sys.exit(main())
