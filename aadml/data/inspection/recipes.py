"""Search for the recipe (network and settings) of features: known recipes recompute the features of a few clips."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import resample_poly

from aadml.feature_extraction.backbones import Extractor
from aadml.feature_extraction.backbones.inception_v3 import DIMENSION as POOLED
from aadml.feature_extraction.backbones.inception_v3 import REDUCED, SIDE, inception_v3
from aadml.feature_extraction.backbones.vggish import DIMENSION, PATCH, pca_matrices, vggish
from aadml.feature_extraction.engines.decoding_workers import DecodingSettings, Task, Wanted, decode_all
from aadml.feature_extraction.feature_file.content import FeatureFile
from aadml.feature_extraction.frontends.log_mel import VGGISH
from aadml.feature_extraction.frontends.quantization import dequantize, quantize
from aadml.feature_extraction.frontends.whitening import vggish_pca, youtube8m_whitening
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.segment import Segment
from aadml.feature_extraction.layers.inception_variants import INCEPTION_VARIANTS, VariantOptions
from aadml.feature_extraction.manifest import Manifest
from aadml.feature_extraction.media.inputs import Frames, Limits, Sound
from aadml.feature_extraction.weights.table import WEIGHTS, weights_folder, weights_path
from aadml.feature_extraction.weights.tensor_files import read_tensors

SAMPLE = 5
"""Number of clips that are compared."""
NEAR = 0.1
"""Largest distance at which a recipe counts as the origin of features."""
HOPS = (0.96, 0.48, 0.5, 1.0)
"""Seconds from one patch of VGGish to the next; the first value is the usual one."""
RESAMPLERS = ("FFmpeg", "SciPy's polyphase filter")
RATES = (1, 2, 4)
"""Frames per second; each rate divides the last rate."""
FIELDS: dict[str, tuple[Any, Any]] = {
    "pool_padding": ("counted", "excluded"),
    "last_pool": ("average", "max"),
    "transform_input": (True, False),
}
"""Fields of `VariantOptions`, and their two values."""
_HIGH_RATE = 48_000  # Hz, rate of the sound before SciPy resamples it
_FAR = float("inf")

Part = tuple[str, Segment]
"""File of a clip, and the part of the file that is the clip."""
Rows = NDArray[np.float32]
Readings = Mapping[str, Callable[[Rows], NDArray[Any]]]
"""Name of a variant -> function from the rows (t, d) of the network to the features over time (t, k)."""


@dataclass(frozen=True)
class RecipeMatch:
    """Known recipe with the features nearest to those of a file.

    Args:
        modality: "audio" or "visual".
        recipe: description of the nearest recipe if its distance is at most `NEAR`; otherwise "".
        nearest: description of the nearest recipe at any distance; "" if no recipe could be computed.
        distance: value of the function `distance` for the nearest recipe; None if no recipe could be computed.
        clips: number of clips that were compared.
        missing: names of weight files that known recipes need and that the cache lacks.
    """

    modality: str
    recipe: str
    nearest: str
    distance: float | None
    clips: int
    missing: tuple[str, ...]


def recipe_matches(content: FeatureFile, manifest: Manifest) -> tuple[RecipeMatch, ...]:
    """Return the known recipe nearest to the audio features, and the recipe nearest to the visual features.

    The recipes compute the features of at most `SAMPLE` clips, with weights in the cache only. Features are compared
    after the mean over time.

    Args:
        content: features; clips are matched with the manifest by id.
        manifest: media of the clips.

    Returns:
        A match for each of the modalities "audio" and "visual" that `content` has.

    Raises:
        InputError: no id of the features is in the manifest, or a weight file in the cache is invalid.
    """
    if {row.id for row in manifest.rows}.isdisjoint(content.ids):
        raise InputError(
            f"{manifest.path} contains none of the ids of the features, such as '{content.ids[0]:.80}'; pass the "
            "manifest of the same clips"
        )
    matches = []
    for modality, match in (("audio", _audio), ("visual", _visual)):
        if modality in content.features:
            media = {row.id: (row.media[modality], row.segment) for row in manifest.rows if row.media.get(modality)}
            usable = [i for i in np.flatnonzero(content.has(modality)).tolist() if content.ids[i] in media]
            chosen = [usable[i] for i in np.linspace(0, len(usable) - 1, min(SAMPLE, len(usable))).round().astype(int)]
            features = np.asarray(content.features[modality][chosen], dtype=np.float64)
            matches.append(match(features, [media[content.ids[i]] for i in chosen]))
    return tuple(matches)


def distance(features: NDArray[Any], others: NDArray[Any]) -> float:
    """Compute |x - y| / |x - mean(x)| for `features` x (n, d) and `others` y (n, d), with the mean over rows.

    For a single row, the divisor is |x|. A divisor of zero is replaced by 1.
    """
    spread = features - features.mean(axis=0) if len(features) > 1 else features
    return float(np.sqrt(np.square(features - others).sum() / (np.square(spread).sum() or 1.0)))


def _audio(features: NDArray[np.float64], media: Sequence[Part]) -> RecipeMatch:
    networks = [name for name in ("vggish", "vggish-torch") if _at_hand(name)]  # both files have the same weights
    missing = (*(() if networks else ("vggish",)), *_absent("vggish-pca"))
    if not networks or features.shape[1] != DIMENSION:
        return RecipeMatch("audio", "", "", None, 0, missing)
    network, decoded = vggish(weights=networks[0]), _decoded(media, Sound(VGGISH.sample_rate))

    @lru_cache(maxsize=1)
    def spectrograms(resampler: str) -> list[Rows]:
        sounds = decoded
        if resampler != RESAMPLERS[0]:
            high = _decoded(media, Sound(_HIGH_RATE))
            sounds = {i: resample_poly(values, VGGISH.sample_rate, _HIGH_RATE) for i, values in high.items()}
        return [network.prepare(sounds[i].astype(np.float32)) for i in decoded]

    def rows(hop: float, resampler: str) -> list[Rows]:
        return _patches(network, spectrograms(resampler), round(hop * VGGISH.sample_rate / VGGISH.hop))

    return _nearest(
        "audio", features[[*decoded]], (HOPS, RESAMPLERS), rows, _vggish_readings(), missing,
        lambda hop, resampler: f"VGGish every {hop:g} s of sound resampled by {resampler}",
    )  # fmt: skip


def _patches(network: Extractor, spectrograms: Sequence[Rows], hop: int) -> list[Rows]:
    """Compute the features of the patches of each spectrogram; patches begin `hop` frames apart."""
    assert network.describe is not None
    starts = [range(0, max(len(bands) - PATCH, 0) + 1, hop) for bands in spectrograms]
    patches = [bands[i : i + PATCH] for bands, places in zip(spectrograms, starts, strict=True) for i in places]
    rows = np.concatenate(network.describe(patches))
    return np.split(rows, np.cumsum([len(places) for places in starts])[:-1])


def _vggish_readings() -> Readings:
    readings: dict[str, Callable[[Rows], NDArray[Any]]] = {
        "pre-activation": np.asarray,
        "post-relu": lambda rows: np.maximum(rows, 0.0),
    }
    if not _at_hand("vggish-pca"):
        return readings
    matrices = pca_matrices(read_tensors(weights_path("vggish-pca")))
    white = partial(vggish_pca, eigenvectors=matrices["eigenvectors"], means=matrices["means"])
    floor, nearest = (partial(quantize, rounding=rounding) for rounding in ("floor", "nearest"))
    rounded = _eight_bits("PCA, 8 bits rounded to nearest", lambda rows: nearest(white(rows)))
    return {**readings, "PCA": white, **_eight_bits("PCA, 8 bits", lambda rows: floor(white(rows))), **rounded}


def _eight_bits(name: str, quantized: Callable[[Rows], NDArray[np.uint8]]) -> Readings:
    return {
        f"{name} (0 to 255)": quantized,
        f"{name}, dequantized": lambda rows: dequantize(quantized(rows)),
        f"{name}, (q - 128) / 256": lambda rows: (quantized(rows).astype(np.float64) - 128) / 256,
    }


def _visual(features: NDArray[np.float64], media: Sequence[Part]) -> RecipeMatch:
    networks = [name for name in INCEPTION_VARIANTS if _at_hand(name)]
    missing = (*(name for name in INCEPTION_VARIANTS if name not in networks), *_absent("youtube-8m-pca"))
    readings = _inception_readings(features.shape[1])
    if not networks or not readings:
        return RecipeMatch("visual", "", "", None, 0, missing)
    decoded = _decoded(media, Frames(float(RATES[-1]), SIDE, SIDE, limit=300 * RATES[-1]))

    def rows(name: str, rate: int, *switched: bool) -> list[Rows]:
        network = inception_v3(weights=name, variant=_variant(name, switched))
        assert network.describe is not None
        return network.describe([frames[:: RATES[-1] // rate] for frames in decoded.values()])

    def described(name: str, rate: int, *switched: bool) -> str:
        fields = ", ".join(f"{field} {value!s}".lower() for field, value in vars(_variant(name, switched)).items())
        return f"Inception-V3 ({name}, {fields}) at {rate} frames per second"

    axes = (networks, RATES, *((False, True) for _ in FIELDS))
    return _nearest("visual", features[[*decoded]], axes, rows, readings, missing, described)


def _variant(name: str, switched: Sequence[bool]) -> VariantOptions:
    """Return the options of the weight file `name`, with the other value for each of `FIELDS` marked in `switched`."""
    values = {
        field: next(other for other in choices if (other == getattr(INCEPTION_VARIANTS[name], field)) != change)
        for (field, choices), change in zip(FIELDS.items(), switched, strict=True)
    }
    return VariantOptions(**values)


def _inception_readings(width: int) -> Readings:
    if width == POOLED:
        return {"pooled, without PCA": np.asarray}
    if width != REDUCED or not _at_hand("youtube-8m-pca"):
        return {}
    white = youtube8m_whitening(weights_path("youtube-8m-pca")).transform
    eight_bits = _eight_bits("YouTube-8M's PCA, 8 bits", lambda rows: quantize(white(rows), rounding="nearest"))
    return {"YouTube-8M's PCA": white, **eight_bits}


def _nearest(
    modality: str,
    features: NDArray[np.float64],
    axes: Sequence[Sequence[Any]],
    rows: Callable[..., Sequence[Rows]],
    readings: Readings,
    missing: tuple[str, ...],
    described: Callable[..., str],
) -> RecipeMatch:
    """Return the nearest recipe on a grid, searched axis by axis until no other value of an axis is nearer.

    Args:
        modality: name for the result.
        features: (n, d) mean features of the clips of the file.
        axes: values of each axis; the search begins at the first values.
        rows: function from one value per axis to the rows of the network for each clip.
        readings: variants of the features that are computed from the same rows.
        missing: absent weight files, for the result.
        described: function from one value per axis to a description.
    """
    best, distances, before = tuple(axis[0] for axis in axes), dict[tuple[Any, ...], tuple[float, str]](), None
    while len(features) and best != before:
        before = best
        for position, axis in enumerate(axes):
            for value in axis:
                point = (*best[:position], value, *best[position + 1 :])
                if point not in distances:
                    clips = rows(*point)
                    distances[point] = min((_apart(features, clips, read), name) for name, read in readings.items())
            best = min(distances, key=lambda point: distances[point][0])
    apart, reading = distances.get(best, (_FAR, ""))
    if apart == _FAR:
        return RecipeMatch(modality, "", "", None, len(features), missing)
    words = f"{described(*best)}, {reading}"
    return RecipeMatch(modality, words if apart <= NEAR else "", words, apart, len(features), missing)


def _apart(features: NDArray[np.float64], clips: Sequence[Rows], read: Callable[[Rows], NDArray[Any]]) -> float:
    return distance(features, np.stack([read(rows).mean(axis=0, dtype=np.float64) for rows in clips]))


def _decoded(media: Sequence[Part], inputs: Sound | Frames) -> dict[int, NDArray[Any]]:
    """Decode clips in worker processes; return the sound or frames of each decodable clip by its position."""
    settings = DecodingSettings({"media": Wanted(inputs, np.asarray, 0.0)}, time_limit=120.0, limits=Limits())
    tasks = (Task(number, {"media": path}, segment) for number, (path, segment) in enumerate(media))
    parts = {task.number: parts[0].prepared for task, parts in decode_all(tasks, settings, clips=len(media), workers=2)}
    return {number: values for number, values in sorted(parts.items()) if values is not None}


def _at_hand(name: str) -> bool:
    return (weights_folder() / WEIGHTS[name].file).is_file()


def _absent(name: str) -> tuple[str, ...]:
    return () if _at_hand(name) else (name,)
