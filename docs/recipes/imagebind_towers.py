"""ImageBind (Meta, CC-BY-NC-SA 4.0): sound, pictures and text in one space of 1,024 dimensions.

Not run against the real package: tested with a stand-in module of the same interface. Needs the package `imagebind` of
https://github.com/facebookresearch/ImageBind and its weights `imagebind_huge.pth`, beside this file.
"""

from functools import cache, partial
from pathlib import Path

import numpy as np

from aadml.feature_extraction.backbones import Extractor
from aadml.feature_extraction.ground.file_content import sha256
from aadml.feature_extraction.hub.windows import begins, cut
from aadml.feature_extraction.media import Pictures, Sound, Text

FILE = Path(__file__).with_name("imagebind_huge.pth")
RATE, WINDOW = 16_000, 32_000  # Hz, samples
MEAN = np.array([0.48145466, 0.4578275, 0.40821073], dtype=np.float32)
DEVIATION = np.array([0.26862954, 0.26130258, 0.27577711], dtype=np.float32)


def windows(samples):
    """Cut samples (s,) into windows of 2 s (t, 32000); a shorter sound is one window."""
    return np.stack(cut(samples, WINDOW, WINDOW))


def colors(frames):
    """Normalize frames (t, 224, 224, 3) to (t, 3, 224, 224)."""
    return ((frames / np.float32(255) - MEAN) / DEVIATION).transpose(0, 3, 1, 2)


@cache
def network():
    """Load the network; the file is read as tensors only."""
    import torch  # here and not above, as decoding processes import this module too
    from imagebind.models.imagebind_model import imagebind_huge

    loaded = imagebind_huge(pretrained=False)
    loaded.load_state_dict(torch.load(FILE, map_location="cpu", weights_only=True))
    return loaded.eval()


def mel(window):
    """Compute the mel spectrogram (1, 128, 204) of a window by the package."""
    import torch
    from imagebind import data

    return (data.waveform2melspec(torch.tensor(window)[None], RATE, 128, 204) + 4.268) / 9.138


def tokens(word_bytes):
    """Convert a text as UTF-8 bytes (n,) to token ids (77,)."""
    from imagebind import data

    return data.load_and_transform_text([word_bytes.tobytes().decode()], "cpu")[0]


def described(kind, item, clips):
    """Compute the vectors (t, 1024) of each clip; every window, frame or text is a batch of its own."""
    import torch

    with torch.inference_mode():
        return [torch.cat([network()({kind: item(part)[None]})[kind] for part in clip]).numpy() for clip in clips]


def tower(name, modality, inputs, prepare, describe, **options):
    """Build the extractor of a modality."""
    return Extractor(
        f"imagebind_towers:{name}", modality, 1024, inputs, {"weights": sha256(FILE)}, prepare, describe,
        about={"license": "CC-BY-NC-SA-4.0"}, **options,
    )  # fmt: skip


def sound() -> Extractor:
    """Describe sound by ImageBind: the mean over windows of 2 s."""
    describe = partial(described, "audio", mel)
    times = partial(begins, WINDOW, WINDOW, RATE)
    return tower("sound", "audio", Sound(RATE), windows, describe, begins=times, minimum_seconds=0.1)


def pictures() -> Extractor:
    """Describe pictures by ImageBind: the mean over one frame a second."""
    import torch

    return tower(
        "pictures",
        "visual",
        Pictures(shortest=224, crop=(224, 224)),
        colors,
        partial(described, "vision", torch.tensor),
    )


def text() -> Extractor:
    """Describe a text by ImageBind."""
    return tower("text", "text", Text(), np.atleast_2d, partial(described, "text", tokens))
