import pytest
import torch

from aadml.data.sources.padding import pad, sent


def test_padding_holds_a_place_for_what_could_not_be_had():
    batch = pad([torch.ones(3, 2), None])
    assert batch.values.shape == (2, 3, 2)
    assert batch.lengths.tolist() == [3, 1]
    assert batch.present.tolist() == [True, False]
    assert pad([None]).values.shape == (1, 1)
    assert batch.select(torch.tensor([1])).present.tolist() == [False]


@pytest.mark.gpu
def test_what_is_sent_to_a_card_arrives_whole():
    values = torch.randn(1000, 1000)
    there = [sent(values + number, torch.device("cuda")) for number in range(20)]
    assert all(torch.equal(one.cpu(), values + number) for number, one in enumerate(there))
