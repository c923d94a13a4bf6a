"""YAMNet (Google, Apache-2.0) by TensorFlow Lite: 1,024 numbers for every 0.975 s of sound."""

from functools import partial
from pathlib import Path

import numpy as np

from aadml.feature_extraction.backbones import Extractor, every
from aadml.feature_extraction.ground.file_content import sha256
from aadml.feature_extraction.media import Sound

FILE = Path(__file__).with_name("yamnet.tflite")
RATE, PATCH, HOP = 16_000, 15_600, 7_680  # Hz, samples


def patches(samples):
    """Cut samples (s,) into patches (t, 15600), every 0.48 s; this runs where clips are decoded."""
    padded = np.pad(samples, (0, max(0, PATCH - len(samples))))
    return np.lib.stride_tricks.sliding_window_view(padded, PATCH)[::HOP].copy()


def yamnet() -> Extractor:
    """Describe sound by YAMNet: the mean over its patches (1024-d)."""
    import tensorflow as tf  # here and not above, as decoding processes import this module too

    network = tf.lite.Interpreter(str(FILE), num_threads=1, experimental_preserve_all_tensors=True)
    network.allocate_tensors()
    input_index = network.get_input_details()[0]["index"]
    (output_index,) = (
        tensor["index"] for tensor in network.get_tensor_details() if tensor["name"].endswith("pooling2d/Mean")
    )

    def embedded(patch):
        network.set_tensor(input_index, patch.reshape(network.get_input_details()[0]["shape"]))
        network.invoke()
        return network.get_tensor(output_index).reshape(1024).copy()

    return Extractor(
        name="yamnet:yamnet",
        modality="audio",
        dimension=1024,
        inputs=Sound(RATE),
        parameters={"weights": sha256(FILE), "hop": HOP},
        prepare=patches,
        describe=lambda clips: [np.stack([embedded(patch) for patch in clip]) for clip in clips],
        begins=partial(every, HOP / RATE),
    )
