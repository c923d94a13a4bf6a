"""Neighbor positives: who is one and how much it counts, by loops; and what a comparison makes of them."""

import math

import pytest
import torch
from torch.nn import functional as F

from aadml.feature_extraction.ground.errors import InputError
from aadml.losses.supcon import supcon
from aadml.objective import Embedded, Objective, ObjectiveOptions
from aadml.objective.embedded import Bank
from aadml.objective.neighbor_positives import NeighborOptions, NeighborPositives
from aadml.proxies.graph import agreeing_neighbors, neighbors
from aadml.selections import SELECTIONS

COUNT, K = 20, 3
GROUPS = torch.arange(COUNT).clamp_min(1)  # clips 0 and 1 are the same clip
ROWS = torch.tensor([0, 1, 7, 4, 19, 12, 3, 9])
EVERY = torch.arange(COUNT)


def bank(seed=0):
    random = torch.Generator().manual_seed(seed)
    return {m: F.normalize(torch.randn(COUNT, d, generator=random), dim=1) for m, d in (("audio", 4), ("visual", 4))}


def refreshed(seed=0, **options):
    found = NeighborPositives(("audio", "visual"), NeighborOptions(**({"k": K, "positives": "own"} | options)))
    found.refresh(bank(), bank(1), GROUPS, torch.Generator().manual_seed(seed))
    return found


def listed(positives, space="embedding"):
    """Neighbors and similarities of every clip, by modality."""
    vectors = bank() if space == "embedding" else bank(1)
    own = {m: neighbors(values, k=K, groups=GROUPS) for m, values in vectors.items()}
    if positives == "agreeing":
        own = dict.fromkeys(own, agreeing_neighbors(list(vectors.values()), k=K, groups=GROUPS))
    lists = {
        m: [dict(zip(one.index[i].tolist(), one.similarity[i].tolist(), strict=True)) for i in range(COUNT)]
        for m, one in own.items()
    }
    if positives == "either":
        audio, visual = lists["audio"], lists["visual"]
        return {
            "audio": [v | a for a, v in zip(audio, visual, strict=True)],
            "visual": [a | v for a, v in zip(audio, visual, strict=True)],
        }
    return lists


@pytest.mark.parametrize("positives", ["own", "either", "agreeing"])
@pytest.mark.parametrize("space", ["embedding", "input"])
@pytest.mark.parametrize("columns", [ROWS, EVERY])
def test_positives_are_the_neighbors_that_are_among_the_candidates(positives, space, columns):
    found, lists = refreshed(positives=positives, space=space), listed(positives, space)
    for modality in ("audio", "visual"):
        given = found.among(ROWS, modality, columns)
        assert given.shares is None
        for row, clip in enumerate(ROWS.tolist()):
            near = lists[modality][clip]
            assert given.mask[row].tolist() == [column in near for column in columns.tolist()]
            assert not {clip, *((1 - clip,) if clip < 2 else ())} & set(near)


@pytest.mark.parametrize("control", ["none", "random"])
def test_either_unites_the_lists_of_all_modalities(control):
    vectors = bank() | {"text": bank(2)["audio"]}
    options = NeighborOptions(positives="either", k=K, control=control)
    found = NeighborPositives(tuple(vectors), options)
    found.refresh(vectors, vectors, GROUPS, torch.Generator().manual_seed(0))
    lists = [neighbors(values, k=K, groups=GROUPS).index for values in vectors.values()]
    near = [{*rows[0], *rows[1], *rows[2]} for rows in zip(*(index.tolist() for index in lists), strict=True)]
    for modality in vectors:
        mask = found.among(EVERY, modality, EVERY).mask
        assert mask.sum(1).tolist() == [len(clips) for clips in near]
        same = [set(row.nonzero()[:, 0].tolist()) == clips for row, clips in zip(mask, near, strict=True)]
        assert all(same) == (control == "none")


@pytest.mark.parametrize("weights", ["equal", "affine", "softmax"])
def test_what_a_positive_counts(weights):
    found = refreshed(positives="either", weights=weights, temperature=0.2)
    of = {"equal": lambda s: 1.0, "affine": lambda s: (1 + s) / 2, "softmax": lambda s: math.exp(s / 0.2)}[weights]
    shares = found.among(ROWS, "audio", ROWS).shares
    if weights == "equal":
        assert shares is None
        return
    for row, clip in enumerate(ROWS.tolist()):
        near = {j: of(s) for j, s in listed("either")["audio"][clip].items() if j in ROWS.tolist()}
        expected = near | {clip: of(1.0)}
        whole = sum(expected.values())
        for column, share in zip(ROWS.tolist(), shares[row].tolist(), strict=True):
            assert share == pytest.approx(expected.get(column, 0) / whole, abs=1e-6)


def test_all_clips_are_positives_by_their_similarity_within_the_modality():
    shares = refreshed(positives="all", weights="affine").among(ROWS, "visual", EVERY)
    cosines = bank()["visual"] @ bank()["visual"].T
    for row, clip in enumerate(ROWS.tolist()):
        raw = [
            1.0 if j == clip else 0.0 if GROUPS[j] == GROUPS[clip] else (1 + float(cosines[clip, j])) / 2
            for j in range(COUNT)
        ]
        assert shares.shares[row].tolist() == pytest.approx([value / sum(raw) for value in raw], abs=1e-6)
        assert shares.mask[row].tolist() == [bool(GROUPS[j] != GROUPS[clip]) for j in range(COUNT)]


@pytest.mark.parametrize("positives", ["own", "either", "agreeing", "all"])
def test_the_control_has_other_clips_and_the_same_weights(positives):
    options = {"positives": positives, "weights": "affine"}
    near, drawn = (refreshed(control=c, **options).among(EVERY, "audio", EVERY) for c in ("none", "random"))
    same = GROUPS[:, None] == GROUPS[None]
    assert not (drawn.mask & same).any()
    assert not torch.equal(near.shares, drawn.shares)
    if positives != "all":
        assert torch.equal(near.mask.sum(1), drawn.mask.sum(1))
        off = near.shares.masked_fill(same, 0).sort(1).values
        torch.testing.assert_close(off, drawn.shares.masked_fill(same, 0).sort(1).values)
    again = refreshed(control="random", **options).among(EVERY, "audio", EVERY)
    other = refreshed(seed=1, control="random", **options).among(EVERY, "audio", EVERY)
    assert torch.equal(again.shares, drawn.shares)
    assert not torch.equal(other.shares, drawn.shares)


def compared(directions, with_bank, **options):
    found = refreshed(**options)
    columns = EVERY if with_bank else ROWS
    near = {m: found.among(ROWS, m, columns) for m in ("audio", "visual")}
    batch = Embedded(
        {m: values[ROWS] for m, values in bank().items()}, GROUPS[ROWS], ROWS, "id", neighbors=near,
        bank=Bank(bank(), GROUPS) if with_bank else None,
    )  # fmt: skip
    objective = Objective(supcon, SELECTIONS["all"], None, directions=directions, reduced=ObjectiveOptions())
    return objective.comparisons(batch), columns, near


@pytest.mark.parametrize("with_bank", [False, True])
def test_neither_the_clip_nor_its_duplicate_nor_a_neighbor_is_a_negative(with_bank):
    comparisons, columns, near = compared(["audio-visual", "visual-audio"], with_bank, weights="affine")
    for comparison, modality in zip(comparisons, ("audio", "visual"), strict=True):
        own = ROWS[:, None] == columns[None]
        assert torch.equal(comparison.positives, near[modality].mask | own)
        same = GROUPS[ROWS][:, None] == GROUPS[columns][None]
        assert torch.equal(comparison.negatives, ~(same | near[modality].mask))
        assert torch.equal(columns[comparison.own], ROWS)
        assert torch.equal(comparison.shares, near[modality].shares)
        assert comparison.candidates.shape == (len(columns), 4)


@pytest.mark.parametrize("with_bank", [False, True])
def test_on_the_side_both_neighbors_are_positives_of_either_modality_and_nobody_is_its_own(with_bank):
    (comparison,), columns, near = compared(["both-both"], with_bank)
    b, c = len(ROWS), len(columns)
    own = ROWS[:, None] == columns[None]
    for row, modality in enumerate(("audio", "visual")):
        for column in range(2):
            block = comparison.positives[row * b : (row + 1) * b, column * c : (column + 1) * c]
            assert torch.equal(block, near[modality].mask | (own if row != column else torch.zeros_like(own)))
    assert torch.equal(comparison.within[:b, :c], torch.ones(b, c, dtype=torch.bool))
    assert torch.equal(columns[comparison.own[:b] - c], ROWS)
    assert torch.equal(columns[comparison.own[b:]], ROWS)


@pytest.mark.parametrize("positives", ["own", "either", "agreeing"])
def test_as_many_neighbors_as_there_are_clips_are_refused_but_where_all_count(positives):
    with pytest.raises(InputError, match=f"neighbors.k is {COUNT}, but there are {COUNT} clips"):
        refreshed(positives=positives, k=COUNT)
    refreshed(positives="all", k=COUNT, weights="affine")


def test_equal_weights_of_all_clips_say_nothing():
    with pytest.raises(InputError, match="choose affine or softmax"):
        NeighborOptions(positives="all")
