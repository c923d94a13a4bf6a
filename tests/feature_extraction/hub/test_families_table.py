"""FAMILIES without networks of the library: windows, rates and lengths of each tower, poolings, inputs of sound."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from aadml.feature_extraction.hub import families
from aadml.feature_extraction.hub.families import FAMILIES

PROCESSOR = SimpleNamespace(sampling_rate=100, nb_max_samples=7, max_length=11, n_samples=13)
SOUND = {  # window of the processor above, shortest clip, whether a short window is padded by the processor
    "clap": (7, 1, True), "audio-spectrogram-transformer": (2000, 400, True), "whisper": (13, 1, True),
    **dict.fromkeys(("wav2vec2", "hubert", "wavlm", "data2vec-audio"), (1000, 400, False)),
    "wav2vec2-bert": (1000, 560, False), **dict.fromkeys(("pe_audio", "pe_audio_video"), (1000, 1920, False)),
}  # fmt: skip
PICTURES = {  # window, frames per second, whether a short window is padded, argument, whether frames become patches
    "xclip": ("vision_config.num_frames", 1.0, True, "pixel_values", False),
    "siglip2": (0, 1.0, True, "pixel_values", True),
    "videomae": ("num_frames", 8.0, True, "pixel_values", False),
    "vjepa2": ("frames_per_clip", 4.0, False, "pixel_values_videos", False),
    **dict.fromkeys(("pe_video", "pe_audio_video"), (16, 1.6, False, "pixel_values_videos", False)),
}
TEXTS = {  # whether every text is padded to the maximum length, whether the network receives the mask
    **dict.fromkeys(("clip", "clip_text_model", "metaclip_2", "xclip", "aimv2"), (True, True)),
    **dict.fromkeys(("siglip", "siglip2"), (True, False)),
}


def test_the_towers_of_each_family_have_their_windows_rates_and_lengths():
    for name, family in FAMILIES.items():
        sound, pictures, text = (family.get(modality) for modality in ("audio", "visual", "text"))
        if sound:
            assert (sound.window(PROCESSOR), sound.shortest, sound.filled) == SOUND[name], name
        if pictures:
            found = (pictures.frames, pictures.rate, pictures.filled, pictures.argument, pictures.patches)
            assert found == PICTURES.get(name, (0, 1.0, True, "pixel_values", False)), name
        if text:
            assert (text.filled, text.masked) == TEXTS.get(name, (False, True)), name


HIDDEN = torch.arange(24.0).reshape(2, 4, 3)
MASK = torch.tensor([[1, 1, 0, 0, 0], [1, 1, 1, 1, 0]])


@pytest.mark.parametrize(
    ("pool", "config", "items", "expected"),
    [
        (families._first, {}, {}, HIDDEN[:, 0]),
        (families._mean, {}, {}, HIDDEN.mean(1)),
        (families._mean, {}, {"mask": MASK}, torch.stack([HIDDEN[0, :2].mean(0), HIDDEN[1].mean(0)])),
        (families._mean_of_patches, {}, {}, HIDDEN[:, 1:].mean(1)),
        (families._mean_of_patches, {"num_register_tokens": 2}, {}, HIDDEN[:, 3:].mean(1)),
        (families._output("last_hidden_state"), {}, {"mask": MASK}, HIDDEN),
    ],
)
def test_a_pooling_reads_the_hidden_states_without_the_padding(pool, config, items, expected):
    class Network:
        def __init__(self):
            self.config = SimpleNamespace(**config)

        def __call__(self, ids):
            return SimpleNamespace(last_hidden_state=ids)

    torch.testing.assert_close(pool(Network(), {"ids": HIDDEN, **items}), expected)


class Processor:
    """Processor whose arrays are float64, as some are."""

    sampling_rate = 16_000

    def __call__(self, samples, **options):
        self.options = options
        arrays = {"input_features": samples[None], "input_values": samples[None].astype(np.float64)}
        return arrays | {"attention_mask": np.arange(5)[None]}


def test_inputs_of_sound_are_one_window_in_float32():
    processor, samples = Processor(), np.arange(4.0)
    item = families._clap(processor, samples)
    assert (item["input_features"].tolist(), item["is_longer"].tolist()) == ([0, 1, 2, 3], [False])
    assert processor.options == {"sampling_rate": 16_000, "return_tensors": "np"}
    item = families._whisper(processor, samples)
    assert (item["input_features"].dtype, item["mask"].tolist()) == (np.float32, [0, 2, 4])
    assert processor.options["return_attention_mask"] is True
    assert families._values(processor, samples)["input_values"].dtype == np.float32
    assert list(families._stacked_mel(processor, samples)) == ["input_features"]
    assert processor.options["pad_to_multiple_of"] is None
