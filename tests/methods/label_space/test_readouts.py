"""Read-outs: what each makes of label-space vectors, which are left to choose among, and which is chosen."""

import pytest
import torch

from aadml.comparison.clips import Clips
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.label_space.readouts import TEMPERATURES, Readout, auto, choose_readout, cosine, posterior
from aadml.retrieval.evaluation import mean_average_precision


def clips(n=40, seed=0):
    random = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % 4
    vectors = {
        m: 2 * torch.eye(4)[labels] + torch.randn(n, 4, generator=random) * torch.tensor([1.0, 3.0, 0.5, 2.0])
        for m in ("audio", "visual")
    }
    return Clips(vectors, labels, tuple(map(str, range(n))), tuple("abcd")), vectors


@pytest.mark.parametrize("temperature", [0.25, 1.0, 4.0])
def test_a_posterior_is_the_softmax_at_its_temperature_and_the_cosine_leaves_vectors_alone(temperature):
    _, vectors = clips()
    read = Readout("posterior", temperature)
    parts = [[float(torch.exp(v.double() / temperature)) for v in row] for row in vectors["audio"]]
    expected = torch.tensor([[part / sum(row) for part in row] for row in parts])
    found = read(vectors["audio"])
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected)
    assert read.similarity == "dot"
    (plain,) = cosine()
    assert plain(vectors["audio"]) is vectors["audio"]
    assert plain.similarity == "cosine"


def test_what_is_left_to_choose_among():
    assert posterior(temperature=0.3) == [Readout("posterior", 0.3)]
    assert posterior() == [Readout("posterior", value) for value in TEMPERATURES]
    assert auto() == [*cosine(), *posterior()]
    assert auto(temperature=0.3) == [Readout("cosine"), Readout("posterior", 0.3)]


def test_the_highest_validation_map_chooses_and_the_first_of_equals():
    valid, vectors = clips()
    candidates = auto()

    def score(one):
        given = valid.embedded({m: one(v) for m, v in vectors.items()}, one.similarity)
        return sum(mean_average_precision(given, way) for way in (("audio", "visual"), ("visual", "audio")))

    scores = [score(one) for one in candidates]
    assert len(set(scores)) > 3
    chosen = choose_readout(candidates, vectors, valid)
    assert chosen == candidates[scores.index(max(scores))]
    assert choose_readout(candidates[::-1], vectors, valid) == chosen
    twice = [Readout("posterior", 0.5), Readout("posterior", 0.5)]
    assert choose_readout(twice, vectors, valid) is twice[0]


def test_without_a_choice_or_clips_to_choose_on_the_first_is_taken():
    valid, vectors = clips()
    none = valid.select(torch.arange(0))
    assert choose_readout(auto(), {m: v[:0] for m, v in vectors.items()}, none) == Readout("cosine")
    assert choose_readout([Readout("posterior", 9.0)], {}, valid) == Readout("posterior", 9.0)


@pytest.mark.parametrize("wrong", [("sharp", 1.0), ("posterior", 0.0), ("posterior", -1.0), ("cosine", float("nan"))])
def test_what_a_model_cannot_store_is_refused(wrong):
    with pytest.raises(InputError, match=r"there is no Readout\('\w+', [\w.-]+\); pass 'cosine' or 'posterior', and a"):
        Readout(*wrong)
