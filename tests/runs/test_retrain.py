"""Training again with other test clips: a run that never saw them has the same weights."""

from dataclasses import replace

import pytest

import aadml
from aadml.data.synthetic import synthetic
from aadml.protocols.audit import Verdict
from aadml.runs.loading import load_run
from aadml.runs.retrain import fitted_without_test
from feature_extraction.feature_file import write_features

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
    assert "as it is 0" in found.evidence


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

    from aadml.runs import train

    load_splits = train.load_splits

    def remembering(config):
        peeking.PLACE.append(config.data)
        return load_splits(config)

    monkeypatch.setattr(train, "load_splits", remembering)
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
    assert "its config does not give these weights" in found.evidence


@pytest.mark.slow
def test_the_audit_of_a_run_says_so_in_the_place_of_what_it_could_not_check(features, tmp_path):
    model = aadml.fit(features, method="cca", settings={"method.dimension": 3}, runs=tmp_path / "runs")
    checks = {one.check: one.verdict for one in aadml.audit(model.folder, retrain=True)}
    assert checks["fitted without test"] is Verdict.PASS
    assert "selection" not in checks
    assert {one.check: one.verdict for one in aadml.audit(model.folder)}["selection"] is Verdict.NOT_CHECKABLE
