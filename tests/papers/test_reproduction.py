"""What is asked of a reproduction."""

import pytest

from aadml.feature_extraction.ground.errors import InputError
from aadml.papers.reproduction import reproduce


def test_an_unknown_paper_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(InputError, match="no paper 'mie'; did you mean"):
        reproduce("mie", output=tmp_path / "out")
    assert not (tmp_path / "out").exists()
