"""Features computed in memory equal those of a feature file."""

from pathlib import Path

import numpy as np
import pytest

from aadml.data.samples.mp4 import write_mp4
from aadml.feature_extraction.backbones import Extractor, extractor
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.jobs.extract import execute
from aadml.feature_extraction.jobs.in_memory import extract_in_memory
from aadml.feature_extraction.jobs.plan import ExtractionPlan
from aadml.feature_extraction.manifest import Manifest, Row
from aadml.feature_extraction.media import Text


@pytest.mark.parametrize(("name", "modality"), [("log-mel", "audio"), ("hog-color", "visual")])
def test_features_equal_those_of_a_file(tmp_path, name, modality):
    generator = np.random.default_rng(0)
    paths = [str(tmp_path / f"{n}.mp4") for n in range(3)]
    for path in paths:
        frames = generator.integers(0, 256, (10, 64, 64, 3), dtype=np.uint8)
        write_mp4(Path(path), frames, 0.1 * generator.normal(size=48_000), frame_rate=10, rate=48_000)
    chosen = extractor(name, modality, {})
    rows = tuple(Row(path, {modality: path}, label="-", split="test", columns={}) for path in paths)
    execute(ExtractionPlan(Manifest("media", rows, ("-",)), tmp_path / "f.h5", [chosen], workers=1))
    expected = read_features(tmp_path / "f.h5").features[modality]
    np.testing.assert_array_equal(extract_in_memory(chosen, paths), expected)
    (tmp_path / "text.mp4").write_text("no clip")
    with pytest.raises(InputError, match=rf"text.mp4 cannot be read as {modality} \("):
        extract_in_memory(chosen, [paths[0], str(tmp_path / "text.mp4")])


def test_an_empty_text_is_refused_as_a_text():
    letters = Extractor("letters", "text", 1, Text(), {}, np.atleast_2d)
    with pytest.raises(
        InputError, match=r"^  cannot be read as text \(no-text, the text is empty\); pass another text$"
    ):
        extract_in_memory(letters, [" "], workers=1)
