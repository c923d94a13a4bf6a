"""Queries: files, features or words as vectors that can be compared with the items of an index."""

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from aadml.comparison.arrays import ArrayLike, to_rows
from aadml.comparison.features import Modality
from aadml.feature_extraction.feature_file import MODALITIES
from aadml.feature_extraction.ground.errors import InputError
from aadml.search.encoders import IndexEncoder, PlainEncoder, embed_media
from aadml.search.sources import may_have

Question = str | Path | ArrayLike
"""A file, words, or features (d,)."""


def question(encoder: IndexEncoder, given: Mapping[str, Question | None], to: Modality) -> dict[Modality, Tensor]:
    """Embed a question.

    Args:
        encoder: of the index.
        given: `audio`, `visual`, `clip` and `text`, of which one is not None.
        to: modality of the items.

    Returns:
        One vector (1, e) of each modality that it asks with: of a clip, of all that it has and that can be compared.

    Raises:
        InputError: none or several given, a file that cannot be read, or what cannot be compared.
    """
    named = {name: value for name, value in given.items() if value is not None}
    if len(named) != 1:
        raise InputError(f"ask with one of audio, visual, clip, text; {', '.join(named) or 'none'} given")
    (kind, value), found, reasons = next(iter(named.items())), dict[Modality, Tensor](), list[str]()
    if kind != "clip":
        asking: Modality = kind
        check(encoder, asking, to)
        return {asking: _embedded(encoder, asking, value)}
    for modality in MODALITIES[:2]:
        if encoder.may_ask(modality, to) and may_have(str(value), modality):
            try:
                found[modality] = _embedded(encoder, modality, value)
            except InputError as error:
                reasons.append(str(error))
    if not found:
        raise InputError(reasons[0] if reasons else f"{value}: has nothing that can be compared with {to}")
    return found


def check(encoder: IndexEncoder, modality: Modality, to: Modality) -> None:
    """Refuse a question that the encoder cannot compare.

    Raises:
        InputError: with what is possible.
    """
    if encoder.may_ask(modality, to):
        return
    if modality == "text":
        raise InputError("--text: the index has no model that reads words; one is trained on sound and captions")
    if isinstance(encoder, PlainEncoder):
        raise InputError(
            f"{modality} to {to}: this index was made without a model, so it compares {modality} with {modality} "
            "alone; build one with --model RUN"
        )
    raise InputError(f"{modality}: the model embeds {', '.join(encoder.facts.modalities)}")


def _embedded(encoder: IndexEncoder, modality: Modality, value: Question) -> Tensor:
    if isinstance(value, str | Path):
        if modality == "text" and not str(value).strip():
            raise InputError("--text: no words given")
        return embed_media(encoder, modality, [str(value)])
    rows, _ = to_rows(value, modality)
    width = encoder.facts.dimensions.get(modality, rows.shape[-1])  # words that no item has: of the items' own space
    if rows.shape != (1, width):
        raise InputError(f"{modality}: features of shape {tuple(rows.shape)} given; one row of {width} is wanted")
    return encoder.embed(rows, modality)
