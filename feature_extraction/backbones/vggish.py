"""VGGish (Hershey et al., ICASSP 2017): 128 values per 0.96 s of sound, in four variants.

Features published as "VGGish" differ. AudioSet released features after PCA and 8-bit quantization. Google's code
returned values after a last ReLU until August 2020, and has omitted this ReLU since then (tensorflow/models#9080).
The common PyTorch port keeps the ReLU. The variant is therefore selected by name and recorded with the features.

Reference: Hershey et al., CNN architectures for large-scale audio classification, ICASSP 2017, https://doi.org/10.1109/ICASSP.2017.7952132
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from aadml.feature_extraction.backbones import Description, Extractor, every
from aadml.feature_extraction.frontends.inference import Runner, chosen_device, loaded, seeded
from aadml.feature_extraction.frontends.log_mel import VGGISH, filled_log_mel
from aadml.feature_extraction.frontends.quantization import quantize
from aadml.feature_extraction.frontends.whitening import vggish_pca
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import removing
from aadml.feature_extraction.media import Sound
from aadml.feature_extraction.weights.resolve import load_weights
from aadml.feature_extraction.weights.tensor_files import check_state

Variant = Literal["pre-activation", "post-relu", "pca", "pca-8bit"]

DIMENSION = 128
PATCH = 96  # frames of the front end
PATCH_SECONDS = 0.96
_BATCH = 16  # patches; fixed, so that a clip's values cannot depend on the other clips
SHORTEST = VGGISH.window + (PATCH - 1) * VGGISH.hop  # samples of one patch
_CONVOLUTIONS = {0: (1, 64), 3: (64, 128), 6: (128, 256), 8: (256, 256), 11: (256, 512), 13: (512, 512)}
_POOLED_AFTER = (0, 3, 8, 13)
_LINEARS = {0: (512 * 6 * 4, 4096), 2: (4096, 4096), 4: (4096, DIMENSION)}
_TENSORFLOW_NAMES = {
    "features.0": "vggish/conv1",
    "features.3": "vggish/conv2",
    "features.6": "vggish/conv3/conv3_1",
    "features.8": "vggish/conv3/conv3_2",
    "features.11": "vggish/conv4/conv4_1",
    "features.13": "vggish/conv4/conv4_2",
    "embeddings.0": "vggish/fc1/fc1_1",
    "embeddings.2": "vggish/fc1/fc1_2",
    "embeddings.4": "vggish/fc2",
}
_PCA_NAMES = {
    "pca_eigen_vectors": "eigenvectors",
    "pproc.pca_eigen_vectors": "eigenvectors",
    "pproc.pca_matrix": "eigenvectors",
    "pca_means": "means",
    "pproc.pca_means": "means",
}


class VGGish(nn.Module):
    """Convolutional network of VGGish, with the parameter names of the common PyTorch port."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.ModuleDict({str(i): nn.Conv2d(*c, 3, padding=1) for i, c in _CONVOLUTIONS.items()})
        self.embeddings = nn.ModuleDict({str(i): nn.Linear(*c) for i, c in _LINEARS.items()})

    def forward(self, patches: Tensor) -> Tensor:
        """Embed patches.

        Args:
            patches: (n, 96, 64) log-mel values of `log_mel.VGGISH`.

        Returns:
            (n, 128) values before the last ReLU that some variants have.
        """
        x = patches[:, None]
        for i in _CONVOLUTIONS:
            x = F.relu(self.features[str(i)](x))
            if i in _POOLED_AFTER:
                x = F.max_pool2d(x, 2)
        x = x.permute(0, 2, 3, 1).flatten(1)  # TensorFlow flattens height, width, channels
        x = F.relu(self.embeddings["0"](x))
        x = F.relu(self.embeddings["2"](x))
        embedded: Tensor = self.embeddings["4"](x)
        return embedded


def vggish_state(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert the tensors of a weight file to the state of `VGGish`.

    Args:
        tensors: tensors of the TensorFlow checkpoint or of the common PyTorch port. Tensors with unknown names
            are ignored. The axes of TensorFlow's kernels are height, width, input and output; the axes of
            TensorFlow's matrices are input and output.

    Returns:
        Tensors of the state, by parameter name.

    Raises:
        InputError: a tensor is missing or has a wrong shape.
    """
    from_tensorflow = "vggish/conv1/weights" in tensors
    state: dict[str, Tensor] = {}
    with torch.device("meta"):
        expected = VGGish().state_dict()
    for name in expected:
        layer, _, kind = name.rpartition(".")
        suffix = "weights" if kind == "weight" else "biases"
        tensor = tensors.get(f"{_TENSORFLOW_NAMES[layer]}/{suffix}" if from_tensorflow else name)
        if tensor is None:
            continue
        if from_tensorflow and kind == "weight":
            tensor = tensor.permute(3, 2, 0, 1) if tensor.ndim == 4 else tensor.T
        state[name] = tensor.float().contiguous()
    check_state(state, expected, "VGGish")
    return state


def vggish_patches(bands: Tensor) -> Tensor:
    """Cut a log-mel spectrogram into patches and drop frames after the last complete patch, as in Google's code.

    Args:
        bands: (f, 64) log-mel values of `log_mel.VGGISH`, at least 96 frames.

    Returns:
        (t, 96, 64), t at least 1.
    """
    return bands.unfold(0, PATCH, PATCH).transpose(1, 2).contiguous()


@removing(patch_hop=PATCH_SECONDS, pca="auto")
def vggish(
    *,
    variant: Variant = "pre-activation",
    weights: str = "auto",
    device: str = "auto",
) -> Extractor:
    """Build VGGish for sound (128-d); pooling is the mean over patches.

    Sound shorter than one patch (0.975 s) is padded with zeros at its end.

    Args:
        variant: `pre-activation` (Google's code since August 2020), `post-relu` (Google's code before, and the common
            PyTorch port), `pca` (whitened by AudioSet's PCA) or `pca-8bit` (whitened, then quantized to 0 ... 255, as
            in AudioSet's release). The published PCA is read if the weight file has no PCA.
        weights: `auto` (the published checkpoint), `untrained`, a name in the table of weights, a weight file, or its
            folder.
        device: `auto`, `cpu` or `cuda`.

    Returns:
        The extractor.

    Raises:
        InputError: an option has an invalid value, or the weights or the PCA are not available or not valid.
    """
    network, checksums, files, matrices = _loaded(weights, variant)
    parameters = {
        "variant": variant,
        "patch_hop": PATCH_SECONDS,
        "short": "filled with zeros to one patch",
        "front_end": asdict(VGGISH),
        **checksums,
    }
    target = chosen_device(device, "vggish")
    run = Runner(network.eval().to(target), _pool, target, half=False, batch=_BATCH)

    def describe(spectrograms: Sequence[NDArray[Any]]) -> list[Description]:
        patches = (vggish_patches(torch.from_numpy(bands)).numpy() for bands in spectrograms)
        rows = run([{"patches": patch} for patch in clip] for clip in patches)
        return [_finished(part, variant, matrices) for part in rows]

    return Extractor(
        name="vggish",
        modality="audio",
        dimension=DIMENSION,
        inputs=Sound(VGGISH.sample_rate),
        parameters=parameters,
        about={"torch": torch.__version__, **files},
        prepare=partial(filled_log_mel, settings=VGGISH, shortest=SHORTEST),
        describe=describe,
        begins=partial(every, PATCH_SECONDS),
    )


def _pool(network: VGGish, items: Mapping[str, Tensor]) -> Tensor:
    vectors: Tensor = network(items["patches"])
    return vectors


def _finished(rows: NDArray[np.float32], variant: str, matrices: Mapping[str, NDArray[Any]]) -> Description:
    """Map pre-activation rows (t, 128) to rows of the variant."""
    if variant == "post-relu":
        return np.maximum(rows, 0.0)
    if variant == "pre-activation":
        return rows
    whitened = vggish_pca(rows, matrices["eigenvectors"], matrices["means"])
    return whitened if variant == "pca" else quantize(whitened, rounding="floor").astype(np.float32)


def _loaded(weights: str, variant: str) -> tuple[VGGish, dict[str, str], dict[str, str], dict[str, NDArray[Any]]]:
    """Return the network, the checksums and the names of its files, and the PCA matrices.

    The dictionary of PCA matrices is empty for a variant without PCA.
    """
    if weights == "untrained":
        if "pca" in variant:
            raise InputError(
                f"vggish.variant is {variant}, but AudioSet's PCA belongs to the published weights; "
                "choose pre-activation or post-relu for untrained weights"
            )
        return seeded(VGGish), {"weights": "untrained"}, {}, {}
    file = load_weights(weights, "vggish")
    network = loaded(VGGish, vggish_state(file.tensors))
    checksums, files = {"weights": file.sha256}, {"weight_file": file.name}
    if "pca" not in variant:
        return network, checksums, files, {}
    matrices = pca_matrices(file.tensors)
    if not matrices:
        file = load_weights("auto", "vggish-pca")
        checksums, files = checksums | {"pca": file.sha256}, files | {"pca_file": file.name}
        matrices = pca_matrices(file.tensors)
    shapes = {name: matrix.shape for name, matrix in matrices.items()}
    if shapes != {"eigenvectors": (DIMENSION, DIMENSION), "means": (DIMENSION,)}:
        raise InputError(
            f"vggish: {file.name} contains {shapes or 'no PCA'}, but must contain pca_eigen_vectors "
            "(128, 128) and pca_means (128,); pass a file with these arrays"
        )
    return network, checksums, files, matrices


def pca_matrices(tensors: Mapping[str, Tensor]) -> dict[str, NDArray[Any]]:
    """Return AudioSet's PCA in a weight file: `eigenvectors` (128, 128), `means` (128,); {} if the PCA is missing."""
    matrices = {key: tensors[name].double().numpy() for name, key in _PCA_NAMES.items() if name in tensors}
    return matrices | {"means": matrices["means"].ravel()} if "means" in matrices else matrices
