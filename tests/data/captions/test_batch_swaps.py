import pytest
import torch

from aadml.data.captions.batch_swaps import repair
from aadml.data.captions.curriculum import objective, partition
from aadml.feature_extraction.ground.errors import InputError
from tests.data.captions.test_curriculum import clustered, meet


@pytest.mark.parametrize("hard", [False, True])
def test_swaps_never_make_it_worse(hard):
    vectors = clustered()
    plain, refined = (objective(vectors, partition(vectors, 10, hard=hard, sweeps=n)) for n in (0, 20))
    assert refined >= plain if hard else refined <= plain


def test_duplicates_that_fill_every_batch_are_still_kept_apart():
    caption = torch.arange(40) % 10  # each of 10 captions four times, four batches of ten
    batches = partition(clustered(40), 10, hard=True, codes=[caption])
    assert not meet(batches, caption)


def test_duplicates_that_cannot_be_kept_apart_are_refused():
    codes = torch.tensor([[0], [0], [0], [1]])
    with pytest.raises(InputError, match="duplicates cannot be separated into 2 batches of 2 items; choose smaller"):
        repair(torch.arange(4).reshape(2, 2), codes, torch.Generator().manual_seed(0))
    batches = repair(torch.arange(4).reshape(2, 2), codes[[0, 0, 3, 3]], torch.Generator().manual_seed(0))
    assert sorted(batches.ravel().tolist()) == [0, 1, 2, 3]
    assert all(sorted(n // 2 for n in batch) == [0, 1] for batch in batches.tolist())
