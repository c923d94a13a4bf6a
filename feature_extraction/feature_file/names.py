"""Names of modalities and their order."""

import re
from collections.abc import Iterable

from aadml.feature_extraction.ground.errors import InputError

MODALITIES = ("audio", "visual", "text")
"""The usual modalities; a file may have further modalities, such as `flow` or `pose`."""

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_LENGTH = 40
_TAKEN = (
    *("id", "label", "labels", "split", "class_names", "column", "fitted", "fingerprint", "shard", "shard_rows"),
    *("modalities", "similarity", "all", "any", "both", "clip", "media", "ids", "present"),
)
"""Words with another meaning in a feature file or in options that name modalities."""
_ENDINGS = ("_offsets", "_present", "_row", "_sequence", "_times")
"""Endings of the keys of arrays that accompany the features of a modality."""


def check_modality(name: str, place: str) -> None:
    """Check the name of a modality.

    Args:
        name: word of lowercase letters, digits and single underscores, which begins with a letter.
        place: subject of the error message.

    Raises:
        InputError: `name` is not such a word, is too long, is reserved, or has a reserved ending.
    """
    if not is_modality(name):
        raise InputError(
            f"{place}: '{name[:_LENGTH]}' cannot be the name of a modality; use audio, visual, text or an unreserved "
            f"word of at most {_LENGTH} lowercase letters, digits and underscores, such as flow or hand_pose"
        )


def is_modality(name: str) -> bool:
    """Return whether `name` is a valid name of a modality."""
    fits = len(name) <= _LENGTH and _NAME.fullmatch(name) is not None
    return fits and name not in _TAKEN and not name.endswith(_ENDINGS)


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Return modalities in order: audio, visual and text first, then the others by name."""
    modalities = set(names)
    return (*(name for name in MODALITIES if name in modalities), *sorted(modalities.difference(MODALITIES)))
