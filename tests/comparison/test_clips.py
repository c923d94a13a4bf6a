"""Clips of arrays as people have them: what is taken, and what is refused in one line."""

import re
from functools import partial

import numpy as np
import pytest
import torch

from aadml.comparison.clips import Clips, Splits
from aadml.comparison.embeddings import Embeddings
from aadml.feature_extraction.ground.errors import InputError

N = 6
CODES = [0, 1, 2, 0, 1, 2]
FEATURES = np.random.default_rng(0).normal(size=(N, 3))


def clips(labels=CODES, **options):
    return Clips.of(labels, **{"audio": FEATURES, "visual": FEATURES} | options)


@pytest.mark.parametrize("kind", [list, lambda listed: np.asarray(listed, dtype=object)])
def test_none_in_place_of_a_label_is_a_clip_without_one(kind):
    made = clips(kind(["b", None, "a", None, "b", "a"]))
    assert (made.class_names, made.labels.tolist(), made.unlabelled) == (("a", "b"), [1, -1, 0, -1, 1, 0], 2)
    for none in (None, kind([None] * N)):
        assert (clips(none).class_names, clips(none).labels.tolist()) == ((), [-1] * N)


@pytest.mark.parametrize(
    "labels", [[7, -1, 3, -1, 7, 3], np.asarray([7, -1, 3, -1, 7, 3]), ["7", "", "3", "-1", "7", "3"]]
)
def test_labels_that_are_minus_one_or_empty_are_not_a_class(labels):
    made = clips(labels)
    assert (made.class_names, made.labels.tolist()) == (("3", "7"), [1, -1, 0, -1, 1, 0])


@pytest.mark.parametrize("ids", [["a1", *"bcdef"], range(N), np.arange(N), torch.arange(N), None, []])
def test_ids_are_kept_as_text(ids):
    expected = ("a1", *"bcdef") if isinstance(ids, list) and ids else tuple("012345")
    assert clips(ids=ids).ids == expected


@pytest.mark.parametrize("ids", ["abcdef", [None] * N, [0.5] * N, [True] * N, FEATURES, 3, np.float64(3)])
def test_other_ids_are_refused(ids):
    with pytest.raises(InputError, match=r"^ids have type \w+; pass n names or n whole numbers$"):
        clips(ids=ids)


@pytest.mark.parametrize("there", [[True, False] * 3, np.asarray([1, 0] * 3), torch.tensor([1.0, 0.0] * 3)])
def test_whether_a_clip_has_a_modality_is_said_by_truth_values_or_zeros_and_ones(there):
    assert clips(present={"audio": there}).present["audio"].tolist() == [True, False] * 3


@pytest.mark.parametrize(
    ("present", "said"),
    [
        ({"adio": [True] * N}, "present: the clips have no adio features; choose from audio, visual"),
        ({"audio": CODES}, "present: audio contains 2; pass booleans, or zeros and ones"),
        ({"audio": ["yes"] * N}, r"present: audio has type <U3 and shape \(6,\); pass a boolean array with one axis"),
        (
            {"audio": [[True], [True, False]]},
            "present: audio: values of type list cannot be converted to an array of booleans; "
            "pass a boolean array with one axis",
        ),
        ([True] * N, "present has type list; pass {modality: n booleans}"),
        (
            {"audio": [True]},
            r"audio: present has type torch.bool and shape \(1,\); pass a tensor \(6,\) of bool, one flag per id",
        ),
    ],
)
def test_other_masks_are_refused(present, said):
    with pytest.raises(InputError, match=f"^{said}$"):
        clips(present=present)


def test_some_of_the_clips_are_clips():
    clips = Clips.of(["dog", "cat", "dog"], audio=np.eye(3), visual=np.eye(3), present={"audio": [True, True, False]})
    assert clips[:2].ids == ("0", "1")
    assert clips[[2, 0]].ids == clips[np.array([2, 0])].ids == ("2", "0")
    assert clips[torch.tensor([True, False, True])].ids == ("0", "2")
    assert clips[1:].labels.tolist() == clips.labels[1:].tolist()
    with pytest.raises(InputError, match=r"no features 'text'; choose from audio, visual"):
        clips["text"]


def test_printing_clips_prints_no_tensor():
    clips = Clips.of(["dog", "cat", "dog"], audio=np.eye(3), visual=np.eye(3), present={"audio": [True, True, False]})
    assert repr(clips) == "Clips(3 clips, 2 classes, audio 3-d (1 missing), visual 3-d)"
    splits = Splits(clips, clips[:1], clips[1:])
    assert repr(splits).splitlines()[1] == "valid  Clips(1 clips, 2 classes, audio 3-d, visual 3-d)"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.select(["a"]), "select: index has type <U1; pass row numbers"),
        (
            lambda c: c.select(torch.zeros(2)),
            r"select: index has type torch.float32 and shape \(2,\); pass row numbers",
        ),
        (lambda c: c.select(torch.tensor([0, N])), f"select: index ranges from 0 to {N}; pass rows in 0..{N - 1}"),
        (lambda c: c.select(torch.tensor([-1])), "select: index ranges from -1 to -1"),
        (lambda c: c.rows([]), "rows: modality has type list"),
        (lambda c: c.vectors(np.zeros(2)), "vectors: modality has type list"),
        (lambda c: c.keeping(3), "keeping: modalities has type int"),
        (lambda c: c.embedded({"audio": torch.ones(N, 3)}, 3), "embedded: similarity has type int"),
        (
            lambda c: c.embedded({"audio": torch.ones(N, 3)}, once="audio"),
            "embedded: once has type str; pass names",
        ),
        (lambda c: c.embedded(True), "embeddings: vectors have type bool; pass {modality: tensor}"),
        (
            lambda c: c.embedded({}, rows=torch.zeros(2, 6)),
            "embeddings: rows have type Tensor; pass {modality: tensor}",
        ),
        (lambda c: c.embedded({}, rows=[1]), "embeddings: rows have type list; pass {modality: tensor}"),
        (lambda c: c.embedded({"audio": "a.wav"}), "embeddings: audio has type str; pass a tensor"),
    ],
)
def test_arguments_of_other_types_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call(clips())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"labels": CODES[:-1]}, "clips: there are 6 rows of audio, but 5 rows of labels; pass one row per clip"),
        ({"visual": FEATURES[1:]}, "clips: there are 6 rows of audio, but 5 rows of visual"),
        ({"labels": None, "visual": FEATURES[1:]}, "clips: there are 6 rows of audio, but 5 rows of visual"),
        ({"labels": None, "ids": range(7)}, "clips: there are 6 rows of audio, but 7 rows of ids"),
        ({"audio": FEATURES[:, 0]}, r"audio has shape \(6,\); pass rows \(n, d\), with d at least 1"),
    ],
)
def test_arrays_of_other_lengths_and_vectors_are_named(options, said):
    with pytest.raises(InputError, match=f"^{said}"):
        clips(**options)


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.uint16, np.int32, np.int64, np.uint64])
def test_row_numbers_of_any_width_select_rows(kind):
    assert clips()[np.array([0, 1, 5], dtype=kind)].ids == ("0", "1", "5")


@pytest.mark.parametrize("key", [[], (), np.array([], dtype=np.uint8), np.zeros(N, dtype=bool), torch.zeros(N).bool()])
def test_no_rows_are_no_clips(key):
    assert clips()[key].ids == ()


@pytest.mark.parametrize("key", [torch.tensor([1, 0, 1, 1, 1, 1], dtype=torch.uint8), [1, 0, 1, 1, 1, 1]])
def test_zeros_and_ones_are_row_numbers_and_booleans_are_a_mask(key):
    assert clips()[key].ids == ("1", "0", "1", "1", "1", "1")
    mask = [flag == 0 for flag in key]
    assert clips()[mask].ids == ("1",)
    assert clips()[np.array(mask)[::-1]].ids == ("4",)


@pytest.mark.parametrize(
    "key", [[N], [-N - 1], np.array([True, False]), ["audio"], [None], [0.0], np.array([], dtype=bool), [[0], [0, 1]]]
)
def test_rows_out_of_range_are_refused(key):
    with pytest.raises(
        InputError, match=r"clips: the key does not select rows \(.*\); pass rows in 0\.\.5, or a mask of 6 booleans"
    ):
        clips()[key]


@pytest.mark.parametrize(("code", "names"), [(0, ()), (-2, ("cat",))])
def test_labels_without_a_class_name_are_refused(code, names):
    label = torch.tensor([code])
    said = f"clips: labels range from {code} to {code} for {len(names)} class names; pass the position of a class name"
    with pytest.raises(InputError, match=said):
        Clips({}, label, ("a",), names)


FLAGS = torch.ones(2, 1, dtype=torch.bool)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"labels": [0, 0]}, r"labels have type list; pass a tensor (2,) of int64, one label per id"),
        ({"labels": torch.zeros(2)}, r"labels have type torch.float32 and shape (2,); pass a tensor (2,) of int64"),
        ({"labels": torch.zeros(3, dtype=torch.int64)}, r"labels have type torch.int64 and shape (3,); pass"),
        ({"all_labels": FLAGS.float()}, r"all_labels has type torch.float32 and shape (2, 1); pass a tensor (2, 1) of"),
        ({"all_labels": FLAGS[:1]}, r"all_labels has type torch.bool and shape (1, 1); pass a tensor (2, 1) of bool"),
        ({"all_labels": FLAGS.tolist()}, r"all_labels has type list; pass a tensor (2, 1) of bool, one row per id"),
        ({"present": {"audio": [True, False]}}, r"audio: present has type list; pass a tensor (2,) of bool"),
        ({"present": [True, False]}, r"present have type list; pass {modality: tensor}"),
    ],
)
def test_other_types_and_shapes_are_refused_by_clips_and_embeddings_alike(changes, said):
    given = {"labels": torch.zeros(2, dtype=torch.int64), "ids": ("a", "b"), "class_names": ("cat",), **changes}
    for build in (partial(Clips, {"audio": torch.ones(2, 3)}), partial(Embeddings, {"audio": torch.ones(2, 3)})):
        with pytest.raises(InputError, match=re.escape(said)):
            build(**given)


def test_embeddings_without_class_names_have_any_number_of_classes():
    labels = torch.zeros(2, dtype=torch.int64)
    assert len(Embeddings({"audio": torch.ones(2, 3)}, labels, ("a", "b"), all_labels=FLAGS)) == 2
    with pytest.raises(InputError, match=re.escape("pass a tensor (2, C) of bool, one row per id")):
        Embeddings({"audio": torch.ones(2, 3)}, labels, ("a", "b"), all_labels=FLAGS[:, 0])


def test_data_have_no_part_of_another_name():
    splits = Splits(clips(), clips(), clips())
    assert len(splits.having("test", clips()[[0]]).test) == 1
    with pytest.raises(InputError, match="'tset' is not a split; choose from train, valid, test"):
        splits.having("tset", clips())
