"""Sources of an index: folders of media and feature files with a manifest."""

import csv
import shutil
import wave
from dataclasses import replace

import cv2
import numpy as np
import pytest
import torch

from aadml.data.reading import open_data
from aadml.data.samples.mp4 import write_mp4
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.jobs.failures import Failure
from aadml.search import Index, sources
from aadml.search.sources import IndexSource, Present, of_features, readable
from aadml.search.store import Item
from tests.feature_extraction.small_jobs import decoded


@pytest.fixture(scope="module")
def media(tmp_path_factory):
    """A flat folder of media without labels: videos with sound, a silent one, a sound, a picture, and a broken file."""
    folder = tmp_path_factory.mktemp("media")
    generator = np.random.default_rng(0)
    for number in range(3):
        tone = 0.3 * np.sin(2 * np.pi * (300 + 400 * number) * np.arange(48_000) / 48_000)
        blocks = np.kron(generator.integers(0, 256, (3, 4, 3)), np.ones((20, 20, 1))).astype(np.uint8)
        pictures = np.repeat(blocks[None], 10, axis=0)
        write_mp4(folder / f"{number}.mp4", pictures, tone, frame_rate=10, rate=48_000)
        cv2.imwrite(str(folder / f"{number}.png"), cv2.cvtColor(pictures[0], cv2.COLOR_RGB2BGR))
    (folder / "broken.mp4").write_bytes(b"not a video")
    (folder / "sub").mkdir()
    shutil.copy(folder / "2.mp4", folder / "sub" / "2.mp4")
    return folder


@pytest.mark.slow
def test_a_folder_of_media_becomes_an_index_that_files_ask(media, tmp_path):
    folder = tmp_path / "media"
    shutil.copytree(media, folder)
    place = tmp_path / "i"
    index = Index.build(folder, place, workers=1)
    assert len(index) == 7
    assert {m: len(g[0]) for m, g in index._state.galleries.items()} == {"audio": 4, "visual": 7}
    found = index.search(visual=folder / "1.png", to="visual", k=2)
    assert found.hits[0].id == "1.png"
    assert found.hits[1].id == "1.mp4"
    assert found.hits[1].media["visual"] == str(folder / "1.mp4")
    found = index.search(clip=folder / "2.mp4", to="audio", k=2)
    assert [hit.id for hit in found.hits] == ["2.mp4", "sub/2.mp4"]
    assert found.asked == ("audio",)
    with pytest.raises(InputError, match=r"broken\.mp4"):
        index.search(audio=folder / "broken.mp4", to="audio")
    (folder / "1.mp4").unlink()
    shutil.copy(folder / "2.mp4", folder / "0.mp4")
    shutil.copy(folder / "2.mp4", folder / "new.mp4")
    changes = index.update(workers=1)
    assert (changes.new, changes.changed, changes.removed, len(changes.failures)) == (1, 1, 1, 2)
    found = index.search(clip=folder / "2.mp4", to="audio", k=4)
    assert [hit.id for hit in found.hits] == ["0.mp4", "2.mp4", "new.mp4", "sub/2.mp4"]


def write_tones(folder, names):
    folder.mkdir(exist_ok=True)
    for number, name in enumerate(names):
        tone = np.sin(np.arange(8000) * (0.05 + 0.01 * number + 0.001 * len(list(folder.iterdir()))))
        with wave.open(str(folder / name), "wb") as file:
            file.setparams((1, 2, 16_000, 0, "NONE", ""))
            file.writeframes((10_000 * tone).astype("<i2").tobytes())


def test_an_update_of_a_folder_decodes_the_new_file_alone(tmp_path, monkeypatch):
    folder = tmp_path / "media"
    write_tones(folder, ["a.wav", "b.wav", "c.wav", "d.wav"])
    steps = []
    options = {"progress": lambda *step: steps.append(step)}
    with Index.build(folder, tmp_path / "i", workers=1, audio="log-mel", **options) as index:
        assert steps[-1] == ("audio of 4", 4, 0)
        assert (tmp_path / "i.work").is_dir()  # what was extracted is not extracted again
        query = folder / "b.wav"
        seen = decoded(monkeypatch)
        assert index.update(workers=1) == replace(index.update(workers=1), items=4, new=0, changed=0, removed=0)
        assert seen == []
        write_tones(folder, ["new.wav"])
        (folder / "a.wav").unlink()
        (folder / "b.wav").rename(folder / "renamed.wav")
        query = folder / "renamed.wav"
        changes = index.update(workers=1)
        assert (changes.items, changes.new, changes.changed, changes.removed) == (4, 2, 0, 2)
        assert seen == [(2, "audio")]  # c, d, new, renamed
        names = [hit.id for hit in index.search(audio=query, to="audio").hits]
        assert names[0] == "renamed.wav"
        assert sorted(names) == ["c.wav", "d.wav", "new.wav", "renamed.wav"]
    fresh = Index.build(folder, tmp_path / "fresh", workers=1, audio="log-mel")
    assert sorted(hit.id for hit in fresh.search(audio=query, to="audio").hits) == sorted(names)
    fresh.close()


def test_a_deleted_file_of_a_manifest_leaves_the_index(tmp_path):
    write_tones(tmp_path / "media", ["a.wav", "b.wav", "c.wav"])
    (tmp_path / "m.csv").write_text("id,audio\n" + "".join(f"{name},media/{name}.wav\n" for name in "abc"))
    with Index.build(tmp_path / "m.csv", tmp_path / "i", workers=1, audio="log-mel") as index:
        (tmp_path / "media" / "b.wav").unlink()
        changes = index.update(workers=1)
    assert (changes.items, changes.removed, [failure.id for failure in changes.failures]) == (2, 1, ["b"])


@pytest.mark.parametrize(
    ("failures", "reason"),
    [((), ""), ((Failure("a", "a.wav", "audio", "corrupt", "cut short"),) * 2, " (a.wav: corrupt, cut short)")],
)
def test_a_source_without_a_readable_clip_states_the_first_failure(failures, reason):
    source = IndexSource((Item("a"), Item("b")), {}, failures=failures)
    with pytest.raises(InputError) as error:
        readable(source, "clips")
    assert (
        str(error.value)
        == f"clips: none of 2 clips can be read{reason}; check the media files and the modalities of the index"
    )


def test_only_readable_items_and_the_clips_of_readable_captions_are_kept():
    caption = Item("b#1", columns={"caption_of": "b", "caption_number": "1"})
    items = (Item("a"), Item("b"), Item("c"), Item("d"), caption)
    present = {"audio": Present(np.array([3]), torch.ones(1, 2)), "text": Present(np.array([4]), torch.ones(1, 2))}
    notes = []
    for failed, left in (("", 2), ("a", 1), ("ac", 0)):
        failures = tuple(Failure(name, "", "visual", "corrupt", "") for name in failed)
        kept = readable(IndexSource(items, present, failures=failures), "clips", notes.append)
        assert [item.id for item in kept.items] == ["b", "d", "b#1"]
        assert {m: some.rows.tolist() for m, some in kept.present.items()} == {"audio": [1], "text": [2]}
        note = f"clips of clips that have none of the modalities of the index are left out: {left}"
        assert notes == [note] * bool(left)
        notes.clear()


def test_an_index_of_one_sound_is_searched_after_further_sounds_and_notes_pictures(tmp_path):
    media, notes = tmp_path / "media", []
    write_tones(media, ["a.wav"])
    with Index.build(media, tmp_path / "i", workers=1, on_note=notes.append) as index:
        write_tones(media, ["b.wav", "c.wav"])
        cv2.imwrite(str(media / "d.png"), np.zeros((8, 8, 3), np.uint8))
        notes.clear()
        assert index.update(workers=1, on_note=notes.append).items == 3
        hits = index.search(audio=media / "a.wav", to="audio").hits
        assert (hits[0].id, round(hits[0].score, 6), hits[2].score > 0.5) == ("a.wav", 1, True)
    note = f"clips of {media} that have none of the modalities of the index are left out: 1"
    assert notes[0] == note


def test_two_files_of_one_name_in_utf8_are_refused(tmp_path, monkeypatch):
    for name in ("a.wav", "b.wav", "c.wav"):
        (tmp_path / name).write_bytes(b"")
    monkeypatch.setattr(sources, "utf8", lambda name: name.replace("c", "b"))
    with pytest.raises(InputError, match=r"two files have the name 'b.wav' in UTF-8; rename one of the two files"):
        sources.listed(tmp_path, tmp_path / "i")


@pytest.mark.parametrize(
    ("path", "modalities"),
    [("", ()), ("a.wav", ("audio", "text")), ("a.JPG", ("visual", "text")), ("a.mp4", ("audio", "visual", "text"))],
)
def test_the_suffix_of_a_file_decides_which_modalities_are_read(path, modalities):
    assert tuple(m for m in ("audio", "visual", "text") if sources.may_have(path, m)) == modalities


def test_items_have_all_classes_of_their_clips(features, tmp_path):
    content = read_features(features).select(np.arange(3))
    labels, all_labels = np.array([1, -1, 0]), np.array([[1, 1, 0], [0, 0, 0], [1, 0, 0]], np.uint8)
    names = ("cat", "dog", "owl")
    for marked, expected in ((None, ["dog", "", "cat"]), (all_labels, ["cat|dog", "", "cat"])):
        write_features(
            tmp_path / "f.h5", replace(content, labels=labels, class_names=names, all_labels=marked, provenance={})
        )
        assert [item.label for item in sources.of_features(tmp_path / "f.h5", tmp_path / "i").items] == expected


def test_a_feature_file_without_a_modality_of_the_index_is_refused(features, tmp_path):
    content = read_features(features)
    write_features(tmp_path / "f.h5", replace(content, features={"audio": content.features["audio"]}))
    Index.build(tmp_path / "f.h5", tmp_path / "i").close()
    write_features(tmp_path / "f.h5", replace(content, features={"visual": content.features["visual"]}))
    with pytest.raises(InputError, match="has visual, but the index embeds audio; pass features of at least one of"):
        Index.build(tmp_path / "f.h5", tmp_path / "i")


def test_a_folder_without_media_is_refused(tmp_path):
    with pytest.raises(InputError, match="has no media files; pass a folder of sounds, pictures or videos"):
        sources.listed(tmp_path, tmp_path / "i")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError):
        Index.build(tmp_path / "empty", tmp_path / "i")
    assert not (tmp_path / "i").exists()


def test_a_manifest_says_where_the_media_of_a_feature_file_are(features, tmp_path):
    with (tmp_path / "manifest.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("id", "media", "split"))
        rows.writerows((name, f"{n}.mp4", "test") for n, name in enumerate(read_features(features).ids))
    with Index.build(features, tmp_path / "i", media=tmp_path / "manifest.csv") as index:
        hit = index.search(audio=read_features(features).features["audio"][4], to="audio", k=1).hits[0]
        assert hit.media == {"audio": str(tmp_path / "4.mp4"), "visual": str(tmp_path / "4.mp4")}
        changes = index.update()  # the manifest is remembered
        assert (changes.new, changes.changed, changes.removed) == (0, 0, 0)


@pytest.mark.parametrize("count", [1, 2, 20])
def test_pairs_without_labels_and_splits_are_divided_as_in_other_commands(tmp_path, count):
    features = {m: np.random.default_rng(0).normal(size=(count, 3)) for m in ("audio", "visual")}
    np.savez(tmp_path / "pairs.npz", **features)
    divided = open_data(tmp_path / "pairs.npz")
    assert [item.split for item in of_features(tmp_path / "pairs.npz", tmp_path).items] == list(divided.splits)
    np.savez(tmp_path / "pairs.npz", **features, label=np.arange(count) % 2)
    assert {item.split for item in of_features(tmp_path / "pairs.npz", tmp_path).items} == {"train"}
