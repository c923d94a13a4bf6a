"""Calibration of search probabilities: test clips query an index that was calibrated on validation clips.

Usage: scripts/soak/calibration.py [--seeds N] [--validation SHARE] FEATURES... prints a Markdown row for every data set
and model, over all kinds of query and all seeds (of the training, and of the validation clips if the data have none).
The row contains how often the expected calibration error of best hits is below the 95 % quantile of perfectly
calibrated scorers of the same size, whether the 95 % interval of the precision at the threshold covers 0.9, and the
AUROC of clips whose class was removed from the index. The control is the same share after validation and test clips of
the model were mixed, so that both are drawn alike; a remaining error is then due to fitting a curve on a limited number
of clips. `--each` prints a row for every kind of query, without the control. `--unseen` prints the AUROC of test clips
of classes without training clips, against test clips of the other classes.
"""

import argparse
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

import aadml
from aadml.data.reading import open_data
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.search import Index
from aadml.search.calibration import auroc, band, calibration_error, wilson

SETTINGS = {"network.hidden": [128], "training.batch": 100}
HEAD = (
    "| data | model | clips: validation, test | questions x seeds | inside the noise | if mixed | calibration error "
    "| of which noise | threshold 0.9: covered, above, below | AUROC absent class |\n" + 10 * "|---" + "|"
)


def best_of(index, asked, to, numbers, *, absent=False):
    """Query the index by its items; return the best probability of each query (q,), and whether that hit is relevant.

    If items have classes, the item itself is excluded, and with `absent` all items of its class. If items have no
    classes, the item itself is the only relevant item, and is excluded with `absent`.
    """
    labels = dict(index._search.database.execute("SELECT number, label FROM item"))
    own, gallery = index._state.galleries[to]
    names = np.asarray([labels[n] for n in own.tolist()], dtype=object)
    curve = index._state.calibrations[asked, to]
    paired = curve.relevance == "pair"
    chances, fits = [], []
    for number in numbers:
        question = torch.cat(
            [index._state.galleries[m][1].vectors[index._state.galleries[m][0] == number] for m in asked]
        )
        fitting = own == number if paired else names == labels[number]
        kept = ~fitting if absent else np.full(len(own), True) if paired else own != number
        rows = np.flatnonzero(kept)
        places, scores = gallery.only(rows).best(question, 1)
        chances.append(float(curve.probability(scores, len(rows))[0]))
        fits.append(fitting[rows[places[0]]])
    return np.asarray(chances), np.asarray(fits), curve


def with_validation(data, place, share, seed):
    """Write the features with validation clips; if there are none, training clips are drawn as training would."""
    content, splits = open_data(data), aadml.read(data, validation=share, seed=seed)
    part = {name: split for split in ("train", "valid", "test") for name in splits[split].ids}
    rows = np.asarray([n for n, name in enumerate(content.ids) if name in part])
    content = content.select(rows)
    write_features(place, replace(content, splits=tuple(part[name] for name in content.ids)))
    return place


def mixed(data, place, seed):
    """Write the features with validation and test clips drawn again from both, with unchanged numbers."""
    content = open_data(data)
    rows = np.concatenate([content.rows("valid"), content.rows("test")])
    splits = np.asarray(content.splits, dtype=object)
    splits[rows] = splits[np.random.default_rng(seed).permutation(rows)]
    write_features(place, replace(content, splits=tuple(splits)))
    return place


@dataclass(frozen=True)
class Measured:
    """Results of one kind of query of one index by test clips."""

    question: str
    valid: int
    test: int
    error: float
    noise: float
    over: tuple[float, float, float, float] | None
    absent: float


def measured(index, asked, to):
    """Query by all test clips."""
    test = [row[0] for row in index._search.database.execute("SELECT number FROM item WHERE split = 'test'")]
    chances, fits, one = best_of(index, asked, to, test)
    absent, _, _ = best_of(index, asked, to, test, absent=True)
    over = None
    if one.threshold is not None and (reach := chances >= one.threshold).any():
        share = float(fits[reach].mean())
        over = (share, *wilson(share, int(reach.sum())), float(reach.mean()))
    question = f"{'+'.join(asked)} to {to} ({one.curve.kind})"
    error, noise = calibration_error(chances, fits), band(chances)
    return Measured(question, one.clips, len(test), error, noise, over, auroc(chances, absent))


def measure(data, share, seed, **options):
    """Train, index and query in every way: with the original clips, and with validation and test clips mixed."""
    with tempfile.TemporaryDirectory() as folder:
        place = with_validation(data, Path(folder) / f"{Path(data).stem}.h5", share, seed)
        settings = {} if options.get("config") == "pairs" else SETTINGS
        model = aadml.fit(place, epochs=20, settings=settings, seed=seed, **options)
        model = aadml.load(model.save(Path(folder) / "model"))
        for name, one in (("index", place), ("control", mixed(place, Path(folder) / "mixed.h5", seed))):
            with Index.build(one, Path(folder) / name, model=model) as index:
                yield [measured(index, asked, to) for asked, to in index._state.calibrations]


def each(data, model, found, _):
    """Print a row for every kind of query."""
    for one in found:
        words = "-" if one.over is None else "{:.2f} ({:.2f} to {:.2f}), reached by {:.0%}".format(*one.over)
        print(f"| {data} | {model} | {one.question} | {one.error:.3f} | {one.noise:.3f} | {words} | {one.absent:.3f} |")


def summary(data, model, found, control, precision=0.9):
    """Print one row."""
    inside, of_mixed = (f"{np.mean([one.error <= one.noise for one in each]):.0%}" for each in (found, control))
    over = [one.over for one in found if one.over is not None]
    above, below = sum(one[1] > precision for one in over), sum(one[2] < precision for one in over)
    print(
        f"| {data} | {model} | {found[0].valid}, {found[0].test} | {len(found)} | {inside} | {of_mixed} "
        f"| {np.mean([one.error for one in found]):.3f} | {np.mean([one.noise for one in found]):.3f} "
        f"| {len(over) - above - below}, {above}, {below} | {np.mean([one.absent for one in found]):.3f} |",
        flush=True,
    )


def of_classes(content, classes):
    """Return only the clips of some classes, with new class indices."""
    kept = content.select(np.flatnonzero(np.isin(content.labels, classes)))
    names = tuple(content.class_names[label] for label in classes)
    return replace(kept, labels=np.searchsorted(classes, kept.labels), class_names=names)


def measure_unseen(data, loss):
    """Train without a third of the classes, index the rest, and print the AUROC of queries of unknown classes."""
    content = open_data(data)
    order = np.random.default_rng(0).permutation(len(content.class_names))
    unseen, known = np.split(order, [round(len(order) / 3)])
    own = of_classes(content, np.sort(known))
    asking = {True: own, False: of_classes(content, np.sort(unseen))}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "known.h5"
        write_features(place, own)
        model = aadml.fit(place, epochs=20, settings=SETTINGS, seed=0, loss=loss)
        model = aadml.load(model.save(Path(folder) / "model"))
        with Index.build(place, Path(folder) / "index", model=model) as index:
            numbers = dict(index._search.database.execute("SELECT id, number FROM item"))
            galleries = index._state.galleries
            for asked in galleries:
                for to, (items, gallery) in galleries.items():
                    best = {}
                    for is_known, clips in asking.items():
                        rows = clips.rows("test")
                        features = torch.from_numpy(np.array(clips.features[asked][rows]))
                        own = [items == numbers.get(clips.ids[row], -1) for row in rows]
                        questions = index.encoder.embed(features, asked)[:, None]
                        found = gallery.best_of_each(questions, 1, own.__getitem__)
                        best[is_known] = np.concatenate([scores for _, scores in found])
                    told, counts = auroc(best[True], best[False]), f"{len(best[True])}, {len(best[False])}"
                    print(f"| {Path(data).stem} | {loss} | {asked} to {to} | {counts} | {told:.3f} |", flush=True)


def main():
    """Run the requested measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", nargs="+")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--validation", type=float, default=0.1)
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--unseen", action="store_true")
    given = parser.parse_args()
    if given.unseen:
        print("| data | loss | question | clips of known, of unseen classes | AUROC |\n|---|---|---|---|---|")
        for data in given.features:
            for loss in ("triplet", "aa-triplet"):
                measure_unseen(data, loss)
        return
    print(HEAD)
    for data in given.features:
        labelled = bool(open_data(data).class_names)
        for options in ({"config": "recommended"}, {"loss": "aa-triplet"}) if labelled else ({"config": "pairs"},):
            rounds = [measure(data, given.validation, seed, **options) for seed in range(given.seeds)]
            found, control = ([one for each in every for one in each] for every in zip(*rounds, strict=True))
            (each if given.each else summary)(Path(data).stem, next(iter(options.values())), found, control)


if __name__ == "__main__":
    main()
