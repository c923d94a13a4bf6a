from dataclasses import replace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from aadml.comparison import Terms, opposites
from aadml.comparison.processes import group
from aadml.feature_extraction.ground.errors import InputError
from aadml.losses import LOSSES
from aadml.losses.contrastive import contrastive
from aadml.objective import Embedded, Objective, ObjectiveOptions, parse_directions, reduce
from aadml.objective import objective as objectives
from aadml.objective.embedded import laid_out
from aadml.selections import SELECTIONS


def batch(b=6, d=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    vectors = {m: torch.randn(b, d, generator=generator, requires_grad=True) for m in ("audio", "visual")}
    return Embedded(vectors, torch.arange(b) % 3, torch.arange(b))


def objective(**options):
    directions = options.pop("directions", ["audio-visual", "visual-audio"])
    proxy, reduced = options.pop("proxy", None), ObjectiveOptions(**options)
    return Objective(contrastive, SELECTIONS["all"], proxy, directions=directions, reduced=reduced)


def draws():
    return torch.Generator().manual_seed(0)


def test_the_counts_of_several_processes_are_on_one_device(monkeypatch):
    devices = []
    monkeypatch.setattr(group, "summed", lambda values: devices.extend(value.device.type for value in values) or values)
    monkeypatch.setattr(group, "count", lambda: 2)
    counts = torch.zeros(3, device="meta")
    objectives.Counts.of(Terms(counts, counts, counts)).over_processes()
    assert devices == ["meta"] * 3


@pytest.mark.parametrize("kind", [torch.bool, torch.uint8, torch.bfloat16])
def test_anchors_are_counted_whatever_the_type_of_the_counts_of_terms(kind):
    ones = torch.ones(2049)
    assert objectives.reduce(Terms(ones, ones.to(kind), ones.to(kind)), "per-anchor") == 1


@pytest.mark.parametrize(
    ("reduction", "expected"), [("sum", 6.0), ("mean", 6 / 8), ("mean-of-active", 6 / 3), ("per-anchor", 2.0)]
)
def test_reductions_are_what_their_names_say(reduction, expected):
    terms = Terms(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1, 1, 1]), torch.tensor([4, 2, 2]))
    assert reduce(terms, reduction).item() == pytest.approx(expected)


def test_no_terms_reduce_to_zero_and_a_penalty_is_added_as_it_is():
    none = torch.zeros(0)
    assert reduce(Terms(none, none, none), "mean-of-active").item() == 0
    assert reduce(Terms(none, none, none, torch.tensor(0.5)), "mean").item() == 0.5


@pytest.mark.parametrize(("labels", "share"), [([0], 1.0), ([0, 0], 1.0), ([0, 1], 1 / 2), ([0, 1, 2], 1 / 3)])
def test_the_share_of_terms_that_cost_anything_is_that_of_the_possible_ones(labels, share):
    vectors = {"audio": torch.ones(len(labels), 2), "visual": -torch.ones(len(labels), 2)}  # beyond every margin
    given = Embedded(vectors, torch.tensor(labels), torch.arange(len(labels)))
    assert float(objective(directions=["audio-visual"])(given, draws())["active"]) == pytest.approx(share)


@pytest.mark.parametrize("own", [slice(0, 6), slice(0, 2), slice(2, 5)])
def test_of_a_divided_batch_a_process_costs_its_own_anchors_against_all_candidates(monkeypatch, own):
    monkeypatch.setattr(objectives.group, "own", lambda total: slice(own.start, min(own.stop, total)))
    whole = laid_out(batch(), ("audio", "visual"))
    part = objectives._own_anchors(whole)
    for name in ("anchors", "positives", "negatives"):
        assert torch.equal(getattr(part, name), getattr(whole, name)[own])
    assert torch.equal(part.candidates, whole.candidates)
    assert (part is whole) == (own == slice(0, 6))


def test_a_direction_of_a_modality_that_is_not_there_is_refused():
    with pytest.raises(InputError, match="directions: there are no text embeddings; choose from audio, visual, both"):
        objective(directions=["audio-text"])(batch(), draws())


def test_directions_combine_by_mean_or_sum():
    one = objective(directions=["audio-visual"])(batch(), draws())["loss"]
    other = objective(directions=["visual-audio"])(batch(), draws())["loss"]
    both = objective()(batch(), draws())["loss"]
    total = objective(combine="sum")(batch(), draws())["loss"]
    torch.testing.assert_close(both, (one + other) / 2)
    torch.testing.assert_close(total, one + other)


def test_the_side_both_holds_every_modality_and_compares_nobody_with_itself():
    embedded = batch()
    (comparison,) = objective(directions=["both-both"]).comparisons(embedded)
    assert comparison.positives.shape == (12, 12)
    assert not comparison.positives.diagonal().any()
    assert not comparison.negatives.diagonal().any()
    assert comparison.own.tolist() == [*range(6, 12), *range(6)]
    assert comparison.positives.sum(1).tolist() == [3] * 12


def test_features_classes_and_the_last_layer_are_those_of_their_own_side():
    plain = batch()
    features = {m: torch.randn(6, width) for m, width in (("audio", 4), ("visual", 5))}
    heads = {m: torch.nn.Linear(width, 3) for m, width in (("audio", 4), ("visual", 5))}
    embedded = Embedded(plain.vectors, plain.groups, plain.index, features=features, heads=heads)
    compared = objective().comparisons(embedded)
    assert len(compared) == 2
    for one in compared:
        sides = ("audio", "visual") if one.anchors is plain.vectors["audio"] else ("visual", "audio")
        assert one.candidates is plain.vectors[sides[1]]
        assert (one.anchor_features is features[sides[0]], one.candidate_features is features[sides[1]]) == (True, True)
        assert one.candidate_head is heads[sides[1]]
        assert torch.equal(one.anchor_class, plain.groups)
        assert torch.equal(one.candidate_class, plain.groups)


def test_an_anchor_whose_side_holds_no_other_modality_has_no_partner():
    (within,) = objective(directions=["audio-audio"]).comparisons(batch())
    assert within.own.tolist() == [-1] * 6
    (across,) = objective(directions=["audio-visual"]).comparisons(batch())
    assert across.own.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("losses", [1, 3])
def test_as_many_losses_as_directions_are_needed(losses):
    with pytest.raises(InputError, match=f"the number of losses is {losses}, but the number of directions is 2"):
        Objective([contrastive] * losses, SELECTIONS["all"], None, directions=["audio-visual", "visual-audio"])


def test_paired_ids_know_one_positive_and_never_an_item_of_the_same_clip_as_negative():
    embedded = Embedded(batch().vectors, torch.tensor([0, 0, 1, 2, 2, 3]), torch.arange(6), relation="id")
    (comparison,) = objective(directions=["audio-visual"]).comparisons(embedded)
    assert torch.equal(comparison.positives, torch.eye(6, dtype=torch.bool))
    assert not comparison.negatives[0, 1]
    assert not comparison.negatives[3, 4]
    assert comparison.negatives[0, 2]


def test_columns_of_the_own_modality_are_marked():
    embedded = batch()
    (comparison,) = objective(directions=["audio-both"]).comparisons(embedded)
    assert comparison.within is not None
    assert comparison.within[:, :6].all()
    assert not comparison.within[:, 6:].any()


class Doubled(torch.nn.Module):
    aa_on = "all"
    aa_mix = 1.0

    def forward(self, embeddings, index, encode=None):
        return {modality: 2 * values for modality, values in embeddings.items()}


@pytest.mark.parametrize(
    ("on", "sides"), [("all", (2, 2)), ("anchor", (2, 1)), ("reference", (1, 2))], ids=["all", "anchor", "reference"]
)
def test_proxies_stand_on_the_sides_that_aa_on_names(on, sides):
    proxy = Doubled()
    proxy.aa_on = on
    embedded = batch()
    seen = objective(proxy=proxy)(embedded, draws())["loss"]
    plain = objective()
    anchors, candidates = ({m: f * v for m, v in embedded.vectors.items()} for f in sides)
    expected = plain._compare(plain._among(plain.comparisons(embedded), anchors, candidates), draws())["loss"]
    torch.testing.assert_close(seen, expected)


def test_without_any_share_of_proxies_none_are_made():
    class Unwanted(Doubled):
        aa_mix = 0.0

        def forward(self, embeddings, index, encode=None):
            raise AssertionError("proxies cost a pass through the bank")

    assert torch.isfinite(objective(proxy=Unwanted())(batch(), draws())["loss"])


def test_graded_relevance_lies_in_the_block_of_its_modalities():
    places = {"audio": 0, "visual": 1}
    embedded = replace(batch(), relevance=lambda row, column: torch.full((6, 6), 10.0 * places[row] + places[column]))
    (comparison,) = objective(directions=["both-both"]).comparisons(embedded)
    expected = torch.tensor([[0.0, 1.0], [10.0, 11.0]]).repeat_interleave(6, 0).repeat_interleave(6, 1)
    torch.testing.assert_close(comparison.relevance, expected)


def test_aa_mix_weighs_the_loss_on_proxies_against_the_loss_on_embeddings():
    proxy = Doubled()
    seen, plain = objective(proxy=proxy)(batch(), draws())["loss"], objective()(batch(), draws())["loss"]
    proxy.aa_mix = 0.25
    torch.testing.assert_close(objective(proxy=proxy)(batch(), draws())["loss"], 0.25 * seen + 0.75 * plain)
    proxy.aa_mix = 0.0
    torch.testing.assert_close(objective(proxy=proxy)(batch(), draws())["loss"], plain)


@pytest.mark.parametrize("wrong", ["audio", "audio-Sound", "audio-visual-text", ""])
def test_a_direction_that_is_not_two_sides_is_refused(wrong):
    with pytest.raises(InputError, match="directions"):
        parse_directions([wrong])


def test_an_unknown_reduction_is_refused():
    with pytest.raises(InputError, match=r"loss\.reduction"):
        objective(reduction="median")(batch(), draws())


@pytest.mark.parametrize("relation", ["label", "id"])
@pytest.mark.parametrize("directions", [["audio-visual", "visual-audio"], ["both-both"], ["audio-both"]])
def test_who_lacks_a_modality_neither_anchors_nor_is_a_candidate_in_it(directions, relation):
    given, gone = batch(), {"audio": [1, 4], "visual": [0, 1]}
    present = {m: torch.ones(6, dtype=torch.bool) for m in gone}
    for modality, rows in gone.items():
        present[modality][rows] = False
    masked = replace(given, present=present, relation=relation)
    full = objective(directions=directions).comparisons(replace(given, relation=relation))
    for all_of, comparison, direction in zip(
        full, objective(directions=directions).comparisons(masked), directions, strict=True
    ):
        sides = [["audio", "visual"] if side == "both" else [side] for side in direction.split("-")]
        kept = [[6 * n + i for n, m in enumerate(side) for i in range(6) if i not in gone[m]] for side in sides]
        assert torch.equal(comparison.anchors, all_of.anchors[kept[0]])
        assert torch.equal(comparison.candidates, all_of.candidates[kept[1]])
        for a, row in enumerate(kept[0]):
            own = int(all_of.own[row])
            assert int(comparison.own[a]) == (kept[1].index(own) if own in kept[1] else -1)
            for c, column in enumerate(kept[1]):
                assert comparison.positives[a, c] == all_of.positives[row, column]
                assert comparison.negatives[a, c] == all_of.negatives[row, column]


def test_a_direction_of_which_a_batch_holds_nobody_costs_nothing():
    given = batch()
    nobody = replace(given, present={"visual": torch.zeros(6, dtype=torch.bool)})
    found = objective(directions=["audio-visual", "visual-audio", "audio-audio"])(nobody, draws())
    alone = objective(directions=["audio-audio"])(given, draws())
    torch.testing.assert_close(found["loss"], alone["loss"] / 3)
    found["loss"].backward()
    assert float(given.vectors["visual"].grad.abs().sum()) == 0


def own_loss(total, counts=lambda total: torch.ones(len(total), dtype=torch.int64), penalty=None):
    def mine(comparison):
        sums = total(comparison)
        return Terms(sums, counts(sums), counts(sums), penalty)

    return mine


def trained(loss, selection=SELECTIONS["all"]):
    return Objective(loss, selection, None, directions=["audio-visual"])(batch(), draws())["loss"]


@pytest.mark.parametrize(
    ("loss", "fault"),
    [
        (own_loss(lambda c: c.cosine), r"a Tensor of shape \(6, 6\) as total; return a Tensor of shape \(6,\)"),
        (
            own_loss(lambda c: c.cosine.mean(1)[:3]),
            r"a Tensor of shape \(3,\) as total; return a Tensor of shape \(6,\)",
        ),
        (own_loss(lambda c: c.cosine.mean(1), lambda total: 6), r"an int as active; return a Tensor of shape \(6,\)"),
        (
            own_loss(lambda c: c.cosine.mean(1), penalty=torch.ones(2)),
            r"a Tensor of shape \(2,\) as penalty; return a Tensor of shape \(\)",
        ),
        (
            own_loss(lambda c: torch.ones(6)),
            r"a Tensor of shape \(6,\) as total; return a Tensor with gradient, comp.*",
        ),
    ],
)
def test_terms_of_another_shape_or_without_gradient_are_refused_in_one_line(loss, fault):
    with pytest.raises(
        InputError, match=rf"^loss .*:own_loss.<locals>.mine returned {fault} \(see docs/extending.md\)$"
    ):
        trained(loss)


def test_a_batch_without_terms_needs_no_gradient_and_evaluation_needs_none():
    nothing = own_loss(lambda c: torch.zeros(6), torch.zeros_like)
    assert trained(nothing) == 0
    with torch.no_grad():
        assert trained(own_loss(lambda c: torch.ones(6))) == 1


@pytest.mark.parametrize(
    ("masks", "fault"),
    [
        (lambda c: (c.positives[:3], None), r"a Tensor of shape \(3, 6\) as positives"),
        (lambda c: (None, c.negatives[:, :2]), r"a Tensor of shape \(6, 2\) as negatives"),
        (lambda c: (c.positives.float(), None), r"a Tensor of shape \(6, 6\) as positives"),
        (lambda c: (None, c.negatives.numpy()), r"a ndarray of shape \(6, 6\) as negatives"),
    ],
)
def test_a_selection_with_wrong_masks_is_refused_in_one_line(masks, fault):
    def mine(comparison, generator):
        return comparison.narrow(*masks(comparison))

    with pytest.raises(
        InputError, match=rf"^selection .*:.*mine returned {fault}; return a bool Tensor of shape \(6, 6\) "
    ):
        trained(contrastive, mine)


class _Products(TorchDispatchMode):
    """Count of matrix products."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default):
            self.count += 1
        return func(*args, **kwargs or {})


def _trained(loss, relation, width, most, monkeypatch):
    monkeypatch.setattr(opposites, "MOST", most)
    generator = torch.Generator().manual_seed(0)
    vectors = {
        m: torch.randn(9, width, generator=generator, dtype=torch.float64, requires_grad=True)
        for m in ("audio", "visual")
    }
    groups = torch.arange(9) if relation == "id" else torch.arange(9) % 3
    both = Objective(loss, SELECTIONS["all"], None, directions=["audio-visual", "visual-audio"])
    with _Products() as products:
        value = both(Embedded(vectors, groups, torch.arange(9), relation=relation), draws())["loss"]
        value.backward()
    return value.detach(), [vector.grad for vector in vectors.values()], products.count


@pytest.mark.parametrize("width", [127, 128])
@pytest.mark.parametrize("relation", ["id", "label"])
@pytest.mark.parametrize("name", ["nt-xent", "supcon", "n-pair", "dsl", "multi-similarity", "triplet-weighted"])
def test_opposite_directions_share_their_matrix_products_and_no_result_changes(name, relation, width, monkeypatch):
    loss = LOSSES[name]
    value, gradients, count = _trained(loss, relation, width, 81, monkeypatch)
    alone, alone_gradients, alone_count = _trained(loss, relation, width, 80, monkeypatch)
    torch.testing.assert_close(value, alone, rtol=1e-12, atol=0)
    for gradient, other in zip(gradients, alone_gradients, strict=True):
        torch.testing.assert_close(gradient, other, rtol=1e-9, atol=1e-15)
    by_terms = relation == "id" and name in ("nt-xent", "supcon")  # of narrow vectors, only these share
    assert (count, alone_count) == (3 if width == 128 or by_terms else 6, 6)
