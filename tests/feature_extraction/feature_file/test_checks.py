import re

import numpy as np
import pytest

from aadml.feature_extraction.feature_file import rows
from aadml.feature_extraction.feature_file.checks import check
from aadml.feature_extraction.feature_file.content import Shard, Texts, Timeline
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from tests.feature_extraction.contents import content, nine_clips, timed, with_texts


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": {}}, "contains no modality"),
        ({"features": {"Smell": np.ones((4, 1), np.float32)}}, "'Smell' cannot be the name of a modality"),
        ({"features": {"audio_times": np.ones((4, 1), np.float32)}}, "'audio_times' cannot be the name of a modality"),
        ({"features": {"audio": np.ones((3, 2), np.float32)}}, "/audio is float32 (3, 2), but must be float32 (4, d)"),
        ({"features": {"audio": np.ones(4, np.float32)}}, "/audio is float32 (4,), but must be float32 (4, d)"),
        ({"features": {"audio": np.ones((4, 2))}}, "/audio is float64 (4, 2), but must be float32 (4, d)"),
        ({"features": {"audio": np.array([[0], [1], [np.nan], [0]], np.float32)}}, "/audio: row 2 contains NaN"),
        ({"features": {"audio": np.array([[0], [np.inf], [1], [0]], np.float32)}}, "/audio: row 1 contains NaN"),
        ({"labels": np.array([0, 1, 0])}, "/label is int64 (3,), but must be int64 (4,)"),
        ({"features": {"audio": np.ones((4, 0), np.float32)}}, "/audio is float32 (4, 0), but must be float32 (4, d)"),
        (
            {"labels": np.array([0, 1, 2, -2])},
            "/label is 2 in row 2, but there are 2 class names; write 0 to 1, or -1 for a clip without a label",
        ),
        ({"labels": np.array([0, -2, 2, 0])}, "/label is -2 in row 1, but"),
        ({"labels": np.array([0.0, 1, 1, 0])}, "/label is float64"),
        ({"labels": np.full(4, -2)}, "/label is -2 in row 0"),
        (
            {"labels": np.zeros(4, np.int64), "class_names": (), "all_labels": None},
            "/label is 0 in row 0, but there are 0 class names; write -1 for a clip without a label",
        ),
        ({"all_labels": np.ones((4, 3), np.uint8)}, "/labels is uint8 (4, 3), but must be uint8 (4, 2)"),
        ({"all_labels": np.full((4, 2), 2, np.uint8)}, "zeros and ones"),
        (
            {"all_labels": np.array([[1, 1]] * 3 + [[1, 0]], np.uint8)},
            "/labels and /label contradict each other in row 3",
        ),
        (
            {"labels": np.array([0, 1, -1, 1]), "all_labels": np.array([[1, 0], [1, 1], [0, 1], [0, 1]], np.uint8)},
            "/labels and /label contradict each other in row 2; write in /label the first class of /labels",
        ),
        ({"splits": ("train", "test")}, "/split has 2 rows"),
        ({"splits": ("train",) * 5}, "/split has 5 rows, but there are 4 ids; write one row per id"),
        (
            {"fingerprints": {"audio": np.zeros((3, 2), np.uint8)}},
            "/fingerprint/audio is uint8 (3, 2), but must be uint8 (4, width)",
        ),
        ({"splits": ("train", "train", "exam", "test")}, "/split contains 'exam'; choose from train, valid, test"),
        (
            {"ids": ("a", "b", "c\ud800", "d")},
            "/id contains 'c\\ud800', which is not valid Unicode; correct this text",
        ),
        ({"class_names": ("a", "\udcff")}, "/class_names contains '\\udcff', which is not valid Unicode"),
        ({"columns": {"speaker": ("x", "", "\ud800", "")}}, "/column/speaker contains '\\ud800'"),
        ({"columns": {"speaker": ("x",)}}, "/column/speaker has 1 rows"),
        (
            {"sequences": dict.fromkeys(("text", "pose"), Timeline(np.ones((1, 1), np.float32), np.arange(5)))},
            "/pose_sequence is present without pooled features; add /pose",
        ),
        (
            {"sequences": {"audio": Timeline(np.ones((6, 3)), np.array([0, 2, 2, 5, 6]))}},
            "/audio_sequence is float64 (6, 3), but must be float32 (total, width)",
        ),
        *(
            (
                {"sequences": {"audio": Timeline(np.ones((6, 3), np.float32), np.array([first, 2, 2, 5, 6]))}},
                f"/audio_offsets go from {first} to 6, but must ascend from 0 to 6; write such offsets",
            )
            for first in (-1, 1)
        ),
        (
            {"sequences": {"audio": Timeline(np.ones((6, 3), np.float32), np.array([0, 2, 1, 5, 6]))}},
            "/audio_offsets go from 0 to 6, but must ascend from 0 to 6",
        ),
        (
            {"sequences": {"audio": Timeline(np.ones((7, 3), np.float32), np.array([0, 2, 2, 5, 6]))}},
            "/audio_offsets go from 0 to 6, but must ascend from 0 to 7",
        ),
        ({"sequences": {"audio": Timeline(np.ones((6, 3), np.float32), np.array([0, 6]))}}, "must be int64 (5,)"),
        ({"shard": Shard(0, 2, 9, "abc", rows=np.array([0]))}, "/shard_rows is int64 (1,), but must be int64 (4,)"),
    ],
)
def test_refuses_content_that_contradicts_itself(tmp_path, changes, message):
    with pytest.raises(InputError, match=re.escape(message)):
        check(content(**changes), "f.h5")
    with pytest.raises(InputError, match=re.escape(message)):
        write_features(tmp_path / "f.h5", content(**changes))
    assert list(tmp_path.iterdir()) == []


def test_refuses_a_file_without_clips():
    empty = content(features={"audio": np.ones((0, 1), np.float32)}, labels=np.zeros(0, np.int64), ids=(), splits=())
    with pytest.raises(InputError, match="contains no clips"):
        check(empty, "here")


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ((0.0,) * 5, "/audio_times is float64 (5,), but must be float64 (6,)"),
        ((0.0, 1, 0, 1, 2, np.nan), "NaN, infinity or negative numbers"),
        ((-1.0, 1, 0, 1, 2, 0), "NaN, infinity or negative numbers"),
        ((0.0, 1, 0, 1, 0.5, 0), "/audio_times decreases at row 4, within one clip"),
        ((1.0, 0, 0, 1, 2, 0), "/audio_times decreases at row 1, within one clip"),
    ],
)
def test_refuses_times_that_cannot_be(tmp_path, times, message):
    with pytest.raises(InputError, match=re.escape(message)):
        check(timed(times), "f.h5")
    with pytest.raises(InputError, match=re.escape(message)):
        write_features(tmp_path / "f.h5", timed(times))


@pytest.mark.parametrize(
    "content",
    [
        content(labels=np.array([0, 1, -1, 1]), all_labels=np.array([[1, 0], [1, 1], [0, 0], [0, 1]], np.uint8)),
        content(sequences={"audio": Timeline(np.ones((0, 3), np.float32), np.zeros(5, np.int64), np.zeros(0))}),
        with_texts(rows=(1, 1, 3)),
        with_texts(rows=()),
    ],
    ids=["labels", "rows over time", "texts", "no texts"],
)
def test_content_with_gaps_is_consistent(content):
    check(content, "f.h5")


@pytest.mark.parametrize("changes", [{"ids": ("b", "a", "a", "d")}, {"class_names": ("y", "x", "x")}])
def test_refuses_a_name_that_stands_for_two_things(tmp_path, changes):
    with pytest.raises(InputError, match=r"contains '[ax]' 2 times; write each name once"):
        write_features(tmp_path / "f.h5", content(**changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"present": {"audio": np.array([1, 1, 0, 1])}}, "/audio_present is int64 (4,), but must be bool (4,)"),
        ({"present": {"audio": np.array([True])}}, "/audio_present is bool (1,), but must be bool (4,)"),
        ({"present": {"text": np.ones(4, bool)}}, "/text_present is present without its features"),
        ({"present": {"audio": np.array([True, True, False, True])}}, "/audio: row 2 is not zero, but "),
        (
            {"features": {"audio": np.zeros((4, 1), np.float32)}, "present": {"audio": np.array([1, 0, 0, 1], bool)}},
            "clip 'clip 1 é\\n' has no modality; leave out",
        ),
        (
            {"present": {"audio": np.arange(4) > 0}, "sequences": content().sequences},
            "/audio_present is false for clip 'clip 0 é\\n', which has rows in /audio_sequence; write true, or remove",
        ),
        (
            {
                "present": {"audio": np.arange(4) > 0},
                "sequences": {"audio": Timeline(np.ones((6, 3), np.float32), np.array([0, 0, 2, 2, 5, 6]))},
            },
            "/audio_offsets is int64 (6,), but must be int64 (5,)",
        ),
    ],
)
def test_refuses_masks_that_contradict_the_features(tmp_path, changes, message):
    with pytest.raises(InputError, match=re.escape(message)):
        write_features(tmp_path / "f.h5", content(**{"sequences": {}, **changes}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (
            Texts(np.ones((2, 2), np.float32), np.array([0, 4])),
            "/text_row contains 0 to 4, but must contain clips from 0 to 3 in asc",
        ),
        (
            Texts(np.ones((2, 2), np.float32), np.array([-1, 0])),
            "contains -1 to 0, but must contain clips from 0 to 3 in ascending order; write the clip",
        ),
        (Texts(np.ones((2, 2), np.float32), np.array([1, 0])), "clips from 0 to 3 in asc"),
        (Texts(np.ones((2, 2), np.float32), np.array([0])), r"/text_row is int64 \(1,\)"),
        (Texts(np.full((1, 2), np.nan, np.float32), np.array([0])), "/text contains NaN"),
        (Texts(np.ones((1, 2)), np.array([0])), r"/text is float64 \(1, 2\)"),
        (
            Texts(np.ones((1, 2), np.float32), np.array([0])),
            "the text features differ from the first text of each clip",
        ),
    ],
)
def test_texts_that_contradict_the_clips_are_refused(texts, reason):
    with pytest.raises(InputError, match=reason):
        check(with_texts(texts=texts), "f.h5")


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(rows, "_BYTES", 24)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("row", range(9))
def test_the_row_that_is_not_finite_is_named_in_any_block(tmp_path, row):
    values = np.ones((9, 4), np.float32)
    values[row, 2] = np.nan
    with pytest.raises(InputError, match=f"row {row} contains NaN"):
        write_features(tmp_path / "f.h5", nine_clips(values))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("small_blocks")
def test_times_that_go_back_are_found_within_and_between_blocks(tmp_path):
    offsets = set(nine_clips().sequences["audio"].offsets.tolist())
    for row in range(1, 20):
        times = 1.0 + 0.5 * np.arange(20)
        times[row:] -= 0.75  # below the row before it, above all others
        if row in offsets:
            write_features(tmp_path / "f.h5", nine_clips(times=times))
        else:
            with pytest.raises(InputError, match=f"decreases at row {row}, within one clip"):
                write_features(tmp_path / "f.h5", nine_clips(times=times))
