"""Entry of a pretrained network in a saved model."""

from dataclasses import dataclass

from aadml.feature_extraction.ground.json_values import JsonObject


@dataclass(frozen=True)
class SavedTower:
    """Network of a tower in a saved model.

    Attributes:
        model: name of the model on the hub, or of the folder.
        revision: commit on the hub; None for a folder.
        license: license stated in the model card.
        config: content of `config.json`, without the labels of a classifier.
        pooling: name of the pooling.
        weights: checksum of the weights.
        dimension: dimension of the vectors.
    """

    model: str
    revision: str | None
    license: str
    config: JsonObject
    pooling: str
    weights: str
    dimension: int
