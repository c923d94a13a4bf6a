"""Segments of recordings as items that a network decodes."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from aadml.comparison.clips import Clips, Splits
from aadml.data.sources import media_sets
from aadml.data.sources.array_cache import ArrayCache
from aadml.data.sources.media_files import MediaFiles
from aadml.data.sources.media_sets import read_media, with_media
from aadml.data.sources.waveforms import Waveforms
from aadml.data.splitting.splits import to_splits
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.segment import WHOLE, Segment
from aadml.feature_extraction.media import Sound
from aadml.protocols.audit_checks import _equal_sounds
from tests.sound_files import RATE, noise, write_wav


@pytest.fixture
def recording(tmp_path):
    return write_wav(tmp_path / "a.wav", noise(6 * RATE))


def clips(features):
    labels = torch.zeros(len(features), dtype=torch.int64)
    return Clips({"audio": features}, labels, tuple(map(str, range(len(features)))), ("0",))


def test_rows_are_segments_of_their_recording(recording, tmp_path):
    rows = [f"{n},a.wav,,{split},{n},{n + 1}" for n, split in enumerate(["train", "valid", "test", "test"])]
    (tmp_path / "m.csv").write_text("\n".join(["id,media,label,split,start,end", *rows]))
    content, manifest = read_media(tmp_path / "m.csv", ["audio"])
    numbers = torch.from_numpy(content.features["audio"])
    source = with_media(Splits(*(clips(part) for part in (numbers[:1], numbers[1:2], numbers[2:]))), manifest).test
    files = source["audio"]
    assert [files.name(file) for file in files.items.tolist()] == [f"{recording}@2.0-3.0", f"{recording}@3.0-4.0"]
    (sound,) = replace(files, inputs=Sound(RATE)).batch(torch.tensor([1]))
    np.testing.assert_allclose(sound, noise(6 * RATE)[3 * RATE : 4 * RATE] / 32768, atol=1e-6)


def test_a_cache_distinguishes_segments_and_a_failure_leaves_the_others(recording, tmp_path, monkeypatch):
    monkeypatch.setenv("AADML_CACHE", str(tmp_path / "cache"))
    segments = (Segment(0.0, 1.0), Segment(2.0, 4.0), Segment(7.0, 8.0), WHOLE)
    files = MediaFiles((recording,) * 4, torch.arange(4), Sound(RATE), cache=ArrayCache(1 << 22), segments=segments)
    with pytest.warns(UserWarning, match=r"a.wav@7.0-8.0: the file was left out \(outside"):
        first = files.batch(torch.arange(4))
    assert [None if sound is None else len(sound) for sound in first] == [RATE, 2 * RATE, None, 6 * RATE]
    for sound, again in zip(first, files.batch(torch.arange(4)), strict=True):
        np.testing.assert_array_equal(sound, again)
    assert len(set(files.sums(range(4)))) == 4
    assert files.sums([3]) == MediaFiles((recording,), torch.arange(1)).sums([0])
    assert files.decoded([]) == []
    part = files.select(torch.tensor([3, 1, 3]))
    assert list(part.content()) == [*files.sums([1, 3]), np.asarray([1, 0, 1]).tobytes()]
    assert MediaFiles(("none.wav",), torch.arange(1)).sums([0]) == [b""]


def test_segments_of_one_file_in_two_splits_are_one_shared_recording(recording):
    def sounds(*segments):
        return clips(Waveforms((recording,) * len(segments), torch.arange(len(segments)), segments=segments))

    shared = _equal_sounds(sounds(Segment(0.0, 1.0), Segment(1.0, 2.0)), sounds(Segment(3.0, 4.0)), "audio")
    assert shared == [f"{recording} = {recording}"]


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("media,start,end", "{file}.mp4,{part},{end}"),
        ("media,start,end,recording", "{file}.mp4,{part},{end},"),
        ("audio,visual", "{file}.wav,{file}-{part}.jpg"),
        ("audio,visual,start,end", "{file}-{part}.wav,{file}.mp4,,"),
    ],
)
def test_clips_of_one_file_are_in_one_split_if_validation_is_drawn(tmp_path, header, row):
    lines = [
        f"{file}-{part},{'train' if file < 30 else 'test'}," + row.format(file=file, part=part, end=part + 1)
        for file in range(40)
        for part in range(3)
    ]
    (tmp_path / "m.csv").write_text("\n".join([f"id,split,{header}", *lines]))
    content, _ = read_media(tmp_path / "m.csv", ["audio", "visual"])
    splits = to_splits(content)
    train, valid = ({name.split("-")[0] for name in part.ids} for part in (splits.train, splits.valid))
    assert len(valid) == 3
    assert not train & valid
    assert any("no recording divided" in note for note in splits.notes)


@pytest.mark.parametrize(
    ("texts", "rows", "present", "counts"),
    [
        ([("a", "b"), ("", "c"), (" ", "")], [0, 0, 1], [True, True, False], [2, 1, 0]),
        ([("a", ""), ("", "c"), ("", "")], None, [True, True, False], [1, 1, 0]),
        ([("a", ""), ("b", ""), ("c", "")], None, None, [1, 1, 1]),
    ],
)
def test_texts_of_a_manifest_are_numbered(tmp_path, texts, rows, present, counts):
    lines = [f"{n},{n}.wav,,x,test,{one},{two}" for n, (one, two) in enumerate(texts)]
    (tmp_path / "m.csv").write_text("\n".join(["id,audio,visual,label,split,caption_1,caption_2", *lines]) + "\n")
    content, manifest = read_media(tmp_path / "m.csv", ["audio", "text"])
    assert (None if content.texts is None else content.texts.rows.tolist()) == rows
    assert (content.present["text"].tolist() if content.present else None) == present
    assert content.features["audio"].tolist() == [[0], [1], [2]]
    assert [len(media_sets._texts(row)) for row in manifest.rows] == counts
    assert media_sets._source(manifest, "text").texts == tuple(t for pair in texts for t in pair if t.strip())


def test_an_empty_cell_is_a_missing_modality(tmp_path):
    (tmp_path / "m.csv").write_text("id,audio,visual,label,split\na,a.wav,,x,test\nb,,b.mp4,x,test\n")
    content, _ = read_media(tmp_path / "m.csv", ["audio", "visual"])
    assert {m: flags.tolist() for m, flags in content.present.items()} == {
        "audio": [True, False], "visual": [False, True]
    }  # fmt: skip
    assert MediaFiles(("",), torch.arange(1), Sound(RATE)).batch(torch.arange(1)) == [None]


@pytest.mark.parametrize(
    ("name", "content", "modality", "says"),
    [
        ("m.txt", "", "audio", "is not a CSV file, but networks .* are trained on media; pass a manifest"),
        ("m.csv", "id,media,label,split\na,a.wav,x,test\n", "text", "has no column for text; add a column, or leave"),
        (
            "m.csv",
            "id,media,label,split,text\na,a.wav,x,test,\n",
            "text",
            "no clip has a text; add texts, or leave towers.text out",
        ),
        (
            "m.csv",
            "id,audio,split\na,a.wav,test\n",
            "visual",
            "no clip has a file for visual; add files, or leave towers",
        ),
    ],
)
def test_a_manifest_without_a_modality_is_refused(tmp_path, name, content, modality, says):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=says):
        read_media(tmp_path / name, [modality])
