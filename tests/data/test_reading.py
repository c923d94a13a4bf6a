import io
import pickle
import re

import numpy as np
import pytest

from aadml.data.ave import AVE15
from aadml.data.layouts import LAYOUTS
from aadml.data.reading import open_data
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.consent import consent_to
from aadml.feature_extraction.ground.errors import InputError
from tests.edited_hdf5 import edited


def test_the_feature_file_comes_back_as_it_was_written(tmp_path):
    content = synthetic(classes=3, train=9, valid=3, test=6, dimensions=(2, 3))
    write_features(tmp_path / "f.h5", content)
    again = open_data(tmp_path / "f.h5")
    assert again.ids == content.ids
    assert np.array_equal(again.features["visual"], content.features["visual"])


def test_the_last_189_train_rows_of_the_papers_ave_file_are_its_validation_split(write_h5):
    generator = np.random.default_rng(0)
    counts = np.asarray(list(AVE15.values()))
    order = generator.permutation(15) + 1  # any numbers may stand for the classes
    blocks = {part: np.repeat(order, counts[:, number]) for number, part in enumerate(("train", "valid", "test"))}
    labels = {"train": np.concatenate([blocks["train"], blocks["valid"]]), "test": blocks["test"]}
    arrays = {f"lab_{part}": values for part, values in labels.items()}
    for part, values in labels.items():
        arrays |= {f"{name}_{part}": generator.standard_normal((len(values), 2)) for name in ("audio", "visual")}
    content = open_data(write_h5(**arrays))
    assert [content.splits.count(split) for split in ("train", "valid", "test")] == [1577, 189, 189]
    assert set(content.rows("valid")) == set(range(1577, 1766))
    assert any("official validation" in note for note in content.provenance["audio"]["notes"])

    arrays["lab_train"] = generator.permutation(arrays["lab_train"])
    assert "valid" not in open_data(write_h5("shuffled.h5", **arrays)).splits


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_named_for_something_else_is_refused_in_one_line(write_h5, tmp_path, layout):
    path = tmp_path if LAYOUTS[layout].kind != "folder" else write_h5(other=np.ones(3))
    with pytest.raises(InputError):
        open_data(path, layout=layout)
    with pytest.raises(InputError, match="does not exist"):
        open_data(tmp_path / "absent", layout=layout)


OWN_LAYOUTS = """
from aadml.data.layouts.layout import Layout, LayoutArrays

MAPPING = Layout("mapping", "h5", ("sound",), lambda path, views: {"audio": [[1.0]]})


def read(path, views):
    return LayoutArrays({}, None, None)
"""


@pytest.mark.parametrize(
    ("name", "lines", "message"),
    [
        (
            "MAPPING",
            "",
            r"reader own_layouts\d:<lambda> returned a dict; define a reader as \(path, views\) -> "
            r"LayoutArrays\(features: {name: array}, labels: array, splits: list of str\) \(see docs/extending.md\)",
        ),
        *(
            (
                "OTHER",
                f'OTHER = Layout("x", "h5", (), lambda p, v: LayoutArrays({parts}))',
                "returned a LayoutArrays; define",
            )
            for parts in (
                '{"audio": [[1.0]]}, None, ["train"]',
                'None, None, ["train"]',
                '{}, ["x"], ["train"]',
                "{}, None, [1]",
                '{}, None, ["train"], [1]',
            )
        ),
        (
            "read",
            "",
            r"layout own_layouts\d:read is a function; define a layout as an object Layout\(name, kind, keys, read",
        ),
        ("CSV", 'CSV = Layout("x", "csv", (), read)', "layout x: kind is 'csv'; choose from h5, npz, folder, table"),
        (
            "ONE",
            'ONE = Layout("x", "h5", (), lambda path: path)',
            "reader of the layout x takes path; define a reader as",
        ),
        ("NONE", 'NONE = Layout("x", "h5", (), None)', "reader of the layout x is None; define a reader as"),
    ],
)
def test_an_own_layout_that_breaks_its_contract_is_refused_in_one_line(
    write_h5, tmp_path, monkeypatch, request, name, lines, message
):
    module = f"own_layouts{request.node.callspec.indices['lines']}"
    (tmp_path / f"{module}.py").write_text(OWN_LAYOUTS + lines)
    monkeypatch.syspath_prepend(tmp_path)
    consent_to(f"{module}:{name}")
    with pytest.raises(InputError, match=message) as caught:
        open_data(write_h5(sound=np.ones((1, 1))), layout=f"{module}:{name}")
    assert "\n" not in str(caught.value)


def test_what_is_no_data_is_refused_with_what_is_possible(write_h5, tmp_path):
    (tmp_path / "empty.h5").touch()
    (tmp_path / "text.h5").write_text("not data")
    (tmp_path / "folder").mkdir()
    (tmp_path / "manifest.csv").write_text("id,media,label,split")
    (tmp_path / "pickle.npz").write_bytes(pickle.dumps([1]))
    cases = {
        "empty.h5": "is empty",
        "text.h5": "neither HDF5 nor npz",
        "manifest.csv": "run `aadml extract",
        "pickle.npz": "neither HDF5 nor npz",
        "folder": r"has no known layout \(it contains nothing\)",
        "absent.h5": "does not exist",
    }
    for name, message in cases.items():
        with pytest.raises(InputError, match=message):
            open_data(tmp_path / name)
    with pytest.raises(
        InputError, match=r"it contains other\); name its arrays audio, visual, label and split, or pass"
    ):
        open_data(write_h5(other=np.ones(3)))
    with pytest.raises(InputError, match="did you mean 'flat'"):
        open_data(write_h5(other=np.ones(3)), layout="flt")


def test_a_damaged_file_is_refused(write_h5, split_keys, tmp_path):
    whole = write_h5(**split_keys).read_bytes()
    (tmp_path / "cut.h5").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="cannot be read as HDF5"):
        open_data(tmp_path / "cut.h5")
    archive = io.BytesIO()
    np.savez(archive, label_train=np.ones(3))
    (tmp_path / "cut.npz").write_bytes(archive.getvalue()[:60])
    with pytest.raises(InputError):
        open_data(tmp_path / "cut.npz")


def test_groups_in_the_place_of_arrays_are_refused(write_h5, split_keys):
    path = write_h5(**split_keys)
    with edited(path) as file:
        del file["lab_train"]
        file.create_group("lab_train")
    with pytest.raises(InputError, match="'lab_train' is a group, but must be an array"):
        open_data(path)


def test_two_arrays_of_any_name_are_the_modalities_that_they_are_named_for(tmp_path):
    generator = np.random.default_rng(0)
    a, v = (generator.standard_normal((20, d)).astype(np.float32) for d in (3, 4))
    np.savez(tmp_path / "x.npz", a=a, v=v)
    content = open_data(tmp_path / "x.npz", audio="a", visual="v", undivided="all")
    assert np.array_equal(content.features["audio"], a)
    assert np.array_equal(content.features["visual"], v)
    assert content.class_names == ()
    assert set(content.splits) == {"train"}
    drawn = open_data(tmp_path / "x.npz", audio="a", visual="v")  # neither labels nor splits
    assert [drawn.splits.count(part) for part in ("train", "valid", "test")] == [14, 2, 4]
    assert any("drawn at random (0.7/0.1/0.2, seed 0)" in note for note in drawn.notes())
    np.savez(tmp_path / "y.npz", audio=a, visual=v, label=np.arange(20) % 2)
    with pytest.raises(InputError, match=r"has no 'split'.*--split random:0\.7/0\.1/0\.2"):
        open_data(tmp_path / "y.npz")
    assert set(open_data(tmp_path / "y.npz", undivided="labeled").splits) == {"train"}
    assert open_data(tmp_path / "x.npz", audio="a", visual="v", undivided="labeled").splits == drawn.splits
    with pytest.raises(InputError):
        open_data(tmp_path / "x.npz", audio="a", visual="w", undivided="all")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"audio": "x"}, r"views 'audio=x' cannot be chosen for a feature file; leave out views"),
        (
            {"views": ["flow=raft"]},
            r"views 'flow=raft' cannot be chosen for a feature file; leave out views",
        ),
    ],
)
def test_what_a_feature_file_does_not_follow_is_refused(tmp_path, options, said):
    write_features(tmp_path / "f.h5", synthetic(classes=3, train=9, valid=3, test=6, dimensions=(2, 3)))
    with pytest.raises(InputError, match=said):
        open_data(tmp_path / "f.h5", **options)


@pytest.mark.parametrize("options", [{"layout": "flat"}, {"audio": "x"}, {"class_names": ("a",)}])
def test_drawn_features_leave_nothing_to_choose(options):
    with pytest.raises(
        InputError,
        match=r"^synthetic:pairs: (.*) '.*' cannot be chosen for synthetic features; leave out \1$",
    ):
        open_data("synthetic:pairs", **options)


def test_what_a_layout_does_not_follow_is_refused(write_h5, split_keys):
    place = write_h5(**split_keys)
    with pytest.raises(InputError, match=r"views 'audio=x' cannot be chosen for the layout split-keys; leave out"):
        open_data(place, audio="x")


@pytest.mark.parametrize("labels", [{}, {"label": np.arange(40) % 2, "split": [b"train"] * 20 + [b"test"] * 20}])
def test_arrays_of_hdf5_that_are_named_are_modalities(write_h5, labels):
    place = write_h5(sound=np.eye(40), image=np.ones((40, 3)), **labels)
    content = open_data(place, audio="sound", visual="image")
    assert {name: values.shape for name, values in content.features.items()} == {"audio": (40, 40), "visual": (40, 3)}
    with pytest.raises(InputError, match=r"contains no 'picture'|has no known layout"):
        open_data(place, audio="sound", visual="picture")


@pytest.mark.parametrize("views", [1.5, 0, [1], {1: "a"}])
def test_views_that_are_not_texts_are_refused(tmp_path, views):
    with pytest.raises(InputError, match=r'^views: .* is not a mapping or a list of views; pass .*\["flow=VIEW"\]$'):
        open_data("synthetic:ave", views=views)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"audio": "a", "views": ["audio=b"]}, "--view: audio has two views, 'a' and 'b'; pass one view"),
        ({"views": ["flow"]}, "--view: 'flow' is not NAME=VIEW; pass NAME=VIEW, as in flow=raft"),
        ({"views": ["flow="]}, "--view: 'flow=' is not NAME=VIEW; pass NAME=VIEW, as in flow=raft"),
        ({"layout": "ave-h5"}, "is a file, but the layout ave-h5 needs a folder; pass a folder"),
    ],
)
def test_views_and_layouts_that_do_not_fit_are_refused(write_h5, split_keys, options, said):
    with pytest.raises(InputError, match=re.escape(said)):
        open_data(write_h5(**split_keys), **options)


def test_at_most_twenty_keys_of_an_unknown_file_are_named(write_h5, tmp_path):
    keys = [f"key{number:02d}" for number in range(21)]
    with pytest.raises(InputError, match=rf"has no known layout \(it contains {', '.join(keys[:20])}\); name its"):
        open_data(write_h5(**dict.fromkeys(reversed(keys), np.ones(2))))
    with pytest.raises(InputError, match="is a folder, but the layout flat needs a file; pass a file"):
        open_data(tmp_path, layout="flat")
    with pytest.raises(InputError, match="is a device or a pipe; pass a file or a folder"):
        open_data("/dev/null")
    (tmp_path / "none.npz").write_bytes(b"PK\x05\x06" + bytes(18))
    with pytest.raises(
        InputError, match=r"has no known layout \(it contains nothing\); pass a feature file, or one of"
    ):
        open_data(tmp_path / "none.npz")
