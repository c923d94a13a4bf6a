"""Features by one name: which extractors, and with which options.

The AADML paper says VGGish (128-d) and Inception-V3 (1,024-d), and leaves open which VGGish: before or after its last
ReLU, with AudioSet's PCA or without, as floats or in 8 bits. Each reading is a recipe.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from aadml.feature_extraction.ground.json_values import Json, JsonObject

Options = Mapping[str, JsonObject]


@dataclass(frozen=True)
class ExtractionRecipe:
    """Extractors and their options.

    Attributes:
        description: what comes out, in one line.
        audio: name of the audio extractor.
        visual: name of the visual extractor.
        options: modality -> option -> value.
    """

    description: str
    audio: str
    visual: str
    options: Options

    def with_options(self, given: Options | None, *, weights: str | None) -> dict[str, dict[str, Json]]:
        """Lay given options over those of the recipe; weights that are named for all take the place of its own."""
        found: dict[str, dict[str, Json]] = {modality: dict(values) for modality, values in self.options.items()}
        for values in found.values():
            if weights is not None:
                values.pop("weights", None)
        for modality, own in (given or {}).items():
            found.setdefault(modality, {}).update(own)
        return found


_YOUTUBE8M: JsonObject = {"weights": "inception-v3-2015", "reduction": "youtube-8m"}


def _paper(description: str, variant: str, visual: JsonObject) -> ExtractionRecipe:
    return ExtractionRecipe(description, "vggish", "inception-v3", {"audio": {"variant": variant}, "visual": visual})


RECIPES = {
    "paper-post-relu": _paper(
        "VGGish after its last ReLU (non-negative, sparse); Inception-V3, YouTube-8M's 1,024", "post-relu", _YOUTUBE8M
    ),
    "paper-pre-activation": _paper(
        "VGGish before its last ReLU; Inception-V3, YouTube-8M's 1,024", "pre-activation", _YOUTUBE8M
    ),
    "paper-pca": _paper("VGGish after AudioSet's PCA; Inception-V3, YouTube-8M's 1,024", "pca", _YOUTUBE8M),
    "paper-8bit": _paper(
        "both in 8 bits: VGGish as AudioSet was released, Inception-V3 as YouTube-8M was",
        "pca-8bit",
        {**_YOUTUBE8M, "eight_bit": True},
    ),
    "paper-own-pca": _paper(
        "VGGish after its last ReLU; Inception-V3 of torchvision, 1,024 by a PCA of the training frames",
        "post-relu",
        {"reduction": "own-pca"},
    ),
}
"""Name -> recipe; the last needs no matrices of YouTube-8M."""
