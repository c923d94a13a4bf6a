"""The npz that `aadml evaluate` takes, `aadml train` takes too."""

import numpy as np
import pytest

import aadml
from aadml.data.reading import open_data
from aadml.data.synthetic import synthetic
from feature_extraction.ground.errors import InputError


@pytest.fixture
def written(tmp_path):
    """An npz of columns, with changes; None leaves a column out."""
    content = synthetic(classes=3, train=60, valid=15, test=30, dimensions=(6, 8), difficulty=0.2)
    names = np.asarray(content.class_names)
    columns = {**content.features, "label": names[content.labels], "split": np.asarray(content.splits)}

    def write(**changes):
        path = tmp_path / "views.npz"
        np.savez(path, **{key: value for key, value in {**columns, **changes}.items() if value is not None})
        return path, content

    return write


def test_a_row_is_a_clip(written):
    path, content = written(id=np.asarray([f"clip {i}" for i in range(105)]))
    found = open_data(path)
    for modality, values in content.features.items():
        np.testing.assert_array_equal(found.features[modality], values)
    assert found.ids[3] == "clip 3"
    assert (found.splits, found.class_names) == (content.splits, content.class_names)
    np.testing.assert_array_equal(found.labels, content.labels)


def test_it_is_trained_on_and_evaluated_as_it_is(written):
    path, _ = written()
    model = aadml.fit(path, method="cca", settings={"method.dimension": 3})
    assert model.facts.features == {"audio": {}, "visual": {}}
    assert model.evaluation["directions"]["audio-visual"]["queries"] == 30
    same_width, _ = written(visual=np.load(path)["audio"])
    assert aadml.evaluate(embeddings=same_width).split == "test"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"split": None}, "has no 'split'; add an array with train, valid or test for each clip"),
        ({"split": np.asarray(["train"] * 104 + ["holdout"])}, "'holdout' given; one of train, valid"),
        ({"split": np.asarray(["train"] * 104)}, "104"),
        ({"label": np.zeros(3, np.int64)}, "3"),
        ({"audio": None}, "audio"),
        ({"label": np.asarray([{}] * 105, dtype=object)}, "npz"),
    ],
)
def test_what_contradicts_itself_is_refused(written, changes, message):
    path, _ = written(**changes)
    with pytest.raises(InputError, match=message):
        open_data(path, layout="columns")


def test_views_that_are_not_named_get_advice_that_exists(tmp_path):
    views = {"x": np.ones((4, 2)), "y": np.ones((4, 3)), "label": np.arange(4) % 2}
    np.savez(tmp_path / "v.npz", **{f"{name}_{part}": v for name, v in views.items() for part in ("train", "test")})
    with pytest.raises(InputError, match=r"`aadml convert .*v\.npz F\.h5`, and use F\.h5; the views are x, y"):
        aadml.fit(tmp_path / "v.npz", method="cca")
