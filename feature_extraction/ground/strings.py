"""Text from HDF5 and NumPy, and lists of names."""

from collections.abc import Callable, Sequence

Note = Callable[[str], None]
"""Function that is called with notes for the user."""


def as_text(value: object) -> str:
    """Return a value as text. Bytes are decoded as UTF-8, with U+FFFD for invalid bytes."""
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else str(value)


def listed(names: Sequence[str] | str | None) -> tuple[str, ...]:
    """Split one or several texts at commas into a flat tuple of stripped, nonempty names; () for None."""
    texts = (names,) if isinstance(names, str) else names or ()
    return tuple(name for text in texts for part in str(text).split(",") if (name := part.strip()))
