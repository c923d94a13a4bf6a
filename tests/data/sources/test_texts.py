import pytest
import torch

from aadml.comparison.features import Source
from aadml.data.sources.texts import Captions, tokens


def test_token_ids_come_padded_and_are_cut_before_their_end_mark():
    given = Captions(("a b c d", "b", ""))
    with pytest.warns(UserWarning, match="^1 of 3 captions were cut to 3 tokens$"):
        source = tokens(given, lambda texts: [[ord(c) for c in t.split()] for t in texts], longest=3)
    assert isinstance(source, Source)
    batch = source.batch(torch.tensor([1, 0, 2]))
    assert batch.values.tolist() == [[98, 0, 0], [97, 98, 100], [0, 0, 0]]
    assert batch.lengths.tolist() == [1, 3, 1]
    assert source.select(torch.tensor([0])).batch(torch.tensor([0])).values.tolist() == [[97, 98, 100]]
