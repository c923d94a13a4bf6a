"""Sounds are asked with words, where a model of sound and captions reads them."""

import shutil
import wave

import numpy as np
import pytest

import aadml
from aadml.feature_extraction.ground.errors import InputError
from aadml.search import Index

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
            InputError, match="the model of the index does not embed this modality; choose from audio, text"
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
