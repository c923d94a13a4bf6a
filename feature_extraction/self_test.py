"""Whether the weight files in the cache are the published ones, and give what their publishers say they give."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.backbones import extractor
from aadml.feature_extraction.backbones.panns import PANNS_NETWORKS, load_published
from aadml.feature_extraction.frontends.whitening import youtube8m_whitening
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.weights.table import WEIGHTS, published, verify, weights_folder
from aadml.feature_extraction.weights.tensor_files import read_tensors

TOLERANCE = 0.1  # relative, the VGGish authors' own
# 3 s of a 1 kHz sine of amplitude 1 at 16 kHz; tensorflow/models, `vggish_smoke_test`, measured there in July 2023
VGGISH_STATISTICS = {"pre-activation": (0.000657, 0.343), "pca-8bit": (126.0, 89.3)}  # mean, standard deviation


@dataclass(frozen=True)
class WeightCheck:
    """What is known of one published file on this machine.

    Attributes:
        name: its key in `weights.WEIGHTS`.
        path: where it is, or where it has to be put.
        present: whether it is there.
        passed: whether it is the published file and works; None where it is absent.
        detail: one line of what was seen, or of where to get it.
    """

    name: str
    path: Path
    present: bool
    passed: bool | None
    detail: str


def examine(name: str) -> WeightCheck:
    """Verify one published file in the cache and try it out. Nothing is fetched."""
    entry = published(name)
    path = weights_folder() / entry.file
    if not path.is_file():
        return WeightCheck(name, path, False, None, f"get it from {entry.url}")
    try:
        verify(name)
        detail = next((test(name) for start, test in _TESTS.items() if name.startswith(start)), "content verified")
    except InputError as error:
        return WeightCheck(name, path, True, False, str(error))
    source = "published checksum" if entry.md5 or entry.sha256 else "checksum of first use"
    return WeightCheck(name, path, True, True, f"{source}; {detail}")


def vggish_statistics(weights: str, pca: str | None = None) -> dict[str, tuple[float, float]]:
    """Measure what the VGGish authors' smoke test measures.

    Args:
        weights: as the option of the VGGish extractor.
        pca: alike; None leaves the quantized variant out.

    Returns:
        Variant -> mean and standard deviation over the three patches.
    """
    time = np.arange(3 * 16_000) / 16_000
    sine = np.sin(2 * np.pi * 1000.0 * time).astype(np.float32)
    measured = {}
    for variant in VGGISH_STATISTICS if pca else ("pre-activation",):
        options = {"variant": variant, "weights": weights, "device": "cpu"}
        if pca and "pca" in variant:
            options["pca"] = pca
        rows = _described("vggish", "audio", options, sine)
        measured[variant] = (float(rows.mean()), float(rows.std()))
    return measured


def _vggish(name: str) -> str:
    """Compare with the published statistics."""
    pca = "vggish-pca" if (weights_folder() / WEIGHTS["vggish-pca"].file).is_file() else None
    lines = []
    for variant, found in vggish_statistics(name, pca).items():
        expected = VGGISH_STATISTICS[variant]
        line = "{}: mean {:.3g}, deviation {:.3g} (published {:.3g}, {:.3g})".format(variant, *found, *expected)
        if not np.allclose(found, expected, rtol=TOLERANCE, atol=0.0):
            raise InputError(f"self-test failed, {line}")
        lines.append(line)
    return "self-test passed, " + ", ".join(lines)


def _vggish_pca(name: str) -> str:
    return "tested together with vggish where that is here"


def _inception(name: str) -> str:
    """Load the file whole and look at one gray frame; no reference statistics are published."""
    frame = np.full((1, 299, 299, 3), 128, dtype=np.uint8)
    rows = _described("inception-v3", "visual", {"weights": name, "device": "cpu"}, frame)
    if not np.isfinite(rows).all() or not rows.any():
        raise InputError(f"self-test failed, {name} gives no finite features for a gray frame")
    return "loads whole (no reference statistics are published)"


def _panns(name: str) -> str:
    network = PANNS_NETWORKS[name.removeprefix("panns-")]()
    load_published(network, read_tensors(weights_folder() / WEIGHTS[name].file))
    return "loads whole (no reference statistics are published)"


def _youtube8m(name: str) -> str:
    shape = youtube8m_whitening(weights_folder() / WEIGHTS[name].file).components.shape
    return f"holds matrices of {shape[0]} to {shape[1]} dimensions"


def _described(name: str, modality: str, options: dict[str, str], clip: NDArray[np.generic]) -> NDArray[np.float32]:
    built = extractor(name, modality, options)
    assert built.describe is not None
    return built.describe([built.prepare(clip)])[0]


_TESTS: dict[str, Callable[[str], str]] = {
    "vggish-pca": _vggish_pca,
    "vggish": _vggish,
    "inception-v3": _inception,
    "youtube-8m-pca": _youtube8m,
    "panns": _panns,
}
