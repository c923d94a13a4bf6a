"""Time and memory of every method at the size of VEGAS, on synthetic features of the same shape.

Usage: python scripts/bench/methods.py [--methods cca dscmr] [--items 22482] [--epochs 3] [--limit 900] [--json FILE]

Every method is fitted with its preset, but with --epochs instead of the published schedule, in a separate child process
of at most --limit seconds. A closed-form method is timed completely. Of a trained method, the table has the median
seconds of an epoch without validation (a tenth of --items). Memory is the peak resident set during fitting, above that
of the loaded data. The load of the machine before and after is printed below the table.
"""

import argparse
import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import torch
from memory import forget_peak, peak_bytes, resident_bytes

from aadml.configuration.config import resolve
from aadml.configuration.files import open_config
from aadml.configuration.overrides import with_setting
from aadml.data.splitting.splits import to_splits
from aadml.data.synthetic import synthetic
from aadml.methods import METHODS
from aadml.methods.training.learned_method import LearnedMethod
from aadml.methods.training.session import Session
from aadml.reports.tables import Table, markdown
from aadml.runs.prepare import untrained_model

VEGAS = 22_482
# these methods embed sound and captions; their cost is that of networks on media, not on vectors
NAMES = [name for name, build in METHODS.items() if not build.__module__.startswith("aadml.methods.audio_text")]


class Clock(Session):
    """Session that records the processor time at the end of every epoch."""

    def __init__(self):
        super().__init__()
        self.processor = []

    def plan(self, epochs, done):
        """Start the clock."""
        self.processor.append(time.process_time())

    def log(self, record):
        """Record the end of an epoch."""
        super().log(record)
        self.processor.append(time.process_time())

    def epoch(self):
        """Median seconds of an epoch: wall time, and processor time including validation."""
        if not self.history:
            return None, None
        spent = [after - before for before, after in pairwise(self.processor)]
        return statistics.median(record["seconds"] for record in self.history), statistics.median(spent)


def config_of(name, epochs):
    values = open_config(name.replace("-", "_")).values
    published = resolve(values)["training"]["epochs"]
    return resolve(with_setting(values, "training.epochs", epochs)), published


def measured(name, items, epochs):
    """Fit one method in this process and return its time and memory."""
    config, published = config_of(name, epochs)
    data = to_splits(synthetic(classes=10, train=items, valid=max(items // 10, 20), test=20, seed=0))
    encoder = untrained_model(config, data, torch.device("cpu"))
    train, valid = encoder.scaling.clips(data.train), encoder.scaling.clips(data.valid)
    session, nobody = Clock(), valid.select(torch.arange(0))
    gc.collect()
    forget_peak()
    before, started, processor = resident_bytes(), time.perf_counter(), time.process_time()
    encoder.method.fit(train, valid if isinstance(encoder.method, LearnedMethod) else nobody, session)
    seconds, spent = time.perf_counter() - started, time.process_time() - processor
    peak = peak_bytes()
    epoch, epoch_spent = session.epoch()
    return {
        "method": name,
        "parameters": encoder.method.parameters_count(),
        "fit_seconds": seconds,
        "fit_processor_seconds": spent,
        "epoch_seconds": epoch,
        "epoch_processor_seconds": epoch_spent,
        "published_epochs": published if epoch is not None else None,
        "memory_mib": (peak - before) / 2**20,
    }


def in_child(name, arguments):
    """Run `measured` in a separate process; a failure is also returned as a result."""
    command = [sys.executable, __file__, "--child", name, "--items", str(arguments.items)]
    command += ["--epochs", str(arguments.epochs)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=arguments.limit, check=False)
    except subprocess.TimeoutExpired:
        return {"method": name, "failure": f"not done after {arguments.limit} s"}
    if done.returncode:
        return {
            "method": name,
            "failure": (done.stderr.strip().splitlines() or [f"ended with exit code {done.returncode}"])[-1],
        }
    return json.loads(done.stdout.splitlines()[-1])


def table_of(results, arguments, loads):
    rows, notes = [], []
    for result in results:
        if "failure" in result:
            rows.append((result["method"], *[None] * 7))
            notes.append(f"{result['method']} failed: {result['failure']}")
            continue
        epoch, published = result["epoch_seconds"], result["published_epochs"]
        closed, hours = (result["fit_seconds"], None) if epoch is None else (None, epoch * published / 3600)
        memory, parameters = round(result["memory_mib"]), result["parameters"]
        spent = result["fit_processor_seconds" if epoch is None else "epoch_processor_seconds"]
        rows.append((result["method"], parameters, closed, epoch, spent, published, hours, memory))
    notes.append("Hours are seconds an epoch times the epochs of the shipped config, without validation.")
    notes.append("Processor seconds are of the fit or of an epoch with its validation: others' load leaves them alone.")
    notes.append(
        f"{os.cpu_count()} cores, {torch.get_num_threads()} threads of torch, {platform.machine()}; load "
        f"{loads[0]:.1f} before and {loads[1]:.1f} after: above 1 others worked beside the measurement."
    )
    columns = ("method", "parameters", "seconds to fit", "seconds an epoch", "processor seconds")
    columns += ("epochs", "hours for all", "memory (MiB)")
    caption = f"{arguments.items} training clips of the shape of VEGAS (128 and 1024 dimensions, 10 classes), one seed."
    return Table(columns, tuple(rows), caption, tuple(notes), digits=2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", choices=NAMES, default=NAMES, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--items", type=int, default=VEGAS)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--limit", type=float, default=900)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", choices=NAMES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(measured(arguments.child, arguments.items, arguments.epochs)))
        return
    before, results = os.getloadavg()[0], []
    for name in arguments.methods:
        results.append(in_child(name, arguments))
        print(json.dumps(results[-1]), file=sys.stderr)
    print(markdown(table_of(results, arguments, (before, os.getloadavg()[0]))))
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
