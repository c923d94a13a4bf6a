"""Run by the slow Inception test in a process of its own: Keras' InceptionV3 with seeded random weights.

Usage: inception_in_keras.py FOLDER. Reads FOLDER/frames.npy (n, 299, 299, 3) uint8; writes FOLDER/units.npz (for each
convolution, in the order of creation: kernel, beta, mean, variance) and FOLDER/features.npy (n, 2048).
"""

import os
import sys
import warnings
from pathlib import Path

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
warnings.simplefilter("ignore")

import keras  # noqa: E402
import numpy as np  # noqa: E402

folder = Path(sys.argv[1])
generator = np.random.default_rng(0)
network = keras.applications.InceptionV3(weights=None, include_top=False, pooling="avg", input_shape=(299, 299, 3))
convolutions = [layer for layer in network.layers if isinstance(layer, keras.layers.Conv2D)]
normalizations = [layer for layer in network.layers if isinstance(layer, keras.layers.BatchNormalization)]


def creation(layer):
    """Names end in the number of creation; the first one has none."""
    number = layer.name.rpartition("_")[2]
    return int(number) if number.isdigit() else 0


convolutions.sort(key=creation)
normalizations.sort(key=creation)
arrays = {}
for i, (convolution, normalization) in enumerate(zip(convolutions, normalizations, strict=True)):
    shape = convolution.get_weights()[0].shape
    kernel = generator.normal(0, np.sqrt(2 / np.prod(shape[:3])), shape)
    beta, mean = generator.normal(0, 0.1, (2, shape[3]))
    variance = generator.uniform(0.8, 1.2, shape[3])
    convolution.set_weights([kernel])
    normalization.set_weights([beta, mean, variance])
    arrays |= {f"{i}.kernel": kernel, f"{i}.beta": beta, f"{i}.mean": mean, f"{i}.variance": variance}
np.savez(folder / "units.npz", **{name: array.astype(np.float32) for name, array in arrays.items()})
frames = np.load(folder / "frames.npy").astype(np.float32)
np.save(folder / "features.npy", network.predict(keras.applications.inception_v3.preprocess_input(frames), verbose=0))
