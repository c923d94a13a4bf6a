from dataclasses import replace

import numpy as np
import pytest
import torch

from aadml.feature_extraction.ground.errors import InputError
from aadml.retrieval import scores
from aadml.retrieval.scores import SIMILARITIES, find_copies, pair_scores, score_source


def vectors(count, dimension, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, dimension, generator=generator)


def in_precision(source, precision):
    return replace(source, precision=np.dtype(precision).type)


def whole(queries, gallery, similarity, precision="float32"):
    return in_precision(score_source(queries, gallery, similarity), precision).block(0, len(queries))


def test_cosine_is_the_definition():
    queries, gallery = vectors(7, 5), vectors(11, 5, 1)
    found = whole(queries, gallery, "cosine", "float64")
    for i, q in enumerate(queries.double()):
        for j, g in enumerate(gallery.double()):
            assert found[i, j] == pytest.approx(float(q @ g / q.norm() / g.norm()), abs=1e-14)


def pairs(queries, gallery, similarity):
    every = torch.cartesian_prod(torch.arange(len(queries)), torch.arange(len(gallery)))
    return pair_scores(queries[every[:, 0]], gallery[every[:, 1]], similarity).reshape(len(queries), len(gallery))


def test_euclidean_and_dot_order_as_their_definitions_do_and_differ_by_a_power_of_two():
    queries, gallery = vectors(7, 5).double(), vectors(11, 5, 1).double()
    for similarity, expected in (
        ("dot", queries @ gallery.T),
        ("euclidean", -torch.cdist(queries, gallery, compute_mode="donot_use_mm_for_euclid_dist").square()),
    ):
        ratio = whole(queries, gallery, similarity, "float64") / expected.numpy()
        assert np.allclose(ratio, ratio[0, 0], rtol=1e-12)
        assert np.log2(ratio[0, 0]) == pytest.approx(round(np.log2(ratio[0, 0])), abs=1e-11)


@pytest.mark.parametrize("seed", [0, 1])
def test_scores_of_pairs_are_what_the_similarity_means_and_what_an_evaluation_scales_by_a_power_of_two(seed):
    queries, gallery = vectors(7, 5, seed).double() * 9, vectors(11, 5, seed + 2).double() / 7
    apart = (queries[:, None] - gallery[None]).square().sum(2)
    agreeing = (2 * ((queries[:, None] > 0) == (gallery[None] > 0)).double() - 1).sum(2)
    cosine = torch.nn.functional.cosine_similarity(queries[:, None], gallery[None], dim=2)
    meant = {"cosine": cosine, "dot": queries @ gallery.T, "euclidean": -apart, "hamming": agreeing}
    assert meant.keys() == SIMILARITIES.keys()
    for similarity, expected in meant.items():
        found = pairs(queries, gallery, similarity)
        np.testing.assert_allclose(found, expected.numpy(), rtol=1e-7, atol=1e-7, err_msg=similarity)
        nonzero = found != 0
        units = np.unique(np.log2(whole(queries, gallery, similarity)[nonzero].astype(np.float64) / found[nonzero]))
        assert len(units) == 1, similarity
        assert units[0] == round(units[0])


def test_hamming_orders_by_the_number_of_agreeing_signs():
    queries, gallery = vectors(9, 12).round(), vectors(30, 12, 1).round()  # with zeros, which are no bit that is set
    assert (queries == 0).any()
    assert (gallery == 0).any()
    agree = ((queries[:, None] > 0) == (gallery[None] > 0)).sum(2).numpy()
    found = whole(queries, gallery, "hamming")
    assert len(np.unique(found)) == len(np.unique(agree))
    assert (np.sign(found[:, :, None] - found[:, None, :]) == np.sign(agree[:, :, None] - agree[:, None, :])).all()


def test_a_zero_vector_has_cosine_zero_with_everything():
    gallery = vectors(6, 4)
    gallery[2] = 0
    assert (whole(vectors(3, 4, 1), gallery, "cosine")[:, 2] == 0).all()


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_cosine_ignores_the_length_of_vectors_however_extreme(scale):
    queries, gallery = vectors(5, 6), vectors(8, 6, 1)
    assert np.allclose(whole(queries * scale, gallery / scale, "cosine"), whole(queries, gallery, "cosine"), atol=1e-7)


@pytest.mark.parametrize("similarity", ["dot", "euclidean"])
def test_an_item_of_length_zero_leaves_the_tiny_others_apart(similarity):
    """It lies at the center of the gallery, too."""
    half = vectors(4, 6, 1).double()
    queries, gallery = vectors(5, 6).double(), torch.cat([half, -half, torch.zeros(1, 6)])
    plain, tiny = (whole(queries * scale, gallery * scale, similarity) for scale in (1.0, 1e-60))
    assert np.array_equal(np.argsort(plain, axis=1), np.argsort(tiny, axis=1))
    scaled = pairs(queries * 1e-60, gallery * 1e-60, similarity) * 1e120
    assert np.allclose(scaled, pairs(queries, gallery, similarity), rtol=1e-5)


@pytest.mark.parametrize("similarity", ["dot", "euclidean"])
def test_subnormal_vectors_are_scored(similarity):
    queries, gallery = (vectors(5, 6, seed).double().round() * 5e-324 for seed in (0, 1))
    order = whole(queries * 2.0**1000, gallery * 2.0**1000, similarity)
    assert np.array_equal(np.argsort(order, axis=1), np.argsort(whole(queries, gallery, similarity), axis=1))


def test_euclidean_keeps_small_differences_far_from_the_origin():
    gallery = torch.tensor([[1e6], [1e6 + 1], [1e6 + 3]], dtype=torch.float64)
    found = whole(gallery[:1] + 0.25, gallery, "euclidean", "float64")[0]
    assert np.allclose(found / found[0], [1, 9, 121], rtol=1e-9)


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_scores_are_the_same_bits_however_queries_are_cut(similarity, precision):
    source = in_precision(score_source(vectors(300, 17), vectors(4200, 17, 1), similarity), precision)
    all_at_once = source.block(0, 300)
    for step in (1, 7, 128, 130, 299):
        parts = [source.block(i, min(i + step, 300)) for i in range(0, 300, step)]
        assert np.array_equal(np.concatenate(parts), all_at_once)


@pytest.mark.parametrize("dimension", [3, 10, 15, 33, 200])
def test_scores_do_not_depend_on_the_order_of_the_gallery(dimension):
    queries, gallery = vectors(140, dimension), vectors(4133, dimension, 1)
    order = torch.randperm(len(gallery), generator=torch.Generator().manual_seed(2))
    assert np.array_equal(whole(queries, gallery, "cosine")[:, order.numpy()], whole(queries, gallery[order], "cosine"))


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_copies_in_the_gallery_tie_wherever_they_stand(similarity, precision):
    gallery = vectors(4100, 37, 1)
    gallery[[5, 4095, 4096, 4099]] = gallery[1].clone()
    found = whole(vectors(50, 37), gallery, similarity, precision)
    assert (found[:, [5, 4095, 4096, 4099]] == found[:, [1]]).all()


def test_vectors_whose_components_are_permuted_alike_tie_though_their_sums_run_in_another_order():
    gallery = torch.stack([torch.tensor([0.1, 0.7, 0.3, 0.9])[torch.randperm(4)] for _ in range(50)])
    assert len(np.unique(whole(torch.ones(1, 4), gallery, "cosine"))) == 1


def test_copies_finds_each_repeated_row_and_its_first():
    rows = torch.tensor([[1.0, 2], [3, 4], [1, 2], [0.0, 0], [-0.0, 0], [1, 2], [2, 1]])
    later, earlier = find_copies(rows)
    assert later.tolist() == [2, 4, 5]
    assert earlier.tolist() == [0, 3, 0]


def test_copies_is_not_fooled_by_equal_digests(monkeypatch):
    monkeypatch.setattr(scores, "_digest", lambda rows: np.zeros(len(rows), dtype=np.int64))
    later, earlier = find_copies(torch.tensor([[1.0], [2.0], [1.0]]))
    assert (later.tolist(), earlier.tolist()) == ([2], [0])


def test_any_float_type_is_taken():
    for kind in (torch.float16, torch.bfloat16, torch.float64):
        assert whole(vectors(3, 4).to(kind), vectors(5, 4, 1).to(kind), "cosine").shape == (3, 5)


def test_memory_of_a_block_is_bounded_for_a_large_gallery():
    for items in (1, 100, 5621, 100_000, 10_000_000):
        rows = scores.block_rows(items)
        assert rows * items <= max(scores.BLOCK, items)
        assert scores.ROWS % rows == 0


@pytest.mark.parametrize(
    ("queries", "gallery", "options", "message"),
    [
        (torch.tensor([[1.0], [float("nan")]]), torch.ones(2, 1), {}, "queries: row 1 contains NaN"),
        (torch.ones(2, 1), torch.tensor([[float("inf")]]), {}, "gallery: row 0 contains NaN or infinity"),
        (torch.ones(2, 3), torch.ones(2, 4), {}, "queries have 3 dimensions, but the gallery has 4"),
        (torch.ones(0, 3), torch.ones(2, 3), {}, "queries: the vectors have shape"),
        (torch.ones(2, 3), torch.ones(2, 3), {"similarity": "cosin"}, "did you mean 'cosine'"),
    ],
)
def test_what_cannot_be_scored_is_refused_by_name(queries, gallery, options, message):
    with pytest.raises(InputError, match=message):
        score_source(queries, gallery, **options)
