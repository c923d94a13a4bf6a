"""Sounds are asked with words, where a model of sound and captions reads them."""

import shutil
import sqlite3
import wave
from contextlib import closing
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import aadml
from aadml.feature_extraction.ground import file_content
from aadml.feature_extraction.ground.errors import DamagedFileError, InputError
from aadml.search import Index
from aadml.search.facts import ModelReference
from aadml.search.raw_media import of_raw_media
from aadml.search.sources import Work
from tests.sound_files import write_wav

SETTINGS = {"method.audio_width": 2, "method.text_layers": 1, "method.text_dimension": 16, "method.hidden": 16,
            "method.dimension": 16, "training.batch": 12}  # fmt: skip


@pytest.fixture(scope="module")
def tones(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tones")
    rows = ["id,media,label,split,caption_1,caption_2"]
    for number in range(30):
        samples = 9000 * np.sin(2 * np.pi * (200 + 150 * number) * np.arange(6400) / 32_000)
        with wave.open(str(folder / f"{number}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(32_000)
            file.writeframes(samples.astype("<i2").tobytes())
        split = ("train", "train", "train", "valid", "test")[number % 5]
        rows.append(f"{number},{number}.wav,{number},{split},A tone {number},The number {number}")
    (folder / "manifest.csv").write_text("\n".join(rows) + "\n")
    return folder


@pytest.fixture(scope="module")
def model(tones, tmp_path_factory):
    pytest.importorskip("transformers")
    place = tmp_path_factory.mktemp("runs")
    return aadml.fit(
        tones / "manifest.csv", method="audio-text", config="audio_text", epochs=1, settings=SETTINGS, runs=place
    )


@pytest.mark.slow
def test_words_find_sounds_as_the_model_ranks_them(tones, model, tmp_path):
    sounds = tmp_path / "sounds"
    sounds.mkdir()
    for number in range(8):
        shutil.copy(tones / f"{number}.wav", sounds)
    (sounds / "broken.wav").write_bytes(b"no sound")
    with Index.build(sounds, tmp_path / "i", model=model) as index:
        assert index.modalities == ("audio",)
        assert len(index) == 8
        found = index.search(text="A tone 3")
        names = [f"{number}.wav" for number in range(8)]
        wanted = model.similarity(model.embed(text="A tone 3"), model.embed(audio=[sounds / name for name in names]))
        scores = {hit.id: hit.score for hit in found.hits}
        np.testing.assert_allclose([scores[name] for name in names], wanted, rtol=1e-4, atol=1e-5)
        assert index.search(audio=sounds / "5.wav", k=1).hits[0].id == "5.wav"
        with pytest.raises(InputError, match="no words"):
            index.search(text="  ")
        with pytest.raises(
            InputError, match="the model of the index embeds only audio, text; choose from these modalities"
        ):
            index.search(visual="x.png")
        shutil.copy(sounds / "1.wav", sounds / "again.wav")
        (sounds / "2.wav").unlink()
        changes = index.update()
        assert (changes.new, changes.changed, changes.removed, len(changes.failures)) == (1, 0, 1, 1)
        assert {hit.id for hit in index.search(audio=sounds / "1.wav", k=2).hits} == {"1.wav", "again.wav"}


def test_moments_are_refused_where_a_sound_is_heard_as_a_whole(tones, model, tmp_path):
    with pytest.raises(InputError, match="--moments: this model embeds clips as a whole"):
        Index.build(tones, tmp_path / "i", model=model, moments=True)
    assert not (tmp_path / "i").exists()


@pytest.mark.slow
def test_captions_of_a_manifest_are_items(tones, model, tmp_path):
    with Index.build(tones / "manifest.csv", tmp_path / "i", model=model) as index:
        assert index.counts() == {"audio": 30, "text": 60}
        hit = index.search(text="The number 7", to="text", where="caption_of = '7'", k=1).hits[0]
        assert (hit.item.clip, hit.item.caption.number, hit.item.caption.text) == ("7", 2, "The number 7")
        assert hit.score == pytest.approx(1)
        assert index.update().changed == 0


class _Lengths:
    """Encoder of a sound to its number of samples and its first sample, and of a text to its length."""

    facts = SimpleNamespace(
        modalities=("audio", "text"),
        towers=None,
        dimensions={"audio": 0, "text": 0},
        method=SimpleNamespace(arguments=None),
    )

    def record(self, folder):
        return ModelReference(path=self.path, digest=self.digest)

    def __init__(self, digest="1", path="model"):
        self.digest, self.path, self.embedded = digest, path, []

    def embed(self, source, modality):
        self.embedded.append((modality, len(source)))
        if modality == "text":
            return torch.tensor([[float(len(text)), 0.0] for text in source.texts])
        return torch.tensor(
            [[float(len(sound)), round(float(sound[0]), 2)] for sound in source.batch(torch.arange(len(source)))]
        )


def test_sounds_are_embedded_once_in_batches_and_failures_are_listed(tmp_path):
    rows = ["id,audio,visual,label,split,start,end,text"]
    for n in range(20):
        write_wav(tmp_path / f"{n}.wav", np.full(32_000, 3277 * (n % 3)))
        rows.append(f"{n},{n}.wav,,x,test,0,{(n + 1) / 100},{'w' * n}")
    (tmp_path / "17.wav").write_bytes(b"no sound")
    rows += ["none,none.wav,,x,test,,,", "twin,3.wav,,x,test,0,0.04,"]
    (tmp_path / "m.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "work").mkdir()
    steps = []
    work = Work(tmp_path / "work", progress=lambda *step: steps.append(step))
    encoder = _Lengths()
    source = of_raw_media(tmp_path / "m.csv", tmp_path / "i", encoder, work)
    assert [(one.id, one.media, one.modality, one.reason) for one in source.failures] == [
        ("none", str(tmp_path / "none.wav"), "audio", "missing"),
        ("17", str(tmp_path / "17.wav"), "audio", "not-a-media-file"),
    ]
    assert encoder.embedded == [("audio", 16), ("audio", 3), ("text", 19)]
    assert steps == [("audio of 21", 17, 0), ("audio of 21", 21, 1)]
    names = [source.items[row].id for row in source.present["audio"].rows]
    assert names == [*(str(n) for n in range(20) if n != 17), "twin"]
    lengths = {name: value for name, (value, _) in zip(names, source.present["audio"].features.tolist(), strict=True)}
    assert lengths == {name: 320 * (4 if name == "twin" else int(name) + 1) for name in names}
    assert source.embedded
    texts = source.present["text"]
    assert {source.items[n].id: v[0] for n, v in zip(texts.rows, texts.features.tolist(), strict=True)} == {
        str(n): n for n in range(1, 20)
    }
    rows[1:1] = ["first,,,x,test,,,a new text", "second,,,x,test,,,w"]
    (tmp_path / "m.csv").write_text("\n".join(rows) + "\n")
    again = of_raw_media(tmp_path / "m.csv", tmp_path / "i", moved := _Lengths(path="moved"), work)
    assert torch.equal(again.present["audio"].features, source.present["audio"].features)
    assert again.present["text"].features[:, 0].tolist() == [10, 1, *range(1, 20)]
    assert moved.embedded == [("text", 1)]  # only the broken file is decoded again
    of_raw_media(tmp_path / "m.csv", tmp_path / "i", other := _Lengths("2"), work)
    assert other.embedded == [*encoder.embedded[:2], ("text", 20)]


def test_a_file_whose_content_cannot_be_read_is_not_embedded(tmp_path, monkeypatch):
    write_wav(tmp_path / "a.wav", np.ones(32_000))
    write_wav(tmp_path / "b.wav", np.ones(16_000))
    digest = file_content.file_digest

    def fails(path, *_):
        if str(path).endswith("a.wav"):
            raise OSError(5, "Input/output error")
        return digest(path)

    monkeypatch.setattr(file_content, "file_digest", fails)
    source = of_raw_media(tmp_path, tmp_path / "i", _Lengths(), Work(tmp_path))
    assert [(one.id, one.reason, one.detail) for one in source.failures] == [
        ("a.wav", "missing", "the file cannot be read")
    ]
    assert source.present["audio"].features[:, 0].tolist() == [16_000.0]


def test_an_error_that_is_not_of_decoding_is_raised(tmp_path):
    def fails(*_):
        raise InputError("out of memory")

    write_wav(tmp_path / "a.wav", np.ones(32_000))
    encoder = _Lengths()
    encoder.embed = fails
    with pytest.raises(InputError, match="out of memory"):
        of_raw_media(tmp_path, tmp_path / "i", encoder, Work(tmp_path))


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("DROP TABLE vector; CREATE VIEW vector AS SELECT 'a' AS key, zeroblob(400000000) AS content",
         "it is damaged: 'vector' is not a plain table"),
        ("UPDATE vector SET content = 'text'", "it is damaged: the audio vectors"),
        ("UPDATE vector SET content = x'000000'", "it is damaged: the audio vectors"),
        (None, "file is not a database"),
    ],
)  # fmt: skip
def test_a_cache_of_another_content_is_refused(tmp_path, statement, reason):
    write_wav(tmp_path / "a.wav", np.ones(32_000))
    work, cache = Work(tmp_path), tmp_path / "vectors.sqlite"
    of_raw_media(tmp_path, tmp_path / "i", _Lengths(), work)
    if statement is None:
        cache.write_bytes(b"another file" * 1000)
    else:
        with closing(sqlite3.connect(cache)) as database:
            database.executescript(statement)
    with pytest.raises(DamagedFileError, match=f"cannot be used as a cache of vectors .{reason}.; remove this file"):
        of_raw_media(tmp_path, tmp_path / "i", _Lengths(), work)


@pytest.mark.parametrize("suffix", ["", "-journal", "-wal", "-shm"])
def test_the_cache_of_vectors_is_not_written_through_a_hard_link(tmp_path, suffix):
    write_wav(tmp_path / "a.wav", np.ones(32_000))
    of_raw_media(tmp_path, tmp_path / "i", _Lengths(), Work(tmp_path))
    write_wav(tmp_path / "b.wav", np.zeros(32_000))
    cache, victim = tmp_path / f"vectors.sqlite{suffix}", tmp_path / "mine"
    victim.write_bytes(b"mine" * 8192 if suffix else cache.read_bytes())
    before = victim.read_bytes()
    cache.unlink(missing_ok=True)
    cache.hardlink_to(victim)
    of_raw_media(tmp_path, tmp_path / "i", _Lengths(), Work(tmp_path))
    assert victim.read_bytes() == before
