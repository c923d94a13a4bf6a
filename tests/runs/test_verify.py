"""Verification names each file that is missing, damaged or changed."""

import pytest

import aadml
from aadml.feature_extraction.ground.errors import InputError
from aadml.runs.manifest import MANIFEST


@pytest.mark.parametrize("name", ["model.json", "evaluation.json", "environment.json", "README.md"])
def test_verify_names_each_file_that_is_gone_or_was_changed(random_run, name):
    assert aadml.verify(random_run) == []
    (random_run / name).write_bytes((random_run / name).read_bytes() + b" ")
    (changed,) = aadml.verify(random_run)
    assert str(random_run / name) in changed
    assert changed.endswith("(a card may be edited)") == (name == "README.md")
    (random_run / name).unlink()
    (gone,) = aadml.verify(random_run)
    assert (
        f"{random_run / name} cannot be read (No such file or directory), but the manifest of the run lists the file"
        in gone
    )


def test_verify_says_which_file_a_folder_lacks_without_which_nothing_is_known(random_model, random_run, tmp_path):
    (random_run / MANIFEST).unlink()
    assert aadml.verify(random_run) == [
        f"{random_run / MANIFEST} is missing, so no file of this run can be checked; restore the file"
    ]
    saved = random_model.save(tmp_path / "model")
    assert aadml.verify(saved) == []
    (saved / "model.json").unlink()
    assert aadml.verify(saved) == [
        f"{saved / 'model.json'} is missing, so the model cannot be loaded; restore the file"
    ]
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="is not a run or a model"):
        aadml.verify(tmp_path / "empty")
