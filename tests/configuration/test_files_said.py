"""What is said of a config that cannot be found."""

from pathlib import Path

import numpy as np
import pytest

from aadml.comparison.clips import Clips
from aadml.configuration.files import open_config
from aadml.configuration.from_arguments import assemble
from aadml.configuration.overrides import setting_pairs
from aadml.feature_extraction.ground.errors import InputError
from aadml.runs.data import TrainingSource
from aadml.studies.comparison_rows import RowSettings, file_of


def test_a_misspelt_config_is_answered_with_the_nearest():
    with pytest.raises(InputError, match=r"^smple: the config file does not exist; did you mean 'sample'\?"):
        open_config("smple")


def test_a_folder_is_no_config(tmp_path):
    with pytest.raises(InputError, match="is not a file; pass a YAML file"):
        open_config(tmp_path)


def test_a_setting_is_refused_under_the_flag_that_gave_it():
    with pytest.raises(InputError, match=r"^--baseline loss does not have the form key=value"):
        setting_pairs(["loss"], "--baseline")


def test_files_in_the_current_folder_replace_presets_only_where_the_user_names_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("aadml", "cca", "pairs", "sample"):
        Path(name).write_text("{method: random}")
    assert assemble().method == "aadml"
    assert assemble(sample=True).method == "aadml"
    assert assemble(method="cca").method == "cca"
    assert assemble(config="cca").method == "random"
    assert file_of("cca").resolve().method == "cca"
    assert RowSettings("f.h5").base.resolve().method == "aadml"
    random = np.random.default_rng(0).standard_normal((6, 3))
    chosen = TrainingSource(Clips.of(None, audio=random, visual=random)).starting_config(None, None, lambda text: None)
    assert assemble(config=str(chosen)).method == "pairs"
