"""Preparations, provenance and loading of networks, with planted processors and classes of the library."""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from aadml.feature_extraction.frontends.inference import Runner
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.hub import loading, pictures, sound
from aadml.feature_extraction.hub.families import PictureTower, SoundTower, Tower
from aadml.feature_extraction.hub.networks import Preparation, PretrainedEncoder, tower_of
from aadml.feature_extraction.media import Pictures, Sound, Text


@pytest.mark.parametrize(
    ("hop", "filled", "step", "batch", "short"),
    [(None, True, 0.25, 4, "filled by the processor"), (0.1, False, 0.1, 1, "at its own length"),
     (1e-6, True, 0.01, 4, "filled by the processor")],
)  # fmt: skip
def test_sound_is_cut_into_windows_of_the_network(monkeypatch, hop, filled, step, batch, short):
    processor = SimpleNamespace(sampling_rate=100.0, to_dict=lambda: {"b": 1, "list": [1], "a": None})
    monkeypatch.setattr(sound, "processor_of", lambda *_: processor)
    tower = SoundTower("X", {}, lambda _, samples: len(samples), lambda _: 25, filled=filled, shortest=3)
    made = sound.sound_preparation(None, tower, hop=hop)
    assert (made.inputs, made.batch, made.trial.tolist(), made.minimum_seconds) == (Sound(100), batch, [0.0] * 3, 0.03)
    assert made.parameters == {
        "window": 0.25, "hop": step, "tail": 0.05, "short": short, "processor": {"a": None, "b": 1}
    }  # fmt: skip
    assert made.items(np.zeros(50)) == [25] * len(made.begins(0, 0.5))
    assert made.begins(0, 0.5)[:2].tolist() == [0.0, step]


PROCESSOR = {
    "size": {"height": 8, "width": 6}, "resample": 2, "do_resize": True, "do_rescale": False, "do_normalize": False
}  # fmt: skip


@pytest.mark.parametrize(
    ("frames", "filled", "batch", "window"),
    [
        (0, True, 16, {}), (4, True, 2, {"window": 4, "tail": 0.05, "short": "the last frame held"}),
        (4, False, 1, {"window": 4, "tail": 0.05, "short": "at its own length"}),
    ],
)  # fmt: skip
def test_frames_are_prepared_alone_or_in_windows(monkeypatch, frames, filled, batch, window):
    monkeypatch.setattr(pictures, "_processor", lambda *_: SimpleNamespace(**PROCESSOR))
    tower = PictureTower("X", {}, frames=frames, filled=filled, rate=2.0)
    made = pictures.picture_preparation(SimpleNamespace(model="m"), tower, 5.0)
    assert made.inputs == Pictures(frames_per_second=5.0, limit=600, resized=(8, 6), resample="bilinear")
    assert pictures.picture_preparation(SimpleNamespace(model="m"), tower).inputs.frames_per_second == 2.0
    assert (made.batch, made.begins is None, made.trial.shape) == (batch, not frames, (1, 8, 6, 3))
    assert made.parameters == {
        "preprocessing": "Pillow, then float32 by aadml", **window, "frames_per_second": 5.0, "limit": 600,
        "resized": [8, 6], "resample": "bilinear", "scale": 1.0, "mean": [0.0] * 3, "deviation": [1.0] * 3,
    }  # fmt: skip
    (item,) = made.items(made.trial)
    assert item["pixel_values"].shape == ((4 if filled else 1, 3, 8, 6) if frames else (3, 8, 6))


@pytest.mark.parametrize("half", [True, False])
def test_the_provenance_of_a_network_has_its_settings_and_versions(half):
    snapshot = SimpleNamespace(model_type="clip", config_checksum=lambda: "c", provenance=lambda: {"model": "m"})
    made = Preparation(Text(), lambda values: [{"x": values}], np.zeros(2), {"longest": 5}, minimum_seconds=0.5)
    run = Runner(None, lambda _, items: items["x"] + 1, torch.device("cpu"), half, 2)
    found = PretrainedEncoder(snapshot, Tower("Net", {}), run, made, "mean", "w", 2).extractor("text", 8, "numpy")
    assert found.parameters == {
        "family": "clip", "network": "Net", "precision": "bfloat16" if half else "float32", "config": "c",
        "weights": "w", "pooling": "mean", "longest": 5,
    }  # fmt: skip
    assert found.about.keys() == {"model", "torch", "transformers", "numpy"}
    assert (found.name, found.modality, found.dimension, found.batch_clips) == ("hf-text", "text", 2, 8)
    assert (found.minimum_seconds, found.begins) == (0.5, None)
    (rows,) = found.describe([found.prepare([1.0, 2.0])])
    assert rows.tolist() == [[2.0, 3.0]]


def test_a_modality_without_a_tower_names_the_types_that_have_one():
    with pytest.raises(InputError, match=r"^hf:m: a model of type 'bert' has no known visual network; choose") as e:
        tower_of(SimpleNamespace(model="m", model_type="bert"), "visual", Tower)
    known = str(e.value).partition("of type aimv2, ")[2].partition(", or write")[0].split(", ")
    assert known == sorted(known)
    assert {"clip", "vjepa2"} < {*known}
    assert not {"bert", "clap"} & {*known}


class Network:
    """Class of the library that records the options of loading."""

    missing: tuple[str, ...] = ()

    def __init__(self, **config):
        self.config, self.attention, self.encoder = SimpleNamespace(**config), "", "the encoder"

    def set_attn_implementation(self, name):
        self.attention = name

    @classmethod
    def from_pretrained(cls, folder, **options):
        cls.options = {"folder": folder, **options}
        return cls(**cls.stated), {"missing_keys": [*cls.missing]}


@pytest.fixture
def library(monkeypatch):
    """Set the attributes of the library; return a snapshot with weights of a suffix."""

    def library(suffix=".safetensors", **classes):
        found = SimpleNamespace(__version__="5.0", **classes)
        monkeypatch.setattr(loading, "transformers_for", lambda _: found)
        monkeypatch.setattr(loading, "silent", lambda _: nullcontext())
        return SimpleNamespace(model="m", folder=Path("f"), weights=(Path(f"model{suffix}"), Path("x.bin")))

    return library


@pytest.mark.parametrize(
    ("stated", "applied"),
    [({}, None), ({"mask_time_prob": 0.1}, False), ({"apply_spec_augment": True}, False),
     ({"apply_spec_augment": 0, "mask_time_prob": 0.1}, 0)],
)  # fmt: skip
@pytest.mark.parametrize("suffix", [".safetensors", ".bin"])
def test_a_network_is_loaded_from_its_files_alone_and_masks_nothing(library, stated, applied, suffix):
    class Loaded(Network):
        pass

    Loaded.stated = stated
    network = loading.network_of(library(suffix, Loaded=Loaded), Tower("Loaded", {}, attention="eager"), dropout=0.5)
    assert getattr(network.config, "apply_spec_augment", None) is applied
    assert network.attention == "eager"
    assert Loaded.options == {
        "folder": Path("f"), "local_files_only": True, "output_loading_info": True, "dtype": torch.float32,
        "use_safetensors": suffix == ".safetensors", "weights_only": True, "config": None, "key_mapping": None,
        "dropout": 0.5,
    }  # fmt: skip


def test_a_part_of_a_model_is_loaded_by_the_prefix_of_its_weights(library, monkeypatch):
    class Loaded(Network):
        stated, missing = {}, ("b", "a")

    monkeypatch.setattr(loading, "configuration_of", lambda _, part: part)
    with pytest.raises(
        InputError, match=r"m: the files lack weights of Loaded \(2 in total, the first is a\); pass a mod"
    ):
        loading.network_of(library(Loaded=Loaded), Tower("Loaded", {}, within="audio"))
    assert (Loaded.options["key_mapping"], Loaded.options["config"]) == ({r"^audio_model\.": ""}, "audio_config")


def test_classes_packages_and_configurations_that_are_missing_are_named(library, monkeypatch):
    snapshot = library(Network=Network)
    with pytest.raises(InputError, match=r"m: transformers 5\.0 has no Newer; install a newer version"):
        loading.class_of(snapshot, Tower("Newer", {}))

    def fails(_):
        raise RuntimeError("torchvision is older\nthan torch")

    monkeypatch.setattr(loading, "import_module", fails)
    with pytest.raises(
        InputError, match=r"m: its network needs timm .* cannot be imported \(torchvision is older.*\); in"
    ):
        loading.class_of(snapshot, Tower("Network", {}, needs="timm"))
    monkeypatch.setattr(loading, "configuration_of", lambda _: "config")
    with pytest.raises(
        InputError, match=r"m: its config\.json does not describe a network \(.*\); download the model ag"
    ):
        loading.blank_network_of(snapshot, Tower("Network", {}))
