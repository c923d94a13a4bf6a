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
