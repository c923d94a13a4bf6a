"""Clips that lack a modality: masked in training, scaling and scoring; what their rows hold is not looked at."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import aadml
from aadml.comparison.clips import Clips, Splits
from aadml.configuration.config import resolve
from aadml.configuration.from_arguments import assemble
from aadml.data.splitting.splits import to_splits
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.ground.errors import InputError, UntrustedCodeError
from aadml.methods import METHODS
from aadml.methods.inputs import SCALINGS, Inputs, fit_scaling
from aadml.runs.prepare import _check_galleries, clips_to_fit, prepare

WIDTHS = {"audio": 6, "visual": 5, "flow": 7}
SMALL = {"network.hidden": [12], "training.batch": 16, "training.epochs": 2, "training.learning_rate": 0.01}
TAKE_MISSING = {
    "pairs": SMALL,
    "aadml": {**SMALL, "loss": "triplet"},
    "cctl": SMALL,
    "clip": {**SMALL, "method.hidden": [12], "method.dimension": 6},
}
"""Methods that learn from clips that lack a modality, and small settings."""


def drawn(count, seed, *, garbage=0.0, lacking=0.3, widths=WIDTHS):
    """Clips of three classes of which a share lacks flow, and a few sound; missing rows hold what is asked for."""
    generator = np.random.default_rng(seed)
    labels = np.arange(count) % 3
    turns = np.random.default_rng(99)
    shown = 3 * np.eye(4)[labels] + generator.standard_normal((count, 4))
    features = {m: shown @ turns.standard_normal((4, w)) for m, w in widths.items()}
    present = {"flow": generator.random(count) >= lacking, "audio": generator.random(count) >= 0.1}
    present = {m: there for m, there in present.items() if m in widths}
    for m, there in present.items():
        features[m][~there] = garbage * generator.standard_normal((int((~there).sum()), widths[m]))
    names = [f"{seed}-{n}" for n in range(count)]
    return Clips.of(labels, ids=names, present=present, **{m: v.astype("f4") for m, v in features.items()})


def splits(**options):
    return Splits(*(drawn(count, seed, **options) for seed, count in enumerate((60, 21, 30))))


def options_of(name):
    return {k: v for k, v in TAKE_MISSING[name].items() if name != "clip" or not k.startswith("network")}


@pytest.mark.parametrize("name", sorted(TAKE_MISSING))
def test_what_stands_in_missing_rows_changes_nothing(name):
    one, other = (aadml.fit(splits(garbage=g), method=name, settings=options_of(name)) for g in (0.0, 1e3))
    for key, value in one.method.state().items():
        assert torch.equal(value, other.method.state()[key]), key
    assert json.dumps(one.evaluation["directions"]) == json.dumps(other.evaluation["directions"])


@pytest.mark.parametrize("name", sorted(TAKE_MISSING))
def test_a_clip_without_one_modality_still_trains_the_others(name):
    notes = []
    settings = options_of(name)
    everyone = aadml.fit(splits(), method=name, settings=settings, on_note=notes.append)
    assert not any("trains on the" in note for note in notes)
    data = splits()
    fewer = Splits(data.train.select(data.train.whole), data.valid, data.test)
    alone = aadml.fit(fewer, method=name, settings=settings).method.state()
    visual = {key: value for key, value in everyone.method.state().items() if "visual" in key}
    assert not all(torch.equal(value, alone[key]) for key, value in visual.items())


def test_every_method_says_whether_it_takes_missing_modalities():
    from aadml.methods.method import Context
    from aadml.methods.training.settings import Training
    from aadml.model.files import build_method

    found = set()
    for name, build in METHODS.items():
        if build.__module__.startswith("aadml.methods.audio_text") or name == "zero-shot":  # no features, no training
            continue
        config = assemble(method=name, settings={"loss": "triplet"} if name == "aadml" else ())
        context = Context({"audio": 64, "visual": 64}, 12, clips=20)
        if build_method(name, config.arguments(), Training(), context).takes_missing:
            found.add(name)
    assert found == set(TAKE_MISSING)


def pairs_of(valid, **present):
    counts = (40, valid, 10)
    return Splits(*(
        Clips.of(None, ids=range(100 * i, 100 * i + n), audio=torch.rand(n, 5), visual=torch.rand(n, 4),
                 present={m: torch.arange(n) < c for m, c in present.items()} if i == 1 else None)
        for i, n in enumerate(counts)
    ))  # fmt: skip


@pytest.mark.parametrize(
    ("valid", "present", "chosen", "count"),
    [(100, {}, "recall@10", 0), (99, {}, "map", 99), (9, {}, "map", 9), (120, {"visual": 30}, "map", 30),
     (0, {}, "recall@10", 0)],
)  # fmt: skip
def test_the_first_criterion_whose_cutoff_suits_the_validation_clips_is_chosen_and_noted(valid, present, chosen, count):
    notes = []
    model = aadml.fit(pairs_of(valid, **present), config="pairs", settings=SMALL, epochs=1, on_note=notes.append)
    assert model.facts.training.criterion == chosen
    line = f"training.criterion is map instead of recall@10, as there are only {count} validation clips"
    assert [note for note in notes if "instead of" in note] == ([line] if count else [])


@pytest.mark.parametrize(
    ("neighbors", "loss", "advice"),
    [
        (
            {"positives": "own", "k": 39},
            "nt-xent",
            "pass at most 38, or set neighbors.weights to affine or softmax and",
        ),
        ({"positives": "own", "k": 39}, "supcon", "pass at most 38, or set neighbors.weights to affine or softmax and"),
        ({"positives": "either", "k": 40, "candidates": "bank"}, "triplet", "pass at most 38"),
        ({"positives": "agreeing", "k": 39, "weights": "softmax"}, "n-pair", "pass at most 38"),
        ({"positives": "own", "k": 39, "weights": "softmax"}, "supcon", ""),
        ({"positives": "own", "k": 39, "weights": "affine"}, "multi-n-pair", ""),
        ({"positives": "own", "k": 38}, "nt-xent", ""),
        ({"positives": "none", "k": 39}, "nt-xent", ""),
    ],
)
def test_neighbors_that_leave_no_negatives_are_refused(neighbors, loss, advice):
    config = assemble({"loss": loss, **{f"neighbors.{key}": value for key, value in neighbors.items()}}, config="pairs")
    if not advice:
        prepare(config, pairs_of(12))
        return
    with pytest.raises(InputError, match=f"are 40 training clips, so that no clip is a negative; {advice}"):
        prepare(config, pairs_of(12))


@pytest.mark.parametrize("weight", [0, 1])
def test_labels_train_without_negatives(weight):
    data = synthetic(classes=3, train=40, valid=15, test=15, dimensions=(6, 5))
    settings = {**SMALL, "loss.weight": weight, "neighbors.positives": "own", "neighbors.k": 39}
    assert aadml.fit(to_splits(data), method="few-labels", settings=settings, epochs=1)


def test_neighbors_of_two_clips_are_refused():
    data = Splits(pairs_of(12).train[:2], pairs_of(12).valid, pairs_of(12).test)
    with pytest.raises(InputError, match="no clip is a negative; choose data with more clips"):
        prepare(assemble({"neighbors.positives": "own", "neighbors.k": 1}, config="pairs"), data)


@pytest.mark.parametrize(("present", "items"), [({}, 12), ({"visual": 8}, 8)])
def test_a_criterion_of_the_user_beyond_the_validation_clips_is_refused_before_training(present, items):
    steps = []
    with pytest.raises(InputError) as caught:
        aadml.fit(pairs_of(12, **present), config="pairs", settings=SMALL, criterion="recall@13", on_plan=steps.append)
    assert (str(caught.value), steps) == (
        f"training.criterion is recall@13, but there are {items} validation clips; set training.criterion to a metric "
        f"with a cutoff below {items}, or to map",
        [],
    )
    kept = aadml.fit(pairs_of(12), config="pairs", settings=SMALL, criterion="recall@11", epochs=1)
    assert kept.facts.training.criterion == "recall@11"


def test_a_study_continues_a_run_that_has_chosen_its_criterion():

    config, other = (assemble(config="pairs", settings=s) for s in ((), {"training.criterion": "recall@5"}))
    for chosen in ("recall@10", "map"):
        stored = replace(config.training, criterion=chosen)
        assert config.continuing(stored).training == stored
        assert other.continuing(stored) == other


@pytest.mark.parametrize("name", ["cca", "acmr", "dscmr"])
def test_a_method_that_needs_all_modalities_learns_from_the_clips_that_have_them_and_says_so(name):
    widths = {m: WIDTHS[m] for m in ("visual", "flow")}
    notes, data = [], splits(widths=widths)
    small = {"method.dimension": 3} if name == "cca" else {"training.epochs": 1, "training.batch": 20}
    model = aadml.fit(data, method=name, settings=small, on_note=notes.append)
    whole = len(data.train.whole)
    scored = model.evaluation["directions"]
    assert scored["flow-visual"]["queries"] == int(data.test.present["flow"].sum()) < 30
    assert scored["visual-flow"]["gallery"] == scored["flow-visual"]["queries"]
    assert any(f"{name} trains on the {whole} of 60 training clips that have all modalities" in one for one in notes)


def test_a_method_that_needs_all_modalities_refuses_where_no_clip_has_them():
    even = torch.arange(20) % 2 == 0
    clips = Clips.of(
        even.int(), present={"audio": even, "flow": ~even}, audio=torch.rand(20, 2), flow=torch.rand(20, 2)
    )
    with pytest.raises(
        InputError, match=r"no clip has all of audio, flow; choose fewer modalities \(--set modalities=A,B\), or a"
    ):
        aadml.fit(clips, method="cca", settings={"method.dimension": 2})


@pytest.mark.parametrize(("missing", "fits"), [(False, False), (False, True), (True, False)])
def test_only_validation_clips_that_are_looked_at_keep_rows_of_further_texts_without_the_other_modality(missing, fits):
    there = torch.tensor([True, False, True, False])  # the second text of the first clip, and a clip without sound
    rows = torch.arange(8.0).view(4, 2)
    clips = Clips({"audio": rows, "text": rows}, torch.zeros(4).long(), tuple("aabc"), ("x",), present={"audio": there})
    method = SimpleNamespace(takes_missing=missing, fits_validation=fits)
    model = SimpleNamespace(method=method, scaling=SimpleNamespace(clips=lambda given: given))
    train, valid = clips_to_fit(model, Splits(clips, clips, clips))
    assert train["text"][:, 0].tolist() == ([0, 2, 4, 6] if missing else [0, 4])
    assert valid["text"][:, 0].tolist() == ([0, 2, 4, 6] if missing else [0, 4] if fits else [0, 2, 4])


def test_a_method_of_classes_refuses_training_and_validation_clips_without_a_label():
    data = splits()
    train, valid = (torch.where(torch.arange(len(part)) < count, -1, part.labels)
                    for part, count in ((data.train, 2), (data.valid, 1)))  # fmt: skip
    data = Splits(replace(data.train, labels=train), replace(data.valid, labels=valid), data.test)
    with pytest.raises(InputError, match="acmr needs one class per clip, but 3 training or validation clips have no"):
        aadml.fit(data, method="acmr", epochs=1)


@pytest.mark.parametrize("scaling", list(SCALINGS))
def test_scaling_is_fitted_on_the_clips_that_have_a_modality(scaling):
    clips = drawn(40, 3, garbage=50.0)
    fitted = fit_scaling(clips, Inputs(scaling=scaling))
    for modality in WIDTHS:
        own = fit_scaling(clips.keeping([modality]).select(clips.rows(modality)), Inputs(scaling=scaling))
        assert torch.equal(fitted.shift[modality], own.shift[modality])
        assert torch.equal(fitted.scale[modality], own.scale[modality])


def test_a_modality_that_no_training_clip_has_is_refused():
    clips = Clips.of([0, 1], present={"flow": [False, False]}, audio=[[1], [2]], flow=[[0], [0]])
    with pytest.raises(InputError, match="no training clip has flow features; omit the modality"):
        fit_scaling(clips)


def test_the_protocols_take_missing_modalities(tmp_path):
    model = aadml.fit(splits(), method="pairs", settings=SMALL)
    plain = aadml.evaluate(model, data=splits())
    for protocol in ("bank", "bank-expansion", "legacy:batch-attention", "legacy:drop-last", "legacy:running-map"):
        found = aadml.evaluate(model, data=splits(), protocol=protocol)
        assert [len(one.ids) for one in found.directions] == [len(one.ids) for one in plain.directions]


@pytest.mark.parametrize("split", ["valid", "test"])
def test_a_split_without_items_of_a_modality_is_refused_before_training(split):
    data, steps = splits(), []
    bare = replace(data[split], present={"flow": torch.zeros(len(data[split]), dtype=torch.bool)})
    with pytest.raises(InputError, match=rf"no clip of the split '{split}' has flow, .* \(--set modalities=A,B\)"):
        aadml.fit(data.having(split, bare), config="pairs", settings=SMALL, on_plan=steps.append)
    assert not steps


@pytest.mark.parametrize("split", ["train", "valid"])
def test_only_training_clips_are_trained_on(split):
    bare = replace(splits()[split], present={"flow": torch.zeros(len(splits()[split]), dtype=torch.bool)})
    with pytest.raises(InputError, match=f"nothing to {'train on' if split == 'train' else 'rank'}; add clips"):
        _check_galleries(splits().having(split, bare))


def judged(path, *prefixes):
    """Twenty complete clips a split, named by its initial, and settings with judgments for some of the splits."""
    lines = [f"{letter}{n},{letter}{n + 4},1" for letter in prefixes for n in range(8)]
    path.write_text("\n".join(["query,item,grade", *lines]))
    drawn_clips = [drawn(20, seed, lacking=0, widths={"audio": 6, "visual": 5}) for seed in range(3)]
    parts = [
        replace(clips, ids=tuple(f"{letter}{n}" for n in range(20)), present={})
        for clips, letter in zip(drawn_clips, "abc", strict=True)
    ]
    return Splits(*parts), {"relevance": path, "settings": {**SMALL, "training.train_map": 1}}


def test_judgments_without_training_clips_omit_only_their_map(tmp_path):
    data, options = judged(tmp_path / "judged.csv", "b", "c")
    model = aadml.fit(data, loss="triplet", runs=tmp_path / "runs", **options)
    assert all("train loss" in record and "train map_mean" not in record for record in model.records())
    assert model.record.train_map is None


@pytest.mark.parametrize(("letters", "split"), [("c", "valid"), ("b", "test")])
def test_judgments_must_concern_validation_and_test_clips(letters, split, tmp_path):
    data, options = judged(tmp_path / "judged.csv", *letters)
    with pytest.raises(InputError, match=f"no clip of the split '{split}' has a relevant item"):
        aadml.fit(data, loss="triplet", **options)


def test_judgments_must_concern_clips_with_both_modalities_of_a_direction(tmp_path):
    data, options = judged(tmp_path / "judged.csv", "b", "c")
    present = {"visual": torch.arange(20) >= 12}  # only clips without pictures are judged
    data = data.having("test", replace(data.test, present=present))
    with pytest.raises(InputError, match="the split 'test' has a relevant item in the direction audio-visual"):
        aadml.fit(data, loss="triplet", on_plan=lambda *_: pytest.fail("training began"), **options)


def test_a_method_without_epochs_needs_no_judgments_of_validation_clips(tmp_path):
    data, options = judged(tmp_path / "judged.csv", "c")
    assert aadml.fit(data, method="random", relevance=options["relevance"]).evaluation["map_mean"] > 0


def test_a_criterion_that_only_a_file_names_is_refused_before_training():
    config = resolve({"data": "absent.h5"})  # as read from a run, whose metrics are not checked
    config = replace(config, training=replace(config.training, criterion="planted:metric"))
    with pytest.raises(UntrustedCodeError, match="names metric planted:metric"):
        prepare(config)
