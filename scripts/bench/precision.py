"""Does training in bfloat16 cost MAP? The same seeds in both precisions, scored on the test clips.

Prints a line a run as it ends, then the differences of each loss. One thread; the paper's network and batch 200.
Usage: precision.py FEATURES [--losses triplet aa-triplet] [--seeds 5] [--epochs 30]
"""

import argparse
from statistics import mean, stdev

import torch

from aadml.configuration.assembly import assemble
from aadml.methods.session import Session
from aadml.runs.prepare import prepare
from aadml.runs.scoring import TEST, score_model
from aadml.runs.train import fit_model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features")
    parser.add_argument("--losses", nargs="+", default=["triplet", "aa-triplet"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=30)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for loss in arguments.losses:
        differences = []
        for seed in range(arguments.seeds):
            exact, rounded = (
                scored(arguments.features, loss, seed, arguments.epochs, precision)
                for precision in ("float32", "bfloat16")
            )
            differences.append(rounded - exact)
            print(f"{loss} seed {seed}: float32 {exact:.4f}, bfloat16 {rounded:.4f}", flush=True)
        spread = stdev(differences) if len(differences) > 1 else float("nan")
        print(f"{loss}: bfloat16 minus float32 {mean(differences):+.5f}, deviation {spread:.5f}")


def scored(features: str, loss: str, seed: int, epochs: int, precision: str) -> float:
    """Train one run and give its mean MAP on the test clips."""
    settings = {"training.precision": precision, "training.train_map": 0}
    config = assemble(config="aadml_ave", data=features, loss=loss, seed=seed, epochs=epochs, settings=settings)
    session, prepared = Session(), prepare(config)
    model = fit_model(prepared, session)
    return score_model(model, config, prepared.splits, session, session.seconds, TEST).map_mean


if __name__ == "__main__":
    main()
