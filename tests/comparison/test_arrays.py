import numpy as np
import pytest
import torch

from aadml.comparison import arrays
from aadml.comparison.arrays import nonfinite_row, require_finite_embeddings, to_codes, to_rows
from aadml.feature_extraction.ground.errors import InputError

N = 6
CODES = [0, 1, 2, 0, 1, 2]
FEATURES = np.random.default_rng(0).normal(size=(N, 3))


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (CODES, "012"),
        (np.asarray(CODES, dtype=np.uint8), "012"),
        (torch.tensor(CODES), "012"),
        (np.asarray(CODES, dtype=object), "012"),
        ([np.int64(code) for code in CODES], "012"),
        (["abc"[code] for code in CODES], "abc"),
        (np.asarray(["abc"[code] for code in CODES], dtype=object), "abc"),
        (tuple(np.str_("abc"[code]) for code in CODES), "abc"),
        (range(N), "012345"),
    ],
)
def test_labels_are_names_or_whole_numbers_of_any_kind(labels, names):
    codes, distinct = to_codes(labels, "labels")
    assert distinct == tuple(names)
    assert codes.tolist() == (CODES if len(names) == 3 else list(range(N)))


@pytest.mark.parametrize(
    "labels",
    [
        ["a", float("nan"), "b", "a", "b", "b"],
        ["1", 1, 2, 1, 2, 2],
        [True, False] * 3,
        np.asarray([True, False] * 3),
        [0.0, 1.0] * 3,
        torch.ones(N, requires_grad=True),
        [(1,)] * N,
        "abcabc",
        3,
        (one for one in CODES),
        np.asarray([b"a"] * N),
        np.eye(N),
    ],
)
def test_other_labels_are_refused(labels):
    with pytest.raises(InputError, match=r"^labels have type .* and shape .*; pass n names or n whole numbers"):
        to_codes(labels, "labels")


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ([["a"], ["a", "b"]], "labels are nested lists of different lengths; pass n names or n whole numbers"),
        (["a", 3], r"labels have type int, str and shape \(2,\); pass n names"),
        (np.asarray([1.5, 2.5]), r"labels have type float and shape \(2,\); pass n names"),
    ],
)
def test_the_message_shows_what_the_labels_are(labels, said):
    with pytest.raises(InputError, match=f"^{said}"):
        to_codes(labels, "labels")


@pytest.mark.parametrize(
    ("features", "kind"),
    [
        (torch.tensor(FEATURES).to_sparse(), "sparse"),
        (torch.empty(N, 3, device="meta"), "meta"),
    ],
)
def test_a_tensor_whose_numbers_do_not_lie_in_memory_is_refused(features, kind):
    with pytest.raises(InputError, match=f"^audio is a {kind} tensor; pass a dense tensor of floats or integers"):
        to_rows(features, "audio")


def test_a_tensor_of_any_float_type_and_layout_is_taken_without_its_graph():
    graph = torch.tensor(FEATURES, requires_grad=True) * 2
    for values in (graph, torch.tensor(FEATURES.T.copy()).T, torch.tensor(FEATURES).half(), FEATURES[::-1]):
        rows, _ = to_rows(values, "audio")
        assert rows.dtype == torch.float32
        assert not rows.requires_grad
        expected = values.detach().float() if isinstance(values, torch.Tensor) else torch.tensor(values.copy()).float()
        assert torch.equal(rows, expected)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 2, 5, 6])
def test_the_first_row_that_is_not_finite_is_found_in_any_part(monkeypatch, value, row):
    monkeypatch.setattr(arrays, "_PART", 9)
    values = torch.zeros(7, 3)
    assert nonfinite_row(values) is None
    values[row, 1] = values[6, 2] = value
    assert nonfinite_row(values) == row
    names = [f"clip {n}" for n in range(7)]
    with pytest.raises(InputError, match=rf"the audio embedding of clip {row} contains NaN or infinity; correct"):
        require_finite_embeddings(values, "audio", names)
