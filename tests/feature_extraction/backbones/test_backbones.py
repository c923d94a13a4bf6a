"""An extractor by its name."""

from dataclasses import replace

import pytest

from aadml.feature_extraction.backbones import Extractor, extractor
from aadml.feature_extraction.ground.consent import consent_to


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
