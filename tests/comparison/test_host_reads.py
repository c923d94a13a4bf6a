import gc

import pytest
import torch

from aadml.comparison import host_reads
from aadml.comparison.host_reads import code_range, read_once


@pytest.fixture(autouse=True)
def kept(monkeypatch):
    """Keep what is read of tensors on the CPU, as of those on a GPU."""
    monkeypatch.setattr(host_reads, "UNKEPT", ())


@pytest.fixture
def reads():
    return []


def largest(codes, reads):
    return read_once(codes, "largest", lambda: reads.append(0) or int(codes.max()))


def test_a_tensor_is_read_once_under_each_name_and_again_after_a_change(reads):
    codes = torch.tensor([1, 3, 2])
    assert [largest(codes, reads) for _ in range(3)] == [3, 3, 3]
    assert len(reads) == 1
    assert read_once(codes, "smallest", lambda: int(codes.min())) == 1
    codes += 2
    assert (largest(codes, reads), len(reads)) == (5, 2)


def test_equal_tensors_and_views_are_read_apart(reads):
    codes = torch.tensor([1, 3, 2])
    assert (largest(codes, reads), largest(codes.clone(), reads), largest(codes[:1], reads)) == (3, 3, 1)
    assert len(reads) == 3


def test_a_tensor_without_a_count_of_changes_is_read_every_time(reads):
    with torch.inference_mode():
        codes = torch.tensor([1, 3, 2])
        assert (largest(codes, reads), largest(codes, reads), len(reads)) == (3, 3, 2)


def test_nothing_is_kept_that_inference_computes_of_other_tensors(reads):
    codes = torch.tensor([1, 3, 2])
    with torch.inference_mode():
        assert largest(codes, reads) == 3
    assert (largest(codes, reads), len(reads)) == (3, 2)


def test_nothing_is_kept_of_the_cpu(reads, monkeypatch):
    monkeypatch.undo()
    codes = torch.tensor([1, 3, 2])
    assert (largest(codes, reads), largest(codes, reads), len(reads)) == (3, 3, 2)


def test_nothing_is_kept_of_a_tensor_that_is_gone():
    before = len(host_reads._READ)
    codes = torch.tensor([1])
    assert code_range(codes) == (1, 1)
    assert len(host_reads._READ) == before + 1
    del codes
    gc.collect()
    assert len(host_reads._READ) == before


def test_no_codes_have_an_empty_range():
    assert code_range(torch.tensor([], dtype=torch.int64)) == (0, -1)
