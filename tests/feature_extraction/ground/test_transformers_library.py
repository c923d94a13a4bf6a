import sys
from types import SimpleNamespace

import pytest

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.transformers_library import refuse_kernels, silent, transformers_for


def test_the_message_about_the_missing_library_tells_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(
        InputError, match=r"^BERT needs transformers, which is not installed; run pip install 'aadml\[hub\]'$"
    ):
        transformers_for("BERT")


@pytest.mark.parametrize("bars", [True, False])
def test_verbosity_and_bars_are_restored(capsys, bars):
    state = {"verbosity": 20, "bars": bars}
    log = SimpleNamespace(
        get_verbosity=lambda: state["verbosity"],
        set_verbosity=lambda level: state.update(verbosity=level),
        set_verbosity_error=lambda: state.update(verbosity=40),
        is_progress_bar_enabled=lambda: state["bars"],
        enable_progress_bar=lambda: state.update(bars=True),
        disable_progress_bar=lambda: state.update(bars=False),
    )
    with silent(SimpleNamespace(utils=SimpleNamespace(logging=log))):
        assert state == {"verbosity": 40, "bars": False}
        sys.stdout.write("not shown")
    assert capsys.readouterr().out == ""
    assert state == {"verbosity": 20, "bars": bars}


def test_a_kernel_of_the_hub_is_refused():
    refuse_kernels({"attn_implementation": "sdpa", "model": "org/name", "implementation": {"size": 3}}, "config.json")
    kernel = "org/" + "k" * 90
    with pytest.raises(InputError) as caught:
        refuse_kernels({"text": {"attn_implementation": kernel}}, "config.json")
    assert str(caught.value) == (
        f"config.json: text.attn_implementation is '{kernel[:80]}', which is code on the hub and is not run; "
        "remove this key, or use another model"
    )
