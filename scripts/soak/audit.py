"""Audit every leak and every honest encoder of tests/protocols/channel_zoo.py with all checks, and write a table.

Usage: PYTHONPATH=. python scripts/soak/audit.py [--seed 0] [--compiled] [--without-kernel] [-o docs/lab/soak/audit.md]
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import torch

from aadml.comparison.clips import Splits
from aadml.data.splitting.splits import to_splits
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.ground.errors import InputError
from aadml.protocols.audit import AuditReport, audit
from aadml.protocols.audit_checks import CHECKS
from aadml.protocols.carried_labels import carried_columns
from aadml.protocols.pipelines import of_function
from tests.protocols import channel_zoo as zoo
from tests.protocols.carried_sets import CLEAN, LEAKS, drawn

TRACES = (zoo.PLACE, Path("/var/tmp/aadml-channel-zoo"), Path("/dev/shm/aadml-channel-zoo"))

CLEAN_SETS = 200


def plant(splits: Splits) -> None:
    """Remove traces of earlier encoders, and put the labels where a leak finds them."""
    for place in TRACES:
        shutil.rmtree(place, ignore_errors=True)
        with suppress(OSError):
            place.unlink()
    test = splits.test
    rows = {m: test.matrix(m).numpy() for m in test.modalities}
    table = {zoo.key(row): int(label) for m in rows for row, label in zip(rows[m], test.labels, strict=True)}
    zoo.PLACE.mkdir()
    (zoo.PLACE / "planted").write_text(json.dumps(table))
    os.environ["AADML_CHANNEL_ZOO"] = json.dumps(table)


def row(name: str, splits: Splits, by_kernel: bool) -> tuple[str, str]:
    """Return the verdict on inference and a row of the table."""
    plant(splits)
    pipeline = of_function(zoo.identity)
    pipeline = replace(pipeline, order=replace(pipeline.order, place=f"channel_zoo:{name}", by_kernel=by_kernel))
    started = time.monotonic()
    try:
        report = AuditReport(audit(pipeline, splits, CHECKS))
    except InputError as error:
        return "refused", f"| {name} | refused | {error} | |"
    failed = ", ".join(finding.check for finding in report if finding.failed)
    channels = next(f.evidence for f in report if f.check == "channels") if report.inference == "unknown" else ""
    seconds = f"{time.monotonic() - started:.0f} s"
    return report.inference, f"| {name} | {report.inference} | {failed or channels[:160]} | {seconds} |"


def carried(seed: int) -> tuple[list[str], str]:
    """Return the sets of clips that were judged wrongly, and a table of CLEAN_SETS clean sets and of all leaks."""
    wrong, lines = [], []
    for number in range(CLEAN_SETS):
        name = list(CLEAN)[number % len(CLEAN)]
        values, labels = drawn(1000 * seed + number)
        order = labels.argsort() if number // len(CLEAN) % 2 else torch.arange(len(labels))
        wrong += [f"{name} {number}"] if carried_columns(CLEAN[name](values)[order], labels[order]) else []
    alarms = len(wrong)
    for name, leak in LEAKS.items():
        draws = [drawn(1000 * seed + number) for number in range(10)]
        count = sum(3 in carried_columns(leak(values, labels), labels) for values, labels in draws)
        wrong += [name] if count < len(draws) else []
        lines.append(f"| {name} | {count} of {len(draws)} |")
    head = f"""
## Labels in features

{CLEAN_SETS} clean sets ({", ".join(CLEAN)}; half of them in order of class): {alarms} false alarms.
Each set has 360 clips of 10 classes and 24 columns, by `tests/protocols/carried_sets.py`.

| labels in | found |
| --- | --- |
"""
    return wrong[1:] if alarms == 1 else wrong, head + "\n".join(lines) + "\n"


def main() -> int:
    """Write the table; return 1 if a leak passed or an honest encoder failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/lab/soak/audit.md"))
    parser.add_argument("--without-kernel", action="store_true", help="simulate a kernel without isolation")
    parser.add_argument("--compiled", action="store_true", help="audit torch.compile too, which compiles in each pass")
    options = parser.parse_args()
    content = synthetic(classes=4, train=80, valid=24, test=44, dimensions=(7, 9), difficulty=0.5, seed=options.seed)
    splits, wrong, lines = to_splits(content), [], []
    honest = (
        [] if options.without_kernel else [*zoo.HONEST, *zoo.WITH_TORCH, *(["compiled"] if options.compiled else [])]
    )
    for name in (*zoo.NAMES, *honest):
        verdict, line = row(name, splits, not options.without_kernel)
        wrong += [name] if (verdict == "passed") != (name in honest) else []
        lines.append(line)
        print(line, flush=True)
    plant(splits)
    for place in TRACES:
        shutil.rmtree(place, ignore_errors=True)
    features_wrong, features = carried(options.seed)
    wrong += features_wrong
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout
    head = f"""# Leaks by channels, and honest encoders

Written by `scripts/soak/audit.py --seed {options.seed}` at commit {commit.strip()}.

{len(zoo.NAMES)} leaks and {len(honest)} honest encoders; judged wrongly: {", ".join(wrong) or "none"}.

| encoder | inference | failed checks, or channel | time |
| --- | --- | --- | --- |
"""
    options.output.write_text(head + "\n".join(lines) + "\n" + features)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
