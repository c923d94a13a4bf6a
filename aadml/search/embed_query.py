"""Conversion of queries (files, features or words) to vectors that can be compared with the items of an index."""

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from aadml.comparison.arrays import ArrayLike, to_rows
from aadml.comparison.features import Modality
from aadml.feature_extraction.feature_file.names import MODALITIES
from aadml.feature_extraction.ground.errors import InputError
from aadml.search.encoders import IndexEncoder, PlainEncoder, embed_media
from aadml.search.sources import may_have

QueryInput = str | Path | ArrayLike
"""A file, words, or features (d,)."""


def embed_query(encoder: IndexEncoder, kind: str, value: QueryInput, to: Modality) -> dict[Modality, Tensor]:
    """Convert a query to one vector per modality.

    Args:
        encoder: encoder of the index.
        kind: `audio`, `visual`, `clip` or `text`.
        value: the query.
        to: modality of the items.

    Returns:
        Modality of the query -> vector (1, e). The modalities of a clip are the modalities that can be read from
        its file and compared with the items.

    Raises:
        InputError: the query cannot be read or compared with the items.
    """
    if kind != "clip":
        check(encoder, kind, to)
        return {kind: _embedded(encoder, kind, value, to)}
    vectors, errors = dict[Modality, Tensor](), list[InputError]()
    for modality in MODALITIES[:2]:
        if encoder.can_query(modality, to) and may_have(str(value), modality):
            try:
                vectors[modality] = _embedded(encoder, modality, value, to)
            except InputError as error:
                errors.append(error)
    if errors and not vectors:
        raise errors[0]
    if not vectors:
        raise InputError(
            f"{value} has no modality that can be compared with {to}; pass another file, or search another modality"
        )
    return vectors


def single_query(inputs: Mapping[str, QueryInput | None]) -> tuple[str, QueryInput]:
    """Return the kind and the value of a query. Raise InputError unless exactly one input is not None."""
    passed = {name: value for name, value in inputs.items() if value is not None}
    if len(passed) != 1:
        problem = f"{' and '.join(passed)} were passed together" if passed else "nothing was passed"
        raise InputError(f"query: {problem}; pass exactly one of audio, visual, clip and text")
    ((kind, value),) = passed.items()
    return kind, value


def check(encoder: IndexEncoder, modality: Modality, to: Modality) -> None:
    """Raise InputError if an encoder does not compare queries of `modality` with items of `to`."""
    if encoder.can_query(modality, to):
        return
    if modality == "text":
        raise InputError(
            f"text: this index does not compare words with {to}; build an index with a model that embeds text"
        )
    if isinstance(encoder, PlainEncoder):
        raise InputError(
            f"this index was built without a model that compares {modality} with {to}; build an index with --model RUN"
        )
    known = ", ".join(encoder.facts.modalities)
    raise InputError(
        f"this index does not compare {modality} with {to}, because the model of the index embeds only {known}; "
        "choose from these modalities"
    )


def _embedded(encoder: IndexEncoder, modality: Modality, value: QueryInput, to: Modality) -> Tensor:
    if isinstance(value, str | Path):
        if modality == "text" and not str(value).strip():
            raise InputError("text: no words were passed; pass at least one word")
        return embed_media(encoder, modality, [str(value)], to)
    rows, _ = to_rows(value, modality)
    # a query by text is compared with other modalities if no item has text
    width = encoder.facts.dimensions.get(modality, rows.shape[-1])
    if rows.shape != (1, width):
        raise InputError(f"{modality}: the features have shape {tuple(rows.shape)}; pass one row of {width} values")
    return encoder.embed(rows, modality)
