"""Description of the pretrained networks of a saved model, for rebuilding these networks when the model is loaded."""

from dataclasses import dataclass

from aadml.comparison.features import Modality
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.hub.saved_tower import SavedTower


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """Description of the pretrained networks of a saved model.

    Attributes:
        audio: pretrained network of the sound, or None.
        visual: pretrained network of the pictures, or None.
        text: pretrained network of the texts, or None.
        bert: configuration of a BERT whose files are in a folder, or None.
    """

    audio: SavedTower | None = None
    visual: SavedTower | None = None
    text: SavedTower | None = None
    bert: JsonObject | None = None

    def tower(self, modality: Modality) -> SavedTower | None:
        """Return the description of a modality's pretrained network; None if the model has no such network."""
        return {"audio": self.audio, "visual": self.visual, "text": self.text}.get(modality)
