import torch

from aadml.data.sources.array_cache import ArrayCache
from aadml.data.sources.loading import Loading
from aadml.data.sources.padding import pad


def test_padding_holds_a_place_for_what_could_not_be_had():
    batch = pad([torch.ones(3, 2), None])
    assert batch.values.shape == (2, 3, 2)
    assert batch.lengths.tolist() == [3, 1]
    assert batch.present.tolist() == [True, False]
    assert pad([None]).values.shape == (1, 1)
    assert batch.select(torch.tensor([1])).present.tolist() == [False]


def test_a_mask_marks_what_is_not_padding_and_no_sequences_are_no_rows():
    batch = pad([torch.ones(3, 2), None, torch.ones(0, 2)])
    assert batch.mask().tolist() == [[True] * 3, [True, False, False], [True, False, False]]
    assert (batch.lengths.tolist(), batch.present.tolist()) == ([3, 1, 1], [True, False, True])
    assert (pad([]).values.shape, len(pad([])), pad([]).lengths.dtype) == ((0, 1), 0, torch.int64)
    moved = batch.to(torch.device("cpu"))
    assert (moved.values is batch.values, moved.present is batch.present) == (True, True)


def test_limits_of_caches_are_mebibytes():
    assert Loading.of(memory_mib=3, disk_mib=0) == Loading(3 << 20, None)
    assert Loading.of(memory_mib=0, disk_mib=2) == Loading(0, ArrayCache(2 << 20))
    assert (Loading().memory, Loading().disk) == (1 << 30, None)
