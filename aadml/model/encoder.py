"""A fitted method with the scaling of its inputs: raw features in, embeddings out."""

from dataclasses import dataclass, replace

from torch import Tensor

from aadml.comparison.types import Clips, Embeddings, Features, Modality
from aadml.methods.inputs import Scaling
from aadml.methods.method import Method


@dataclass(frozen=True)
class Encoder:
    """What a trained run is.

    Attributes:
        method: what embeds.
        scaling: what its inputs pass through first, fitted on the training clips.
        class_names: of the data it was trained on.
    """

    method: Method
    scaling: Scaling
    class_names: tuple[str, ...] = ()

    def embed(self, features: Features, modality: Modality) -> Tensor:
        """Embed n items of one modality (n, d) -> (n, dimension), each alone."""
        return self.method.embed(self.scaling.features(features, modality), modality)

    def embed_clips(self, clips: Clips) -> Embeddings:
        """Embed every modality of `clips`, one at a time."""
        return self.method.embed_clips(self.scaling.clips(clips))

    def with_scaling(self, scaling: Scaling) -> "Encoder":
        """Return the same method behind another scaling."""
        return replace(self, scaling=scaling)
