"""Embeddings made elsewhere with several captions a clip: a clip is ranked once, however it is written down."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from aadml.cli import cli
from aadml.feature_extraction.ground.errors import InputError
from aadml.retrieval.embeddings_file import read_embeddings

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
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, vectors, changes, message):
    np.savez(tmp_path / "e.npz", **LAYOUTS["text_row"](*vectors) | changes)
    with pytest.raises(InputError, match=message):
        read_embeddings(tmp_path / "e.npz")
