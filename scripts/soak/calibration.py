"""Are the probabilities of a search what they say? Test clips ask an index that was calibrated on validation clips.

Usage: scripts/soak/calibration.py FEATURES... prints a Markdown row for every kind of question: the expected
calibration error of best hits beside what 95 % of perfectly calibrated scorers of that size stay below, the precision
at the threshold with its 95 % interval, and the AUROC of clips whose class was taken out of the index. With --unseen:
of test clips of classes that the model has not trained on either, against test clips of those it has.
"""

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

import aadml
from aadml.data import open_data
from aadml.search import Index
from aadml.search.calibration import auroc, band, calibration_error, wilson
from feature_extraction.feature_file import write_features

SETTINGS = {"network.hidden": [128], "training.batch": 100}
HEAD = (
    "| data | model | question | clips | calibration error | of which noise | threshold 0.9: fits (95 %) | reach it "
    "| AUROC absent class |\n|---|---|---|---|---|---|---|---|---|"
)


def best_of(index, asked, to, numbers, keep):
    """Let items ask the rest of the index; best probability of each (q,), and whether that hit fits."""
    labels = dict(index._database.execute("SELECT number, label FROM item"))
    own, gallery = index._state.galleries[to]
    names = np.asarray([labels[n] for n in own.tolist()], dtype=object)
    curve = index._state.calibrations[asked, to]
    chances, fits = [], []
    for number in numbers:
        question = torch.cat(
            [index._state.galleries[m][1].vectors[index._state.galleries[m][0] == number] for m in asked]
        )
        rows = np.flatnonzero(keep(own, names, number, labels[number]))
        places, scores = gallery.best(question, 1, rows)
        chances.append(float(curve.probability(scores)[0]))
        fits.append(names[places[0]] == labels[number])
    return np.asarray(chances), np.asarray(fits), curve


def others(own, names, number, label):
    return own != number


def other_classes(own, names, number, label):
    return names != label


def with_validation(data, place):
    """Write the features with the validation clips that a training would draw from train, where there are none."""
    content, splits = open_data(data), aadml.read(data)
    part = {name: split for split in ("train", "valid", "test") for name in splits[split].ids}
    rows = np.asarray([n for n, name in enumerate(content.ids) if name in part])
    content = content.select(rows)
    write_features(place, replace(content, splits=tuple(part[name] for name in content.ids)))
    return place


def measure(data, **options):
    """Train, index, ask; print a row for each kind of question."""
    with tempfile.TemporaryDirectory() as folder:
        data = with_validation(data, Path(folder) / f"{Path(data).stem}.h5")
        model = aadml.fit(data, epochs=20, settings=SETTINGS, seed=0, **options)
        model = aadml.load(model.save(Path(folder) / "model"))
        with Index.build(data, Path(folder) / "index", model=model) as index:
            test = [row[0] for row in index._database.execute("SELECT number FROM item WHERE split = 'test'")]
            for asked, to in index._state.calibrations:
                chances, fits, curve = best_of(index, asked, to, test, others)
                absent, _, _ = best_of(index, asked, to, test, other_classes)
                words = ["-", "-"]
                if curve.threshold is not None:
                    over = chances >= curve.threshold
                    low, high = wilson(float(fits[over].mean()), int(over.sum())) if over.any() else (0.0, 1.0)
                    words = [
                        f"{fits[over].mean():.2f} ({low:.2f} to {high:.2f})" if over.any() else "-",
                        f"{over.mean():.0%}",
                    ]
                question = f"{'+'.join(asked)} to {to} ({curve.curve.kind})"
                print(
                    f"| {Path(data).stem} | {next(iter(options.values()))} | {question} | {len(test)} "
                    f"| {calibration_error(chances, fits):.3f} | {band(chances):.3f} | {words[0]} | {words[1]} "
                    f"| {auroc(chances, absent):.3f} |",
                    flush=True,
                )


def of_classes(content, classes):
    """Keep the clips of some classes, numbered anew."""
    kept = content.select(np.flatnonzero(np.isin(content.labels, classes)))
    names = tuple(content.class_names[label] for label in classes)
    return replace(kept, labels=np.searchsorted(classes, kept.labels), class_names=names)


def measure_unseen(data, loss):
    """Train without a third of the classes, index the others; print how well a question of no known class is told."""
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
            numbers = dict(index._database.execute("SELECT id, number FROM item"))
            galleries = index._state.galleries
            for asked in galleries:
                for to, (items, gallery) in galleries.items():
                    best = {}
                    for is_known, clips in asking.items():
                        rows = clips.rows("test")
                        features = torch.from_numpy(np.array(clips.features[asked][rows]))
                        others = [np.flatnonzero(items != numbers.get(clips.ids[row], -1)) for row in rows]
                        questions = index.encoder.embed(features, asked)[:, None]
                        found = [gallery.best(one, 1, kept)[1] for one, kept in zip(questions, others, strict=True)]
                        best[is_known] = np.concatenate(found)
                    told, counts = auroc(best[True], best[False]), f"{len(best[True])}, {len(best[False])}"
                    print(f"| {Path(data).stem} | {loss} | {asked} to {to} | {counts} | {told:.3f} |", flush=True)


if __name__ == "__main__":
    if "--unseen" in sys.argv:
        print("| data | loss | question | clips of known, of unseen classes | AUROC |\n|---|---|---|---|---|")
        for place in (one for one in sys.argv[1:] if one != "--unseen"):
            for loss in ("triplet", "aa-triplet"):
                measure_unseen(place, loss)
        sys.exit()
    print(HEAD)
    for place in sys.argv[1:]:
        measure(place, config="recommended")
        measure(place, loss="aa-triplet")
