"""Verdicts on a training: each on a planted case, none on a healthy one; told wherever the number is told."""

import json
from dataclasses import replace

import pytest
import torch

import aadml
from aadml.data.splitting.splits import to_splits
from aadml.data.synthetic import synthetic
from aadml.runs.result_warnings import result_warnings
from aadml.runs.session import read_records

SMALL = {"network.hidden": [16], "training.batch": 20, "training.learning_rate": 0.01}


@pytest.fixture(scope="module")
def splits():
    return to_splits(synthetic(classes=3, train=60, valid=30, test=60, dimensions=(6, 8), difficulty=0.2))


@pytest.fixture(scope="module")
def healthy(splits):
    return aadml.fit(splits, loss="triplet", epochs=3, settings=SMALL)


def told(model):
    return model.evaluation["verdicts"]


def test_a_healthy_training_gets_none(healthy):
    assert told(healthy) == []


def test_a_learning_rate_of_ten_runs_away(splits):
    model = aadml.fit(splits, loss="triplet", epochs=3, settings=SMALL | {"training.learning_rate": 10.0})
    assert any(one.startswith("the loss diverged, from") and "learning_rate" in one for one in told(model))


def test_a_constant_view_is_named_under_a_closed_form(splits):
    parts = (splits.train, splits.valid, splits.test)
    parts = [replace(p, features={"audio": torch.ones_like(p["audio"]), "visual": p["visual"]}) for p in parts]
    constant = replace(splits, train=parts[0], valid=parts[1], test=parts[2])
    said = []
    model = aadml.fit(constant, method="cca", settings={"method.dimension": 3}, on_note=said.append)
    wanted = "all 60 training clips have the same audio features: nothing can be learned"
    assert wanted in told(model)
    assert f"warning: {wanted}" in said
    assert any("within noise of chance" in one for one in told(model))


def test_shuffled_labels_are_within_noise_of_chance(splits):
    order = torch.randperm(60, generator=torch.Generator().manual_seed(0))
    shuffled = replace(splits, train=replace(splits.train, labels=splits.train.labels[order]))
    model = aadml.fit(shuffled, method="random")
    assert [one.split(":")[0] for one in told(model)] == ["audio-visual", "visual-audio"]
    assert all("is within noise of chance" in one for one in told(model))


def test_opposite_vectors_are_below_chance(healthy, splits):
    test, empty = splits.test, splits.train.select(torch.arange(0))
    codes = torch.nn.functional.one_hot(test.labels).float()
    for visual, place in ((-codes, "below chance (0."), (torch.ones_like(codes), "within noise of chance (0.")):
        evaluation = aadml.evaluate(embeddings=test.embedded({"audio": codes, "visual": visual}))
        found = result_warnings(evaluation, empty, [], healthy.facts)
        assert [place in one for one in found] == [True, True], found


@pytest.mark.parametrize(("odd", "named"), [(None, True), (0, False), (31, False), (59, False)])
def test_a_view_is_constant_only_where_all_its_blocks_are(splits, healthy, monkeypatch, odd, named):
    monkeypatch.setattr("aadml.runs.result_warnings.BLOCK", 25)
    view = torch.ones_like(splits.train["audio"])
    if odd is not None:
        view[odd, 2] = 2.0
    train = replace(splits.train, features={"audio": view, "visual": splits.train["visual"]})
    found = result_warnings(aadml.evaluate(healthy, data=splits), train, [], healthy.facts)
    assert any("the same audio features" in one for one in found) == named


def test_a_single_clip_is_not_called_constant(splits, healthy):
    one = splits.train.select(torch.arange(1))
    assert result_warnings(aadml.evaluate(healthy, data=splits), one, [], healthy.facts) == []


HISTORY = [{"epoch": n, "stage": "", "loss": 1.0 / n, "valid map_mean": 0.5} for n in range(1, 7)]


@pytest.mark.parametrize(
    ("epoch", "epochs", "select", "wanted"),
    [
        (1, 6, "best", "the very first epoch was chosen"),
        (6, 6, "best", "the very last epoch was chosen"),
        (3, 6, "best", None),
        (6, 6, "last", None),
        (4, 4, "best", None),
        (5, 5, "best", "the very last epoch was chosen"),
        (None, 6, "best", None),
    ],
)
def test_an_epoch_chosen_at_an_end_is_told(healthy, splits, epoch, epochs, select, wanted):
    training = replace(healthy.facts.training, select=select)
    facts = replace(healthy.facts, selected_epoch=epoch, training=training)
    found = result_warnings(aadml.evaluate(healthy, data=splits), splits.train, HISTORY[:epochs], facts)
    assert [one.split(":")[0].split(" (")[0] for one in found] == ([] if wanted is None else [found[0].split(":")[0]])
    assert wanted is None or found[0].startswith(wanted)


def test_no_epoch_is_chosen_by_a_loss(healthy, splits):
    losses = [{"epoch": n, "loss": 1.0 / n, "valid loss": 1.0} for n in range(1, 7)]
    facts = replace(healthy.facts, selected_epoch=6)
    assert result_warnings(aadml.evaluate(healthy, data=splits), splits.train, losses, facts) == []


@pytest.mark.parametrize(
    ("losses", "ran_away"),
    [
        ([1.0, 0.5], False),
        ([1.0, 10.0], False),
        ([1.0, 10.1], True),
        ([1.0, float("inf")], True),
        ([0.0, 5.0], False),
        ([1.0, 0.5, 10.1], True),
    ],
)
def test_a_loss_ran_away_above_ten_times_its_first_value(healthy, splits, losses, ran_away):
    history = [{"epoch": n + 1, "stage": "a", "loss": loss} for n, loss in enumerate(losses)]
    found = result_warnings(aadml.evaluate(healthy, data=splits), splits.train, history, healthy.facts)
    assert any("diverged" in one for one in found) == ran_away


def test_a_loss_is_compared_with_that_of_the_very_first_batch(healthy, splits):
    history = [
        {"epoch": n, "stage": "a", "loss": loss, "loss_of_first_batch": first}
        for n, (loss, first) in enumerate([(50.0, 1.0), (20.0, 40.0)], 1)
    ]
    found = result_warnings(aadml.evaluate(healthy, data=splits), splits.train, history, healthy.facts)
    assert found == ["the loss diverged, from 1 to 20; lower training.learning_rate"]


def test_each_stage_is_looked_at_by_itself(healthy, splits):
    history = [{"epoch": n + 1, "stage": stage, "loss": loss} for n, (stage, loss) in
               enumerate([("a", 0.01), ("a", 0.01), ("b", 5.0), ("b", 4.0)])]  # fmt: skip
    assert result_warnings(aadml.evaluate(healthy, data=splits), splits.train, history, healthy.facts) == []


def test_verdicts_stand_in_the_run_in_the_log_on_the_card_and_on_the_page(splits, tmp_path):
    pytest.importorskip("matplotlib")
    said = []
    model = aadml.fit(splits, method="random", runs=tmp_path, on_note=said.append)
    stored = json.loads((model.folder / "evaluation.json").read_text())["verdicts"]
    assert stored
    assert stored == told(model) == told(aadml.load(model.folder))
    assert all(f"warning: {one}" in said for one in stored)
    card = (model.folder / "README.md").read_text()
    assert all(one in card for one in stored)


def test_the_first_batch_is_logged_and_drawn_as_no_curve(splits, tmp_path):
    model = aadml.fit(splits, loss="triplet", epochs=2, settings=SMALL, runs=tmp_path)
    records = read_records(model.folder)
    assert all(record["loss_of_first_batch"] > 0 for record in records)
    figures = pytest.importorskip("aadml.reports.figures")
    pytest.importorskip("matplotlib")
    assert "first batch" not in "".join(figures.training_curves(records, 1).values())
