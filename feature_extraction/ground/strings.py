"""Text as HDF5 and NumPy hand it out, and names as people write them."""

from collections.abc import Sequence


def as_text(value: object) -> str:
    """Give bytes, or any other value, as text; what is not UTF-8 is replaced."""
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else str(value)


def listed(names: Sequence[str] | str | None) -> tuple[str, ...]:
    """Give names one by one, of a list or of text with commas; None is none."""
    given = (names,) if isinstance(names, str) else names or ()
    return tuple(name for one in given for part in str(one).split(",") if (name := part.strip()))
