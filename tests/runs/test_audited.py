"""Who is audited, on which clips, and what of it stays in a run; the checks themselves are tested elsewhere."""

import json
import shutil

import pytest

import aadml
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.protocols.audit import Verdict
from aadml.protocols.pipelines import ProtocolPipeline
from aadml.runs import audit
from aadml.runs.evaluate import add_to_run


@pytest.fixture
def asked(monkeypatch):
    """What the checks are asked to look at, (pipeline, splits) each; no process is started."""
    given = []
    monkeypatch.setattr(audit, "run_checks", lambda pipeline, splits, *_, **__: given.append((pipeline, splits)) or [])
    return given


def write(path, test):
    write_features(path, synthetic(classes=3, train=30, valid=9, test=test, dimensions=(6, 8), difficulty=0.2))
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    place = tmp_path_factory.mktemp("audited")
    data = write(place / "own.h5", 12)
    return aadml.fit(data, method="random", runs=place / "runs").folder, write(place / "other.h5", 15)


@pytest.fixture
def run(made, tmp_path):
    return shutil.copytree(made[0], tmp_path / "run")


def test_a_run_is_audited_on_its_own_clips_and_on_others_where_they_are_given(asked, run, made):
    for data in (None, made[1]):
        aadml.audit(run, data=data)
    assert [len(splits.test) for _, splits in asked] == [12, 15]
    assert {type(pipeline) for pipeline, _ in asked} == {ProtocolPipeline}


def test_a_model_needs_data(asked, run, made, tmp_path):
    model = aadml.load(run).save(tmp_path / "model")
    with pytest.raises(InputError, match="data"):
        aadml.audit(model)
    aadml.audit(model, data=made[1])
    assert [len(splits.test) for _, splits in asked] == [15]


def test_what_was_made_elsewhere_is_audited_as_it_was_named(asked, made):
    def encoder(features, labels):
        return features

    aadml.audit(encoder=encoder, data=made[1])
    aadml.audit(command="mine {input} {output}", data=made[1])
    (function, _), (command, _) = asked
    assert (function.function, command.command) == (encoder, "mine {input} {output}")
    with pytest.raises(InputError, match="an encoder made elsewhere needs data; pass --data"):
        aadml.audit(encoder=encoder)


def test_a_score_that_is_not_that_of_the_model_is_found(asked, run):
    def stored_score():
        return next(one for one in aadml.audit(run) if one.check == "stored score")

    assert stored_score().verdict is Verdict.PASS
    evaluation = audit.read_evaluation(run)
    better = {**evaluation.to_json(), "map_mean": evaluation.map_mean + 0.01}
    add_to_run(run, {"evaluation.json": json.dumps(better).encode()}, pytest.fail)
    assert stored_score().verdict is Verdict.FAIL


def test_the_audit_of_a_run_stays_in_it_and_nothing_is_written_into_a_model(asked, run, tmp_path):
    model = aadml.load(run).save(tmp_path / "model")
    add_to_run(model, {"audit.json": b"{}"}, pytest.fail)
    assert not (model / "audit.json").exists()
    add_to_run(run, {"audit.json": b"{}"}, pytest.fail)
    assert (run / "audit.json").read_bytes() == b"{}"
