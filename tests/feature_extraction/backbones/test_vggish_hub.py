import os
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from aadml.feature_extraction.backbones import vggish_hub
from aadml.feature_extraction.ground.errors import InputError


def test_without_tensorflow_the_error_names_the_extra(monkeypatch):
    monkeypatch.setattr(vggish_hub, "find_spec", lambda name: None)
    with pytest.raises(
        InputError,
        match=r"needs tensorflow and tensorflow-hub, which is not installed; run pip install 'aadml\[tfhub\]'",
    ):
        vggish_hub.vggish_hub()


def test_short_sound_is_padded_and_other_outputs_are_an_error(monkeypatch, tmp_path):
    lengths = []

    def embed(samples):
        lengths.append(len(samples))
        return np.zeros((1, 128 if len(samples) < 20_000 else 64), np.float32)

    monkeypatch.setattr(vggish_hub, "_loaded", lambda model: (embed, tmp_path))
    monkeypatch.setattr(vggish_hub, "import_module", lambda name: SimpleNamespace(__version__="1"))
    network = vggish_hub.vggish_hub(weights=str(tmp_path))
    lengths.clear()  # the network was tried on noise
    (rows,) = network.describe([np.zeros(100, np.float32)])
    assert (rows.shape, lengths) == ((1, 128), [15_600])
    assert network.about == {"tensorflow": "1", "tensorflow-hub": "1"}
    with pytest.raises(InputError, match=r"returns \(1, 64\) for 20000 samples, not \(t, 128\)"):
        network.describe([np.zeros(20_000, np.float32)])


def test_triton_is_imported_before_tensorflow(monkeypatch, tmp_path):
    (tmp_path / "order.py").write_text("names = []\n")
    for name in ("triton", "tensorflow", "tensorflow_hub"):
        (tmp_path / f"{name}.py").write_text("import order\norder.names.append(__name__)\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in list(sys.modules):
        if name.split(".")[0] in ("triton", "tensorflow", "tensorflow_hub"):
            monkeypatch.delitem(sys.modules, name)
    with pytest.raises(InputError, match="cannot be loaded"):
        vggish_hub.vggish_hub(weights=str(tmp_path))
    assert sys.modules.pop("order").names[:2] == ["triton", "tensorflow_hub"]
    for name in ("triton", "tensorflow_hub"):
        sys.modules.pop(name)


class _Model:
    """Stand-in for a SavedModel: callable, or with a signature of one named argument."""

    def __init__(self, callable_, outputs):
        self.outputs = outputs
        signature = _Signature(((), {"waveform": None}), outputs)
        self.signatures = {} if callable_ else {"serving_default": signature}


class _Signature:
    def __init__(self, structured_input_signature, outputs):
        self.structured_input_signature, self.outputs = structured_input_signature, outputs

    def __call__(self, **named):
        assert list(named) == ["waveform"]
        return self.outputs


class _Callable(_Model):
    def __call__(self, samples):
        return self.outputs


ROWS = np.arange(256, dtype=np.float32).reshape(2, 128)


@pytest.fixture
def library(monkeypatch, tmp_path):
    """Set the model that the library loads; return the addresses that it resolves."""

    def library(model):
        resolved = []
        hub = SimpleNamespace(
            __version__="0.16", load=lambda folder: model, resolve=lambda name: resolved.append(name) or str(tmp_path)
        )
        monkeypatch.setitem(sys.modules, "tensorflow_hub", hub)
        monkeypatch.setitem(
            sys.modules, "tensorflow", SimpleNamespace(__version__="2.18", constant=lambda values: values)
        )
        monkeypatch.setattr(vggish_hub, "find_spec", lambda name: None if name == "triton" else name)
        monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
        return resolved

    return library


@pytest.mark.parametrize("outputs", [ROWS, {"rows": ROWS, "other": None}])
@pytest.mark.parametrize("callable_", [True, False])
def test_a_model_is_called_or_has_a_signature_and_its_first_output_is_read(library, callable_, outputs):
    resolved = library(_Callable(True, outputs) if callable_ else _Model(False, outputs))
    network = vggish_hub.vggish_hub()
    (rows,) = network.describe([network.prepare(np.ones(20_000))])
    np.testing.assert_array_equal(rows, ROWS)
    assert resolved == ["https://tfhub.dev/google/vggish/1"]
    assert network.times(3, 9.0).tolist() == pytest.approx([0, 0.96, 1.92])
    assert (network.inputs.sample_rate, network.dimension, network.modality) == (16_000, 128, "audio")
    assert network.about == {"tensorflow": "2.18", "tensorflow-hub": "0.16"}
    assert network.parameters["model"] == "https://tfhub.dev/google/vggish/1"
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "3"
    assert vggish_hub.vggish_hub(weights="mine").parameters["model"] == "a SavedModel of one's own"


@pytest.mark.parametrize("rows", [ROWS[:, :127], ROWS[:0], ROWS[0]])
def test_models_of_another_kind_are_refused(library, rows):
    library(_Callable(True, rows))
    with pytest.raises(
        InputError, match=r"the model returns \(.*\) for 15600 samples, not \(t, 128\); pass a SavedModel of"
    ):
        vggish_hub.vggish_hub()
    model = _Model(True, None)
    library(model)
    with pytest.raises(
        InputError, match="mine is not callable and has no signature serving_default; pass a SavedModel"
    ):
        vggish_hub.vggish_hub(weights="mine")
