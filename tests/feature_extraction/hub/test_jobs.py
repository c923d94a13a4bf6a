"""Extraction by pretrained networks: neither order, workers, shards nor an interruption change a byte."""

import csv

import numpy as np
import pytest

import aadml
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.jobs.merge import merge

CLIPS = 5


@pytest.fixture(scope="session")
def clips(render, tmp_path_factory):
    folder = tmp_path_factory.mktemp("five")
    for number in range(CLIPS):
        render(folder / f"{number}.mp4", seconds=0.6 + 0.7 * number, tone=200.0 + 100 * number)
    texts = ["a dog", "rain falls on the roof", "someone is clapping", "a dog barks loudly", "tin"]
    return [[f"clip{n}", f"{n}.mp4", "xy"[n % 2], "train", texts[n]] for n in range(CLIPS)], folder


@pytest.fixture
def run(clips, network, tmp_path):
    rows, folder = clips

    def extracted(name, *, order=range(CLIPS), column="text", **options):
        path = folder / f"{tmp_path.name}-{name}.csv"
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([["id", "media", "label", "split", column], *(rows[n] for n in order)])
        names = {"audio": network("clap"), "visual": network("clip"), "text": network("clip")}
        chosen = {modality: f"hf:{place}" for modality, place in names.items()} | options.pop("names", {})
        aadml.extract(path, tmp_path / f"{name}.h5", **chosen, **{"workers": 1} | options)
        return tmp_path / f"{name}.h5"

    return extracted


@pytest.fixture
def whole(run):
    return run("whole").read_bytes()


@pytest.mark.slow
def test_sound_picture_and_text_meet_in_one_file(run):
    content = read_features(run("whole", sequence=True))
    assert {m: f.shape for m, f in content.features.items()} == {"audio": (5, 12), "visual": (5, 12), "text": (5, 12)}
    assert set(content.fingerprints) == {"audio", "visual"}
    assert [len(np.unique(content.features[m], axis=0)) for m in ("audio", "text")] == [5, 5]
    assert content.sequences["audio"].times.tolist()[-2:] == pytest.approx([0.0, 1.4], abs=0.05)


@pytest.mark.slow
def test_windows_of_frames_follow_each_other_and_the_last_one_ends_with_the_clip(run, network):
    names = {"audio": None, "visual": f"hf:{network('videomae')}", "text": None}
    found = read_features(run("videos", names=names, sequence=True)).sequences["visual"]
    times = [found.times[slice(*found.offsets[clip : clip + 2])].tolist() for clip in range(3)]
    assert times[0] == pytest.approx([0.0, 0.125])  # 0.6 s at 8 frames a second: five, in windows of four
    assert times[1] == pytest.approx([0.0, 0.5, 0.875])
    assert times[2] == pytest.approx([0.0, 0.5, 1.0, 1.5])


@pytest.mark.slow
def test_workers_change_no_byte(run, whole):
    assert run("workers", workers=2).read_bytes() == whole


@pytest.mark.slow
def test_shards_change_no_byte(run, whole, tmp_path):
    for index in range(2):
        run("sharded", shard=(index, 2))
    merge([], tmp_path / "sharded.h5")
    assert (tmp_path / "sharded.h5").read_bytes() == whole


@pytest.mark.slow
def test_an_interruption_changes_no_byte(run, whole):
    def stop(done, failed):
        if done >= 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run("stopped", progress=stop)
    assert run("stopped").read_bytes() == whole


@pytest.mark.slow
def test_the_order_of_the_clips_changes_no_feature(run):
    ordered, turned = read_features(run("ordered")), read_features(run("turned", order=range(CLIPS)[::-1]))
    for modality, features in ordered.features.items():
        assert np.array_equal(features, turned.features[modality][::-1])


@pytest.mark.slow
def test_a_changed_text_is_described_anew_and_nothing_else_is(run, clips, tmp_path):
    rows, _ = clips
    before = read_features(run("text"))
    kept, rows[1] = rows[1], [*rows[1][:4], "clapping"]
    try:
        after = read_features(run("text"))
    finally:
        rows[1] = kept
    changed = (before.features["text"] != after.features["text"]).any(axis=1)
    assert changed.tolist() == [False, True, False, False, False]


def test_a_clip_without_text_fails_by_itself(run, clips, tmp_path):
    rows, _ = clips
    kept, rows[3] = rows[3], [*rows[3][:4], "  "]
    try:
        content = read_features(run("empty", names={"audio": None, "visual": None}))
    finally:
        rows[3] = kept
    assert content.ids == ("clip0", "clip1", "clip2", "clip4")
    assert "no-text" in (tmp_path / "empty.h5.failures.csv").read_text()


def test_a_manifest_without_text_is_refused(run):
    with pytest.raises(InputError, match=r"has no text for the extractor .*; add a column text, caption or caption_1"):
        run("none", column="remark")


CAPTIONS = [["a dog", "a dog barks", ""], ["rain", "", "it rains"], ["", "", "tin"], ["steps", "", ""], ["a", "b", "c"]]


@pytest.fixture
def captioned(clips, network, tmp_path):
    """Extract texts alone, of as many columns as there are captions."""
    _, folder = clips

    def extracted(name, captions, **options):
        header = ["id", "media", "label", "split", *(f"caption_{n + 1}" for n in range(len(captions[0])))]
        rows = [[f"clip{n}", f"{n}.mp4", "xy"[n % 2], "train", *one] for n, one in enumerate(captions)]
        path = folder / f"{tmp_path.name}-{name}.csv"
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([header, *rows])
        text = f"hf:{network('clip')}"
        aadml.extract(path, tmp_path / f"{name}.h5", audio=None, visual=None, text=text, workers=1, **options)
        return tmp_path / f"{name}.h5"

    return extracted


def test_each_caption_of_a_clip_is_kept_as_if_it_were_its_only_one(captioned):
    content = read_features(captioned("several", CAPTIONS))
    written = [(row, text) for row, texts in enumerate(CAPTIONS) for text in texts if text]
    assert content.texts.rows.tolist() == [row for row, _ in written]
    assert content.ids == tuple(f"clip{n}" for n in range(5))
    last = [[[text for row, text in written if row == n][-1]] for n in range(5)]
    ends = np.flatnonzero(np.diff(content.texts.rows, append=5))
    assert np.array_equal(content.texts.values[ends], read_features(captioned("last", last)).features["text"])


@pytest.mark.slow
def test_shards_of_several_captions_change_no_byte(captioned, tmp_path):
    whole = captioned("whole", CAPTIONS).read_bytes()
    for index in range(3):
        captioned("sharded", CAPTIONS, shard=(index, 3))
    merge([], tmp_path / "sharded.h5")
    assert (tmp_path / "sharded.h5").read_bytes() == whole
