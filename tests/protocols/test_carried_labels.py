"""Labels that features carry below their values are found; clean features pass, also in order of class."""

from types import SimpleNamespace

import pytest
import torch

from aadml.comparison.clips import Clips
from aadml.feature_extraction.ground.errors import InputError
from aadml.protocols.audit import Verdict
from aadml.protocols.audit_checks import carried_labels
from aadml.protocols.carried_labels import (
    _counters,
    _distinct,
    _predicted,
    _spelled,
    _tail,
    can_be_tested,
    carried_columns,
    is_sorted_by_class,
)  # fmt: skip
from aadml.protocols.pipelines import FunctionPipeline
from tests.protocols.carried_sets import CLEAN, LEAKS, drawn


@pytest.mark.parametrize("name", LEAKS)
def test_labels_below_the_values_are_found(name):
    values, labels = drawn(0)
    assert 3 in carried_columns(LEAKS[name](values, labels), labels)


@pytest.mark.parametrize("name", CLEAN)
def test_clean_features_pass(name):
    values, labels = drawn(1)
    assert carried_columns(CLEAN[name](values), labels) == {}


def test_correct_pairs_follow_the_binomial_distribution_under_the_null():
    generator = torch.Generator().manual_seed(3)
    labels = torch.randint(4, (40, 2, 5000), generator=generator)
    signs = torch.randn(40, 5000, generator=generator).sign()
    p = _tail(*_predicted(signs, labels, 0))
    for level in (0.05, 0.2):
        assert level / 3 < float((p <= level).double().mean()) <= level + 0.01
    assert float(_tail(torch.tensor([7]), torch.tensor([8]))) == pytest.approx(9 / 256)


def outcome(values, labels, **more):
    return carried_labels(SimpleNamespace(clips=Clips.of(labels, audio=values, **more)))


def test_the_check_names_the_column_and_reports_the_order_of_classes():
    values, labels = drawn(2)
    verdict, evidence = outcome(LEAKS["low bits of one column"](values, labels), labels)
    assert (verdict, "audio 3 (low-order digits)" in evidence) == (Verdict.FAIL, True)
    two = labels % 2
    assert outcome(LEAKS["low bits of one column"](values, two), two)[0] is Verdict.FAIL
    order = labels.argsort()
    verdict, evidence = outcome(values[order], labels[order])
    assert (verdict, evidence.endswith("the clips are in order of class")) == (Verdict.PASS, True)
    assert outcome(values[:40], labels[:40]) == (
        Verdict.NOT_CHECKABLE,
        "too few distinct clips of different classes for a test of columns: audio has 40 labeled clips",
    )
    assert not can_be_tested(values[:40], labels[:40])
    assert can_be_tested(values, labels)


def test_a_set_with_few_pairs_of_different_classes_is_not_checkable():
    values, labels = drawn(4, count=400)
    for rare in (20, 0):
        few = (torch.arange(400) < rare).long()
        assert outcome(LEAKS["low bits of one column"](values, few), few)[0] is Verdict.NOT_CHECKABLE
    copies, of_copies = values[:10].repeat(40, 1), labels[:10].repeat(40)
    assert outcome(copies, of_copies)[0] is Verdict.NOT_CHECKABLE
    assert not can_be_tested(values[:0], labels[:0])


@pytest.mark.parametrize(
    ("count", "rare", "columns", "testable"),
    [(96, 48, 289, True), (96, 48, 290, False), (95, 47, 289, False), (200, 48, 289, True), (200, 47, 289, False)],
)
def test_there_are_enough_pairs_if_the_smallest_p_of_all_columns_scales_and_halves_is_a_thousandth(
    count, rare, columns, testable
):
    values = torch.randn(count, columns, generator=torch.Generator().manual_seed(0))
    assert can_be_tested(values, (torch.arange(count) < rare).long()) is testable


def test_payloads_of_nan_and_of_missing_rows_reach_no_encoder():
    payload = torch.tensor([[0x7FC00001], [0x7FC00002]], dtype=torch.int32).view(torch.float32)
    with pytest.raises(InputError, match="NaN"):
        Clips.of([0, 1], audio=payload)
    clips = Clips.of([0, 1], audio=[[5.0], [6.0]], present={"audio": [True, False]})
    encode = FunctionPipeline(lambda features, labels: features).embedder(None, "test")
    assert encode(clips).vectors["audio"].tolist() == [[5.0], [0.0]]


@pytest.mark.parametrize(
    ("labels", "is_sorted"),
    [([0, 0], False), ([0, 1], False), ([1, 1, 0], True), ([0, 1, 0], False), ([0, 0, 1, 1, 2], True)],
)
def test_clips_are_in_order_of_class_where_equal_labels_are_side_by_side(labels, is_sorted):
    assert is_sorted_by_class(torch.tensor(labels)) is is_sorted


def test_a_counter_is_of_twenty_clips_whose_classes_are_together_more_than_by_chance():
    counter = torch.arange(40.0)[:, None].double()
    together, mixed = torch.arange(40) // 20, torch.arange(40) % 2
    assert _counters(counter, together) == [0]
    assert _counters(counter, mixed) == []
    assert _counters(counter, torch.randint(2, (40,), generator=torch.Generator().manual_seed(0))) == []
    assert _counters(counter[:20], torch.arange(20) // 10) == [0]
    gaps = [torch.cumsum(torch.arange(40)[:, None] % 10 < few, 0).double() for few in (1, 2)]
    assert [_counters(counter + 0.5 * gap, together) for gap in gaps] == [[0], []]  # four steps of 39 are longer, or 8
    assert _counters(counter[:19], torch.arange(19) // 10) == []


@pytest.mark.parametrize(
    ("classes", "count", "column", "found"),
    [(4, 24, lambda labels: labels, [0]), (4, 23, lambda labels: labels, []), (3, 40, lambda labels: labels, []),
     (2, 40, lambda labels: 1 + 6e-6 * labels, [0]), (4, 40, lambda labels: labels + 0.01 * torch.rand(40), [])],
)  # fmt: skip
def test_a_column_is_determined_by_the_class_if_four_classes_have_one_value_each(classes, count, column, found):
    labels = torch.arange(count) % classes
    assert _spelled(column(labels.double())[:, None], labels) == found


def test_at_most_500_distinct_clips_are_tested_in_their_order():
    values = torch.arange(600.0)[:, None].repeat(1, 2)
    rows, labels = _distinct(torch.cat([values, values[:5]]), torch.arange(605))
    assert rows.shape == (500, 2)
    assert labels.tolist() == sorted(labels.tolist())
    assert rows[:, 0].tolist() == labels.tolist()
