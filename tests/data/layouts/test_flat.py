import numpy as np
import pytest

from aadml.data.reading import open_data
from aadml.feature_extraction.ground.errors import InputError


def flat(**changes):
    return {
        "audio_feat": np.ones((4, 2)),
        "visual_feat": np.ones((4, 3)),
        "Label_ID": np.asarray([1, 0, 1, 0]),
        "Train_test": np.asarray([b"1", b"1", b"0", b"0"]),
    } | changes


@pytest.mark.parametrize("key", ["Train_test", "Split"])
@pytest.mark.parametrize(
    "words", [np.asarray([b"1", b"1", b"0", b"0"]), np.asarray([[1], [1], [0], [0]]), np.asarray([1.0, 1.0, 0.0, 0.0])]
)
def test_the_flat_layout_is_recognized(write_h5, key, words):
    arrays = flat()
    del arrays["Train_test"]
    content = open_data(write_h5(**arrays, **{key: words}))
    assert content.splits == ("train", "train", "test", "test")
    assert {m: v.shape[1] for m, v in content.features.items()} == {"audio": 2, "visual": 3}
    assert not content.notes()
    content = open_data(write_h5(**arrays, **{key: words}, ids=np.arange(4), text=np.ones((4, 2))))
    assert content.notes() == ("arrays were left out: ids, text",)


def test_the_flat_layout_reads_variable_text(write_h5):
    words = np.asarray(["1", "valid", "0", "0"], dtype=object)
    assert open_data(write_h5(**flat(Train_test=words))).splits == ("train", "valid", "test", "test")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"Train_test": np.asarray([b"2", b"1", b"0", b"0"])}, "'2' in row 0 is not a split"),
        ({"Train_test": np.zeros((4, 2))}, "store the name of a split for each clip"),
        ({"Label_ID": np.asarray([1, 0])}, "'Label_ID' has 2"),
    ],
)
def test_flat_data_that_contradicts_itself_is_refused(write_h5, changes, message):
    with pytest.raises(InputError, match=message):
        open_data(write_h5(**flat(**changes)))


def test_the_flat_layout_without_a_split_names_both_possible_keys(write_h5):
    arrays = flat()
    del arrays["Train_test"]
    with pytest.raises(
        InputError,
        match=r"contains no 'Train_test or Split'; pass a file with this key .keys found: Label_ID, audio",
    ):
        open_data(write_h5(**arrays))
