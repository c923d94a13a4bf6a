import numpy as np
import pytest

from aadml.feature_extraction.feature_file.reading import is_feature_file
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.jobs.assembly import Assembled, refuse_foreign, write, written_modalities
from aadml.feature_extraction.jobs.failures import Failure
from tests.feature_extraction.contents import content

FAILURE = Failure("a", "a.mp4", "audio", "corrupt", "why")


def test_modalities_that_every_clip_lacks_are_not_written():
    masks = {"audio": np.array([False, True]), "visual": np.array([False, False])}
    assert written_modalities(masks) == ["audio"]
    assert written_modalities({name: mask[:0] for name, mask in masks.items()}) == ["audio", "visual"]


def test_files_of_another_kind_are_not_replaced(tmp_path):
    output = tmp_path / "f.h5"
    refuse_foreign(output)
    write_features(output, content())
    refuse_foreign(output)
    (tmp_path / "f.h5.failures.csv").write_text("my notes")
    with pytest.raises(InputError, match="exists and is not a list of failures"):
        refuse_foreign(output)
    output.write_text("my notes")
    with pytest.raises(InputError, match="exists and is not a feature file"):
        refuse_foreign(output)


def test_the_list_of_failures_is_written_and_removed_with_the_file(tmp_path):
    output, table = tmp_path / "f.h5", tmp_path / "f.h5.failures.csv"
    assembled = Assembled(content(), content().rows_by_modality())
    write(output, assembled, [FAILURE])
    assert is_feature_file(output)
    assert table.is_file()
    (tmp_path / ".f.h5.abcdefgh.partial.h5").write_text("")
    write(output, assembled, [])
    assert not table.exists()
    before = output.read_bytes()
    write(output, None, [FAILURE])
    assert output.read_bytes() == before


def test_a_list_of_failures_is_not_written_through_a_link(tmp_path):
    (tmp_path / "f.h5.failures.csv").symlink_to(tmp_path / "mine")
    with pytest.raises(InputError, match=r"failures\.csv is a symbolic link"):
        refuse_foreign(tmp_path / "f.h5")
