"""A law over LAYOUTS: the smallest file of each converts; with a part less it converts too, or is refused in a line."""

import h5py
import numpy as np
import pytest

from aadml.data.conversion import convert
from aadml.data.layouts import LAYOUTS
from aadml.data.reading import open_data, recognize
from aadml.feature_extraction.feature_file.checks import check
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.ground.errors import InputError

ONE, TWO = np.ones((1, 2), np.float32), np.ones((2, 3), np.float32)
SPLIT = np.array(["train", "test"])
NAMED = {"audio": "x", "visual": "y"}
ARRAYS = {
    "split-keys": {f"{name}_{part}": ONE for name in ("audio", "visual") for part in ("train", "test")}
    | {"lab_train": np.array([3]), "lab_test": np.array([3])},
    "flat": {"audio_feat": TWO, "visual_feat": TWO, "Label_ID": np.array([0, 0]), "Split": np.array([b"1", b"0"])},
    "embedding-dump": {"featN1": TWO, "featN2": TWO, "testLs": np.array([0, 1])},
    "columns": {"audio": TWO, "visual": TWO, "label": np.array([0, 0]), "split": SPLIT},
    "columns-h5": {"audio": TWO, "visual": TWO, "label": np.array([0, 0]), "split": SPLIT.astype("S")},
    "table": {"audio": [[1.0]] * 2, "visual": [[1.0]] * 2, "label": [0, 0], "split": ["train", "test"]},
    "views": {f"{view}_{part}": ONE for view in ("x", "y") for part in ("train", "test")}
    | {"label_train": np.array([1]), "label_test": np.array([1])},
    "ave-h5": {
        **{f"{name}_feature.h5": {"avadataset": np.ones((2, 1, 3), np.float32)} for name in ("audio", "visual")},
        "labels.h5": {"avadataset": np.eye(2, dtype=np.float32)[:, None]},
        **{f"{part}_order.h5": {"order": np.array([row])} for part, row in (("train", 0), ("test", 1))},
        "val_order.h5": {"order": np.zeros(0, dtype=np.int64)},
    },
    "bytes-folder": {
        **{f"{part}/{name}.npy": np.ones((1, 2), np.uint8) for part in ("vgg", "inception") for name in "ab"},
        **{f"classes/{name}.npy": np.int64(0) for name in "ab"},
        **{f"folds/{name}.txt": name for name in "ab"},
    },
}
"""Layout -> its smallest content: a clip to train on and one to test, by keys, or by files of a folder."""


def written(name, parts, folder):
    """Write the content of a layout; return its path and what has to be named."""
    if name == "views":
        np.savez(folder / "x.npz", **parts)
        return folder / "x.npz", NAMED
    if LAYOUTS[name].kind == "table":
        arrow = pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
        pytest.importorskip("pyarrow.parquet").write_table(arrow.table(parts), folder / "x.parquet")
        return folder / "x.parquet", {}
    if LAYOUTS[name].kind == "npz":
        np.savez(folder / "x.npz", **parts)
        return folder / "x.npz", {}
    if LAYOUTS[name].kind == "h5":
        write_h5(folder / "x.h5", parts)
        return folder / "x.h5", {}
    for place, part in parts.items():
        path = folder / "x" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(part, dict):
            write_h5(path, part)
        elif isinstance(part, str):
            path.write_text(part)
        else:
            np.save(path, part)
    return folder / "x", {}


def write_h5(path, arrays):
    with h5py.File(path, "w") as file:
        for key, values in arrays.items():
            file[key] = values


def without_rows(part):
    if isinstance(part, dict):
        return {key: values[:0] for key, values in part.items()}
    return "" if isinstance(part, str) else part[:0] if np.ndim(part) else np.zeros(0, np.int64)


def test_every_layout_has_its_smallest_file_here():
    assert set(ARRAYS) == set(LAYOUTS)


def test_each_layout_is_recorded_by_a_name_and_some_read_arrays_of_other_names():
    names = {"columns-h5": "columns"}
    taking = {"columns", "columns-h5", "table", "views", "embedding-dump"}
    recorded = {name: (layout.name, layout.takes_views) for name, layout in LAYOUTS.items()}
    assert recorded == {name: (names.get(name, name), name in taking) for name in ARRAYS}


@pytest.mark.parametrize("name", ARRAYS)
def test_the_smallest_file_is_recognized_and_converts(name, tmp_path):
    path, views = written(name, ARRAYS[name], tmp_path)
    assert recognize(path) == name
    content = convert(path, tmp_path / "f.h5", **views)
    assert (len(content.ids), set(content.features)) == (2, {"audio", "visual"})
    assert read_features(tmp_path / "f.h5").splits == content.splits


@pytest.mark.slow
@pytest.mark.parametrize("name", ARRAYS)
def test_without_any_of_its_parts_or_any_row_of_it_a_file_converts_or_is_refused_in_one_line(name, tmp_path):
    whole = ARRAYS[name]
    changed = [{key: part for key, part in whole.items() if key != left} for left in whole]
    # each file of AVE is looked at in a process of its own, and columns of a table have one length
    emptied = {"ave-h5": ["labels.h5"], "table": []}.get(name, whole)
    changed += [{**whole, key: without_rows(whole[key])} for key in emptied]
    changed.append({key: without_rows(part) for key, part in whole.items()})
    refused = []
    for number, parts in enumerate(changed):
        folder = tmp_path / str(number)
        folder.mkdir()
        path, views = written(name, parts, folder)
        said = refusal(path, layout=name, **views)
        refused += [said] if said else []
    assert len(refused) > len(whole) // 2  # some layouts leave out clips that are not whole, and say so
    assert [said for said in refused if "\n" in said or str(tmp_path) not in said] == []


def refusal(path, **options):
    """Read what is to be converted, or say why that was refused."""
    try:
        check(open_data(path, **options), "read")
    except InputError as error:
        return str(error)
    return ""
