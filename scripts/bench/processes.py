"""A training step of two processes (gloo) compared with that of one process, for a narrow and a wide network.

Usage: processes.py FEATURES [--loss aa-triplet] [--batch 1000] [--rounds 3]

FEATURES is written by `aadml convert synthetic:vegas FEATURES`. One process with one thread, one with two, and two with
one thread each train epochs alternately, after one warm-up epoch. The table has milliseconds per step by wall time (of
the slower process) and by processor time (of all processes), as minimum and median, and processor seconds of a refresh.
"""

import argparse
import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from turns import Parts, Training

HIDDEN = {"64": "[64]", "1,024 x 3": "[1024,1024,1024]"}
SIDES = {"one process": (1, 1), "one process of two threads": (1, 2), "two processes": (2, 1)}
CLIPS = 20_234


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", type=Path)
    parser.add_argument("--loss", default="aa-triplet")
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    print(
        "| hidden layers | trained by | by the clock | of processors | refresh, processors |\n| --- | --- |"
        + " ---: |" * 3
    )
    for name, hidden in HIDDEN.items():
        with tempfile.TemporaryDirectory() as runs, ExitStack() as stack:
            words = ["--data", str(given.features.resolve()), "--config", "aadml_vegas", "--loss", given.loss]
            words += ["--epochs", str(given.rounds + 2), "--runs", runs]
            for one in (f"network.hidden={hidden}", f"training.batch={given.batch}", "training.train_map=0"):
                words += ["--set", one]
            sides = {
                side: Training(stack, words, processes=processes, threads=threads)
                for side, (processes, threads) in SIDES.items()
            }
            rounds = [{side: one.epoch() for side, one in sides.items()} for _ in range(given.rounds + 1)]
        for side in SIDES:
            print(row(name, side, [one[side] for one in rounds[1:]], -(-CLIPS // given.batch)), flush=True)
    print(f"\n{given.loss}, batch {given.batch}, {given.rounds} rounds, load {os.getloadavg()[0]:.0f}")


def row(hidden: str, side: str, epochs: list[list[Parts]], steps: int) -> str:
    """Return a row of the table."""
    clock = [1e3 * max(one["wall"] for one in of_all) / steps for of_all in epochs]
    processors = [1e3 * sum(one["steps"] for one in of_all) / steps for of_all in epochs]
    refresh = [sum(one["refresh"] for one in of_all) for of_all in epochs]
    pairs = [f"{min(values):.0f}, {median(values):.0f} ms" for values in (clock, processors)]
    return f"| {hidden} | {side} | " + " | ".join(pairs) + f" | {min(refresh):.2f} s |"


if __name__ == "__main__":
    main()
