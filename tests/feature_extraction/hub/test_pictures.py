"""Networks of pictures: which frames of a clip are read."""

import pytest

from aadml.feature_extraction.backbones import extractor
from tests.feature_extraction.hub.tiny import written


@pytest.mark.parametrize(("family", "rate"), [("clip", 1.0), ("videomae", 8.0)])
def test_five_minutes_of_frames_are_read_at_the_rate_of_the_family(family, rate, tmp_path, monkeypatch):
    monkeypatch.setenv("AADML_CACHE", str(tmp_path))
    name = f"hf:{written(family, tmp_path)}"
    inputs = extractor(name, "visual").inputs
    assert (inputs.frames_per_second, inputs.limit) == (rate, 300 * rate)
    inputs = extractor(name, "visual", {"frames_per_second": 4.0}).inputs
    assert (inputs.frames_per_second, inputs.limit) == (4.0, 300 * rate)
