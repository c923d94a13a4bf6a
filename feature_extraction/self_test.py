"""Tests of the weight files in the cache against published checksums and published statistics of their outputs."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.backbones import extractor
from aadml.feature_extraction.backbones.panns import PANNS_NETWORKS, load_published
from aadml.feature_extraction.frontends.whitening import youtube8m_whitening
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.weights.table import WEIGHTS, published, verify, weights_folder
from aadml.feature_extraction.weights.tensor_files import read_tensors

_LOADED = "all tensors can be loaded (no reference statistics are published)"
TOLERANCE = 0.1  # relative; the tolerance of the VGGish authors
# 3 s of a 1 kHz sine of amplitude 1 at 16 kHz; tensorflow/models, `vggish_smoke_test`, as of July 2023
VGGISH_STATISTICS = {"pre-activation": (0.000657, 0.343), "pca-8bit": (126.0, 89.3)}  # mean, standard deviation


@dataclass(frozen=True)
class WeightCheck:
    """Result of testing one published file on this machine.

    Attributes:
        passed: whether the file has the expected content and works; None if the file is absent.
        detail: results or error in one line; for an absent file, the address to download from.
    """

    passed: bool | None
    detail: str


def examine(name: str) -> WeightCheck:
    """Verify and test one published file in the cache, without downloads.

    Args:
        name: a key of `WEIGHTS`.

    Returns:
        The result; a damaged file is reported by `passed`.

    Raises:
        InputError: there is no such key.
    """
    entry = published(name)
    if not (weights_folder() / entry.file).is_file():
        return WeightCheck(None, f"download the file from {entry.url}")
    try:
        verify(name)
        detail = next((test(name) for start, test in _TESTS.items() if name.startswith(start)), "content verified")
    except InputError as error:
        return WeightCheck(False, str(error))
    source = "published checksum" if entry.md5 or entry.sha256 else "checksum of first use"
    return WeightCheck(True, f"{source}; {detail}")


def _vggish(name: str) -> str:
    """Compare the features of a sine with the published statistics, as in the smoke test of the VGGish authors."""
    has_pca = (weights_folder() / WEIGHTS["vggish-pca"].file).is_file()
    time = np.arange(3 * 16_000) / 16_000
    sine = np.sin(2 * np.pi * 1000.0 * time).astype(np.float32)
    lines = []
    for variant in VGGISH_STATISTICS if has_pca else ("pre-activation",):
        rows = _described("vggish", "audio", {"variant": variant, "weights": name, "device": "cpu"}, sine)
        statistics, expected = (float(rows.mean()), float(rows.std())), VGGISH_STATISTICS[variant]
        line = "{}: mean {:.3g}, deviation {:.3g} (published {:.3g}, {:.3g})".format(variant, *statistics, *expected)
        if not np.allclose(statistics, expected, rtol=TOLERANCE, atol=0.0):
            raise InputError(
                f"the self-test failed ({line}); "
                f"delete the files of VGGish in {weights_folder()}, and download these files again"
            )
        lines.append(line)
    return "self-test passed, " + ", ".join(lines)


def _inception(name: str) -> str:
    frame = np.full((1, 299, 299, 3), 128, dtype=np.uint8)
    rows = _described("inception-v3", "visual", {"weights": name, "device": "cpu"}, frame)
    if not np.isfinite(rows).all() or not rows.any():
        raise InputError(
            f"the self-test failed: the {name} features of a gray frame are all zero or not finite; "
            f"delete {weights_folder() / WEIGHTS[name].file}, and run `aadml weights get {name}`"
        )
    return _LOADED


def _panns(name: str) -> str:
    network = PANNS_NETWORKS[name.removeprefix("panns-")]()
    load_published(network, read_tensors(weights_folder() / WEIGHTS[name].file))
    return _LOADED


def _youtube8m(name: str) -> str:
    shape = youtube8m_whitening(weights_folder() / WEIGHTS[name].file).components.shape
    return f"contains matrices that map {shape[0]} to {shape[1]} dimensions"


def _described(name: str, modality: str, options: dict[str, str], clip: NDArray[np.generic]) -> NDArray[np.float32]:
    network = extractor(name, modality, options)
    assert network.describe is not None
    return network.describe([network.prepare(clip)])[0]


_TESTS: dict[str, Callable[[str], str]] = {
    "vggish-pca": lambda _: "tested together with the file vggish, if vggish is present",
    "vggish": _vggish,
    "inception-v3": _inception,
    "youtube-8m-pca": _youtube8m,
    "panns": _panns,
}
