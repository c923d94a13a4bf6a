"""A look at the test clips while training: written down, and nothing else."""

import json

import pytest

import aadml
from aadml.configuration.from_arguments import assemble
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.protocols.evaluation import evaluate_under
from aadml.runs.loading import load_run
from aadml.runs.protocol_scores import subject_of
from aadml.runs.scoring import Scoring
from aadml.runs.test_curve import PREFIX
from aadml.runs.train import train_into

SMALL = ("network.hidden=[8]", "training.batch=20", "training.learning_rate=0.01", "training.epochs=4")


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "features.h5"
    write_features(path, synthetic(classes=3, train=60, valid=15, test=30, dimensions=(6, 8), difficulty=0.5))
    return path


def trained(data, folder, every, *more):
    config = assemble(data=str(data), config="aadml", settings=[*SMALL, *more])
    train_into(config, folder, Scoring(queries=True, diagnosis=every))
    return folder


def records(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def plain(record):
    return {key: value for key, value in record.items() if not key.startswith(PREFIX) and key != "seconds"}


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["aa-triplet", "daml-triplet", "aa-n-pair"])
def test_a_diagnosis_changes_no_weight_no_choice_and_no_other_figure(data, tmp_path, loss):
    without = trained(data, tmp_path / "without", 0, f"loss={loss}")
    with_it = trained(data, tmp_path / "with", 1, f"loss={loss}")
    assert (with_it / "model.safetensors").read_bytes() == (without / "model.safetensors").read_bytes()
    one, other = (json.loads((folder / "evaluation.json").read_text()) for folder in (without, with_it))
    assert one | {"seconds": 0} == other | {"seconds": 0}
    assert list(map(plain, records(with_it))) == list(map(plain, records(without)))
    assert all(f"{PREFIX}map_mean" in record for record in records(with_it))
    assert not any(key.startswith(PREFIX) for record in records(without) for key in record)


def test_whatever_a_diagnosis_says_the_same_epoch_is_chosen(data, tmp_path, monkeypatch):
    """The strongest temptation there is: the first epoch looks perfect on test, all others hopeless."""
    honest = trained(data, tmp_path / "honest", 1)

    def tempting(self, epoch, weights):
        return {"valid map_mean": float(epoch == 1), "loss": float("nan")}

    monkeypatch.setattr("aadml.runs.test_curve.Diagnosis.__call__", tempting)
    tempted = trained(data, tmp_path / "tempted", 1)
    assert (tempted / "model.safetensors").read_bytes() == (honest / "model.safetensors").read_bytes()


def test_the_training_is_given_no_test_clips_and_nothing_back(data, tmp_path):
    import inspect

    from aadml.methods.training import loop, session

    assert "test" not in inspect.signature(loop.train).parameters
    assert inspect.signature(session.Session.log).return_annotation in (None, "None")


def test_the_diagnosed_figures_are_those_of_the_protocol_that_chooses_on_test(data, tmp_path):
    run = load_run(trained(data, tmp_path / "run", 1))
    logged = [record[f"{PREFIX}map_mean"] for record in records(run.folder)]
    found = evaluate_under(subject_of(run), "legacy:test-selection")
    assert max(logged) == pytest.approx(found.map_mean, abs=1e-6)
    inductive = json.loads((run.folder / "evaluation.json").read_text())["map_mean"]
    assert logged[run.model.facts.selected_epoch - 1] == pytest.approx(inductive, abs=1e-6)


def test_a_diagnosis_is_made_every_so_many_epochs_and_at_the_end(data, tmp_path):
    found = [f"{PREFIX}loss" in record for record in records(trained(data, tmp_path / "run", 3))]
    assert found == [False, False, True, True]


def test_train_and_validation_loss_are_logged_with_the_score_of_the_training_clips(data, tmp_path):
    run = trained(data, tmp_path / "run", 0, "training.train_map=2")
    assert [sorted({"train loss", "valid loss"} & set(one)) for one in records(run)] == [
        [], ["train loss", "valid loss"], [], ["train loss", "valid loss"]
    ]  # fmt: skip
    silent = trained(data, tmp_path / "silent", 0, "training.train_map=0")
    assert (run / "model.safetensors").read_bytes() == (silent / "model.safetensors").read_bytes()
    scores = [json.loads((one / "evaluation.json").read_text()).get("train_map") for one in (run, silent)]
    assert scores[0] > 0
    assert scores[1] is None


def test_no_loss_is_made_of_labels_that_stand_for_other_classes(tmp_path):
    path = tmp_path / "six.h5"
    write_features(path, synthetic(classes=6, train=60, valid=12, test=24, dimensions=(6, 8), difficulty=0.5))
    last = records(trained(path, tmp_path / "run", 1, "unseen_classes=0.3"))[-1]
    assert "train loss" in last
    assert "valid map_mean" in last
    assert f"{PREFIX}map_mean" in last
    assert not {"valid loss", f"{PREFIX}loss"} & last.keys()


def test_validation_clips_of_classes_that_are_not_trained_are_ranked_and_not_costed(data):
    splits = aadml.read(data)
    names = ["another", "and another", "a third", "a fourth"]  # one more than the network has outputs
    labels = [names[row % 4] for row in range(len(splits.valid))]
    valid = aadml.Clips.of(labels, **{modality: splits.valid[modality] for modality in splits.valid.modalities})
    model = aadml.fit(splits.having("valid", valid), settings=SMALL)
    assert model.evaluation["map_mean"] > 0


def test_the_figures_of_each_query_are_kept_only_where_they_are_asked_for(data, tmp_path):
    config = assemble(data=str(data), config="aadml", settings=["training.epochs=1", *SMALL[:3]])
    for name, scoring in (("asked", Scoring(queries=True)), ("not", Scoring())):
        train_into(config, tmp_path / name, scoring)
    text = {name: (tmp_path / name / "evaluation.json").read_text() for name in ("asked", "not")}
    assert "average_precision" in text["asked"]
    assert "average_precision" not in text["not"]


def test_the_held_out_loss_is_that_of_the_clips_as_themselves(data, tmp_path):
    import torch

    run = load_run(trained(data, tmp_path / "run", 0, "proxy.aa_mix=1"))
    learner, clips = run.model.method.learner, run.model.scaling.clips(run.splits.test)
    vectors = {m: learner.label_space(clips, m) for m in clips.modalities}
    label = sum(learner.label_loss(v, clips.labels) for v in vectors.values())
    a, v = vectors["audio"], vectors["visual"]
    terms = []
    for x, y in ((a, v), (v, a)):
        distance = torch.cdist(x, y).square()
        hinges = [
            distance[i, p] - distance[i, n] + 1.2
            for i in range(len(x)) for p in range(len(x)) for n in range(len(x))
            if clips.labels[i] == clips.labels[p] != clips.labels[n]
        ]  # fmt: skip
        active = torch.stack([h for h in hinges if h > 0])
        terms.append(active.mean())
    expected = float(label + torch.stack(terms).mean())
    assert learner.held_out_loss(clips, len(clips)) == pytest.approx(expected, rel=1e-4)
    assert learner.held_out_loss(clips.select(torch.arange(0)), 5) is None
