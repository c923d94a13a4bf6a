"""Zero-shot: the towers of one pretrained model, compared without training."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from aadml.comparison.clips import Clips
from aadml.comparison.features import Features, Modality
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject, inner
from aadml.feature_extraction.hub.families import FAMILIES
from aadml.methods.method import Context, Method, as_vectors
from aadml.methods.training.settings import Training

_HOW = (
    "extract both modalities with one model of two towers (for example, `aadml extract M.csv -o F.h5 --audio hf:MODEL "
    "--text hf:MODEL`; docs/encoders.md lists such models)"
)


class ZeroShot(Method):
    """Method whose embeddings are the features of pretrained towers."""

    takes_statistics = False

    def fit(self, train: Clips, valid: Clips, session: object = None) -> None:
        """Do nothing."""

    def embed(self, features: Features, modality: Modality) -> Tensor:
        """Return the features (n, d) as float32 on the CPU.

        Raises:
            InputError: the features are computed batch by batch.
        """
        return as_vectors(features, "zero-shot").detach().cpu().float()

    def state(self) -> dict[str, Tensor]:
        """Return an empty tensor, since a weight file needs at least one tensor."""
        return {"learned": torch.zeros(0)}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Do nothing."""

    def parameters_count(self) -> int:
        """Return 0: nothing is fitted."""
        return 0


def zero_shot(context: Context, settings: Training) -> Method:
    """Build a method whose embeddings are the features of pretrained towers.

    The embeddings are compared by cosine. The towers must share an embedding space. Families with a shared space
    include CLAP, CLIP, SigLIP and PE-AV. Nothing is trained.

    Args:
        context: provenance of the features.
        settings: not used, since nothing is trained.

    Raises:
        InputError: there is only one modality, the features are not vectors, or the features do not come from one model
            with a shared space.
    """
    context.need_vectors("zero-shot")
    spaces = {m: shared_space(context.features.get(m) or {}, m) for m in context.modalities}
    how = _how(spaces)
    for modality, space in spaces.items():
        if space is None:
            raise InputError(f"zero-shot: {_origin(context, modality)}, which has no known shared space; {how}")
    if len(set(spaces.values())) > 1:
        models = ", ".join(f"{m} {space.family} {space.weights[:12]}" for m, space in spaces.items() if space)
        raise InputError(f"zero-shot: the features come from different models ({models}); {how}")
    return ZeroShot()


@dataclass(frozen=True)
class SharedSpace:
    """The shared space of the towers of one pretrained model.

    Attributes:
        family: family of the model.
        weights: checksum of the model's weight file.
    """

    family: str
    weights: str

    @property
    def modalities(self) -> tuple[str, ...]:
        """Modalities whose towers map into the space."""
        return tuple(FAMILIES[self.family])


def shared_space(origin: JsonObject, modality: Modality) -> SharedSpace | None:
    """Return the shared space of a modality's features with provenance `origin`; None without a shared space."""
    family, weights = (str(inner(origin, "parameters", key) or "") for key in ("family", "weights"))
    towers = FAMILIES.get(family, {})
    is_tower = origin.get("extractor") == f"hf-{modality}" and len(towers) > 1 and modality in towers and weights
    return SharedSpace(family, weights) if is_tower else None


def _how(spaces: Mapping[Modality, SharedSpace | None]) -> str:
    """Return a hint to choose modalities with a shared space, or to extract features if no modalities share a space."""
    for space in spaces.values():
        sharing = [modality for modality, other in spaces.items() if other == space]
        if space is not None and len(sharing) > 1:
            return f"choose the modalities of one model (--set modalities={','.join(sharing)})"
    return _HOW


def _origin(context: Context, modality: Modality) -> str:
    origin = context.features.get(modality) or {}
    family = str(inner(origin, "parameters", "family") or "")
    extractor = f"by {origin['extractor']}{f' ({family})' if family else ''}" if origin else "by an unknown extractor"
    return f"the {modality} features were extracted {extractor}"
