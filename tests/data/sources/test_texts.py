import hashlib

import pytest
import torch

from aadml.comparison.features import Source
from aadml.data.sources.loading import Loading
from aadml.data.sources.network_items import text_items
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


def test_captions_are_decoded_as_bytes_and_have_checksums():
    captions = Captions(("é", ""))
    assert [bytes(one) for one in captions.decoded([1, 0])] == [b" ", "é".encode()]
    assert captions.sums([0, 1]) == [hashlib.sha256(text.encode()).digest() for text in captions.texts]
    assert captions.failures == {}


def test_the_items_of_a_network_are_computed_once_for_equal_captions():
    made = []

    def make(values):
        made.append(bytes(values))
        return [{"ids": values}] * (len(values) % 3)  # none for "c c"

    items = text_items(Captions(("a", "bb", "a", "c c")), make, Loading(memory=10))
    batch = items.batch(torch.tensor([2, 1, 3, 0]))
    assert [[bytes(item["ids"]) for item in clip] for clip in batch.clips] == [[b"a"], [b"bb"] * 2, [], [b"a"]]
    assert batch.present.tolist() == [True, True, False, True]
    assert (len(items), len(batch)) == (4, 4)
    part = batch.select(torch.tensor([1, 2])).to(torch.device("cpu"))
    assert ([len(clip) for clip in part.clips], part.present.tolist()) == ([2, 0], [True, False])
    assert sorted(made) == [b"a", b"bb", b"c c"]
    items.select(torch.tensor([0, 1])).batch(torch.tensor([0, 1]))
    assert sorted(made) == [b"a", b"bb", b"c c"]  # kept
    assert items.sums(torch.tensor([2, 0])) == [hashlib.sha256(b"a").digest()] * 2
    assert items.failures == {}
