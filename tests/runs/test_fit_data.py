"""What `fit` takes as data, and what it says about the clips that it sets aside."""

import numpy as np
import pytest

import aadml
from aadml.comparison.types import Clips
from aadml.processes import launch
from feature_extraction.ground.errors import InputError


def test_of_several_processes_none_makes_the_sample_clips(monkeypatch, tmp_path):
    monkeypatch.setattr(launch, "started", lambda: True)
    monkeypatch.setattr("aadml.runs.fit.with_sample_data", lambda *_: pytest.fail("clips were made"))
    with pytest.raises(InputError, match="no such file"):  # what is named is looked for, however many they are
        aadml.fit(tmp_path / "absent.h5", epochs=1)
    with pytest.raises(InputError, match="none may make the sample clips; name the data"):
        aadml.fit(epochs=1)


@pytest.mark.parametrize(("labels", "how"), [(np.arange(40) % 4, "stratified"), (None, "at random")])
def test_it_is_said_how_clips_in_memory_were_set_aside_for_validation(labels, how):
    random = np.random.default_rng(0)
    features = {m: random.standard_normal((40, 5)).astype("f4") for m in ("audio", "visual")}
    model = aadml.fit(Clips.of(labels, **features), method="random")
    assert f"4 clips were set aside for validation ({how}, seed 0)" in model.card()
