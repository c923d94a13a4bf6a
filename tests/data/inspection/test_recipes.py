"""The recipe of foreign features is named; the features are made by other code, with random weights."""

import csv
import io
import sys
import tarfile
from dataclasses import replace
from types import SimpleNamespace

import av
import h5py
import numpy as np
import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import save_file
from scipy.io import wavfile
from scipy.signal import resample_poly

import aadml
from aadml.cli import cli
from aadml.data.inspection import recipes
from aadml.feature_extraction.backbones.inception_v3 import InceptionV3
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.weights.table import WEIGHTS
from tests.data.inspection import foreign_features as foreign

CLIPS, SECONDS, FPS = 2, 2.0, 8
IDS = [f"clip {number}" for number in range(CLIPS)]


def write_file(path, **features):
    """Write features in a layout of the field: one array a modality, with ids, labels and splits; noise if absent."""
    features = {name: np.random.default_rng(0).normal(size=(CLIPS, 4)) for name in ("audio", "visual")} | features
    with h5py.File(path, "w") as file:
        for name, values in features.items():
            file[name] = np.asarray(values, np.float32)
        file["id"], file["label"], file["split"] = IDS, ["a", "b"], ["train", "test"]
    return path


def sounds():
    generator = np.random.default_rng(0)
    time = np.arange(int(SECONDS * 48_000)) / 48_000
    for _ in range(CLIPS):
        rate, phase = generator.uniform(0.3, 2, (2, 10, 1))
        tones = np.sin(2 * np.pi * generator.uniform(200, 9000, (10, 1)) * time)
        yield (np.clip(np.sin(2 * np.pi * (rate * time + phase)), 0, None) * tones).sum(axis=0) / 10


def pictures():
    generator = np.random.default_rng(1)
    for _ in range(CLIPS):
        ends = np.kron(generator.integers(0, 256, (2, 13, 13, 3)), np.ones((1, 23, 23, 1)))
        weights = np.linspace(0, 1, int(SECONDS * FPS))[:, None, None, None]
        yield ((1 - weights) * ends[0] + weights * ends[1]).astype(np.uint8)


def write_video(path, frames):
    with av.open(str(path), "w") as container:
        stream = container.add_stream("ffv1", rate=FPS)
        stream.width = stream.height = 299
        stream.pix_fmt = "bgr0"
        for picture in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24").reformat(format="bgr0")))
        container.mux(stream.encode(None))


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    """Return the folder of media and manifest, and the samples and frames."""
    folder = tmp_path_factory.mktemp("clips")
    heard, seen = [*sounds()], [*pictures()]
    with (folder / "manifest.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "audio", "visual", "label", "split"])
        for number, name in enumerate(IDS):
            wavfile.write(folder / f"{number}.wav", 48_000, (heard[number] * 32767).astype(np.int16))
            write_video(folder / f"{number}.mkv", seen[number])
            table.writerow([name, f"{number}.wav", f"{number}.mkv", "a", "train"])
    heard = [wavfile.read(folder / f"{number}.wav")[1] / 32768 for number in range(CLIPS)]
    return folder, heard, seen


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AADML_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "weights"


def matches(path, clips, modality=None):
    found = aadml.inspect(path, media=clips[0] / "manifest.csv").recipes
    return [match for match in found if match.modality == (modality or match.modality)]


def report(case, match):
    """Print what was named; shown by `pytest -s`."""
    distance = f"{match.distance:.2g}"
    sys.stdout.write(f"{case}: {match.recipe or 'none, nearest ' + match.nearest} (distance {distance})\n")


def test_without_weights_the_line_names_what_is_missing(clips, cache, tmp_path):
    path = write_file(tmp_path / "f.h5", audio=np.ones((CLIPS, 128)), visual=np.ones((CLIPS, 1024)))
    audio, visual = matches(path, clips)
    assert (audio.recipe, audio.distance, audio.missing) == ("", None, ("vggish", "vggish-pca"))
    assert visual.missing[-1] == "youtube-8m-pca"
    result = CliRunner().invoke(cli, ["inspect", str(path), "--media", str(clips[0] / "manifest.csv")])
    assert "audio recipe: unknown, no known recipe can be computed; absent weights of other recipes: vggish, " in (
        result.output
    )


def test_a_manifest_of_other_clips_is_refused(clips, cache, tmp_path):
    path = write_file(tmp_path / "f.h5", audio=np.ones((CLIPS, 128)))
    (tmp_path / "m.csv").write_text("id,media,label,split\nx,x.wav,a,train\n")
    with pytest.raises(InputError, match=r"m\.csv contains none of the ids .*, such as 'clip 0'; pass the manifest"):
        aadml.inspect(path, media=tmp_path / "m.csv")


def test_the_axes_are_searched_one_after_the_other():
    truth = np.random.default_rng(0).normal(size=(4, 6))
    noise = np.random.default_rng(1).normal(size=(4, 6))
    asked = []

    def rows(first, second):
        asked.append((first, second))
        return [(row + 0.1 * (first != 2) * other + 0.05 * (second != "b") * other)[None] for row, other in zip(
            truth, noise, strict=True
        )]  # fmt: skip

    readings = {"doubled": lambda rows: 2 * rows, "plain": np.asarray}
    match = recipes._nearest("audio", truth, ((1, 2, 3), ("a", "b")), rows, readings, (), lambda *point: str(point))
    assert match.recipe == "(2, 'b'), plain"
    assert asked == [(1, "a"), (2, "a"), (3, "a"), (2, "b"), (1, "b"), (3, "b")]  # twice, as the first point changed
    far = recipes._nearest("audio", noise, ((1,),), lambda _: [row[None] for row in truth], readings, (), str)
    assert (far.recipe, bool(far.nearest), far.distance > recipes.NEAR) == ("", True, True)


PCA = {"rounding": np.floor}


def in_ci(cases, some):
    """Mark some cases as slow tests, and the others as tests of the soak."""
    return [pytest.param(case, marks=pytest.mark.slow if case in some else pytest.mark.soak) for case in cases]


AUDIO = {
    "pre-activation": ("every 0.96 s of sound resampled by FFmpeg, pre-activation", {}),
    "post-relu": ("every 0.96 s of sound resampled by FFmpeg, post-relu", {"relu": True}),
    "pre-activation, hop 0.48": ("every 0.48 s of sound resampled by FFmpeg, pre-activation", {"hop": 0.48}),
    "post-relu, hop 1": ("every 1 s of sound resampled by FFmpeg, post-relu", {"hop": 1.0, "relu": True}),
    "polyphase": ("every 0.96 s of sound resampled by SciPy's polyphase filter, pre-activation", {"scipy": True}),
    "polyphase, post-relu": (
        "every 0.96 s of sound resampled by SciPy's polyphase filter, post-relu", {"scipy": True, "relu": True}
    ),
    "PCA": ("every 0.96 s of sound resampled by FFmpeg, PCA", {"pca": lambda rows: rows}),
    "8 bits": (
        "resampled by FFmpeg, PCA, 8 bits (0 to 255)", {"pca": lambda rows: foreign.eight_bits(rows, np.floor)}
    ),
    "8 bits, rounded, hop 0.5": (
        "every 0.5 s of sound resampled by FFmpeg, PCA, 8 bits rounded to nearest (0 to 255)",
        {"pca": lambda rows: foreign.eight_bits(rows, np.rint), "hop": 0.5},
    ),
    "8 bits, dequantized": (
        "PCA, 8 bits, dequantized", {"pca": lambda rows: foreign.dequantized(foreign.eight_bits(rows, np.floor))}
    ),
    "8 bits of C-CCA": (
        "PCA, 8 bits, (q - 128) / 256", {"pca": lambda rows: (foreign.eight_bits(rows, np.floor) - 128) / 256}
    ),
}  # fmt: skip


def resampled(samples):
    """Resample by FFmpeg's default resampler, from 48 to 16 kHz."""
    frame = av.AudioFrame.from_ndarray(np.round(samples * 32768).astype(np.int16)[None], format="s16", layout="mono")
    frame.sample_rate = 48_000
    resampler = av.AudioResampler(format="flt", rate=16_000)
    blocks = [*resampler.resample(frame), *resampler.resample(None)]
    return np.concatenate([block.to_ndarray()[0] for block in blocks])


@pytest.fixture(scope="module")
def networks(tmp_path_factory, clips):
    """Write random weights to a cache; return the cache, the weights and the matrices of both PCAs."""
    cache, generator = tmp_path_factory.mktemp("cache"), np.random.default_rng(5)
    (cache / "weights").mkdir()
    sound = foreign.vggish_weights(0)
    save_file(sound, cache / "weights" / "vggish.safetensors")
    rows = np.concatenate([foreign.vggish(resampled(samples), sound) for samples in clips[1]])
    turn = np.linalg.qr(generator.normal(size=(128, 128)))[0]
    means = rows.mean(axis=0)
    matrix = turn / rows.std()
    np.savez(cache / "weights" / "pca.npz", pca_eigen_vectors=matrix, pca_means=means[:, None])
    picture = random_inception(3)
    save_file(picture, cache / "weights" / "inception.safetensors")
    rows = foreign.inception(clips[2][0][::8], picture, counted=False, last="max")
    arrays = {
        "mean": rows.mean(axis=0), "eigenvals": np.linspace(2, 0.1, 1024) * rows.var() * 2,
        "eigenvecs": np.linalg.qr(generator.normal(size=(2048, 1024)))[0].T,
    }  # fmt: skip
    with tarfile.open(cache / "weights" / "yt8m.tgz", "w:gz") as archive:
        for name, values in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, values)
            member = tarfile.TarInfo(f"{name}.npy")
            member.size = buffer.tell()
            buffer.seek(0)
            archive.addfile(member, buffer)
    return cache, sound, (matrix, means), picture, arrays


def random_inception(seed):
    """Return random weights; only the names and shapes are of aadml."""
    generator, weights = torch.Generator().manual_seed(seed), {}
    for name, tensor in InceptionV3().state_dict().items():
        if name.endswith("conv.weight"):
            weights[name] = torch.randn(tensor.shape, generator=generator) * (2 / tensor[0].numel()) ** 0.5
        elif name.endswith("running_var"):
            weights[name] = 0.8 + 0.4 * torch.rand(tensor.shape, generator=generator)
        elif name.endswith("bn.weight"):
            weights[name] = torch.ones(tensor.shape)
        elif not name.endswith("num_batches_tracked"):
            weights[name] = 0.1 * torch.randn(tensor.shape, generator=generator)
    return weights


@pytest.fixture
def at_hand(networks, monkeypatch):
    monkeypatch.setenv("AADML_CACHE", str(networks[0]))
    files = {
        "vggish": "vggish.safetensors", "vggish-pca": "pca.npz", "inception-v3-2015": "inception.safetensors",
        "youtube-8m-pca": "yt8m.tgz",
    }  # fmt: skip
    for name, file in files.items():
        monkeypatch.setitem(WEIGHTS, name, replace(WEIGHTS[name], file=file, md5=None, sha256=None))
    return networks


def audio_features(clips, networks, *, hop=0.96, relu=False, scipy=False, pca=None):
    _, weights, (matrix, means), *_ = networks
    features = []
    for samples in clips[1]:
        rows = foreign.vggish(resample_poly(samples, 1, 3) if scipy else resampled(samples), weights, hop)
        rows = np.maximum(rows, 0) if relu else rows
        features.append((rows if pca is None else pca((rows - means) @ matrix.T)).mean(axis=0))
    return np.stack(features)


@pytest.mark.parametrize("case", in_ci(AUDIO, ("pre-activation", "polyphase, post-relu", "8 bits, rounded, hop 0.5")))
def test_the_recipe_of_foreign_sound_features_is_named(case, clips, at_hand, tmp_path):
    expected, options = AUDIO[case]
    (match,) = matches(write_file(tmp_path / "f.h5", audio=audio_features(clips, at_hand, **options)), clips, "audio")
    report(case, match)
    assert expected in match.recipe, match
    assert match.distance < recipes.NEAR / 3
    assert match.clips == CLIPS


VISUAL = {
    "graph of 2015": ("pool_padding excluded, last_pool max, transform_input true) at 1 frames", {}),
    "average": ("pool_padding excluded, last_pool average, transform_input true) at 1", {"last": "average"}),
    "counted": ("pool_padding counted, last_pool max, transform_input true) at 1", {"counted": True}),
    "torchvision": ("pool_padding counted, last_pool average", {"counted": True, "last": "average"}),
    "ImageNet's mean": ("transform_input false) at 1 frames", {"transform_input": False}),
    "2 frames per second": ("last_pool max, transform_input true) at 2 frames", {"step": 4}),
    "YouTube-8M": ("at 1 frames per second, YouTube-8M's PCA", {"pca": lambda rows: rows}),
    "YouTube-8M, 8 bits": (
        "YouTube-8M's PCA, 8 bits, dequantized",
        {"pca": lambda rows: foreign.dequantized(foreign.eight_bits(rows, np.rint))},
    ),
    "YouTube-8M, bytes": (
        "YouTube-8M's PCA, 8 bits (0 to 255)", {"pca": lambda rows: foreign.eight_bits(rows, np.rint)}
    ),
    "YouTube-8M of C-CCA": (
        "(q - 128) / 256", {"pca": lambda rows: (foreign.eight_bits(rows, np.rint) - 128) / 256}
    ),
}  # fmt: skip


def visual_features(clips, networks, *, step=8, counted=False, last="max", transform_input=True, pca=None):
    *_, weights, arrays = networks
    features = []
    for frames in clips[2]:
        rows = foreign.inception(frames[::step], weights, counted=counted, last=last, transform_input=transform_input)
        if pca is not None:
            white = (rows - arrays["mean"]) @ arrays["eigenvecs"].T / np.sqrt(arrays["eigenvals"] + 1e-4)
            rows = pca(white)
        features.append(rows.mean(axis=0))
    return np.stack(features)


@pytest.mark.parametrize("case", in_ci(VISUAL, ("graph of 2015", "torchvision", "YouTube-8M, 8 bits")))
def test_the_recipe_of_foreign_picture_features_is_named(case, clips, at_hand, tmp_path):
    expected, options = VISUAL[case]
    (match,) = matches(
        write_file(tmp_path / "f.h5", visual=visual_features(clips, at_hand, **options)), clips, "visual"
    )
    report(case, match)
    assert expected in match.recipe, match
    assert match.distance < recipes.NEAR / 3


def of_other_weights(clips, networks):
    return audio_features(clips, (None, foreign.vggish_weights(9), *networks[2:]))


NONE = {
    "noise": lambda clips, networks: np.random.default_rng(2).normal(size=(CLIPS, 128)),
    "other weights": of_other_weights,
    "other clips": lambda clips, networks: np.roll(audio_features(clips, networks), 1, axis=0),
    "standardized": lambda clips, networks: (lambda rows: (rows - rows.mean(0)) / rows.std(0))(
        audio_features(clips, networks)
    ),
    "log-mels": lambda clips, networks: np.stack(
        [
            np.concatenate([bands.mean(0), bands.std(0)])
            for bands in (foreign.log_mel(resampled(samples)) for samples in clips[1])
        ]
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", NONE)
def test_features_of_no_known_recipe_are_none(case, clips, at_hand, tmp_path):
    path = write_file(tmp_path / "f.h5", audio=NONE[case](clips, at_hand))
    (match,) = matches(path, clips, "audio")
    report(case, match)
    assert match.recipe == ""
    assert match.distance > 3 * recipes.NEAR


def test_patches_begin_at_every_hop_where_one_fits():
    network = SimpleNamespace(describe=lambda patches: [np.array([[len(bands), bands[0, 0]]]) for bands in patches])
    size = recipes.PATCH
    found = recipes._patches(network, [np.arange(n)[:, None] for n in (size + 25, size, size // 2, size + 10)], 10)
    assert [rows.tolist() for rows in found] == [
        [[size, 0], [size, 10], [size, 20]],
        [[size, 0]],
        [[size // 2, 0]],
        [[size, 0], [size, 10]],
    ]


@pytest.fixture
def present(monkeypatch):
    """Set the weight files of the cache, and the decoded clips."""

    def present(*names, decoded):
        monkeypatch.setattr(recipes, "_at_hand", names.__contains__)
        monkeypatch.setattr(recipes, "_decoded", lambda media, inputs: seen.append(inputs) or decoded)
        return seen

    seen = []
    return present


def test_the_recipe_of_frames_is_found_on_the_grid_of_networks_rates_and_variants(present, monkeypatch):
    frames = {0: np.arange(9.0)[:, None], 2: np.arange(5.0, 12)[:, None]}

    def network(*, weights, variant):
        factor = 1 + 2 * (variant.last_pool == "max") + 4 * (weights == "inception-v3-2015")
        return SimpleNamespace(describe=lambda clips: [factor * clip * np.ones((1, 2048)) for clip in clips])

    monkeypatch.setattr(recipes, "inception_v3", network)
    seen = present("inception-v3", "inception-v3-2015", decoded=frames)
    means = np.asarray([frames[0][::2].mean(), np.nan, frames[2][::2].mean()])
    words = (
        "Inception-V3 (inception-v3-2015, pool_padding excluded, last_pool max, transform_input true) "
        "at 2 frames per second, pooled, without PCA"
    )
    missing = ("inception-v3-tv", "inception-v3-tf", "inception-v3-tf-adv", "inception-v3-gluon", "youtube-8m-pca")
    match = recipes._visual(7 * means[:, None] * np.ones((3, 2048)), [])
    assert match == recipes.RecipeMatch("visual", words, words, 0.0, 2, missing)
    assert (seen[0].frames_per_second, seen[0].height, seen[0].width, seen[0].limit) == (4.0, 299, 299, 1200)
    for width in (1024, 7):  # the first needs the matrices of YouTube-8M
        assert recipes._visual(np.ones((3, width)), []) == recipes.RecipeMatch("visual", "", "", None, 0, missing)


def test_the_recipe_of_sounds_is_found_on_the_grid_of_hops_and_resamplers(present, monkeypatch):
    network = SimpleNamespace(
        prepare=lambda sound: sound, describe=lambda patches: [p.mean() * np.ones((1, 128)) - 40 for p in patches]
    )
    bands = {0: np.arange(250.0)[:, None] ** 1.5 / 20, 1: np.arange(90.0)[:, None]}
    monkeypatch.setattr(recipes, "vggish", lambda weights: network if weights == "vggish-torch" else None)
    monkeypatch.setattr(recipes, "resample_poly", lambda values, up, down: values * (up / down) * 3 + 1)
    seen = present("vggish-torch", decoded=bands)
    clips = []
    for values in (bands[0] + 1, bands[1] + 1):  # by the other resampler, every 48 frames
        starts = range(0, max(len(values) - 96, 0) + 1, 48)
        clips.append(np.mean([max(np.float32(values[i : i + 96]).mean() - 40, 0) for i in starts]))
    match = recipes._audio(np.asarray(clips)[:, None] * np.ones((2, 128)), [])
    words = "VGGish every 0.48 s of sound resampled by SciPy's polyphase filter, post-relu"
    assert (match.recipe, match.nearest, match.clips, match.missing) == (words, words, 2, ("vggish-pca",))
    assert match.distance < 1e-5
    assert {inputs.sample_rate for inputs in seen} == {16_000, 48_000}
    far = recipes._audio(np.asarray([[3.0], [-2.0]]) * np.ones((2, 128)), [])
    assert (far.recipe, far.distance > 0.1, far.nearest != "") == ("", True, True)
    assert recipes._audio(np.ones((2, 127)), []) == recipes.RecipeMatch("audio", "", "", None, 0, ("vggish-pca",))


def test_bytes_are_read_in_three_ways():
    readings = recipes._eight_bits("Q", lambda rows: np.asarray(rows, np.uint8))
    found = {name: read(np.asarray([0, 128, 255])).tolist() for name, read in readings.items()}
    assert found["Q (0 to 255)"] == [0, 128, 255]
    assert found["Q, (q - 128) / 256"] == [-0.5, 0, 127 / 256]
    np.testing.assert_allclose(found["Q, dequantized"], [-2, 0.0078, 2], atol=0.01)
