"""Run by the slow VGGish test in a process of its own: the same network as a TensorFlow graph, through tensorflow_hub.

Usage: vggish_in_tensorflow.py FOLDER. Reads FOLDER/weights.npz (TensorFlow's names) and FOLDER/sound.npy, writes a
SavedModel, both kinds of checkpoint, and what the model and the `vggish-hub` extractor give.
"""

import json
import os
import sys
import warnings
from pathlib import Path

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
import tensorflow_hub as hub  # noqa: E402

from aadml.feature_extraction.backbones.vggish_hub import vggish_hub  # noqa: E402
from aadml.feature_extraction.ground.errors import InputError  # noqa: E402


class Graph(tf.Module):
    def __init__(self, arrays):
        super().__init__()
        self.values = {name.replace("/", "_"): tf.Variable(a) for name, a in arrays.items()}

    def of(self, layer):
        key = f"vggish/{layer}".replace("/", "_")
        return self.values[f"{key}_weights"], self.values[f"{key}_biases"]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def __call__(self, waveform):
        window = tf.signal.hann_window(400, periodic=True)
        frames = tf.signal.frame(waveform, 400, 160) * window
        magnitude = tf.abs(tf.signal.rfft(frames, [512]))
        triangles = tf.signal.linear_to_mel_weight_matrix(64, 257, 16_000, 125.0, 7500.0)
        log_mel = tf.math.log(tf.matmul(magnitude, triangles) + 0.01)
        x = tf.signal.frame(log_mel, 96, 96, axis=0)[..., None]
        for layer, pooled in (
            ("conv1", True), ("conv2", True), ("conv3/conv3_1", False), ("conv3/conv3_2", True),
            ("conv4/conv4_1", False), ("conv4/conv4_2", True),
        ):  # fmt: skip
            kernel, bias = self.of(layer)
            x = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME") + bias)
            x = tf.nn.max_pool2d(x, 2, 2, "SAME") if pooled else x
        x = tf.reshape(x, [-1, 6 * 4 * 512])
        for layer in ("fc1/fc1_1", "fc1/fc1_2"):
            matrix, bias = self.of(layer)
            x = tf.nn.relu(tf.matmul(x, matrix) + bias)
        matrix, bias = self.of("fc2")
        return tf.matmul(x, matrix) + bias


def checkpoints(arrays, folder):
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        holders = {name: v1.placeholder(tf.float32, a.shape) for name, a in arrays.items()}
        variables = [v1.get_variable(n, initializer=h, use_resource=False) for n, h in holders.items()]
        session.run(v1.global_variables_initializer(), {holders[n]: a for n, a in arrays.items()})
        saver = v1.train.Saver(variables, write_version=v1.train.SaverDef.V1)
        saver.save(session, str(folder / "version1.ckpt"), write_meta_graph=False)


folder = Path(sys.argv[1])
arrays = dict(np.load(folder / "weights.npz"))
sound = np.load(folder / "sound.npy")
tf.saved_model.save(Graph(arrays), str(folder / "saved_model"))
np.save(folder / "tensorflow.npy", hub.load(str(folder / "saved_model"))(sound).numpy())
extractor = vggish_hub(weights=str(folder / "saved_model"))
np.save(folder / "extractor.npy", extractor.describe([sound])[0])
np.save(folder / "short.npy", extractor.describe([sound[:100]])[0])
(folder / "provenance.json").write_text(json.dumps(dict(extractor.parameters)))
(folder / "empty").mkdir()
errors = []
for model in (str(folder / "absent"), str(folder / "empty"), "http://127.0.0.1:9/vggish/1"):
    try:
        vggish_hub(weights=model)
    except InputError as error:
        errors.append(str(error))
(folder / "errors.json").write_text(json.dumps(errors))
checkpoints(arrays, folder)
