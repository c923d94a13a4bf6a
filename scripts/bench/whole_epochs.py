"""Processor seconds of whole epochs at the size of AVE: refresh, steps, validation; one thread, minimum and median.

To compare two checkouts, run the script alternately with PYTHONPATH at each; older checkouts are supported.
Usage: whole_epochs.py [--loss triplet] [--epochs 12] [--set key=value]...
"""

import argparse
import os
import time
from itertools import pairwise
from pathlib import Path
from statistics import median

import torch
import torch._dynamo

import aadml
from aadml.configuration.from_arguments import assemble
from aadml.methods.training.session import Callbacks, Session
from aadml.runs.train import fit_model

try:
    from aadml.runs.prepare import prepare
except ImportError:  # an older checkout
    from aadml.runs.train import prepare


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loss", default="triplet")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--set", action="append", default=[], dest="settings")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    config = assemble(
        config="aadml_ave", data="synthetic:ave", loss=arguments.loss, settings=arguments.settings,
        **{"training.epochs": arguments.epochs},
    )  # fmt: skip
    ends: list[float] = []
    session = Session(Callbacks(on_epoch=lambda record: ends.append(time.process_time())))
    fit_model(prepare(config), session)
    ends = ends[1:]  # torch.optim imports the compiler in the first epoch
    seconds = [after - before for before, after in pairwise(ends)]
    print(f"{arguments.loss} {' '.join(arguments.settings)}: {min(seconds):.3f} {median(seconds):.3f} s an epoch; "
          f"load {os.getloadavg()[0]:.1f}; {Path(aadml.__file__).parent}")  # fmt: skip


if __name__ == "__main__":
    main()
