"""Description of the networks of a saved model, for loading the model without the networks' own files."""

from collections.abc import Mapping
from dataclasses import dataclass

from aadml.comparison.features import Modality
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.hub.saved_tower import SavedTower


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """Description of networks, from which a saved model is built without the files of these networks.

    Attributes:
        audio: pretrained network of the sound; None if there is none.
        visual: pretrained network of the pictures.
        text: pretrained network of the texts.
        bert: configuration of a BERT that was read from a folder.
    """

    audio: SavedTower | None = None
    visual: SavedTower | None = None
    text: SavedTower | None = None
    bert: JsonObject | None = None

    @classmethod
    def of(cls, towers: Mapping[Modality, SavedTower], bert: JsonObject | None = None) -> "Architecture":
        """Build the architecture from the pretrained networks by modality."""
        return cls(audio=towers.get("audio"), visual=towers.get("visual"), text=towers.get("text"), bert=bert)

    def tower(self, modality: Modality) -> SavedTower | None:
        """Return the pretrained network of a modality; None if there is none."""
        return {"audio": self.audio, "visual": self.visual, "text": self.text}.get(modality)
