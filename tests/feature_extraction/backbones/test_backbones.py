"""An extractor by its name."""

from dataclasses import replace
from functools import partial

import pytest

from aadml.feature_extraction.backbones import Extractor, every, extractor
from aadml.feature_extraction.ground.consent import consent_to
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.media import Frames, Sound


def renamed(*, name: str) -> Extractor:
    """The descriptor of the package under another name."""
    return replace(extractor("hog-color", "visual"), name=name)


@pytest.mark.parametrize("name", ["hog-color", "bright"])
def test_an_extractor_can_be_built_again_by_its_name(name):
    path = f"{__name__}:renamed"
    consent_to(path)
    built = extractor(path, "visual", {"name": name})
    assert built.name == (name if name == "hog-color" else path)
    options = {"name": name} if built.name == path else None
    assert extractor(built.name, "visual", options).name == built.name


@pytest.mark.parametrize(
    ("changes", "rows", "seconds", "times"),
    [
        ({"inputs": Frames(frames_per_second=4.0)}, 3, 9.0, [0, 0.25, 0.5]),
        ({"inputs": Sound(8000)}, 4, 2.0, [0, 0.5, 1, 1.5]),
        ({"inputs": Sound(8000)}, 0, 2.0, []),
        ({"inputs": Sound(8000), "begins": partial(every, 0.96)}, 2, 9.0, [0, 0.96]),
    ],
)
def test_rows_begin_at_their_frames_or_at_equal_parts_of_the_sound(changes, rows, seconds, times):
    built = replace(extractor("hog-color", "visual"), **changes)
    assert built.times(rows, seconds).tolist() == pytest.approx(times)


def test_an_extractor_of_another_modality_and_one_that_lacks_a_file_are_refused():
    path = f"{__name__}:renamed"
    consent_to(path)
    consent_to(f"{__name__}:lacking")
    with pytest.raises(InputError, match=f"^{path} computes visual features; pass an extractor of audio feat"):
        extractor(path, "audio", {"name": "x"})
    with pytest.raises(
        InputError, match=r"lacking cannot be built \(FileNotFoundError: .*no such file.*\); install the missing pa"
    ):
        extractor(f"{__name__}:lacking", "visual")


def lacking() -> Extractor:
    """An extractor whose weights are missing."""
    raise FileNotFoundError("no such file")
