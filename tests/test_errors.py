"""A program can distinguish the errors of aadml by their classes."""

import sys

import pytest

import aadml
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features


@pytest.fixture
def features(tmp_path):
    path = tmp_path / "features.h5"
    write_features(path, synthetic(classes=3, train=60, valid=15, test=30, dimensions=(6, 8), difficulty=0.2))
    return path


def kind_of(call):
    """Handle the errors of a call as a program would."""
    try:
        call()
    except aadml.DamagedFileError:
        return "damaged"
    except aadml.InUseError:
        return "in use"
    except aadml.UntrustedCodeError:
        return "untrusted"
    except aadml.MissingExtraError:
        return "missing"
    except aadml.InputError:
        return "input"


def test_a_program_can_distinguish_errors(features, tmp_path, monkeypatch):
    model = aadml.fit(features, method="random")
    model.save(tmp_path / "model")
    (tmp_path / "config.yaml").write_text("loss: own_losses:mine\n")
    assert kind_of(lambda: aadml.fit(features, method="randm")) == "input"
    assert kind_of(lambda: aadml.fit(features, config=tmp_path / "config.yaml")) == "untrusted"
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert kind_of(aadml.evaluate(model, data=features).to_pandas) == "missing"
    (weights,) = (tmp_path / "model").glob("*.safetensors")
    weights.write_bytes(weights.read_bytes()[:-1])
    assert kind_of(lambda: aadml.load(tmp_path / "model")) == "damaged"
    features.write_bytes(features.read_bytes()[:3000])
    assert kind_of(lambda: aadml.read(features)) == "damaged"


def test_a_run_in_use_is_an_error_of_its_own(features, tmp_path):
    runs, kinds = [], []
    aadml.fit(
        features, loss="triplet", epochs=1, settings={"network.hidden": [8]}, runs=tmp_path / "runs",
        on_run=runs.append, on_epoch=lambda record: kinds.append(kind_of(lambda: aadml.resume(runs[0]))),
    )  # fmt: skip
    assert kinds == ["in use"]


def test_every_error_is_an_input_error_and_a_value_error():
    for kind in (aadml.DamagedFileError, aadml.InUseError, aadml.UntrustedCodeError, aadml.MissingExtraError):
        assert issubclass(kind, aadml.InputError)
    assert issubclass(aadml.InputError, aadml.AadmlError)
    assert issubclass(aadml.InputError, ValueError)
