import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from aadml.comparison.embeddings import Embeddings
from aadml.comparison.relevance import Grouped
from aadml.feature_extraction.ground.errors import InputError
from aadml.retrieval.directions import Queries, score_direction
from aadml.retrieval.evaluation import evaluate, mean_average_precision, per_query
from aadml.retrieval.legacy_running_map import running_average_precision
from aadml.retrieval.scores import MatrixScores, score_source


def embeddings(count=60, dimension=6, classes=4, seed=0, **options):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % classes
    vectors = {
        modality: torch.randn(count, dimension, generator=generator) + torch.eye(dimension)[labels]
        for modality in ("audio", "visual")
    }
    return Embeddings(vectors, labels, tuple(f"clip{i}" for i in range(count)), **options)


@pytest.fixture(scope="module")
def ave(shared_data):
    file = shared_data / "ave_label_space_embeddings" / "ave15_predictions_epoch500.npz"
    with np.load(file) as arrays:
        rows = arrays["block"] == 2
        vectors = {m: torch.from_numpy(arrays[m][rows]) for m in ("audio", "visual")}
        labels = torch.from_numpy(arrays["label_inferred"][rows])
    return Embeddings(vectors, labels, tuple(map(str, range(int(rows.sum())))))


def test_the_published_ave_predictions_have_their_honest_map_and_the_running_variant_inflates_it(ave):
    found = evaluate(ave, extra=("running",))
    assert found["audio-visual"].map == pytest.approx(0.836, abs=5e-4)
    assert found["visual-audio"].map == pytest.approx(0.848, abs=5e-4)
    assert found.map_mean == pytest.approx(0.842, abs=5e-4)
    assert found.chance == pytest.approx(0.0998, abs=5e-5)
    running = [result.figures[("running_map",)] for result in found.directions]
    assert np.mean(running) == pytest.approx(0.862, abs=5e-4)
    assert found.label_space["audio"][0] == pytest.approx(0.81, abs=5e-3)
    assert found.label_space["visual"][0] == pytest.approx(0.87, abs=5e-3)


def test_constant_embeddings_of_the_ave_test_set_score_exactly_chance(ave):
    flat = Embeddings({m: torch.ones(len(ave), 3) for m in ("audio", "visual")}, ave.labels, ave.ids)
    found = evaluate(flat)
    assert found.map_mean == found.chance == pytest.approx(0.0998, abs=5e-5)
    assert found.tie_rate == 1


def test_map_is_that_of_scikit_learn_in_both_directions():
    from sklearn.metrics import average_precision_score

    given = embeddings()
    found = evaluate(given)
    unit = {m: v.double() / v.double().norm(dim=1, keepdim=True) for m, v in given.vectors.items()}
    for query, gallery in (("audio", "visual"), ("visual", "audio")):
        scores = (unit[query] @ unit[gallery].T).numpy()
        same = (given.labels[:, None] == given.labels).numpy()
        expected = np.mean([average_precision_score(r, s) for r, s in zip(same, scores, strict=True)])
        assert found[f"{query}-{gallery}"].map == pytest.approx(expected, abs=1e-6)
        assert mean_average_precision(given, (query, gallery)) == pytest.approx(expected, abs=1e-6)


def test_json_has_the_agreed_shape_and_survives_json():
    found = json.loads(json.dumps(evaluate(embeddings(), extra=("running", "map-at-k")).to_json(queries=True)))
    assert {"protocol", "split", "chance", "tie_rate", "map_mean", "directions"} <= set(found)
    assert (found["protocol"], found["split"]) == ("inductive", "test")
    assert list(found["directions"]) == ["audio-visual", "visual-audio"]
    one = found["directions"]["audio-visual"]
    assert one["map_bounds"][0] <= one["map"] <= one["map_bounds"][1]
    assert list(one["precision_at"]) == ["1", "5", "10", "50"]
    assert one["scope"]["k"] == [10, 20, 30, 40, 50, 60]
    assert one["map_at"]["min(R,k)"]["1"] == pytest.approx(one["precision_at"]["1"])
    assert one["recall_at"]["10"] == pytest.approx(one["scope"]["recall"][0])
    assert np.mean(one["per_query"]["average_precision"]) == pytest.approx(one["map"])
    assert one["per_query"]["id"][3] == "clip3"
    assert "running_map" in one


def test_cutoffs_beyond_the_gallery_are_left_out_and_a_tiny_gallery_still_has_one():
    found = evaluate(embeddings(count=4)).to_json()["directions"]["audio-visual"]
    assert list(found["precision_at"]) == ["1"]
    above = evaluate(embeddings(count=15), cutoffs=(500,)).to_json()["directions"]["audio-visual"]
    assert (list(above["precision_at"]), above["scope"]["k"]) == (["15"], [10])
    only = evaluate(embeddings(count=4), cutoffs=(500,)).to_json()["directions"]["audio-visual"]
    assert list(only["recall_at"].items()) == [("4", 1.0)]
    assert found["scope"] == {"k": [], "precision": [], "recall": [], "hit_rate": []}


def test_a_cutoff_beyond_the_scope_curve_stands_in_the_table_alone():
    scores = MatrixScores(np.random.default_rng(0).random((4, 1100), dtype=np.float32))
    found = score_direction(scores, Grouped(np.arange(4) % 2, np.arange(1100) % 2), cutoffs=(1, 1050)).record()
    assert found.scope.k == list(range(10, 1001, 10))
    assert [place[1] for place in found.figures if place[0] == "precision_at"] == ["1", "1050"]


def test_the_table_by_class_averages_to_the_map():
    given = embeddings(class_names=("rain", "dog", "car", "bird"))
    result = evaluate(given)["audio-visual"]
    assert [row.name for row in result.by_class] == ["rain", "dog", "car", "bird"]
    assert sum(row.queries * row.map for row in result.by_class) / 60 == pytest.approx(result.map)
    assert sum(row.queries * row.chance for row in result.by_class) / 60 == pytest.approx(result.chance.mean())


def test_queries_with_nothing_relevant_are_left_out_and_counted():
    scores = MatrixScores(np.array([[0.9, 0.1], [0.2, 0.3], [0.5, 0.4]]))
    relevant = Grouped(np.array([1, 8, 2]), np.array([1, 2]))
    found = score_direction(scores, relevant, Queries(ids=["a", "b", "c"]))
    assert found.ids == ("a", "c")
    assert found.without_relevant == 1
    assert found.map == pytest.approx((1 + 1 / 2) / 2)
    with pytest.raises(InputError, match="no query has a relevant item"):
        score_direction(scores, Grouped(np.array([7, 8, 9]), np.array([1, 2])))


def test_five_captions_a_clip_are_ranked_as_audio_text_retrieval_does():
    """Clip i has captions 3i .. 3i+2; ranks of the best caption, true recall against hit rate, by hand."""
    generator = torch.Generator().manual_seed(0)
    clips = torch.randn(5, 8, generator=generator)
    captions = clips.repeat_interleave(3, 0) + 1.5 * torch.randn(15, 8, generator=generator)
    labels = torch.arange(5).repeat_interleave(3)
    pairs = Embeddings(
        {"audio": clips.repeat_interleave(3, 0), "text": captions}, labels, tuple(f"c{i}" for i in range(15))
    )
    named = replace(pairs, once=("audio",))
    found = evaluate(named, cutoffs=(1, 3))
    assert mean_average_precision(named, ("audio", "text")) == found["audio-text"].map
    scores = score_source(clips, captions).block(0, 5)
    places = [[sorted(-row).index(-row[j]) + 1 for j in range(3 * i, 3 * i + 3)] for i, row in enumerate(scores)]
    forth = found["audio-text"]
    assert (len(forth.ids), forth.gallery) == (5, 15)
    assert forth.rank.tolist() == [min(own) for own in places]
    table = forth.record().to_json()
    assert table["recall_at"]["3"] == pytest.approx(np.mean([sum(p <= 3 for p in own) / 3 for own in places]))
    assert table["hit_rate_at"]["3"] == pytest.approx(np.mean([any(p <= 3 for p in own) for own in places]))
    back = found["text-audio"]
    assert (len(back.ids), back.gallery) == (15, 5)
    places = [sorted(-column).index(-column[i // 3]) + 1 for i, column in enumerate(scores.T)]
    assert back.rank.tolist() == places
    assert back.map == pytest.approx(np.mean(1 / np.array(places)))
    assert back.record().figure("recall@1") == pytest.approx(np.mean(np.array(places) == 1))


def test_duplicates_of_an_item_tie_and_move_both_bounds_apart():
    given = embeddings(count=20)
    doubled = Embeddings(
        {m: torch.cat([v, v]) for m, v in given.vectors.items()},
        torch.cat([given.labels, (given.labels + 1) % 4]),
        tuple(f"{i}" for i in range(40)),
    )
    found = evaluate(doubled)
    assert found.tie_rate == 1
    low, high = found["audio-visual"].map_bounds
    assert low < found["audio-visual"].map < high


def test_a_gallery_sorted_by_class_changes_nothing():
    given = embeddings(dimension=4)
    rough = {m: v.round() for m, v in given.vectors.items()}
    order = given.labels.argsort(stable=True)
    one = evaluate(Embeddings(rough, given.labels, given.ids))
    other = evaluate(
        Embeddings({m: v[order] for m, v in rough.items()}, given.labels[order], tuple(given.ids[i] for i in order))
    )
    for a, b in zip(one.directions, other.directions, strict=True):
        assert np.array_equal(a.average_precision[order.numpy()], b.average_precision)


def test_the_similarity_of_the_embeddings_is_used():
    given = embeddings(similarity="dot")
    assert evaluate(given).similarity == "dot"
    of_cosines = evaluate(replace(given, similarity="cosine"))
    assert of_cosines.map_mean == evaluate(embeddings()).map_mean != evaluate(given).map_mean
    with pytest.raises(InputError, match="no similarity 'l2'"):
        evaluate(replace(given, similarity="l2"))


def test_label_space_is_scored_only_where_there_is_one_dimension_a_class():
    assert not evaluate(embeddings()).label_space
    assert set(evaluate(embeddings(dimension=4)).label_space) == {"audio", "visual"}
    vectors = {m: torch.randn(5, 1) for m in ("audio", "visual")}
    one_class = Embeddings(vectors, torch.zeros(5, dtype=torch.int64), tuple("abcde"), class_names=("all",))
    assert not evaluate(one_class).label_space  # nothing could be wrong


@pytest.mark.parametrize(
    ("vectors", "options", "message"),
    [
        ({"audio": torch.ones(3, 2)}, {}, "the embeddings have only audio; pass embeddings of two modalities"),
        ({"audio": torch.ones(3, 2), "visual": torch.ones(3, 4)}, {}, "2 dimensions, but the gallery has 4"),
        ({"audio": torch.ones(3, 2), "visual": torch.ones(3, 2)}, {"extra": ["runing"]}, "did you mean 'running'"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_by_name(vectors, options, message):
    with pytest.raises(InputError, match=message):
        evaluate(Embeddings(vectors, torch.zeros(3, dtype=torch.int64), ("a", "b", "c")), **options)


def test_no_clips_at_all_are_refused():
    empty = Embeddings({m: torch.ones(0, 2) for m in ("audio", "visual")}, torch.zeros(0, dtype=torch.int64), ())
    with pytest.raises(InputError, match="the vectors have shape"):
        evaluate(empty)


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize("once", [(), ("audio",)])
def test_one_number_of_a_direction_is_that_of_the_whole_evaluation(similarity, once):
    given = embeddings(classes=6, similarity=similarity, once=once)
    whole = evaluate(given, extra=("running",))
    for direction in (("audio", "visual"), ("visual", "audio")):
        result = whole["-".join(direction)]
        assert mean_average_precision(given, direction) == pytest.approx(result.map)
        running = per_query(given, direction, running_average_precision)
        assert len(running) == len(result.ids)
        assert running.mean() == pytest.approx(result.figures[("running_map",)])


def test_vectors_that_clips_share_score_as_if_repeated():
    torch.manual_seed(0)
    audio, text, owner = torch.randn(4, 6), torch.randn(12, 6), torch.arange(12) // 3
    ids = tuple(map(str, range(12)))
    shared = Embeddings({"audio": audio, "text": text}, owner, ids, rows={"audio": owner})
    repeated = Embeddings({"audio": audio[owner], "text": text}, owner, ids)
    assert torch.equal(shared.matrix("audio"), repeated.vectors["audio"])
    assert shared.matrix("text") is text
    for once in ((), ("audio",)):
        one, other = (
            evaluate(replace(given, once=once)).record(queries=True).to_json() for given in (shared, repeated)
        )
        assert one == other
    assert mean_average_precision(shared, ("audio", "text")) == mean_average_precision(repeated, ("audio", "text"))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (torch.arange(12), "the rows of audio range from 0 to 11, but there are 4 vectors; pass rows in 0..3"),
        (torch.arange(12) // 3 - 1, "the rows of audio range from -1 to 2, but there are 4 vectors"),
        (
            torch.arange(11) // 3,
            r"rows of audio have type torch.int64 and shape \(11,\); pass a tensor \(12,\) of int64, one row per id",
        ),
    ],
)
def test_rows_that_name_no_vector_or_not_every_clip_are_refused(rows, said):
    owner = torch.arange(12) // 3
    with pytest.raises(InputError, match=said):
        Embeddings({"audio": torch.randn(4, 6)}, owner, tuple(map(str, range(12))), rows={"audio": rows})
