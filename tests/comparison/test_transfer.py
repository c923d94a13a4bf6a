import pytest
import torch

from aadml.comparison.transfer import sent


def test_a_tensor_of_the_device_is_returned_itself():
    values = torch.ones(2)
    assert sent(values, torch.device("cpu")) is values


@pytest.mark.gpu
def test_what_is_sent_to_a_gpu_arrives_whole():
    values = torch.randn(1000, 1000)
    there = [sent(values + number, torch.device("cuda")) for number in range(20)]
    assert all(torch.equal(one.cpu(), values + number) for number, one in enumerate(there))
