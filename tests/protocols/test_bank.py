"""Protocols with a bank need training and validation clips, and choose their parameters on the latter."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

import aadml
from aadml.feature_extraction.ground.errors import InputError
from aadml.protocols import bank
from aadml.protocols.protocol import bank_proxy
from aadml.proxies.anchor_aware import AnchorAware
from tests.protocols.conftest import clips

BANKS = ["bank", "bank-expansion", "csls", "inverted-softmax"]


@pytest.mark.parametrize("protocol", BANKS)
def test_a_bank_is_of_training_clips_and_chosen_on_validation_clips_so_both_are_needed(model, protocol):
    none = clips("abc").select(np.arange(0))
    for train, valid, lacking in ((none, none, "train"), (clips("abc"), none, "valid"), (none, clips("abc"), "train")):
        with pytest.raises(InputError, match=f"protocol {protocol} needs clips in the {lacking} split, but the split"):
            aadml.evaluate(model, data=aadml.Splits(train, valid, clips("abc")), protocol=protocol)
    with pytest.raises(InputError, match=f"protocol {protocol} needs clips in the train split"):
        aadml.evaluate(model, data=clips("abc"), protocol=protocol)


@pytest.mark.parametrize("protocol", BANKS)
@pytest.mark.parametrize("split", ["train", "valid"])
def test_clips_of_the_bank_and_clips_that_choose_its_parameters_are_not_scored(model, protocol, split):
    splits = aadml.Splits(clips("abc"), clips("def"), clips("ghi"))
    with pytest.raises(InputError, match=f"protocol {protocol} needs clips in the {split} split, but .* scored itself"):
        aadml.evaluate(model, data=splits, protocol=protocol, split=split)


class Proxy:
    """A proxy that returns its k and the size of its bank."""

    def remember(self, rows):
        self.size = len(rows["audio"])

    def from_bank(self, values, modality, *, k):
        return torch.tensor([float(k), self.size])


@pytest.mark.parametrize("best", [0, 1, 10])
def test_k_of_a_bank_is_chosen_on_validation_clips_among_those_that_the_bank_allows(monkeypatch, best):
    audio = np.ones((12, 2))
    train = aadml.Clips.of(None, audio=audio, visual=audio, present={"visual": [False] + [True] * 11})
    subject = SimpleNamespace(encoder=None, splits=SimpleNamespace(train=train, valid=train.select(torch.arange(5))))
    plain, tried = {"audio": torch.tensor([0.0, 0.0])}, []
    monkeypatch.setattr(bank, "vectors_of", lambda encoder, clips: plain if len(clips) == 5 else {"audio": clips.ids})
    monkeypatch.setattr(bank, "bank_proxy", lambda encoder, vectors: Proxy())
    monkeypatch.setattr(bank, "expand", lambda v, of, k, alpha: torch.tensor([float(k), alpha]))
    monkeypatch.setattr(bank, "_score", lambda subject, vectors: score(vectors["audio"].tolist()))

    def score(vector):
        tried.append(tuple(vector))
        return -abs(vector[0] - best) + vector[1] / 100

    chosen = bank.anchor_aware(subject, None, {"audio": torch.tensor([0.0, 0.0])})
    assert tried == [(0, 0), (1, 11), (3, 11), (5, 11), (10, 11)]  # the 11 clips that are complete
    assert chosen["audio"].tolist() == [best, 11 * bool(best)]
    tried.clear()
    chosen = bank.expansion(subject, None, {"audio": torch.tensor([0.0, 0.0])})
    assert tried == [(0, 0), (1, 0), (1, 3), (3, 0), (3, 3), (5, 0), (5, 3), (10, 0), (10, 3)]
    assert chosen["audio"].tolist() == [best, 3 * bool(best)]


def test_corrections_of_hubs_have_these_choices():
    assert (bank.NEIGHBORS, bank.ALPHAS) == ((1, 3, 5, 10, 20, 50), (0.0, 3.0))
    choices = {p: [c.keywords for c in p.correct.keywords["choices"]] for p in (bank.INVERTED_SOFTMAX, bank.CSLS)}
    assert choices == {
        bank.INVERTED_SOFTMAX: [{"scale": scale} for scale in (1.0, 3.0, 10.0, 30.0, 100.0)],
        bank.CSLS: [{"k": k} for k in (1, 3, 10, 30, 100)],
    }


def test_a_run_without_a_proxy_of_its_own_has_one_without_parameters_of_three_neighbors():
    vectors = {m: torch.eye(6)[:, :4] for m in ("audio", "visual")}
    proxy = bank_proxy(SimpleNamespace(method=SimpleNamespace(proxy=lambda: None)), vectors)
    assert (proxy.graph.options.k, proxy.reading, proxy.training) == (3, "R3", False)
    assert list(proxy.parameters()) == []


def test_a_trained_proxy_is_copied_with_the_item_as_query_and_its_nearest_neighbors(subject):
    trained, vectors = subject.encoder.method.proxy(), {m: torch.eye(6)[:, :4] for m in ("audio", "visual")}
    proxy = bank_proxy(subject.encoder, vectors)
    assert (proxy.query, proxy.graph.options.space, proxy.graph.options.neighbors) == ("self", "embedding", "nearest")
    assert (proxy.reading, proxy.training, trained.query) == (trained.reading, False, "self")
    for own, other in zip(proxy.parameters(), trained.parameters(), strict=True):
        assert own is not other
        assert torch.equal(own, other)
    alone = SimpleNamespace(method=SimpleNamespace(proxy=lambda: AnchorAware(4, ("audio", "visual"), reading="R5")))
    assert bank_proxy(alone, vectors).reading == "R3"
