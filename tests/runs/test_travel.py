"""A model travels: its folder is all it needs, without the training data, the config's paths or files of weights."""

import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path

import cv2
import h5py
import numpy as np
import pytest
import torch
from click.testing import CliRunner

import aadml
from aadml.cli import cli
from aadml.data.sample_clips import sample_data
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.backbones.panns import PANNS_NETWORKS
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.hub.bert import small_bert
from aadml.feature_extraction.layers.word_pieces import SPECIAL, train_vocabulary, word_piece_tokenizer
from tests.sound_files import tone, write_wav

ROOT = Path(__file__).parents[2]
MODEL_FILES = ("model.safetensors", "model.json", "README.md")
SMALL = {"network.hidden": [16], "training.batch": 20, "inputs.scaling": "standard"}


def aadml_command(*arguments):
    """Run the command line; return what it printed."""
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def embedded(folder, features, output):
    """What `aadml embed` writes: name -> content."""
    aadml_command("embed", folder, features, "-o", output)
    with h5py.File(output) as file:
        return {name: file[name][()].tobytes() for name in file if name in ("audio", "visual", "text", "label")}


@pytest.fixture(params=["a run", "a saved model", "a saved loaded model"])
def travelled(request, tmp_path):
    """A trained model's folder far from home, other data, and its answers before the journey."""
    home = tmp_path / "home"
    shape = {"classes": 3, "dimensions": (6, 8), "difficulty": 0.2}
    write_features(home / "train.h5", synthetic(train=60, valid=15, test=30, **shape))
    other = tmp_path / "other.h5"
    write_features(other, synthetic(train=3, valid=3, test=24, **shape))
    (home / "my config.yaml").write_text("method: aadml\n")
    settings = SMALL | {"loss.name": "triplet"}
    model = aadml.fit(
        home / "train.h5", config=home / "my config.yaml", epochs=2, settings=settings, runs=home / "runs"
    )
    folder = model.folder
    if request.param != "a run":
        folder = model.save(home / "saved")
    if request.param == "a saved loaded model":
        folder = aadml.load(folder).save(home / "saved again")
    before = (
        embedded(folder, other, tmp_path / "before.h5"),
        aadml_command("evaluate", folder, "--data", other, "--json"),
    )
    away = tmp_path / "away" / "model"
    shutil.copytree(folder, away)
    shutil.rmtree(home)
    return away, other, before, model


def test_command_line_and_python_answer_as_before(travelled, tmp_path):
    away, other, (vectors, scores), model = travelled
    assert embedded(away, other, tmp_path / "after.h5") == vectors
    assert aadml_command("evaluate", away, "--data", other, "--json") == scores
    loaded = aadml.load(away)
    content = read_features(other)
    for modality in ("audio", "visual"):
        rows = np.asarray(content.features[modality])
        assert loaded.embed(**{modality: rows}).tobytes() == vectors[modality]
        assert model.embed(**{modality: rows}).tobytes() == vectors[modality]
    assert loaded.evaluation == model.evaluation
    assert aadml.verify(away) == []


def test_no_path_is_left_in_it(travelled, tmp_path):
    away, *_ = travelled
    for name in MODEL_FILES:
        data = (away / name).read_bytes()
        assert str(tmp_path).encode() not in data, name
        assert str(Path.home()).encode() + b"/" not in data, name
        assert b"my config" not in data


def test_a_loaded_model_is_saved_to_the_same_bytes(tmp_path):
    model = aadml.fit("synthetic:ave", method="cca")
    first = model.save(tmp_path / "first")
    second = aadml.load(first).save(tmp_path / "second")
    assert sorted(path.name for path in second.iterdir()) == sorted(MODEL_FILES)
    for name in MODEL_FILES:
        assert (first / name).read_bytes() == (second / name).read_bytes()
    with pytest.raises(InputError, match="already"):
        model.save(first)


# sound and captions, networks and vectors read from files


@pytest.fixture(scope="module")
def tones(tmp_path_factory):
    """A manifest of short tones, two captions each."""
    folder = tmp_path_factory.mktemp("tones")
    rows = [["id", "media", "label", "split", "caption_1", "caption_2"]]
    for i in range(18):
        write_wav(folder / f"{i}.wav", tone(200 + 150 * i))
        split = "train" if i < 12 else "valid" if i < 15 else "test"
        rows.append([f"t{i}", f"{i}.wav", "tone", split, f"Tone number {i}.", f"A tone, {i} of thirty"])
    with (folder / "manifest.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return folder / "manifest.csv"


def bert_folder(place):
    transformers = pytest.importorskip("transformers")
    pieces = word_piece_tokenizer(train_vocabulary(["a tone number 0 1 2 of thirty"], size=80))
    torch.manual_seed(0)
    small_bert(pieces.get_vocab_size(), dimension=16).model.save_pretrained(place)
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=True))
    transformers.PreTrainedTokenizerFast(tokenizer_object=pieces, **names).save_pretrained(place)
    return place


def panns_file(path):
    torch.manual_seed(0)
    torch.save({"model": PANNS_NETWORKS["cnn10"](width=2).state_dict()}, path)
    return path


def word_vectors(path):
    words = ["tone", "number", "a", "of", "thirty", *map(str, range(18))]
    values = np.random.default_rng(0).normal(size=(len(words), 30))
    lines = [
        f"{len(words)} 30",
        *(f"{word} {' '.join(map(str, row))}" for word, row in zip(words, values, strict=True)),
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


CAPTIONED = {
    "bert from a folder, panns from a file": (
        "audio-text",
        "audio_text",
        {"bert": bert_folder, "panns": panns_file},
        {},
    ),
    "word2vec from a file": ("xie", "xie", {"words": word_vectors}, {"channels": 8, "text_dimension": 30}),
}
OPTION = {"bert": "text_weights", "panns": "audio_weights", "words": "text_weights"}


@pytest.mark.parametrize("case", CAPTIONED)
def test_a_model_of_sound_and_captions_needs_none_of_its_files(case, tones, tmp_path):
    method, config, files, options = CAPTIONED[case]
    home = tmp_path / "home"
    home.mkdir()
    options = dict(options) or {"audio_width": 2, "hidden": 16, "dimension": 16}
    options |= {OPTION[name]: str(write(home / name)) for name, write in files.items()}
    settings = {f"method.{key}": value for key, value in options.items()} | {"training.batch": 12}
    model = aadml.fit(tones, method=method, config=config, epochs=1, settings=settings, runs=home / "runs")
    items = {"audio": [tones.parent / "0.wav", tones.parent / "3.wav"], "text": ["A tone, 3 of thirty", "a number"]}
    wanted = model.embed(**items)
    saved = model.save(tmp_path / "saved")
    away = shutil.copytree(model.folder, tmp_path / "away")
    shutil.rmtree(home)
    for folder in (away, saved):
        found = aadml.load(folder).embed(**items)
        for modality, vectors in wanted.items():
            np.testing.assert_array_equal(found[modality], vectors)
        assert not [name for name in MODEL_FILES if str(tmp_path).encode() in (folder / name).read_bytes()]
    alone = aadml.load(away).embed(text=items["text"][0])
    assert alone.shape == wanted["text"].shape[1:]
    if method != "xie":  # its similarity compares packed sequences
        np.testing.assert_allclose(alone, wanted["text"][0], rtol=1e-4, atol=1e-5)


# media files


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    """Sample clips of four classes, a sound and a picture among them, and their manifest."""
    folder = tmp_path_factory.mktemp("clips")
    manifest = sample_data(folder, clips=40, seconds=0.5)
    rows = list(csv.DictReader(manifest.read_text().splitlines()))
    labels = sorted({row["label"] for row in rows})[:4]
    rows = [row for row in rows if row["label"] in labels]
    first = folder / rows[0]["media"]
    write_wav(folder / "tone.wav", tone(440, 1.0))
    cv2.imwrite(str(folder / "picture.jpg"), np.random.default_rng(0).integers(0, 255, (90, 120, 3), dtype=np.uint8))
    with (folder / "all.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "audio", "visual", "label", "split"])
        for row in rows:
            writer.writerow([row["id"], row["media"], row["media"], row["label"], row["split"]])
        writer.writerow(["mixed", "tone.wav", "picture.jpg", rows[0]["label"], "test"])
    return folder / "all.csv", first


@pytest.mark.parametrize(
    ("audio", "visual", "weights"),
    [("log-mel", "hog-color", None), pytest.param("vggish", "inception-v3", "untrained", marks=pytest.mark.slow)],
)
def test_media_are_embedded_as_extracted_and_embedded(clips, tmp_path, audio, visual, weights):
    manifest, first = clips
    path = tmp_path / "clips.h5"
    outcome = aadml.extract(manifest, path, audio=audio, visual=visual, weights=weights, workers=1)
    assert not outcome.failures
    settings = {"network.hidden": [16], "training.batch": 10}
    model = aadml.fit(path, loss="triplet", epochs=1, settings=settings)
    content = read_features(path)
    loaded = aadml.load(model.save(tmp_path / "model"))
    path.unlink()
    where = {"mixed": {"audio": manifest.parent / "tone.wav", "visual": manifest.parent / "picture.jpg"}}
    where[content.ids[0]] = {"audio": first, "visual": str(first)}
    for modality, alone in (("audio", content.ids[0]), ("visual", "mixed")):  # each call starts processes that decode
        rows = {name: content.features[modality][content.ids.index(name)] for name in where}
        found = loaded.embed(**{modality: [media[modality] for media in where.values()]})
        np.testing.assert_array_equal(found, loaded.embed(**{modality: np.stack(list(rows.values()))}))
        found = loaded.embed(**{modality: where[alone][modality]})
        np.testing.assert_array_equal(found, loaded.embed(**{modality: rows[alone]}))


@pytest.mark.slow
def test_media_that_cannot_be_embedded_are_refused_by_name(clips, tmp_path):
    manifest, first = clips
    aadml.extract(manifest, tmp_path / "clips.h5", workers=1)
    model = aadml.fit(tmp_path / "clips.h5", method="cca", settings={"method.dimension": 3})
    with pytest.raises(InputError, match=r"nowhere\.mp4 does not exist"):
        model.embed(visual=manifest.parent / "nowhere.mp4")
    with pytest.raises(InputError, match=r"tone\.wav cannot be read as visual"):
        model.embed(visual=manifest.parent / "tone.wav")
    with pytest.raises(InputError, match=r"manifest\.csv cannot be read as audio"):
        model.embed(audio=[first, manifest.parent / "manifest.csv"])


# another machine: core dependencies alone

FOREIGN = """
import sys, aadml, numpy as np
model = aadml.load(sys.argv[1])
names = [name for name in ("transformers", "matplotlib", "tensorflow", "faiss") if name in sys.modules]
assert not names, names
sys.stdout.buffer.write(model.embed(audio=np.load(sys.argv[2])).tobytes())
"""


@pytest.mark.slow
def test_a_fresh_environment_with_core_dependencies_answers_the_same(tmp_path, features_and_run):
    features, run = features_and_run
    place = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True, timeout=600)
    python = place / "bin" / "python"
    uv = Path(sys.prefix) / "bin" / "uv"
    if not uv.is_file():
        pytest.skip("uv, with which scripts/setup installs, is not here")
    installed = subprocess.run(
        [uv, "pip", "install", "--python", python, "-c", ROOT / "constraints.txt", ROOT],
        capture_output=True, text=True, check=False, timeout=800,
        env=os.environ | {"UV_FIND_LINKS": os.environ.get("PIP_FIND_LINKS", "")},
    )  # fmt: skip
    if installed.returncode:
        pytest.skip(f"cannot be installed here: {installed.stderr.strip().splitlines()[-1]}")
    wanted = embedded(run, features, tmp_path / "here.h5"), aadml_command("evaluate", run, "--data", features, "--json")
    away = shutil.copytree(run, tmp_path / "away")
    foreign = [place / "bin" / "aadml"]
    subprocess.run([*foreign, "embed", away, features, "-o", tmp_path / "there.h5"], check=True, cwd=tmp_path)
    with h5py.File(tmp_path / "there.h5") as file:
        assert all(file[name][()].tobytes() == value for name, value in wanted[0].items())
    scores = subprocess.run(
        [*foreign, "evaluate", away, "--data", features, "--json"], check=True, cwd=tmp_path, capture_output=True,
        text=True,
    )  # fmt: skip
    assert scores.stdout == wanted[1]
    np.save(tmp_path / "rows.npy", np.asarray(read_features(features).features["audio"]))
    answer = subprocess.run(
        [python, "-c", FOREIGN, away, tmp_path / "rows.npy"], check=True, cwd=tmp_path, capture_output=True
    )
    assert answer.stdout == wanted[0]["audio"]


@pytest.fixture
def features_and_run(tmp_path):
    path = tmp_path / "features.h5"
    write_features(path, synthetic(classes=3, train=60, valid=15, test=30, dimensions=(6, 8), difficulty=0.2))
    model = aadml.fit(path, loss="aa-triplet", epochs=2, settings=SMALL, runs=tmp_path / "runs")
    return path, model.folder
