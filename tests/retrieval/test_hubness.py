"""Corrections of hubs: the published formulas by loops, and what a sum of coordinates makes of them."""

import math

import pytest
import torch

from aadml.comparison.embeddings import Embeddings
from aadml.feature_extraction.ground.errors import InputError
from aadml.retrieval.evaluation import mean_average_precision
from aadml.retrieval.hubness import corrected, csls, inverted_softmax

MODALITIES = ("audio", "visual", "text")


def vectors(count, seed, dimension=4):
    return torch.randn(count, dimension, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def order(scores):
    return [sorted(range(len(row)), key=lambda j, row=row: -row[j]) for row in scores]


def test_inverted_softmax_ranks_as_the_quotient_of_exponentials():
    queries, gallery, bank = vectors(6, 0), vectors(9, 1), vectors(20, 2)
    scores = queries @ gallery.T
    expected = []
    for q in range(6):
        row = []
        for g in range(9):
            whole = sum(math.exp(3.0 * float(bank[b] @ gallery[g])) for b in range(20))
            row.append(math.exp(3.0 * float(scores[q, g])) / whole)
        expected.append(row)
    assert order((scores + inverted_softmax(gallery, bank, scale=3.0)).tolist()) == order(expected)


@pytest.mark.parametrize("k", [1, 4, 50])
def test_csls_ranks_as_twice_the_score_less_both_means(k):
    queries, gallery, bank, own_bank = vectors(6, 0), vectors(9, 1), vectors(20, 2), vectors(20, 3)

    def mean_of_nearest(item, others):
        nearest = sorted((float(one @ item) for one in others), reverse=True)[:k]
        return sum(nearest) / len(nearest)

    expected = [
        [2 * float(q @ g) - mean_of_nearest(q, own_bank) - mean_of_nearest(g, bank) for g in gallery] for q in queries
    ]
    assert order((queries @ gallery.T + csls(gallery, bank, k=k)).tolist()) == order(expected)


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
@pytest.mark.parametrize("modalities", [MODALITIES[:2], MODALITIES])
def test_every_direction_is_corrected_by_the_items_own_bias(similarity, modalities):
    given = {m: vectors(8, number) for number, m in enumerate(modalities)}
    bank = {m: vectors(11, 10 + number) for number, m in enumerate(modalities)}
    embeddings = Embeddings(given, torch.arange(8), tuple(map(str, range(8))), similarity)
    made = corrected(embeddings, bank, lambda items, queries: csls(items, queries, k=3))
    assert made.similarity == "dot"
    unit = torch.nn.functional.normalize if similarity == "cosine" else torch.clone
    for query, gallery in made.directions():
        others = torch.cat([unit(bank[m]) for m in modalities if m != gallery])
        expected = unit(given[query]) @ unit(given[gallery]).T + csls(unit(given[gallery]), others, k=3)
        assert order((made.vectors[query] @ made.vectors[gallery].T).tolist()) == order(expected.tolist())


def test_a_hub_is_brought_back():
    random = torch.Generator().manual_seed(0)
    audio = torch.nn.functional.normalize(torch.randn(200, 8, generator=random), dim=1)
    visual = audio + 0.2 * torch.randn(200, 8, generator=random)
    visual[100:120] = visual[100:120] * 4  # near to every query by inner product
    ids = tuple(map(str, range(100)))
    embeddings = Embeddings({"audio": audio[100:], "visual": visual[100:]}, torch.arange(100), ids, "dot")
    bank = {"audio": audio[:100], "visual": visual[:100]}
    made = corrected(embeddings, bank, lambda items, queries: inverted_softmax(items, queries, scale=10.0))
    plain, better = (mean_average_precision(one, ("audio", "visual")) for one in (embeddings, made))
    assert better > plain + 0.05


def test_a_similarity_that_is_no_inner_product_is_refused():
    embeddings = Embeddings(
        {"audio": torch.ones(1, 2), "visual": torch.ones(1, 2)}, torch.zeros(1).long(), ("a",), "hamming"
    )
    with pytest.raises(InputError, match="hamming is not an inner product"):
        corrected(embeddings, embeddings.vectors, lambda items, queries: csls(items, queries, k=1))
