import numpy as np
import pytest

from aadml.data.reading import open_data
from aadml.feature_extraction.ground.errors import InputError


def views(tmp_path, **changes):
    arrays = {
        f"{name}_{part}": np.ones((n, d)) for part, n in (("train", 4), ("test", 2)) for name, d in (("x", 2), ("y", 3))
    }
    arrays |= {"label_train": np.asarray([1, 2, 1, 2]), "label_test": np.asarray([1, 2])}
    np.savez(tmp_path / "views.npz", **arrays | changes)
    return tmp_path / "views.npz"


def test_two_views_of_an_npz_stand_for_audio_and_visual(tmp_path):
    content = open_data(views(tmp_path), audio="y", visual="x")
    assert {m: v.shape for m, v in content.features.items()} == {"audio": (6, 3), "visual": (6, 2)}
    assert content.splits == ("train",) * 4 + ("test",) * 2
    assert content.class_names == ("1", "2")


def test_labels_of_views_may_be_in_the_plural(tmp_path):
    with np.load(views(tmp_path)) as arrays:
        np.savez(tmp_path / "many.npz", **{key.replace("label", "labels"): values for key, values in arrays.items()})
    content = open_data(tmp_path / "many.npz", audio="y", visual="x")
    assert content.labels.tolist() == [0, 1, 0, 1, 0, 1]
    assert not any("left out" in note for note in content.notes())


@pytest.mark.parametrize("chosen", [{}, {"audio": "x"}, {"audio": "x", "visual": "z"}])
def test_views_that_are_not_named_are_listed(tmp_path, chosen):
    with pytest.raises(
        InputError, match=r"\(its views are x, y\); .* `aadml convert .*views\.npz F\.h5 --audio VIEW --visual VIEW`"
    ):
        open_data(views(tmp_path), **chosen)


def test_real_views_are_read(shared_data):
    content = open_data(shared_data / "uci_digits_views" / "uci_digits_views.npz", audio="fourier", visual="pixels")
    assert [content.splits.count(split) for split in ("train", "test")] == [1500, 500]
    assert content.class_names == tuple(str(number) for number in range(1, 11))
    content = open_data(shared_data / "mosi_utterances" / "mosi_utterances.npz", audio="audio", visual="video")
    assert np.bincount(content.labels[content.rows("test")]).tolist() == [285, 467]


def test_pickled_arrays_are_never_loaded(tmp_path):
    with pytest.raises(InputError, match="array 'x_train' contains Python objects, which are never loaded; save text"):
        open_data(views(tmp_path, x_train=np.asarray([{}, 1], dtype=object)), audio="x", visual="y")
