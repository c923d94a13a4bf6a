"""Recall@10 of `pairs` on tiktok_pairs: settings chosen on validation pairs, then five seeds scored once on test pairs.

Usage: python -m scripts.experiments.tiktok_pairs tiktok.h5 OUTPUT.csv

Random settings, drawn with seed 0, are trained on two seeds with the validation pairs in place of the test pairs. The
setting with the best mean recall@10 is trained again on five other seeds, which are scored on the test pairs. Every
trial is a line of the CSV file, in the order of the draw, followed by the five lines of the result.
"""

import csv
import io
import itertools
import sys
from dataclasses import replace
from statistics import fmean, stdev

import numpy as np

import aadml
from aadml.feature_extraction.ground.atomic import write_text
from aadml.runs.environment import git_commit

TRIALS, TRIAL_SEEDS, SEEDS = 24, (0, 1), range(100, 105)
SPACE = {
    "network.hidden": ([256, 256], [512], [512, 512], [1024], [1024, 1024]),
    "method.dimension": (64, 128, 256),
    "network.dropout": (0.1, 0.3, 0.5),
    "network.input_noise": (0.0, 0.3),
    "training.learning_rate": (3e-4, 1e-3),
    "training.batch": (200, 500, 1000),
    "training.weight_decay": (0.0, 1e-4),
    "loss.temperature": (0.05, 0.1, 0.2),
}
FIXED = {"training.epochs": 80, "training.patience": 15, "training.criterion": "recall@10"}


def trials():
    """Return TRIALS different settings, drawn with seed 0."""
    grid = list(itertools.product(*SPACE.values()))
    places = np.random.default_rng(0).choice(len(grid), TRIALS, replace=False)
    return [dict(zip(SPACE, grid[place], strict=True)) for place in places]


def recall(data, settings, seed):
    """Train once; return recall@10, the mean of both directions, on the test pairs of the data."""
    model = aadml.fit(data, method="pairs", settings={**FIXED, **settings}, seed=seed)
    return aadml.evaluate(model, data=data, metrics="recall@10")["recall@10"]


def main(place, output):
    """Run the trials and the five seeds, and write the CSV file."""
    splits = aadml.read(place)
    blind = replace(splits, test=splits.valid)
    drawn = trials()
    scores = [[recall(blind, settings, seed) for seed in TRIAL_SEEDS] for settings in drawn]
    best = max(range(TRIALS), key=lambda number: fmean(scores[number]))
    final = [recall(splits, drawn[best], seed) for seed in SEEDS]
    rows = []
    for number, values in enumerate(scores):
        rows += [("valid", number, *line) for line in zip(TRIAL_SEEDS, values, strict=True)]
    rows += [("test", best, *line) for line in zip(SEEDS, final, strict=True)]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["scored", "trial", "seed", *SPACE, "recall@10"])
    writer.writerows(
        [scored, trial, seed, *drawn[trial].values(), f"{value:.4f}"] for scored, trial, seed, value in rows
    )
    write_text(output, stream.getvalue())
    print(
        f"trial {best} of {TRIALS}: validation {fmean(scores[best]):.4f}, test {fmean(final):.4f} over {len(final)} "
        f"seeds (standard deviation {stdev(final):.4f}), commit {git_commit()}"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
