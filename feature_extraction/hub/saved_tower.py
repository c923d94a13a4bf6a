"""Description of a pretrained network in a saved model."""

from dataclasses import dataclass

from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.weights.hub_names import PREFIX


@dataclass(frozen=True)
class SavedTower:
    """Description of the network of a tower in a saved model.

    Attributes:
        model: name of the model on the hub, or of the folder.
        revision: commit on the hub; None for a folder.
        license: license stated in the model card; "not stated" without one.
        config: content of `config.json`, without the labels of a classifier.
        pooling: name of the pooling.
        weights: checksum of the weights.
        dimension: dimension of the vectors.
        adapted: names of the linear layers with low-rank adapters. The saved model of a network with adapters
            contains the adapters, but not the weights under the adapters. These weights are read from the model on
            the hub, or from a folder whose weights have the checksum `weights`.
    """

    model: str
    revision: str | None
    license: str
    config: JsonObject
    pooling: str
    weights: str
    dimension: int
    adapted: tuple[str, ...] = ()

    @property
    def base(self) -> str:
        """Source of the weights under the adapters: `hf:MODEL@revision#pooling`; for a folder `hf:CHECKSUM#pooling`."""
        model = self.weights if self.revision is None else f"{self.model}@{self.revision}"
        return f"{PREFIX}{model}#{self.pooling}"
