"""Embeddings made elsewhere with several captions a clip: a clip is ranked once, however it is written down."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import aadml
from aadml import evaluate as evaluate_clips
from aadml.cli import cli
from aadml.comparison.relevance import OWN
from aadml.feature_extraction.ground.errors import InputError
from aadml.retrieval.embeddings_file import read_embeddings
from aadml.retrieval.evaluation import evaluate

CLIPS, CAPTIONS = 12, 5


@pytest.fixture
def vectors():
    random = np.random.default_rng(0)
    audio = random.standard_normal((CLIPS, 6))
    return audio, audio[:, None] + 1.5 * random.standard_normal((CLIPS, CAPTIONS, 6))


def hit_rates(audio, text, k):
    """Text to audio by hand: the share of captions whose clip is among the first k of all clips."""
    unit = [v / np.linalg.norm(v, axis=-1, keepdims=True) for v in (audio, text)]
    hits = 0
    for clip in range(CLIPS):
        for caption in unit[1][clip]:
            scores = unit[0] @ caption
            hits += int((scores > scores[clip]).sum() < k)
    return hits / (CLIPS * CAPTIONS)


def scored(path):
    done = CliRunner().invoke(cli, ["evaluate", "--embeddings", str(path), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)["directions"]


LAYOUTS = {
    "(n, c, d)": lambda a, t: {"audio": a, "text": t},
    "text_row": lambda a, t: {"audio": a, "text": t.reshape(-1, 6), "text_row": np.arange(CLIPS).repeat(5)},
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_clip_is_ranked_once(tmp_path, vectors, layout):
    np.savez(tmp_path / "e.npz", **LAYOUTS[layout](*vectors))
    found = scored(tmp_path / "e.npz")
    assert (found["text-audio"]["gallery"], found["text-audio"]["queries"]) == (CLIPS, CLIPS * CAPTIONS)
    assert found["audio-text"]["queries"] == CLIPS
    for k in (1, 5):
        assert found["text-audio"]["hit_rate_at"][str(k)] == pytest.approx(hit_rates(*vectors, k))


def test_a_clip_without_captions_is_ranked_and_is_no_query(tmp_path, vectors):
    audio, text = vectors
    rows = np.array([0, 0, 2, 5, 5, 5])
    split = np.array(["test"] * 9 + ["train"] * 3)
    np.savez(tmp_path / "e.npz", audio=audio, text=text[rows, [0, 1, 2, 0, 1, 2]], text_row=rows, split=split)
    found = scored(tmp_path / "e.npz")
    assert (found["text-audio"]["gallery"], found["text-audio"]["queries"]) == (9, 6)
    assert (found["audio-text"]["gallery"], found["audio-text"]["queries"]) == (6, 3)
    clips = evaluate_clips(embeddings=aadml.read(tmp_path / "e.npz").test)
    assert {d.name: d.map for d in clips.directions} == {name: pytest.approx(d["map"]) for name, d in found.items()}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_mask_is_of_clips(tmp_path, vectors, layout):
    present = {"audio": np.arange(CLIPS) > 0, "text": np.arange(CLIPS) < CLIPS - 1}
    masks = {f"{modality}_present": flags for modality, flags in present.items()}
    np.savez(tmp_path / "e.npz", **LAYOUTS[layout](*vectors), **masks)
    embeddings = read_embeddings(tmp_path / "e.npz")[0]
    assert {m: flags.tolist() for m, flags in embeddings.present.items()} == {
        m: flags.repeat(CAPTIONS).tolist() for m, flags in present.items()
    }


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_interval_is_over_clips_and_not_over_captions(tmp_path, vectors, layout):
    np.savez(tmp_path / "e.npz", **LAYOUTS[layout](*vectors))
    embeddings = read_embeddings(tmp_path / "e.npz")[0]
    assert set(embeddings.ids) == set(map(str, range(CLIPS)))
    result = evaluate(embeddings)
    assert {len(direction.units) for direction in result.directions} == {CLIPS}
    named = replace(embeddings, ids=tuple(f"caption {n}" for n in range(CLIPS * CAPTIONS)))
    assert evaluate(named).map_interval == result.map_interval
    halves = evaluate(replace(embeddings, clusters={str(n): "ab"[n % 2] for n in range(CLIPS)}))
    assert halves.directions[0].units == ("a", "b")


def test_own_partners_and_halves_are_of_clips_and_not_of_captions(tmp_path, vectors):
    np.savez(tmp_path / "e.npz", **LAYOUTS["text_row"](*vectors))
    embeddings = read_embeddings(tmp_path / "e.npz")[0]
    named = replace(embeddings, ids=tuple(f"caption {n}" for n in range(CLIPS * CAPTIONS)))
    for given in (embeddings, named):
        found = evaluate(replace(given, relevance=OWN))
        assert [direction.map for direction in found.directions] == [d.map for d in evaluate(embeddings).directions]
        assert [direction.without_relevant for direction in found.directions] == [0, 0]
        for options in ({"gallery": "disjoint"}, {"extra": ["map-disjoint"]}):  # no other clip is relevant
            with pytest.raises(InputError, match="audio-text: no query has a relevant item"):
                evaluate(given, **options)


def test_the_interval_does_not_depend_on_the_order_of_the_captions(tmp_path, vectors):
    audio, text = vectors
    intervals = []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(CLIPS * CAPTIONS)
        rows = np.arange(CLIPS).repeat(CAPTIONS)[order]
        np.savez(tmp_path / "e.npz", audio=audio, text=text.reshape(-1, 6)[order], text_row=rows)
        embeddings = read_embeddings(tmp_path / "e.npz")[0]
        intervals.append([direction.map_interval for direction in evaluate(embeddings).directions])
    np.testing.assert_allclose(intervals[1:], [intervals[0]] * 2, rtol=1e-12)


def test_without_it_copies_of_other_clips_stand_in_the_way(tmp_path, vectors):
    audio, text = vectors
    labels = np.arange(CLIPS).repeat(CAPTIONS)
    np.savez(tmp_path / "e.npz", audio=audio.repeat(CAPTIONS, 0), text=text.reshape(-1, 6), label=labels)
    assert scored(tmp_path / "e.npz")["text-audio"]["hit_rate_at"]["5"] < hit_rates(*vectors, 5)


def test_captions_follow_the_split_of_their_clip(tmp_path, vectors):
    audio, text = vectors
    order = np.random.default_rng(1).permutation(CLIPS * CAPTIONS)
    rows = np.arange(CLIPS).repeat(CAPTIONS)[order]
    split = np.array(["train", "test"] * 6)
    np.savez(tmp_path / "e.npz", audio=audio, text=text.reshape(-1, 6)[order], text_row=rows, split=split)
    found, chosen = read_embeddings(tmp_path / "e.npz")
    assert (chosen, len(found), found.once) == ("test", 30, ("audio",))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"label": np.arange(CLIPS) % 3}, "a separate class for each clip; remove 'label'"),
        ({"text_row": np.full(CLIPS * CAPTIONS, 99)}, "60 clip numbers from 0 to 11"),
        ({"id": np.arange(3)}, "3 id rows, but 12 audio rows"),
        (
            {"text_present": np.ones(CLIPS * CAPTIONS)},
            r"text_present has shape \(60,\); pass .* shape \(12,\)",
        ),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, vectors, changes, message):
    np.savez(tmp_path / "e.npz", **LAYOUTS["text_row"](*vectors) | changes)
    with pytest.raises(InputError, match=message):
        read_embeddings(tmp_path / "e.npz")
