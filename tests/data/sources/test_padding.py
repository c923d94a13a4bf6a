import torch

from aadml.data.sources.padding import pad


def test_padding_holds_a_place_for_what_could_not_be_had():
    batch = pad([torch.ones(3, 2), None])
    assert batch.values.shape == (2, 3, 2)
    assert batch.lengths.tolist() == [3, 1]
    assert batch.present.tolist() == [True, False]
    assert pad([None]).values.shape == (1, 1)
    assert batch.select(torch.tensor([1])).present.tolist() == [False]
