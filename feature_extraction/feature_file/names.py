"""What a modality may be called, and in which order modalities stand."""

import re
from collections.abc import Iterable

from aadml.feature_extraction.ground.errors import InputError

MODALITIES = ("audio", "visual", "text")
"""The usual modalities; a file may have further ones, `flow` or `pose` say."""

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_LENGTH = 40
_TAKEN = (
    *("id", "label", "labels", "split", "class_names", "column", "fitted", "fingerprint", "shard", "shard_rows"),
    *("modalities", "similarity", "all", "any", "both", "clip", "media", "ids", "present"),
)
"""What is something else in a feature file, or wherever modalities are named."""
_ENDINGS = ("_offsets", "_present", "_row", "_sequence", "_times")
"""Endings of the arrays that stand beside those of a modality."""


def check_modality(name: str, place: str) -> None:
    """Refuse what no modality can be called.

    Args:
        name: of a modality: small letters, digits and underscores.
        place: what the message shall name.

    Raises:
        InputError: another form, or a word that means something else.
    """
    if not is_modality(name):
        raise InputError(
            f"{place}: '{name[:_LENGTH]}' cannot be the name of a modality; take audio, visual, text or another word "
            "of small letters, digits and underscores, as flow or hand_pose"
        )


def is_modality(name: str) -> bool:
    """Tell whether a modality can be called so."""
    fits = len(name) <= _LENGTH and _NAME.fullmatch(name) is not None
    return fits and name not in _TAKEN and not name.endswith(_ENDINGS)


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Order modalities: audio, visual and text first, further ones by their names."""
    found = set(names)
    return (*(name for name in MODALITIES if name in found), *sorted(found.difference(MODALITIES)))
