import pytest
import torch

from aadml.data.captions.curriculum import objective, partition
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
