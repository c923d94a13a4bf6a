"""Training again with other test clips: a run that never saw them has the same weights."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import aadml
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.content import Texts
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.protocols.audit import Finding, Verdict
from aadml.runs import retrain
from aadml.runs.loading import load_run
from aadml.runs.retrain import fitted_without_test

SMALL = {"network.hidden": [16], "training.batch": 20}


@pytest.fixture
def features(tmp_path):
    path = tmp_path / "features.h5"
    write_features(path, synthetic(classes=3, train=60, valid=15, test=30, dimensions=(6, 8), difficulty=0.2))
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "settings"), [("aadml", SMALL), ("cca", {"method.dimension": 3}), ("acmr", {"training.batch": 20})]
)
def test_an_honest_run_has_the_same_weights_without_its_test_clips(method, settings, features, tmp_path):
    epochs = {} if method == "cca" else {"epochs": 2}
    model = aadml.fit(features, method=method, settings=settings, runs=tmp_path / "runs", **epochs)
    found = fitted_without_test(load_run(model.folder), "test")
    assert found.verdict is Verdict.PASS
    assert "on unchanged data 0" in found.evidence


def test_a_method_that_reads_the_test_clips_from_the_file_itself_is_caught(features, tmp_path, monkeypatch):
    (tmp_path / "peeking.py").write_text(
        "import torch\n"
        "from aadml.methods.correlation.cca import cca\n"
        "PLACE = []\n"
        "def peek(context, settings, *, dimension: int = 3):\n"
        "    method = cca(context, settings, dimension=dimension)\n"
        "    fit = method.fit\n"
        "    def fit_on_all(train, valid, session=None):\n"
        "        import h5py\n"
        "        with h5py.File(PLACE[-1]) as file:\n"
        "            shift = float(file['audio'][...][-30:].mean())\n"
        "        fit(train, valid, session)\n"
        "        state = method.state()\n"
        "        state['mean.audio'] = state['mean.audio'] + shift\n"
        "        method.load(state)\n"
        "    method.fit = fit_on_all\n"
        "    return method\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    import peeking

    from aadml.runs import data, prepare

    load_splits = prepare.load_splits

    def remembering(config, content=None):
        peeking.PLACE.append(config.data)
        return load_splits(config, content)

    for module in (data, prepare):
        monkeypatch.setattr(module, "load_splits", remembering)
    model = aadml.fit(features, method="peeking:peek", runs=tmp_path / "runs")
    found = fitted_without_test(load_run(model.folder), "test")
    assert found.verdict is Verdict.FAIL
    assert "depends on the test clips" in found.evidence


@pytest.mark.slow
def test_a_run_whose_weights_its_config_does_not_give_is_caught(features, tmp_path):
    """Weights fitted on the test clips, put into an honest run's folder."""
    model = aadml.fit(features, loss="triplet", epochs=2, settings=SMALL, runs=tmp_path / "runs")
    run = load_run(model.folder)
    splits = run.splits
    better = aadml.fit(replace(splits, train=splits.test, valid=splits.test), loss="triplet", epochs=60, settings=SMALL)
    found = fitted_without_test(replace(run, model=better), "test")
    assert found.verdict is Verdict.FAIL
    assert "its config does not reproduce these weights" in found.evidence


@pytest.mark.slow
def test_the_audit_of_a_run_says_so_in_the_place_of_what_it_could_not_check(features, tmp_path):
    model = aadml.fit(features, method="cca", settings={"method.dimension": 3}, runs=tmp_path / "runs")
    checks = {one.check: one.verdict for one in aadml.audit(model.folder, retrain=True)}
    assert checks["fitted without test"] is Verdict.PASS
    assert "selection" not in checks
    assert {one.check: one.verdict for one in aadml.audit(model.folder)}["selection"] is Verdict.NOT_CHECKABLE


CONTENT = synthetic(classes=3, train=60, valid=15, test=30, dimensions=(6, 8))


def model_of(*weights, score=0.5, key="w"):
    """A model that consists of a tensor and a score."""
    state = {key: torch.tensor(weights, dtype=torch.float64)}
    return SimpleNamespace(
        tensors=lambda: state,
        embed_clips=lambda clips: score,
    )


@pytest.mark.parametrize(
    ("noise", "permuted", "own", "scores", "passes", "said"),
    [
        (0, 0, 0, (0.5, 0.1), True, "on unchanged data 0"),
        (9e-5, 9e-5, 9e-5, (0.5, 0.1), True, "on unchanged data 9e-05"),
        (2e-4, 0, 0, (0.5, 0.5), False, "training depends on the test clips"),
        (0, 2e-4, 0, (0.5, 0.5), False, "training depends on the test clips"),
        (2e-4, 0, 0.1, (0.5, 0.5), False, "training depends on the test clips"),
        (0, 0, 2e-4, (0.54, 0.5), True, "on this machine the weights could not be reproduced to the byte"),
        (0, 0, 0.1, (0.2, 0.5), True, "MAP of the run 0.2000, of its repetition 0.5000"),
        (0, 0, 0.1, (0.56, 0.5), False, "its config does not reproduce these weights"),
    ],
)
def test_what_is_said_of_trainings_that_end_so_far_apart(
    monkeypatch, noise, permuted, own, scores, passes, said
):  # fmt: skip
    def trained(config, content):
        noisy, relabelled = content.features is not CONTENT.features, not np.array_equal(content.labels, CONTENT.labels)
        return model_of(1.0 + (noise if noisy else permuted if relabelled else 0), score=scores[1])

    monkeypatch.setattr(retrain, "_trained", trained)
    monkeypatch.setattr(retrain, "open_data", lambda data: CONTENT)
    monkeypatch.setattr(retrain, "is_captioned", lambda data: False)
    monkeypatch.setattr(retrain, "evaluate", lambda score: SimpleNamespace(map_mean=score))
    test = SimpleNamespace(ids=[CONTENT.ids[row] for row in CONTENT.rows("test")])
    config = SimpleNamespace(data="", towers=None)
    run = SimpleNamespace(config=config, splits={"test": test}, model=model_of(1 + own, score=scores[0]))
    found = fitted_without_test(run, "test")
    assert found.verdict is (Verdict.PASS if passes else Verdict.FAIL)
    assert said in found.evidence


def test_training_that_is_never_the_same_is_not_said_to_read_the_test_clips(features, tmp_path, monkeypatch):
    model = aadml.fit(features, method="cca", settings={"method.dimension": 3}, runs=tmp_path / "runs")
    weights = iter(range(1, 9))
    monkeypatch.setattr(retrain, "_trained", lambda config, content: model_of(next(weights)))
    found = fitted_without_test(load_run(model.folder), "test")
    assert found.verdict is Verdict.NOT_CHECKABLE
    assert "on unchanged data once more 3; training is not repeatable here" in found.evidence


@pytest.mark.parametrize(("towers", "kind"), [(None, "captioned sound"), ("networks", "media")])
def test_sound_and_media_are_not_trained_again(monkeypatch, towers, kind):
    monkeypatch.setattr(retrain, "is_captioned", lambda data: True)
    found = fitted_without_test(SimpleNamespace(config=SimpleNamespace(data="manifest.csv", towers=towers)), "test")
    assert found == Finding(
        "fitted without test", Verdict.NOT_CHECKABLE, f"{kind} cannot be rewritten with other test clips"
    )


def test_clips_of_unseen_classes_of_several_classes_and_without_a_modality_are_changed(tmp_path):
    content = synthetic(classes=6, train=60, valid=12, test=30, dimensions=(6, 8))
    marks = np.eye(6, dtype=np.uint8)[content.labels]
    marks[::5] = 1
    heard = np.arange(102) % 4 > 0
    audio = content.features["audio"] * heard[:, None]
    several = replace(content, labels=marks.argmax(1), all_labels=marks)
    lacking = replace(content, features={**content.features, "audio": audio}, present={"audio": heard})
    for data, settings in ((content, {"unseen_classes": 0.3}), (several, {}), (lacking, {})):
        write_features(tmp_path / "f.h5", data)
        settings = {"method.dimension": 2, **settings}
        model = aadml.fit(tmp_path / "f.h5", method="cca", settings=settings, runs=tmp_path / "runs")
        assert fitted_without_test(load_run(model.folder), "test").verdict is Verdict.PASS


def test_models_differ_by_the_tensor_that_differs_most_relative_to_its_length():
    assert retrain._difference(model_of(3, 4), model_of(3, 4)) == 0
    assert retrain._difference(model_of(0, 0), model_of(0, 0)) == 0
    assert retrain._difference(model_of(6, 8), model_of(3, 4)) == pytest.approx(1)
    assert retrain._difference(model_of(3, 4), model_of(6, 8)) == pytest.approx(0.5)
    assert retrain._difference(model_of(1, 0), model_of(0, 0)) > 1
    assert retrain._difference(model_of(1), model_of(1, 1)) == math.inf
    assert retrain._difference(model_of(1), model_of(1, key="v")) == math.inf
    assert retrain._difference(SimpleNamespace(tensors=dict), SimpleNamespace(tensors=dict)) == 0
    one, two = model_of(1), model_of(1)
    weights = one.tensors()
    one.tensors = lambda: weights | {"inputs.mean": torch.ones(1)}
    two.tensors = lambda: weights | {"inputs.mean": torch.full((1,), 4.0)}
    assert retrain._difference(one, two) == pytest.approx(0.75)


@pytest.mark.parametrize("split", ["valid", "test"])
def test_clips_become_noise_of_the_same_size_in_their_split_alone(split):
    values = np.random.default_rng(3).standard_normal((150, 4)).astype("f4") * 3 + 7
    rows = np.sort(np.random.default_rng(4).choice(105, 150))
    content = replace(
        CONTENT, texts=Texts(values, rows), features={**CONTENT.features, "audio": CONTENT.features["audio"] + 5}
    )
    own = content.rows(split)
    changed = retrain._with_noise(content, own)
    for name, before in content.features.items():
        same = (changed.features[name] == before).all(1)
        assert np.array_equal(np.flatnonzero(~same), own)
        noise = changed.features[name][own]
        assert noise.dtype == np.float32
        assert float(noise.mean()) == pytest.approx(
            float(before.mean()), abs=4 * float(before.std()) / math.sqrt(noise.size)
        )
        assert float(noise.std()) == pytest.approx(float(before.std()), rel=0.2)
    same = (changed.texts.values == values).all(1)
    assert np.array_equal(np.flatnonzero(~same), np.flatnonzero(np.isin(rows, own)))
    assert np.array_equal(changed.features["text"], changed.texts.first_of_each(105)[0])
    assert np.array_equal(changed.labels, content.labels)


@pytest.mark.parametrize("split", ["valid", "test"])
def test_labels_are_permuted_in_their_split_alone(split):
    own = CONTENT.rows(split)
    changed = retrain._with_permuted(CONTENT, own)
    apart = np.flatnonzero(changed.labels != CONTENT.labels)
    assert 0 < len(apart) < len(own)
    assert set(apart) <= set(own)
    assert np.array_equal(np.sort(changed.labels[own]), np.sort(CONTENT.labels[own]))
    assert changed.features == CONTENT.features
