"""Networks of pictures: frames of a clip, settings of video processors, pictures that need timm."""

import json
import shutil
import sys
from types import ModuleType

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import VideoMAEConfig, VideoMAEModel
from transformers.configuration_utils import SubConfigSpec

from aadml.feature_extraction.backbones import extractor
from aadml.feature_extraction.ground.errors import InputError
from tests.feature_extraction.hub.tiny import MODERN, PE, PICTURE, save, tokenizer, video_processor, written


@pytest.mark.parametrize(("family", "rate"), [("clip", 1.0), ("videomae", 8.0), ("vjepa2", 4.0)])
def test_five_minutes_of_frames_are_read_at_the_rate_of_the_family(family, rate, tmp_path, monkeypatch):
    monkeypatch.setenv("AADML_CACHE", str(tmp_path))
    name = f"hf:{written(family, tmp_path)}"
    inputs = extractor(name, "visual").inputs
    assert (inputs.frames_per_second, inputs.limit) == (rate, 300 * rate)
    inputs = extractor(name, "visual", {"frames_per_second": 4.0}).inputs
    assert (inputs.frames_per_second, inputs.limit) == (4.0, 300 * rate)


def test_a_default_of_the_configuration_gives_the_frames_of_a_window(tmp_path, monkeypatch):
    monkeypatch.setenv("AADML_CACHE", str(tmp_path))
    folder = written("videomae", tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({k: v for k, v in config.items() if k != "num_frames"}))
    network = VideoMAEModel(VideoMAEConfig.from_pretrained(folder))
    assert network.config.num_frames == 16
    network.save_pretrained(tmp_path / "other")
    shutil.copy(tmp_path / "other" / "model.safetensors", folder)
    assert extractor(f"hf:{folder}", "visual").parameters["window"] == 16


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": None}, "preprocessor file does not resize pictures to a size; set `do_resize` and `size`"),
        ({"resample": "soft"}, r"settings of its pictures cannot be read \(invalid literal .*correct its preprocessor"),
        ({"image_mean": 0.5}, "settings of its pictures cannot be read"),
        ({"do_normalize": ...}, "settings of its pictures cannot be read .*do_normalize"),
        ({"crop_size": {"height": 64, "width": 64}}, "the crop .* may be larger than the pictures"),
    ],
)
def test_unusable_settings_of_a_video_processor_are_an_error(settings, message, tmp_path, monkeypatch):
    monkeypatch.setenv("AADML_CACHE", str(tmp_path))
    folder = written("vjepa2", tmp_path)
    file = folder / "video_preprocessor_config.json"
    changed = json.loads(file.read_text()) | settings
    file.write_text(json.dumps({key: value for key, value in changed.items() if value is not ...}))
    with pytest.raises(InputError, match=message):
        extractor(f"hf:{folder}", "visual")


def test_a_video_model_without_settings_of_pictures_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("AADML_CACHE", str(tmp_path))
    folder = written("vjepa2", tmp_path)
    (folder / "video_preprocessor_config.json").unlink()
    with pytest.raises(InputError, match=r"contains none of video_preprocessor_config.json, .*; copy one of"):
        extractor(f"hf:{folder}", "visual")


def test_a_short_video_keeps_its_length_where_the_network_allows_it(tmp_path, monkeypatch):
    monkeypatch.setenv("AADML_CACHE", str(tmp_path))
    kept, held = (extractor(f"hf:{written(name, tmp_path)}", "visual") for name in ("vjepa2", "videomae"))
    assert (kept.parameters["short"], held.parameters["short"]) == ("at its own length", "the last frame held")
    frames = np.random.default_rng(0).integers(0, 256, (2, 32, 32, 3), dtype=np.uint8)
    longer = np.concatenate([frames, frames[-1:], frames[-1:]])
    assert not np.allclose(*kept.describe([frames, longer]))
    np.testing.assert_array_equal(*held.describe([frames, longer]))


@pytest.mark.parametrize("modality", ["visual", "text"])
def test_pictures_by_timm_are_refused_without_timm(modality, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    folder = pe_video(tmp_path, with_timm=True)
    with pytest.raises(
        InputError, match=r"its network needs timm and torchvision, and timm cannot be imported \(.*\); install"
    ):
        extractor(f"hf:{folder}", modality)


@pytest.mark.parametrize("family", ["pe_video", "pe_audio_video"])
def test_pictures_by_timm_equal_a_direct_call(family, tmp_path, monkeypatch, capsys):
    """A small ViT is in the place of timm's, which cannot be imported beside every torch."""
    monkeypatch.setenv("AADML_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "timm", ModuleType("timm"))
    parts = transformers.PeVideoEncoderConfig.sub_configs_defaults
    monkeypatch.setitem(parts, "vision_config", SubConfigSpec(config_class=transformers.ViTConfig))
    network = pe_video(tmp_path, with_timm=False)
    folder = pe_audio_video_with_pictures(network) if family == "pe_audio_video" else network
    capsys.readouterr()
    tower = extractor(f"hf:{folder}", "visual")
    assert capsys.readouterr().out == ""  # the library prints a remark when it builds this network
    assert (tower.dimension, tower.inputs.frames_per_second, tower.parameters["window"]) == (16, 1.6, 16)
    frames = np.random.default_rng(0).integers(0, 256, (20, 32, 32, 3), dtype=np.uint8)
    direct = transformers.PeVideoModel.from_pretrained(network).eval()
    mean, deviation = np.array([0.4, 0.5, 0.6]), np.array([0.2, 0.25, 0.3])
    colors = ((frames / 255 - mean) / deviation).transpose(0, 3, 1, 2)
    for row, window in zip(tower.describe([frames])[0], (colors[:16], colors[4:]), strict=True):
        states = direct.video_encoder(torch.tensor(window[None], dtype=torch.float32)).pooler_output
        np.testing.assert_allclose(row, direct.video_head(states).detach()[0], atol=1e-5)


def pe_video(place, *, with_timm):
    """Write a PE-video of a small ViT, or the files of one of timm's ViT."""
    vision = {} if with_timm else {"vision_config": transformers.ViTConfig(**PICTURE, num_labels=6)}
    config = transformers.PeVideoConfig(text_config=MODERN, video_config={**PE, **vision})
    folder = place / "pe-video"
    config.save_pretrained(folder)
    if with_timm:
        (folder / "model.safetensors").write_bytes(b"")
    else:
        save(transformers.PeVideoModel(config), folder)
    video_processor(folder, "PeVideoVideoProcessor")
    tokenizer(folder)
    return folder


def pe_audio_video_with_pictures(network):
    """Write the weights of a PE-video under the names of PE-AV, with the settings of v5's `processor_config.json`."""
    folder = shutil.copytree(network, network.with_name("pe-av"))
    pictures = json.loads((network / "config.json").read_text())["video_config"]
    transformers.PeAudioVideoConfig(
        text_config=MODERN, audio_video_config={**PE, "video_config": pictures}
    ).save_pretrained(folder)
    weights = load_file(folder / "model.safetensors")
    named = {n if n.startswith("text_model.") else f"video_model.{n}": values for n, values in weights.items()}
    save_file(named, folder / "model.safetensors", {"format": "pt"})
    settings = folder / "video_preprocessor_config.json"
    nested = {"processor_class": "PeAudioVideoProcessor", "video_processor": json.loads(settings.read_text())}
    settings.unlink()
    (folder / "processor_config.json").write_text(json.dumps(nested))
    return folder
