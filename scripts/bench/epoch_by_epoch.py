"""Run a training command of aadml: one epoch per line of the input, its processor seconds as JSON.

Two methods of the training loop, which every edition has, are wrapped. PYTHONPATH selects the edition.
"""

import json
import os
import sys
import time
from types import SimpleNamespace

from aadml.cli import main

try:
    from aadml.methods.training import loop as training
except ImportError:  # the second edition
    from aadml.methods import training


def measured() -> None:
    """Make the loop wait for its turn before each epoch, and print the time of an epoch when the next one starts."""
    loop, marks = training._Loop, SimpleNamespace(begun=0.0, steps=0.0, stepped=0.0, wall=0.0)
    run_epoch, take_steps = loop._run_epoch, loop._steps
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")  # only the first of several processes has a stdout

    def turn() -> None:
        if marks.begun:
            rest = time.process_time() - marks.stepped
            parts = {"refresh": marks.steps - marks.begun, "steps": marks.stepped - marks.steps, "rest": rest}
            print(json.dumps(parts | {"wall": marks.wall}), file=answers, flush=True)
        if not sys.stdin.readline():
            raise SystemExit
        marks.begun = time.process_time()

    def waiting_epoch(self, *given):
        turn()
        return run_epoch(self, *given)

    def marked_steps(self, *given):
        marks.steps, clock = time.process_time(), time.perf_counter()
        taken = take_steps(self, *given)
        marks.stepped, marks.wall = time.process_time(), time.perf_counter() - clock
        return taken

    loop._run_epoch, loop._steps = waiting_epoch, marked_steps


if __name__ == "__main__":
    measured()
    main()
