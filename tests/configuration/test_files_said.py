"""What is said of a config that cannot be found."""

import pytest

from aadml.configuration.files import open_config
from aadml.configuration.overrides import setting_pairs
from aadml.feature_extraction.ground.errors import InputError


def test_a_misspelt_config_is_answered_with_the_nearest():
    with pytest.raises(InputError, match=r"^smple: the config file does not exist; did you mean 'sample'\?"):
        open_config("smple")


def test_a_folder_is_no_config(tmp_path):
    with pytest.raises(InputError, match="is not a file; pass a YAML file"):
        open_config(tmp_path)


def test_a_setting_is_refused_under_the_flag_that_gave_it():
    with pytest.raises(InputError, match=r"^--baseline loss does not have the form key=value"):
        setting_pairs(["loss"], "--baseline")
