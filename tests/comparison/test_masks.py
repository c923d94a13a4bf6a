import pytest
import torch

from aadml.comparison.masks import MaskCodes, rows_of

LABELS, CANDIDATES = torch.tensor([0, 1, 1]), torch.tensor([1, 0, 2, 1])


@pytest.mark.parametrize("kind", [torch.bool, torch.float32, torch.float64])
@pytest.mark.parametrize("rows", [slice(0, 3), slice(1, 3), slice(2, 2)])
def test_rows_of_codes_are_rows_of_their_masks(rows, kind):
    codes = MaskCodes((LABELS, CANDIDATES), itself=torch.tensor([-1, 3, 0]), sides=(LABELS % 2, CANDIDATES % 2))
    positives = LABELS[:, None] == CANDIDATES[None, :]
    positives[1, 3] = positives[2, 0] = False
    negatives = LABELS[:, None] != CANDIDATES[None, :]
    within = LABELS[:, None] % 2 == CANDIDATES[None, :] % 2
    for name, mask in (("positives", positives), ("negatives", negatives), ("within", within)):
        computed = rows_of(getattr(codes, name), rows, kind)
        assert computed.dtype == kind
        assert torch.equal(computed, mask[rows].to(kind))
        assert torch.equal(rows_of(mask, rows, kind), mask[rows].to(kind))


def test_codes_cover_all_pairs_without_anchors_among_candidates_if_clips_are_groups():
    groups = LABELS, CANDIDATES
    assert MaskCodes(groups).cover_all_pairs()
    assert MaskCodes(groups, clips=groups).cover_all_pairs()
    assert not MaskCodes(groups, clips=(LABELS, torch.arange(4))).cover_all_pairs()  # two candidates of one group
    assert not MaskCodes(groups, clips=(LABELS - 9, CANDIDATES)).cover_all_pairs()  # anchors without a positive
    assert not MaskCodes(groups, itself=torch.tensor([-1, 3, 0])).cover_all_pairs()


def test_codes_pair_only_partners_if_groups_are_distinct_and_equal_on_both_sides():
    row = torch.arange(4)
    assert MaskCodes((row, row)).pair_only_partners()
    assert MaskCodes((row.flip(0), row.flip(0).clone()), (row + 3, row + 3)).pair_only_partners()
    assert not MaskCodes((row, row.flip(0))).pair_only_partners()
    assert not MaskCodes((row, row + 4)).pair_only_partners()
    assert not MaskCodes((row, row[:3])).pair_only_partners()
    assert not MaskCodes((row // 2, row // 2), (row, row)).pair_only_partners()
    assert not MaskCodes((row, row), (row, row + 4)).pair_only_partners()
    assert not MaskCodes((row, row), itself=row).pair_only_partners()
    assert not MaskCodes((torch.full((2,), torch.inf),) * 2).pair_only_partners()
