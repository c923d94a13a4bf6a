"""Recipes of features: named combinations of extractors and their options.

The AADML paper uses VGGish (128-d) and Inception-V3 (1,024-d), but does not specify the variant of VGGish: before
or after its last ReLU, with or without AudioSet's PCA, as floats or in 8 bits. Each recipe is one interpretation of
the paper.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from aadml.feature_extraction.ground.options import Options


@dataclass(frozen=True)
class ExtractionRecipe:
    """Extractors and their options.

    Attributes:
        description: one line about the features.
        audio: name of the audio extractor.
        visual: name of the visual extractor.
        options: modality -> option -> value.
        weights: keys of `WEIGHTS`: the files that the extractors read with these options.
    """

    description: str
    audio: str
    visual: str
    options: Options
    weights: tuple[str, ...]

    def with_options(self, overrides: Options | None, *, weights: str | None) -> Options:
        """Return the recipe's options, updated with `overrides`.

        If `weights` is not None, the recipe's option `weights` is omitted.
        """
        defaults = {
            modality: {name: value for name, value in values.items() if name != "weights" or weights is None}
            for modality, values in self.options.items()
        }
        changes = overrides or {}
        return {name: {**defaults.get(name, {}), **changes.get(name, {})} for name in {**defaults, **changes}}


def _paper(description: str, variant: str, visual: Mapping[str, str | bool], *weights: str) -> ExtractionRecipe:
    options = {"audio": {"variant": variant}, "visual": visual}
    return ExtractionRecipe(description, "vggish", "inception-v3", options, ("vggish", *weights))


_YOUTUBE8M: Mapping[str, str | bool] = {"weights": "inception-v3-2015", "reduction": "youtube-8m"}
_YOUTUBE8M_FILES = ("inception-v3-2015", "youtube-8m-pca")


def _with_youtube8m(sound: str, variant: str, *weights: str) -> ExtractionRecipe:
    description = f"{sound}; Inception-V3 with YouTube-8M's PCA to 1,024"
    return _paper(description, variant, _YOUTUBE8M, *weights, *_YOUTUBE8M_FILES)


RECIPES = {
    "paper-post-relu": _with_youtube8m("VGGish after its last ReLU (non-negative, sparse)", "post-relu"),
    "paper-pre-activation": _with_youtube8m("VGGish before its last ReLU", "pre-activation"),
    "paper-pca": _with_youtube8m("VGGish after AudioSet's PCA", "pca", "vggish-pca"),
    "paper-8bit": _paper(
        "VGGish in 8 bits, as in the AudioSet release; Inception-V3 in 8 bits, as in the YouTube-8M release",
        "pca-8bit",
        {**_YOUTUBE8M, "eight_bit": True},
        "vggish-pca",
        *_YOUTUBE8M_FILES,
    ),
    "paper-own-pca": _paper(
        "VGGish after its last ReLU; torchvision's Inception-V3 with a PCA of the training frames to 1,024",
        "post-relu",
        {"reduction": "own-pca"},
        "inception-v3",
    ),
}
"""Recipes by name; the last recipe does not need the matrices of YouTube-8M."""
