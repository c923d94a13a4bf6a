"""The zoo of harmful feature files, inspected in this process: the same lines as from a process under limits."""

import numpy as np
import pytest

from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.ground.errors import InputError
from tests.edited_hdf5 import edited
from tests.feature_extraction.foreign.test_hdf5 import ZOO, healthy, many_compressed_zeros


@pytest.mark.parametrize(
    "harm", [harm for harm in ZOO if harm is not many_compressed_zeros], ids=lambda harm: harm.__name__
)
def test_a_harmful_file_is_answered_by_its_line(tmp_path, harm):
    check(tmp_path, harm, ZOO[harm])


def check(tmp_path, harm, says):
    path = healthy(tmp_path / "f.h5")
    with edited(path) as file:
        harm(file, tmp_path)
    with pytest.raises(InputError) as caught:
        read_features(path)
    assert str(caught.value).startswith(str(path))
    assert says in str(caught.value)


def change(**arrays):
    """Replace or add arrays; None removes an array, and `attributes` are those of the file."""

    def changed(file, _):
        for name, value in arrays.items():
            if name == "attributes":
                file.attrs.update(value)
                continue
            if name in file:
                del file[name]
            if value is not None:
                file[name] = value

    return changed


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (
            change(attributes={"format": "other"}),
            "is not a feature file (its attribute `format` is not 'aadml-features')",
        ),
        (
            change(attributes={"version": 3}),
            "is a feature file of version '3', but this program reads versions 1 and 2",
        ),
        (
            change(attributes={"version": ""}),
            "is a feature file of version '', but this program reads versions 1 and 2",
        ),
        (change(label=np.zeros(12)), "/label contains float64, but must contain integers; write integers"),
        (change(label=None), "contains no array /label; add this array"),
        (
            change(audio_present=np.ones(12)),
            "/audio_present contains values of type float64, but must contain one boolean per clip",
        ),
        (change(audio_present=np.full(12, 2)), "/audio_present contains 2, but must contain one boolean per clip"),
        (
            change(class_names=np.asarray([[b"a", b"b"]])),
            "/class_names has type |S1 and shape (1, 2), but must be a list of strings",
        ),
        (change(id=np.full(12, b"\xff")), "/id contains strings that are not UTF-8; write UTF-8"),
        (change(audio=np.full((12, 2), b"a")), "/audio contains |S1, but must contain real numbers; write numbers"),
    ],
)
def test_an_array_of_another_kind_is_named(tmp_path, harm, says):
    check(tmp_path, harm, says)
