"""Encoders of the items and queries of an index: a model, or extractors without a model."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from typing import cast

import numpy as np
import torch
from torch import Tensor

from aadml.comparison.features import Features, Modality
from aadml.feature_extraction.backbones import Extractor, extractor
from aadml.feature_extraction.feature_file.names import MODALITIES
from aadml.feature_extraction.ground.consent import trusting
from aadml.feature_extraction.ground.errors import DamagedFileError, InputError
from aadml.feature_extraction.ground.json_values import JsonObject, nested
from aadml.feature_extraction.ground.options import OptionValues
from aadml.feature_extraction.hub.snapshot import require_download_consent
from aadml.methods.inputs import SCALINGS, Inputs, Scaling, load_scaling
from aadml.methods.towers.options import FineTuning
from aadml.methods.training.settings import Training
from aadml.methods.untrained.zero_shot import SharedSpace, shared_space
from aadml.model.facts import Facts, MethodFacts, fingerprint
from aadml.model.media import extract_items, extractor_of, media_features
from aadml.model.model import Model
from aadml.retrieval.frame_word import FRAME_WORD
from aadml.runs.loading import load
from aadml.search.facts import ModelReference, PlainRecord, near


@dataclass(frozen=True)
class ModelEncoder:
    """Trained model, which compares queries and items of all its modalities with each other.

    Attributes:
        model: the model.
        built: query extractors loaded so far; both parts of a key are the modality of the query.
    """

    model: Model
    built: dict[tuple[Modality, Modality], Extractor] = field(default_factory=dict, repr=False, compare=False)

    @property
    def facts(self) -> Facts:
        """Facts of the model: modalities, widths, extractors."""
        return self.model.facts

    @property
    def similarity(self) -> str:
        """Similarity of the vectors, by name."""
        return self.model.method.similarity

    def can_query(self, modality: Modality, to: Modality) -> bool:
        """Return whether queries of `modality` can be compared with items of `to`."""
        return {modality, to} <= set(self.model.modalities)

    def embed(self, features: Features, modality: Modality) -> Tensor:
        """Embed the features (n, d) of n items of one modality, and return the vectors (n, e) in float32."""
        return self.model.embed_features(features, modality)

    def record(self, folder: Path) -> ModelReference:
        """Return the record of the encoder for an index in `folder`.

        Raises:
            InputError: the model has no folder.
        """
        if self.model.folder is None:
            raise InputError(
                "index: the model is only in memory, but an index refers to a saved model; save the model with "
                'model.save("NAME"), and pass model="NAME"'
            )
        return ModelReference(path=near(self.model.folder, folder), digest=digest_of(self.model))


@dataclass(frozen=True)
class PlainEncoder:
    """Extractors without a model.

    Features of the towers of one pretrained model (CLAP, CLIP, SigLIP, PE-AV) are in one space. The modalities of
    these towers are compared with each other, and their features are not scaled. Text can be a query in this space
    even if no item has text. All other features are scaled, and their modalities are searched separately.

    Attributes:
        facts: extractors and their widths.
        scaling: scaling of the features, fitted when the index was built. Vectors of later items are scaled
            equally.
        similarity: similarity of the vectors, by name.
        built: query extractors loaded so far, by modality of the query and of the items.
    """

    facts: Facts
    scaling: Scaling
    similarity: str = "cosine"
    built: dict[tuple[Modality, Modality], Extractor] = field(default_factory=dict, repr=False, compare=False)

    def can_query(self, modality: Modality, to: Modality) -> bool:
        """Return whether queries of `modality` can be compared with items of `to`."""
        if to not in self.facts.modalities:
            return False
        space = self.space(to)
        shared = space is not None and modality in space.modalities
        return modality == to or (shared and (modality not in self.facts.modalities or self.space(modality) == space))

    def space(self, modality: Modality) -> SharedSpace | None:
        """Return the space of the vectors of a modality; None if no tower computes the vectors."""
        return shared_space(self.facts.features.get(modality) or {}, modality)

    def other_tower(self, modality: Modality, to: Modality) -> Extractor:
        """Build the tower of a modality that no item has, from the pretrained model of the features of `to`.

        Raises:
            InputError: the pretrained model is not found or needs consent to its download, or the weights of the
                model have changed.
        """
        space = self.space(to)
        source = nested(self.facts.features[to], "source")
        require_download_consent(source.get("model"), source.get("revision"))
        built = extractor(f"hf-{modality}", modality, dict(source))
        if space is None or built.parameters.get("weights") != space.weights:
            raise InputError(
                f"{modality}: the weights of {source.get('model')} differ from the weights of this index; "
                "build the index again"
            )
        return built

    def embed(self, features: Features, modality: Modality) -> Tensor:
        """Scale the features (n, d) of n items of one modality, and return the vectors (n, d) in float32.

        Features in a shared space are returned without scaling.
        """
        if modality not in self.facts.modalities or self.space(modality) is not None:
            assert isinstance(features, Tensor)
            return features.float()
        return cast(Tensor, self.scaling.features(features, modality))

    def record(self, _: Path) -> PlainRecord:
        """Return the record of the encoder for an index."""
        state = {name: values.tolist() for name, values in self.scaling.state().items()}
        return PlainRecord(features=self.facts.features, dimensions=self.facts.dimensions, scaling=state)


IndexEncoder = ModelEncoder | PlainEncoder
"""Encoder of the items of an index and of its queries."""


def load_encoder(
    record: ModelReference | PlainRecord, folder: Path, model: Model | str | Path | None = None
) -> IndexEncoder:
    """Load the encoder of an index.

    Args:
        record: record of the encoder in the index.
        folder: folder of the index.
        model: the model of the index, or the current path of a model that was moved; None for the recorded path.

    Raises:
        InputError: a model that cannot be loaded or is not the model of the index, a model for an index that was
            built without a model, or a damaged record.
    """
    if isinstance(record, PlainRecord):
        if model is not None:
            raise InputError(
                "--model: this index was built without a model; omit --model, or build another index with the model"
            )
        for name, width in record.dimensions.items():
            if any(len(record.scaling.get(f"{part}.{name}", ())) != width for part in ("shift", "scale")):
                raise DamagedFileError(
                    f"{folder}: the scaling of the {name} features of the index is damaged; build the index again"
                )
        state = {name: torch.tensor(values) for name, values in record.scaling.items()}
        return plain_encoder(record.features, record.dimensions, load_scaling(state, Inputs()))
    place = folder.absolute() / record.path
    try:
        loaded = model if isinstance(model, Model) else load(model or place)
    except InputError as error:
        hint = f"the index uses the model {place}; pass --model if the model was moved"
        raise type(error)(f"{error} ({hint})") from error
    if digest_of(loaded) != record.digest:
        raise InputError(
            f"{model or place} is not the model of this index; pass the model of the index, or build another index"
        )
    return ModelEncoder(loaded)


def model_encoder(model: Model | str | Path) -> ModelEncoder:
    """Return the encoder of a model, or of a run or model folder.

    Raises:
        InputError: the model cannot be loaded, or compares sequences.
    """
    loaded = model if isinstance(model, Model) else load(model)
    if loaded.method.similarity == FRAME_WORD:
        raise InputError(
            "--model: this model compares frames with words, but an index has one vector per clip; pass another model"
        )
    return ModelEncoder(loaded)


def fitted_encoder(features: Mapping[Modality, Tensor], origins: Mapping[str, JsonObject]) -> PlainEncoder:
    """Return an encoder without a model, with the scaling fitted on the features of the items.

    Features that are equal in all items are not scaled, because subtracting their mean would remove them.

    Args:
        features: modality -> features (n, d) of the n items that have the modality.
        origins: modality -> provenance of its features, if known.
    """
    kinds = {m: "none" if torch.equal(f, f[:1].expand_as(f)) else "standard" for m, f in features.items()}
    statistics = {m: SCALINGS[kinds[m]](values) for m, values in features.items()}
    shift, scale = ({m: values[n] for m, values in statistics.items()} for n in (0, 1))
    fingerprints = {m: fingerprint(origins.get(m, {})) for m in features}
    return plain_encoder(fingerprints, {m: len(s) for m, s in shift.items()}, Scaling(shift, scale, Inputs()))


def plain_encoder(features: Mapping[str, JsonObject], dimensions: Mapping[str, int], scaling: Scaling) -> PlainEncoder:
    """Return an encoder without a model.

    Args:
        features: modality -> fingerprint of the extractor.
        dimensions: modality -> width of the features.
        scaling: fitted scaling of the features.
    """
    facts = Facts(
        label="plain features", method=MethodFacts("", OptionValues()), training=Training(), inputs=Inputs(),
        dimensions={m: dimensions[m] for m in MODALITIES if m in dimensions}, class_names=(), clips=0, seed=0,
        features={m: features[m] for m in MODALITIES if m in features},
    )  # fmt: skip
    return PlainEncoder(facts, scaling)


def embed_media(encoder: IndexEncoder, modality: Modality, paths: Sequence[str], to: Modality) -> Tensor:
    """Embed n media files, or n captions, as queries for items of `to`, and return the vectors (n, e).

    Args:
        encoder: encoder of the index.
        modality: modality of the queries.
        paths: n paths of media files; n captions if the modality is text.
        to: modality of the items.

    Raises:
        InputError: a file cannot be read, or an extractor cannot be built.
    """
    if isinstance(encoder, PlainEncoder) and modality not in encoder.facts.modalities:
        return extract_items(_built(encoder, (modality, to), partial(encoder.other_tower, modality, to)), paths)
    with trusting(_is_trusted(encoder)):
        build = partial(_built, encoder, (modality, modality), partial(extractor_of, encoder.facts, modality))
        features = media_features(encoder.facts, modality, paths, build)
    return encoder.embed(features, modality)


_building = Lock()


def _built(encoder: IndexEncoder, key: tuple[Modality, Modality], build: Callable[[], Extractor]) -> Extractor:
    """Return an extractor of queries, which is built for its first query."""
    with _building:  # two simultaneous queries load a network once
        if key not in encoder.built:
            encoder.built[key] = build()
    return encoder.built[key]


def extractors_of(
    encoder: IndexEncoder, *, texts: bool, built: Mapping[Modality, Extractor] | None = None
) -> list[Extractor]:
    """Return the extractors of an encoder's features. Extractors that are not in `built` are built.

    The text extractor is included only with `texts`, and only if the facts record a text extractor.
    """
    facts = encoder.facts
    with trusting(_is_trusted(encoder)):
        modalities = [
            m for m, width in facts.dimensions.items() if width and (m != "text" or (texts and facts.features.get(m)))
        ]
        return [(built or {}).get(m) or extractor_of(facts, m) for m in modalities]


def _is_trusted(encoder: IndexEncoder) -> bool:
    return isinstance(encoder, ModelEncoder) and encoder.model.trusted


_REMOVED: Mapping[str, JsonObject] = {"training": Training.removed_options, "towers": {"workers": 0}}
_ADDED: Mapping[str, JsonObject] = {
    "training": {"warmup": Training.warmup, "compile": Training.compile},
    "towers": {name: value for name, value in asdict(FineTuning()).items() if name != "blocks"},
}
"""Options that were added to models after the first indexes were built, at their defaults."""


def digest_of(model: Model) -> str:
    """Return the SHA-256 of all parts of a model that determine its vectors.

    Options that later versions removed are included with fixed values. Options that later versions added are
    included only with values other than their defaults. Models therefore match indexes that earlier versions built.
    """
    facts = dict(model.facts.to_json())
    for key in facts.keys() & _REMOVED.keys():
        options = {n: v for n, v in nested(facts, key).items() if n not in _ADDED[key] or v != _ADDED[key][n]}
        facts[key] = {**options, **_REMOVED[key]}
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name, values in sorted({**model.method.state(), **model.scaling.state()}.items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(values.detach().cpu().numpy()).tobytes())
    return digest.hexdigest()
