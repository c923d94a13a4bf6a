import pytest

from aadml.feature_extraction.feature_file.names import check_modality, in_order, is_modality
from aadml.feature_extraction.ground.errors import InputError


@pytest.mark.parametrize("name", ["audio", "flow", "hand_pose", "text_2", "a" * 40])
def test_valid_names(name):
    assert is_modality(name)
    check_modality(name, "here")


@pytest.mark.parametrize("name", ["", "Audio", "hand pose", "_pose", "2d", "label", "all", "audio_times", "a" * 41])
def test_invalid_names_are_refused_with_possible_ones(name):
    assert not is_modality(name)
    with pytest.raises(
        InputError, match=r"^here: '.{0,40}' cannot be the name of a modality; use .* at most 40 lowercase"
    ):
        check_modality(name, "here")


def test_the_usual_modalities_come_first_and_others_by_name():
    assert in_order({"pose", "text", "flow", "audio"}) == ("audio", "text", "flow", "pose")
