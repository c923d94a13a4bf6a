"""Search by the towers of one pretrained model, without any training: words and sounds, words and pictures."""

import csv
import itertools
import shutil
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pytest

import aadml
from aadml.feature_extraction.backbones import extractor
from aadml.feature_extraction.ground.errors import DamagedFileError, InputError
from aadml.feature_extraction.hub import snapshot
from aadml.model import sharing
from aadml.search import Index, encoders
from aadml.search.facts import ModelReference, PlainRecord
from tests.feature_extraction.hub import tiny
from tests.sound_files import tone, write_wav

pytest.importorskip("transformers")

WORDS = "a dog barks loudly"


@pytest.fixture(scope="module")
def clip_model(tmp_path_factory):
    return tiny.written("clip", tmp_path_factory.mktemp("clip"))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    generator = np.random.default_rng(0)
    for number in range(6):
        blocks = np.kron(generator.integers(0, 256, (4, 4, 3)), np.ones((16, 16, 1))).astype(np.uint8)
        cv2.imwrite(str(folder / f"{number}.png"), blocks)
    return folder


@pytest.fixture(scope="module")
def index(pictures, clip_model, tmp_path_factory):
    place = tmp_path_factory.mktemp("index") / "i"
    return Index.build(pictures, place, audio=None, visual=f"hf:{clip_model}", workers=1)


def extract_items(model, modality, items):
    from aadml.model.media import extract_items

    return extract_items(extractor(f"hf:{model}", modality, {}), items).double().numpy()


@pytest.mark.slow
def test_the_command_that_built_an_index_updates_it(index, clip_model):
    assert index.update(visual=f"hf:{clip_model}", workers=1).changed == 0


@pytest.mark.slow
def test_words_rank_pictures_as_the_towers_do(index, pictures, clip_model):
    paths = sorted(pictures.iterdir())
    items, words = (
        extract_items(clip_model, "visual", list(map(str, paths))),
        extract_items(clip_model, "text", [WORDS])[0],
    )
    scores = items @ words / np.linalg.norm(items, axis=1) / np.linalg.norm(words)
    found = index.search(text=WORDS, to="visual", k=6)
    assert [hit.id for hit in found.hits] == [paths[n].name for n in np.argsort(-scores)]
    np.testing.assert_allclose([hit.score for hit in found.hits], np.sort(scores)[::-1], atol=1e-5)
    assert index.search(visual=paths[2], to="visual").hits[0].id == paths[2].name
    same = index.search(text=words.astype(np.float32), to="visual", k=6)  # features in the place of words
    assert [hit.id for hit in same.hits] == [hit.id for hit in found.hits]


def test_what_shares_no_space_is_refused(index, pictures):
    assert {
        pair: index.encoder.can_query(*pair) for pair in itertools.product(("audio", "visual", "text"), repeat=2)
    } == {
        (modality, to): to == "visual" != "audio" != modality
        for modality in ("audio", "visual", "text")
        for to in ("audio", "visual", "text")
    }
    with pytest.raises(InputError, match="this index was built without a model that compares audio with visual"):
        index.search(audio=pictures / "0.png", to="visual")
    with pytest.raises(InputError, match=r"text: the features have shape \(2, 8\); pass one row of 8 values"):
        index.search(text=np.zeros((2, 8), dtype=np.float32), to="visual")


@pytest.mark.parametrize(
    ("similarity", "says"),
    [
        ("cosine", r'only in memory, .*; save the model with model.save\("NAME"\), and pass model="NAME"'),
        ("frame-word", "compares frames with words, but an"),
    ],
)
def test_a_model_that_an_index_cannot_use_is_refused(features, tmp_path, monkeypatch, similarity, says):
    model = aadml.fit(features, method="random")
    monkeypatch.setattr(type(model.method), "similarity", similarity)
    with pytest.raises(InputError, match=says):
        aadml.index(features, tmp_path / "i", model=model)
    assert list(tmp_path.iterdir()) == []


def test_the_hint_for_a_model_in_memory_leads_to_an_index(features, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = aadml.fit(features, method="random")
    model.save("NAME")
    with pytest.raises(InputError, match='pass model="NAME"'):
        aadml.index(features, "i", model=model)
    aadml.index(features, "i", model="NAME")
    with Index("i") as index:
        assert index.encoder.model.method.similarity == model.method.similarity


def test_another_model_in_its_place_is_refused(pictures, tmp_path):
    folder = tiny.written("clip", tmp_path / "model")
    with Index.build(pictures, tmp_path / "i", audio=None, visual=f"hf:{folder}", workers=1) as index:
        weights = folder / "model.safetensors"
        data = bytearray(weights.read_bytes())
        data[-1] ^= 1
        weights.write_bytes(data)
        with pytest.raises(InputError, match=r"text: the weights of .* differ from the weights of this index; build"):
            index.search(text=WORDS, to="visual")
        shutil.rmtree(folder)
        with pytest.raises(InputError):
            index.search(text=WORDS, to="visual")


@pytest.mark.slow
def test_sounds_and_texts_of_one_feature_file_ask_for_each_other(tmp_path):
    model = tiny.written("clap", tmp_path)
    manifest = aadml.sample_data(tmp_path / "clips", clips=60, seconds=0.5)
    with manifest.open() as file:
        rows = [[row["id"], row["media"], row["label"], row["split"], row["label"]] for row in csv.DictReader(file)]
    with manifest.open("w", newline="") as file:
        csv.writer(file).writerows([["id", "media", "label", "split", "text"], *rows])
    aadml.extract(manifest, tmp_path / "f.h5", audio=f"hf:{model}", visual=None, text=f"hf:{model}", workers=1)
    clips = aadml.read(tmp_path / "f.h5").test
    sounds, texts = (clips[m].double().numpy() for m in ("audio", "text"))
    with Index.build(tmp_path / "f.h5", tmp_path / "i") as index:
        assert index.modalities == ("audio", "text")
        found = index.search(audio=sounds[0].astype(np.float32), to="text", k=len(clips), where="split = 'test'")
        scores = texts @ sounds[0] / np.linalg.norm(texts, axis=1) / np.linalg.norm(sounds[0])
        np.testing.assert_allclose([hit.score for hit in found.hits], np.sort(scores)[::-1], atol=1e-5)
        assert index.search(text="rain", to="audio", k=3).among == len(index)


@pytest.mark.slow
def test_words_search_the_sounds_of_one_model_and_the_pictures_of_another(pictures, clip_model, tmp_path, monkeypatch):
    clap_model = tiny.written("clap", tmp_path / "clap")
    folder = shutil.copytree(pictures, tmp_path / "media")
    for number in range(4):
        write_wav(folder / f"{number}.wav", tone(200 * (number + 1)), 8000)
    index = Index.build(folder, tmp_path / "i", audio=f"hf:{clap_model}", visual=f"hf:{clip_model}", workers=1)
    single = {to: index.search(text=WORDS, to=to, k=10) for to in ("audio", "visual")}
    for to, model in (("audio", clap_model), ("visual", clip_model)):
        words = extract_items(model, "text", [WORDS])[0]
        item = extract_items(model, to, [single[to].hits[0].media[to]])[0]
        cosine = item @ words / np.linalg.norm(item) / np.linalg.norm(words)
        assert abs(single[to].hits[0].score - cosine) < 1e-5
    depths, nearest = [], Index.nearest
    monkeypatch.setattr(Index, "nearest", lambda *args, k, **named: depths.append(k) or nearest(*args, k=k, **named))
    index.search(text=WORDS, k=101)
    found = index.search(text=WORDS, k=4)
    assert depths == [101, 101, 100, 100]  # fewer ranks than a hundred are not fused
    assert (found.to, found.similarity, found.among) == ("audio+visual", "reciprocal rank", 10)
    firsts = [{to: 1} for to in single] + [{to: 2} for to in single]
    assert sorted(map(str, (hit.ranks for hit in found.hits))) == sorted(map(str, firsts))
    assert [hit.score for hit in found.hits] == [1 / 61, 1 / 61, 1 / 62, 1 / 62]
    assert {hit.id for hit in found.hits[:2]} == {results.hits[0].id for results in single.values()}
    with pytest.raises(InputError, match="compares audio with visual"):
        index.search(audio=folder / "0.wav", to="visual")
    with pytest.raises(InputError, match="the modality to search is missing"):
        index.search(audio=folder / "0.wav")


def test_the_network_of_a_query_is_loaded_once(index, pictures, clip_model, monkeypatch):
    extractor(f"hf:{clip_model}", "visual", {})  # the cache of this test knows the folder of the weights
    built = []
    for name in ("extractor", "extractor_of"):
        build = getattr(encoders, name)
        monkeypatch.setattr(encoders, name, lambda *args, build=build: built.append(args) or build(*args))
    with Index(index.path) as opened:
        for number in range(2):
            opened.search(text=WORDS, to="visual")
            opened.search(visual=pictures / f"{number}.png", to="visual")
    assert len(built) == 2


@pytest.mark.parametrize("scaling", [{}, {"shift.audio": [], "scale.audio": []}, {"shift.audio": [0.0] * 2}])
def test_a_scaling_that_does_not_fit_the_features_is_refused(tmp_path, scaling):
    record = PlainRecord(features={}, dimensions={"audio": 2}, scaling=scaling)
    with pytest.raises(DamagedFileError, match="the scaling of the audio features of the index is damaged; build the"):
        encoders.load_encoder(record, tmp_path)


def test_a_network_that_an_index_names_is_not_downloaded(monkeypatch):
    monkeypatch.setattr(snapshot, "_cached", lambda model, revision: None)
    facts = SimpleNamespace(features={"visual": {"source": {"model": "stranger/huge", "revision": "abc"}}})
    encoder = SimpleNamespace(facts=facts, space=lambda modality: None)
    with pytest.raises(InputError, match="hf:stranger/huge@abc was not opened, because the address comes from a file"):
        encoders.PlainEncoder.other_tower(encoder, "text", "visual")


def test_a_model_that_an_index_names_is_not_downloaded(monkeypatch):
    monkeypatch.setattr(sharing, "downloaded", lambda name: pytest.fail(f"downloaded {name}"))
    record = ModelReference(path="hf:stranger/model", digest="")
    with pytest.raises(InputError, match="/hf:stranger/model does not exist"):
        encoders.load_encoder(record, Path())
