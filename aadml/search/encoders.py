"""What makes the vectors of an index, and of the questions to it: a model, or extractors alone."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

import numpy as np
import torch
from torch import Tensor

from aadml.comparison.features import Features, Modality
from aadml.feature_extraction.backbones import Extractor, extractor
from aadml.feature_extraction.feature_file import MODALITIES
from aadml.feature_extraction.ground.consent import remember
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import Json, JsonObject, nested, typed
from aadml.methods.inputs import Inputs, Scaling, load_scaling
from aadml.methods.training.settings import Training
from aadml.methods.untrained.zero_shot import SharedSpace, shared_space
from aadml.model.facts import Facts, MethodFacts, fingerprint
from aadml.model.media import described, extractor_of, media_features
from aadml.model.model import Model
from aadml.retrieval.frame_word import FRAME_WORD
from aadml.runs.loading import load

_PART = 4096  # items embedded at a time


class Encoder(Protocol):
    """What turns features or media of one modality into vectors that can be compared."""

    @property
    def facts(self) -> Facts:
        """Say what it expects."""

    @property
    def similarity(self) -> str:
        """Name how its vectors are compared."""

    def may_ask(self, modality: Modality, to: Modality) -> bool:
        """Tell whether a question of one modality can be compared with items of another."""

    def embed(self, features: Features, modality: Modality) -> Tensor:
        """Embed n items of one modality (n, d) -> (n, e) float32."""

    def to_json(self, folder: Path) -> JsonObject:
        """Give what an index in that folder writes down, so that the same encoder can be had again."""


@dataclass(frozen=True)
class ModelEncoder:
    """A trained model: every modality it embeds can ask for every other."""

    model: Model

    @property
    def facts(self) -> Facts:
        """Say what it expects."""
        return self.model.facts

    @property
    def similarity(self) -> str:
        """Name how its vectors are compared."""
        return self.model.method.similarity

    def may_ask(self, modality: Modality, to: Modality) -> bool:
        """Tell whether a question of one modality can be compared with items of another."""
        return {modality, to} <= set(self.model.modalities)

    def embed(self, features: Features, modality: Modality) -> Tensor:
        """Embed n items of one modality (n, d) -> (n, e) float32."""
        if not isinstance(features, Tensor):
            return self.model.embed_features(features, modality)
        return torch.cat([self.model.embed_features(part, modality).float() for part in features.split(_PART)])

    def to_json(self, folder: Path) -> JsonObject:
        """Give where the model lies and what it is."""
        if self.model.folder is None:
            raise InputError("the model is in memory alone; `model.save(folder)` first, so that the index can name it")
        return {"kind": "model", "path": near(self.model.folder, folder), "digest": digest_of(self.model)}


@dataclass(frozen=True)
class PlainEncoder:
    """Extractors alone: features scaled by the items of the first build; a modality asks for itself.

    Modalities that the towers of one pretrained model bring into one space (CLAP, CLIP, SigLIP, PE-AV) are taken as
    they are and ask for each other; words ask too, though no item is of words.

    Attributes:
        facts: which extractors, and their widths.
        scaling: fitted when the index was built, and kept, so that vectors of later items fit to it.
    """

    facts: Facts
    scaling: Scaling
    similarity: str = "cosine"

    def may_ask(self, modality: Modality, to: Modality) -> bool:
        """Tell whether a question of one modality can be compared with items of another."""
        if to not in self.facts.modalities:
            return False
        space = self.space(to)
        return modality == to or (space is not None and self.space(modality) == space)

    def space(self, modality: Modality) -> SharedSpace | None:
        """Say in which space of towers the vectors of a modality lie; None where in none."""
        if modality in self.facts.modalities:
            return shared_space(self.facts.features.get(modality) or {}, modality)
        return next((one for m in self.facts.modalities if (one := self.space(m)) and modality in one.modalities), None)

    def other_tower(self, modality: Modality) -> Extractor:
        """Build the tower of a modality that no item has, of the model that made the items.

        Raises:
            InputError: the model is not found, or is another one now.
        """
        space = self.space(modality)
        own = next(m for m in self.facts.modalities if self.space(m) == space)
        source = nested(self.facts.features[own], "source")
        built = extractor(f"hf-{modality}", modality, dict(source))
        if space is None or built.parameters.get("weights") != space.weights:
            raise InputError(f"{modality}: the model {source.get('model')} is another one than made this index")
        return built

    def embed(self, features: Features, modality: Modality) -> Tensor:
        """Scale n items of one modality (n, d); vectors of a shared space stay as they are."""
        if self.space(modality) is not None:
            assert isinstance(features, Tensor)
            return features.float()
        return cast(Tensor, self.scaling.features(features, modality))

    def to_json(self, folder: Path) -> JsonObject:
        """Give extractors and scaling."""
        state = {name: values.tolist() for name, values in self.scaling.state().items()}
        features: dict[str, Json] = {m: dict(origin) for m, origin in self.facts.features.items()}
        dimensions: dict[str, Json] = dict(self.facts.dimensions.items())
        return {"kind": "plain", "features": features, "dimensions": dimensions, "scaling": state}


def load_encoder(written: JsonObject, folder: Path, model: Model | str | Path | None = None) -> Encoder:
    """Make the encoder of an index again.

    Args:
        written: what the index says of it.
        folder: of the index.
        model: where the model lies now, if elsewhere than written down.

    Raises:
        InputError: the model is not there, or is another one.
    """
    if written["kind"] == "plain":
        if model is not None:
            raise InputError("--model: this index was made without one; build another index with it")
        remember(nested(nested(written, "features"), m).get("extractor") for m in nested(written, "features"))
        found = {name: torch.tensor(values) for name, values in nested(written, "scaling").items()}
        return _plain(nested(written, "features"), nested(written, "dimensions"), load_scaling(found, Inputs()))
    place = folder / typed(written, "path", str)
    try:
        loaded = model if isinstance(model, Model) else load(model or place)
    except InputError as error:
        raise InputError(f"{error}; the index was made with the model {place}, give --model if it has moved") from error
    if digest_of(loaded) != written["digest"]:
        raise InputError(f"{model or place}: is another model than the one that made this index; build another index")
    return ModelEncoder(loaded)


def model_encoder(model: Model | str | Path) -> ModelEncoder:
    """Take a model, or a run or model folder.

    Raises:
        InputError: no model there, or one that compares sequences.
    """
    loaded = model if isinstance(model, Model) else load(model)
    if loaded.method.similarity == FRAME_WORD:
        raise InputError("--model: this model compares frames with words; an index holds one vector a clip")
    if loaded.folder is None and isinstance(model, str | Path):
        raise InputError(f"{model}: is a model without a folder")
    return ModelEncoder(loaded)


def plain_encoder(origins: Mapping[str, JsonObject], features: Mapping[str, Tensor], scaling: Scaling) -> PlainEncoder:
    """Describe extractors by what a feature file says of them."""
    return _plain(
        {m: fingerprint(origins.get(m, {})) for m in features}, {m: v.shape[1] for m, v in features.items()}, scaling
    )


def _plain(features: Mapping[str, Json], dimensions: Mapping[str, Json], scaling: Scaling) -> PlainEncoder:
    facts = Facts(
        label="plain features", method=MethodFacts("", {}), training=Training(), inputs=Inputs(),
        dimensions={m: cast(int, dimensions[m]) for m in MODALITIES if m in dimensions}, class_names=(), clips=0,
        seed=0,
        features={m: cast(JsonObject, features[m]) for m in MODALITIES if m in features},
    )  # fmt: skip
    return PlainEncoder(facts, scaling)


def embed_media(encoder: Encoder, modality: Modality, paths: Sequence[str]) -> Tensor:
    """Embed media files, or captions where the modality is text: (n, e)."""
    if isinstance(encoder, PlainEncoder) and modality not in encoder.facts.modalities and encoder.space(modality):
        return described(encoder.other_tower(modality), paths)
    if modality not in encoder.facts.modalities:
        known = ", ".join(encoder.facts.modalities)
        raise InputError(f"{modality}: this index cannot be asked with {modality}; it knows {known}")
    return encoder.embed(media_features(encoder.facts, modality, paths), modality)


def extractors_of(encoder: Encoder) -> list[Extractor]:
    """Build the extractors whose features an encoder takes."""
    return [extractor_of(encoder.facts, m) for m, width in encoder.facts.dimensions.items() if width and m != "text"]


def digest_of(model: Model) -> str:
    """Name a model by everything that decides on its vectors."""
    digest = hashlib.sha256(json.dumps(model.facts.to_json(), sort_keys=True).encode())
    for name, values in sorted({**model.method.state(), **model.scaling.state()}.items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(values.detach().cpu().numpy()).tobytes())
    return digest.hexdigest()


def near(path: str | Path, folder: Path) -> str:
    """Write a path down: relative to the folder where it is below it, else absolute."""
    whole = os.path.abspath(path)  # noqa: PTH100 - keeps links as they are
    relative = os.path.relpath(whole, folder.absolute())
    return whole if relative.startswith("..") else relative
