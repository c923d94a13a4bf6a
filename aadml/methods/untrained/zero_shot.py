"""Zero-shot: the two towers of one pretrained model, compared as they are."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from aadml.comparison.clips import Clips
from aadml.comparison.features import Features, Modality
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject, inner
from aadml.feature_extraction.hub.families import FAMILIES
from aadml.methods.method import Context, Method
from aadml.methods.training.settings import Training

_HOW = (
    "extract both with one model of two towers (`aadml extract M.csv -o F.h5 --audio hf:MODEL --text hf:MODEL`; "
    "docs/encoders.md lists such models)"
)


class ZeroShot(Method):
    """See `zero_shot`."""

    takes_statistics = False

    def fit(self, train: Clips, valid: Clips, session: object = None) -> None:
        """Learn nothing."""

    def embed(self, features: Features, modality: Modality) -> Tensor:
        """Give the features (n, d) as they are."""
        if not isinstance(features, Tensor):
            raise InputError("zero-shot: needs features as vectors")
        return features.detach().cpu().float()

    def state(self) -> dict[str, Tensor]:
        """Return nothing that was learned; a file of weights holds one number at least."""
        return {"learned": torch.zeros(0)}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Take over nothing."""

    def parameters_count(self) -> int:
        """Count nothing."""
        return 0


def zero_shot(context: Context, settings: Training) -> Method:
    """Pretrained towers of one space (CLAP, CLIP, SigLIP, PE-AV), compared by cosine without any training.

    Args:
        context: whose features say what made them.
        settings: not used; nothing is learned.

    Raises:
        InputError: the features are not those of the towers of one model that share a space.
    """
    if len(context.modalities) < 2:
        raise InputError(f"zero-shot: needs two modalities; the data have {', '.join(context.modalities)}")
    spaces = {m: shared_space(context.features.get(m) or {}, m) for m in context.modalities}
    how = _how(spaces)
    for modality, space in spaces.items():
        if space is None:
            raise InputError(f"zero-shot: {_origin(context, modality)}, which shares no space; {how}")
    if len(set(spaces.values())) > 1:
        named = ", ".join(f"{m} {one.family} {one.weights[:12]}" for m, one in spaces.items() if one is not None)
        raise InputError(f"zero-shot: the features are of different models ({named}); {how}")
    return ZeroShot()


@dataclass(frozen=True)
class SharedSpace:
    """The space that the towers of one pretrained model share.

    Attributes:
        family: of the model.
        weights: checksum of its file.
    """

    family: str
    weights: str

    @property
    def modalities(self) -> tuple[str, ...]:
        """Name the modalities whose towers end in it."""
        return FAMILIES[self.family].shared


def shared_space(origin: JsonObject, modality: Modality) -> SharedSpace | None:
    """Say in which shared space the features of a modality lie, by what made them; None where in none."""
    family, weights = (str(inner(origin, "parameters", key) or "") for key in ("family", "weights"))
    shared = FAMILIES[family].shared if family in FAMILIES else ()
    own = origin.get("extractor") == f"hf-{modality}" and modality in shared and weights
    return SharedSpace(family, weights) if own else None


def _how(spaces: Mapping[Modality, SharedSpace | None]) -> str:
    """Return what to do: choose modalities that share a space, where there are two, or extract such ones."""
    for space in spaces.values():
        sharing = [modality for modality, other in spaces.items() if other == space]
        if space is not None and len(sharing) > 1:
            return f"choose those of one model (--set modalities={','.join(sharing)})"
    return _HOW


def _origin(context: Context, modality: Modality) -> str:
    origin = context.features.get(modality) or {}
    family = str(inner(origin, "parameters", "family") or "")
    extractor = f"by {origin['extractor']}{f' ({family})' if family else ''}" if origin else "by what is not known"
    return f"the {modality} features were made {extractor}"
