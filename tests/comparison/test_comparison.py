import pytest
import torch

from aadml.comparison import Comparison
from aadml.feature_extraction.ground.errors import InputError


def vectors(n, seed=0):
    return torch.randn(n, 3, generator=torch.Generator().manual_seed(seed))


def test_by_label_everyone_of_the_class_is_a_positive_and_everyone_else_a_negative():
    c = Comparison.of_labels(vectors(2), vectors(3), torch.tensor([0, 1]), torch.tensor([0, 1, 0]))
    assert c.positives.tolist() == [[True, False, True], [False, True, False]]
    assert torch.equal(c.negatives, ~c.positives)
    assert c.own.tolist() == [-1, -1]


def test_by_id_the_partner_alone_is_a_positive_and_the_same_clip_is_neither():
    clips = torch.tensor([4, 4, 9])
    c = Comparison.of_ids(vectors(3), vectors(3, 1), clips, clips)
    assert torch.equal(c.positives, torch.eye(3) > 0)
    assert c.negatives.tolist() == [[False, False, True], [False, False, True], [True, True, False]]
    assert c.own.tolist() == [0, 1, 2]


def test_by_id_clips_may_meet_any_number_of_captions():
    own = torch.tensor([1, 2])
    c = Comparison.of_ids(vectors(2), vectors(4), torch.tensor([5, 6]), torch.tensor([5, 5, 6, 7]), own=own)
    assert c.positives.tolist() == [[False, True, False, False], [False, False, True, False]]
    assert c.negatives.tolist() == [[False, False, True, True], [True, True, False, True]]


def test_an_anchor_among_its_candidates_is_in_neither_mask():
    x, labels = vectors(3), torch.tensor([0, 0, 1])
    c = Comparison.of_labels(x, x, labels, labels, itself=torch.arange(3))
    assert not (c.positives | c.negatives).diagonal().any()
    assert c.positives[0].tolist() == [False, True, False]
    assert c.own.tolist() == [-1, -1, -1]


def test_a_label_relation_of_unique_labels_is_an_id_relation():
    unique = torch.arange(4)
    by_label = Comparison.of_labels(vectors(4), vectors(4, 1), unique, unique)
    by_id = Comparison.of_ids(vectors(4), vectors(4, 1), unique, unique)
    for name in ("positives", "negatives", "own"):
        assert torch.equal(getattr(by_label, name), getattr(by_id, name))


@pytest.mark.parametrize("score", ["squared_distance", "distance", "dot", "cosine"])
def test_narrowing_keeps_the_scores_that_were_computed(score):
    c = Comparison.of_labels(vectors(4), vectors(4, 1), torch.arange(4), torch.arange(4))
    before = getattr(c, score)
    assert getattr(c.narrow(positives=c.positives), score) is before
    rows = torch.tensor([2, 0])
    assert torch.equal(getattr(c.narrow(rows=rows), score), before[rows])


def test_narrowing_to_rows_takes_every_field_of_the_anchors():
    x, r = vectors(4), vectors(5, 1)
    full = Comparison(
        x,
        r,
        torch.rand(4, 5) < 0.5,
        torch.zeros(4, 5, dtype=torch.bool),
        torch.arange(4),
        relevance=torch.rand(4, 5),
        guides={"text": torch.rand(4, 5)},
        within=torch.rand(4, 5) < 0.5,
        anchor_features=vectors(4, 2),
        candidate_features=vectors(5, 3),
        anchor_class=torch.arange(4),
        candidate_class=torch.arange(5),
    )
    rows = torch.tensor([3, 1])
    some = full.narrow(rows=rows)
    for name in ("anchors", "positives", "negatives", "own", "relevance", "within", "anchor_features", "anchor_class"):
        assert torch.equal(getattr(some, name), getattr(full, name)[rows]), name
    assert torch.equal(some.guides["text"], full.guides["text"][rows])
    for name in ("candidates", "candidate_features", "candidate_class"):
        assert getattr(some, name) is getattr(full, name)


def test_scores_are_of_float32_or_better():
    for given, wanted in ((torch.float16, torch.float32), (torch.bfloat16, torch.float32), (torch.float64,) * 2):
        c = Comparison.of_labels(vectors(3).to(given), vectors(3).to(given), torch.arange(3), torch.arange(3))
        assert {c.squared_distance.dtype, c.distance.dtype, c.dot.dtype, c.cosine.dtype} == {wanted}


def test_distance_of_a_vector_to_itself_has_a_finite_gradient():
    x = torch.ones(2, 3, requires_grad=True)
    Comparison.of_labels(x, x, torch.arange(2), torch.arange(2)).distance.sum().backward()
    assert torch.isfinite(x.grad).all()


def test_relevance_stands_for_cosine_and_dot_and_has_no_distance():
    empty, scores = torch.empty(2, 0), torch.tensor([[0.5, 0.1], [0.2, 0.9]])
    c = Comparison(empty, empty, scores > 0.4, scores < 0.4, torch.arange(2), relevance=scores)
    assert torch.equal(c.cosine, scores)
    assert torch.equal(c.dot, scores)
    with pytest.raises(InputError, match="relevance"):
        _ = c.squared_distance


def test_a_field_that_is_absent_is_refused_by_name():
    c = Comparison.of_ids(vectors(2), vectors(2), torch.arange(2), torch.arange(2))
    with pytest.raises(InputError, match="cross-clr needs 'within'"):
        c.need("within", "cross-clr")


def test_keeping_some_candidates_takes_every_field_of_theirs_and_finds_the_partner_again():
    x, r = vectors(3), vectors(5, 1)
    full = Comparison(
        x,
        r,
        torch.rand(3, 5) < 0.5,
        torch.rand(3, 5) < 0.5,
        torch.tensor([4, 0, -1]),
        relevance=torch.rand(3, 5),
        guides={"text": torch.rand(3, 5)},
        within=torch.rand(5) < 0.5,
        candidate_features=vectors(5, 3),
        candidate_class=torch.arange(5),
    )
    columns = torch.tensor([1, 2, 4])
    some = full.among(columns)
    assert some.own.tolist() == [2, -1, -1]
    for name in ("positives", "negatives", "relevance"):
        assert torch.equal(getattr(some, name), getattr(full, name)[:, columns]), name
    for name in ("candidates", "candidate_features", "candidate_class", "within"):
        assert torch.equal(getattr(some, name), getattr(full, name)[columns]), name
    assert torch.equal(some.guides["text"], full.guides["text"][:, columns])
    assert some.anchors is full.anchors


@pytest.mark.parametrize("build", [Comparison.of_labels, Comparison.of_ids])
@pytest.mark.parametrize("codes", [torch.zeros(1).long(), torch.zeros(8, 1).long(), torch.zeros(7).long(), [0] * 8])
def test_codes_that_do_not_fit_the_vectors_are_refused(build, codes):
    vectors, own = torch.randn(8, 4), torch.zeros(8).long()
    with pytest.raises(InputError, match=r"anchors: .*shape"):
        build(vectors, vectors, codes, own)
    with pytest.raises(InputError, match=r"candidates: .*shape"):
        build(vectors, vectors, own, codes)
    with pytest.raises(InputError, match=r"4 dimensions.*3"):
        build(vectors, vectors[:, :3], own, own)
