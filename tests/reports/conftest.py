"""Figures and sounds."""

import numpy as np
import pytest

from aadml.feature_extraction.media.encoding import encode
from aadml.reports.previews import ENCODINGS
from tests.reports.parsed_html import HOSTILE
from tests.reports.tones import tone


@pytest.fixture(scope="module")
def drawn():
    pytest.importorskip("matplotlib")
    from aadml.reports import figures

    names = [*HOSTILE, "a" * 300, "", "\n"]
    series = {name: ([1, 2], [0.1, 0.2]) for name in names}
    points = {"audio": np.random.default_rng(0).normal(size=(len(names), 2))}
    return [
        figures.curves(series, x=HOSTILE[0], y=HOSTILE[3]),
        figures.class_bars(names, {"audio-visual": [0.5] * len(names)}, [0.1] * len(names)),
        figures.class_map(points, {"audio": np.arange(len(names))}, names),
    ]


@pytest.fixture
def spoken(tmp_path):
    path = tmp_path / "sound.m4a"
    encode(path, ENCODINGS[0], sound=tone(1.0))
    return path
