import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aadml.data.inspection.duplicates import find_duplicates
from aadml.data.inspection.inspection import examine, inspect
from aadml.data.splitting import split_duplicates
from aadml.feature_extraction.feature_file.content import Timeline


def warnings(content):
    return " | ".join(examine(content).warnings)


def test_counts_clips_by_split_and_class(make_content):
    found = examine(make_content([0, 0, 1, 0], ["train", "train", "train", "test"]))
    assert found.clips == 4
    assert found.splits == {"train": 3, "valid": 0, "test": 1}
    assert found.classes["class 0"] == {"train": 2, "valid": 0, "test": 1}
    assert "there are no valid clips" in found.warnings
    assert "classes have no test clips: class 1" in found.warnings


def test_ranges_are_those_of_the_values(make_content):
    values = np.asarray([[0.0, -2.0], [0.0, 6.0]], dtype=np.float32)
    figures = examine(make_content([0, 1], ["train", "test"], features={"audio": values})).modalities["audio"]
    assert figures["dimensions"] == 2
    assert (figures["minimum"], figures["maximum"], figures["mean"]) == (-2.0, 6.0, 1.0)
    assert figures["zeros"] == 0.5
    assert figures["constant_dimensions"] == 1
    assert figures["standard_deviation"] == pytest.approx(values.std())


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["train", "valid", "test"])), max_size=30))
def test_duplicates_are_those_of_the_definition(clips):
    found = find_duplicates(
        [value for value, _ in clips], [split for _, split in clips], list(map(str, range(len(clips))))
    )
    of = {split: [value for value, own in clips if own == split] for split in ("train", "valid", "test")}
    assert found.within == {split: len(values) - len(set(values)) for split, values in of.items()}
    assert found.across == {
        pair: len(set.intersection(*(set(of[one]) for one in pair.split("-")))) for pair in found.across
    }
    shared = [value for value in dict(clips) if sum(value in values for values in of.values()) > 1]
    assert found.examples == tuple(str([value for value, _ in clips].index(one)) for one in shared[:5])


def test_a_modality_that_no_clip_has_is_present_in_no_clip_and_has_no_statistics(make_content):
    content = make_content([0, 1], ["train", "test"], present={"audio": np.zeros(2, dtype=bool)})
    found = examine(content)
    assert list(found.modalities) == ["visual"]
    assert found.present == {"audio": {"train": 0, "valid": 0, "test": 0}}
    assert "2 of 2 clips have no audio; these clips are masked, not left out" in found.warnings


def test_a_search_of_a_sample_is_a_warning(make_content, monkeypatch):
    values = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    content = make_content([0, 1] * 30, ["train"] * 40 + ["test"] * 20, features={"audio": values})
    assert examine(content).searched == {"test": 20, "valid": 0}
    assert "drawn at random" not in warnings(content)
    monkeypatch.setattr(split_duplicates, "_LARGEST", 40 * 20 * 3 / 4)
    assert examine(content).searched == {"test": 5, "valid": 0}
    assert "only 5 of 20 test clips (drawn at random, seed 0)" in warnings(content)
    assert examine(content, near_duplicates=True).searched == {"test": 20, "valid": 0}


def test_duplicates_are_counted_within_and_across_splits():
    found = find_duplicates(list("aabcbd"), ["train", "train", "train", "test", "test", "test"], list("uvwxyz"))
    assert found.within == {"train": 1, "valid": 0, "test": 0}
    assert found.across == {"train-valid": 0, "train-test": 1, "valid-test": 0}
    assert found.examples == ("w",)


def test_identical_feature_rows_across_splits_are_a_warning(make_content):
    values = np.arange(12, dtype=np.float32).reshape(4, 3)
    twin = values.copy()
    twin[3] = twin[0]
    zero = np.asarray([[0.0], [1.0], [2.0], [-0.0]], dtype=np.float32)
    content = make_content([0, 1, 0, 1], ["train", "train", "test", "test"], features={"audio": twin, "visual": zero})
    found = examine(content)
    assert found.duplicates["audio"].across["train-test"] == 1
    assert found.duplicates["visual"].across["train-test"] == 1
    assert found.duplicates["all modalities"].across["train-test"] == 1
    assert "1 identical feature rows (audio) are in both splits of train-test (clip 0)" in found.warnings
    content = make_content([0, 1, 0, 1], ["train", "train", "test", "test"], features={"audio": twin, "visual": values})
    assert examine(content).duplicates["all modalities"].across["train-test"] == 0


def test_ids_in_two_splits_are_a_warning(make_content):
    content = make_content([0, 1, 0], ["train", "train", "test"], ids=["x", "y", "x"])
    assert "1 ids are in both splits of train-test (x)" in warnings(content)


@pytest.mark.parametrize(
    ("values", "word"),
    [
        (np.asarray([[0, 200], [3, 255]]), "8-bit"),
        (np.asarray([[0, 0.5], [0, 1.5]]), "ReLU"),
        (np.asarray([[1, 0.5], [1, -1.5]]), "1 of 2 dimensions never change"),
        (np.asarray([[0, 0], [1, -1.5]]), "1 clips have only zeros"),
        (np.asarray([[5e4, 0.5], [1, -1.5]]), "standardize"),
    ],
)
def test_values_of_another_kind_are_a_warning(make_content, values, word):
    content = make_content([0, 1], ["train", "test"], features={"audio": values.astype(np.float32)})
    assert word in warnings(content)


def test_the_kind_of_values_is_not_guessed_for_known_extractors(make_content):
    values = np.asarray([[0, 0.5], [0, 1.5]], dtype=np.float32)
    origin = {"audio": {"extractor": "hog-color"}}
    assert "ReLU" not in warnings(
        make_content([0, 1], ["train", "test"], features={"audio": values}, provenance=origin)
    )


def test_untrained_weights_are_a_warning(make_content):
    content = make_content([0, 1], ["train", "test"], provenance={"audio": {"weights": "untrained"}, "visual": {}})
    assert "audio was computed by an untrained network" in warnings(content)


def test_the_examination_can_be_written_as_json(make_content):
    found = examine(make_content([0, 1, 1], ["train", "valid", "test"], provenance={"audio": {"a": 1}, "visual": {}}))
    assert json.loads(json.dumps(asdict(found)))["clips"] == 3


def test_sequences_have_the_times_of_their_rows(make_content):
    timeline = Timeline(np.ones((5, 2), np.float32), np.array([0, 3, 3, 5]), np.array([0.5, 1.46, 2.42, 0.0, 0.96]))
    older = replace(timeline, times=None)
    content = make_content([0, 1, 1], ["train", "valid", "test"])
    found = examine(replace(content, sequences={"audio": timeline, "visual": older})).sequences
    assert found["visual"] == {"rows": 5, "fewest": 0, "most": 3}
    assert {key: round(value, 6) for key, value in found["audio"].items()} == {
        "rows": 5, "fewest": 0, "most": 3, "step": 0.96, "earliest": 0.0, "latest": 0.5
    }  # fmt: skip


def test_clips_with_several_labels_count_in_each_class_and_are_reported(make_content):
    several = np.asarray([[1, 1], [1, 0], [0, 0]], np.uint8)
    names = ("class 0", "class 1")
    content = make_content([0, 0, -1], ["train", "test", "test"], all_labels=several, class_names=names)
    assert examine(content).classes == {
        "class 0": {"train": 1, "valid": 0, "test": 1}, "class 1": {"train": 1, "valid": 0, "test": 0}
    }  # fmt: skip
    assert "1 clips have several labels; methods that train on classes leave these clips out" in warnings(content)
    content = make_content([0, 1, -1], ["train", "test", "test"])
    assert "1 clips have no label; only the methods few-labels and pairs train on these clips" in warnings(content)


def test_negative_labels_and_a_single_class_are_reported(write_h5, split_keys):
    for part in ("train", "test"):
        split_keys[f"lab_{part}"] = np.full_like(split_keys[f"lab_{part}"], -7)
    warnings = inspect(write_h5(**split_keys)).warnings
    assert "classes have negative numbers as names, which often mark clips without a label: -7" in warnings
    assert "all labeled clips have the class '-7', so each clip is relevant to each query" in warnings


def test_a_recording_with_clips_in_two_splits_is_reported_once(make_content):
    content = make_content([0, 0, 0, 1, 1, 1], ["train", "train", "test", "test", "train", "train"])
    assert "recordings" not in warnings(content)
    content = replace(content, columns={"recording": ("a", "a", "a", "b", "c", "d")})
    assert "1 recordings have clips in both splits of train-test (a)" in warnings(content)


BYTES = "values are whole numbers from 0 to 255, probably 8-bit; scale them before comparisons"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([[1, 31], [2, 3]], []),
        ([[1, 32], [2, 3]], [BYTES]),
        ([[0, 255], [0, 3]], [BYTES, "1 of 2 dimensions never change"]),
        ([[1, 256], [2, 3]], []),
        ([[-1, 200], [2, 3]], []),
        ([[1, 200], [2, 3.5]], []),
        ([[0, 1.5], [0, 2], [3, 4], [5, 6], [7, 8]], []),
        ([[0, 1.5], [0, 2], [0, 4], [5, 6], [7, 8]], ["values are never negative and 30% are zeros, as after a ReLU"]),
        ([[0, -1.5], [0, 2], [0, 4], [5, 6], [7, 8]], []),
        ([[1000, -1000], [1, 2.5]], []),
        ([[2000, 0.5], [1, 2]], ["values range from 0.5 to 2e+03; standardize them before training"]),
        ([[-2000, 0], [0, 0]], ["1 clips have only zeros", "1 of 2 dimensions never change",
                                "values range from -2e+03 to 0; standardize them before training"]),
    ],
)  # fmt: skip
def test_warnings_of_values_begin_at_their_thresholds(make_content, rows, said):
    splits = ["train", *["test"] * (len(rows) - 1)]
    content = make_content([0] * len(rows), splits, features={"audio": np.asarray(rows, np.float32)})
    found = [text for text in examine(content).warnings if text.startswith("audio: ")]
    assert sorted(found) == sorted(f"audio: {text}" for text in said)


def test_all_warnings_are_listed_in_order(make_content):
    values = np.random.default_rng(0).normal(size=(8, 6)).astype(np.float32)
    values[1], values[7] = values[0], values[2]
    splits, ids = ["train"] * 5 + ["test"] * 3, [*"aacdefgd"]
    content = make_content([0, 0, 1, 1, 2, 0, 0, 1], splits, features={"audio": values}, ids=ids)
    assert examine(content).warnings == (
        "there are no valid clips",
        "classes have no test clips: class 2",
        "1 ids repeat within train",
        "1 ids are in both splits of train-test (d)",
        "1 identical feature rows (audio) repeat within train",
        "1 identical feature rows (audio) are in both splits of train-test (c)",
        "1 test clips are also in train, up to noise or encoding (1 by audio); "
        "`aadml convert IN OUT --drop-duplicates train` removes the copies in train",
    )


def test_clips_of_one_row_have_no_step_and_clips_without_rows_no_times(make_content):
    content = make_content([0, 1], ["train", "test"])
    for offsets, expected in (([0, 1, 2], (None, 0.5, 1.5)), ([0, 0, 0], (None, None, None))):
        count = offsets[-1]
        timeline = Timeline(np.ones((count, 2), np.float32), np.array(offsets), np.array([1.5, 0.5])[:count])
        found = examine(replace(content, sequences={"audio": timeline})).sequences["audio"]
        assert (found["step"], found["earliest"], found["latest"]) == expected
