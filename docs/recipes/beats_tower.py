"""BEATs (Microsoft, MIT): sound in 768 dimensions.

Not run against the real code: tested with a stand-in module of the same interface. Needs the folder `beats` of
https://github.com/microsoft/unilm in PYTHONPATH, and weights such as `BEATs_iter3_plus_AS2M.pt` beside this file.
"""

from functools import partial
from pathlib import Path

import numpy as np

from aadml.feature_extraction.backbones import Extractor
from aadml.feature_extraction.ground.file_content import sha256
from aadml.feature_extraction.hub.windows import begins, cut
from aadml.feature_extraction.media import Sound

RATE, WINDOW = 16_000, 160_000  # Hz, samples


def windows(samples):
    """Cut samples (s,) into windows of 10 s (t, 160000); a shorter sound is one window."""
    return np.stack(cut(samples, WINDOW, WINDOW))


def beats(*, file: str = "BEATs_iter3_plus_AS2M.pt") -> Extractor:
    """Describe sound by BEATs: the mean over patches, then over windows of 10 s.

    Args:
        file: name of the weights, beside this module; the classifier of a fine-tuned model is left out.
    """
    import torch  # here and not above, as decoding processes import this module too
    from BEATs import BEATs, BEATsConfig

    path = Path(__file__).with_name(file)
    saved = torch.load(path, map_location="cpu", weights_only=True)
    network = BEATs(BEATsConfig({**saved["cfg"], "finetuned_model": False})).eval()
    network.load_state_dict({name: w for name, w in saved["model"].items() if not name.startswith("predictor")})

    @torch.inference_mode()
    def described(clips):
        return [np.stack([embedded(window) for window in clip]) for clip in clips]

    def embedded(window):
        return network.extract_features(torch.tensor(window)[None])[0].mean(dim=1)[0].numpy()

    return Extractor(
        "beats_tower:beats", "audio", 768, Sound(RATE), {"weights": sha256(path), "file": file}, windows, described,
        begins=partial(begins, WINDOW, WINDOW, RATE), minimum_seconds=0.175, about={"license": "MIT"},
    )  # fmt: skip
