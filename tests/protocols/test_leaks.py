"""Leaks inflate the score and carry their name; each is compared with its definition."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn.functional import cosine_similarity

import aadml
from aadml.feature_extraction.ground.errors import InputError
from aadml.protocols import PROTOCOLS, leaks
from aadml.protocols.evaluation import evaluate_under
from aadml.retrieval.evaluation import per_query
from aadml.retrieval.legacy_running_map import running_average_precision


def test_every_legacy_protocol_is_in_the_table_of_this_test():
    legacy = {name for name in PROTOCOLS if name.startswith("legacy:")}
    assert len(legacy) == 7


def test_leaks_inflate_and_carry_their_name(subject):
    honest = evaluate_under(subject, "inductive")
    for name in ("legacy:label-graph", "legacy:partner", "legacy:label-graph+legacy:running-map"):
        leaked = evaluate_under(subject, name)
        assert leaked.protocol == name
        assert leaked.map_mean > honest.map_mean + 0.02


def drawn(labels, *, width=5, present=None):
    """Clips with labels, and embeddings of two modalities."""
    generator = torch.Generator().manual_seed(0)
    vectors = {m: torch.randn(len(labels), width, generator=generator) for m in ("audio", "visual")}
    return aadml.Clips.of(labels, **vectors, present=present or {}), vectors


def mixed(item, others):
    """The mean of items, weighted by softmax(cosine / 0.1)."""
    weights = torch.softmax(torch.stack([cosine_similarity(item, other, dim=0) / 0.1 for other in others]), 0)
    return sum(weight * other for weight, other in zip(weights, others, strict=True))


@pytest.mark.parametrize(("labels", "k"), [([0] * 5 + [1] * 4, 3), ([0] * 3 + [1] * 2, 2), ([0, 1, 1], 1)])
def test_a_label_graph_mixes_half_of_an_item_with_its_nearest_of_the_same_class(labels, k):
    clips, vectors = drawn(labels)
    found = leaks.label_graph(None, clips, vectors)
    for modality, rows in vectors.items():
        for n, item in enumerate(rows):
            others = [rows[m] for m, label in enumerate(labels) if label == labels[n] and m != n]
            near = sorted(others, key=lambda other: -float(cosine_similarity(item, other, dim=0)))[:k]
            wanted = 0.5 * item + 0.5 * mixed(item, near) if near else item
            torch.testing.assert_close(found[modality][n], wanted)
    some = replace(clips, labels=torch.tensor([-1, *labels[1:]]))
    with pytest.raises(InputError, match=f"needs a label for every clip, but 1 of {len(labels)} clips have none"):
        leaks.label_graph(None, some, vectors)


def test_batch_attention_mixes_the_items_of_a_batch_of_32_in_order_of_class():
    labels = torch.arange(40) % 3
    clips, vectors = drawn(labels.tolist())
    found = leaks.batch_attention(None, clips, vectors)
    order = sorted(range(40), key=lambda row: (labels[row], row))
    for batch in (order[:32], order[32:]):
        for row in batch:
            for modality, rows in vectors.items():
                torch.testing.assert_close(found[modality][row], mixed(rows[row], [rows[other] for other in batch]))


def test_partners_are_mixed_in_halves_where_both_are_present():
    clips, vectors = drawn([0, 1, 0], present={"audio": [True, False, True]})
    found = leaks.partner(None, clips, vectors)
    halves = (vectors["audio"] + vectors["visual"]) / 2
    for modality, rows in vectors.items():
        torch.testing.assert_close(found[modality], torch.stack([halves[0], rows[1], halves[2]]))
    message = r"but there are embeddings of audio \(5 dimensions\) and visual \(4 dimensions\); choose another protocol"
    with pytest.raises(InputError, match=message):
        leaks.partner(None, clips, vectors | {"visual": torch.zeros(3, 4)})
    with pytest.raises(InputError, match=r"embeddings of audio \(5 dimensions\); choose"):
        leaks.partner(None, clips, {"audio": vectors["audio"]})


def test_test_clips_choose_the_epoch_or_scale_the_inputs(subject):
    asked = []
    chooses = SimpleNamespace(fits_validation=False)
    encoder = SimpleNamespace(rescaled=lambda clips: asked.append(clips) or "rescaled", method=chooses)
    trained = replace(subject, encoder=encoder, retrain=lambda splits: asked.append(splits.valid) or "trained")
    assert leaks.test_selection(trained, "test").encoder == "trained"
    assert leaks.test_scaling(trained, "test").encoder == "rescaled"
    assert asked == [subject.splits.test] * 2
    with pytest.raises(InputError, match="trains the run again, but a model on other data was passed"):
        leaks.test_selection(replace(subject, retrain=None), "test")


def test_running_map_takes_the_place_of_map(subject):
    leaked = evaluate_under(subject, "legacy:running-map")
    embeddings = subject.encoder.embed_clips(subject.splits.test)
    for honest, result in zip(evaluate_under(subject, "inductive").directions, leaked.directions, strict=True):
        values = per_query(embeddings, result.direction, running_average_precision)
        assert result.average_precision.tolist() == values.tolist()
        assert result.map > honest.map
        assert result.map_bounds == pytest.approx((result.map, result.map))
        alone = per_query(
            embeddings, result.direction, running_average_precision, gallery="without-partner",
        )  # fmt: skip
        assert result.figures["without_partner", "map"] == pytest.approx(float(alone.mean()))
        assert result.figures["without_partner", "chance"] > honest.figures["without_partner", "chance"]
    requested = evaluate_under(subject, "inductive", extra=("running",)).directions
    for result, honest in zip(leaked.directions, requested, strict=True):
        assert result.map == pytest.approx(honest.figures[("running_map",)])
        assert result.record().chance == pytest.approx(honest.figures["chance_of", "running_map"])
        assert np.mean([row.chance for row in result.by_class for _ in range(row.queries)]) == (
            pytest.approx(result.record().chance)
        )
        alone = result.average_precision - result.map
        assert result.unit_values == pytest.approx(result.map + alone)
    assert "MAP, 95 % interval over test sets, with a fixed gallery" in leaked.table()
    every = {
        result.direction: dict(zip(result.ids, result.average_precision, strict=True)) for result in leaked.directions
    }
    for result in evaluate_under(subject, "legacy:running-map", queries=10).directions:
        assert len(result.ids) == len(result.average_precision) == 10
        wanted = [every[result.direction][name] for name in result.ids]
        assert result.average_precision.tolist() == pytest.approx(wanted)


def test_dropping_the_last_batch_scores_fewer_queries(subject):
    assert len(evaluate_under(subject, "legacy:drop-last").directions[0].ids) == 32
    for count in (20, 32, 33):
        clips, vectors = drawn([0, 1] * (count // 2) + [0] * (count % 2))
        kept = leaks.drop_last(clips.embedded(vectors))
        assert {len(one) for one in (kept, kept.labels, *kept.vectors.values())} == {min(count, 32)}
    several = torch.nn.functional.one_hot(clips.labels, len(clips.class_names)).bool()
    shared = replace(
        clips.embedded(vectors), rows={"audio": torch.arange(33)}, present={"visual": torch.arange(33) > 1},
        all_labels=several,
    )  # fmt: skip
    kept = leaks.drop_last(shared)
    assert torch.equal(kept.all_labels, several[:32])
    assert (len(kept.vectors["audio"]), kept.rows["audio"].tolist()) == (33, list(range(32)))
    assert (len(kept.vectors["visual"]), kept.present["visual"].tolist()) == (32, [False] * 2 + [True] * 30)
