"""Text as HDF5 and NumPy hand it out."""


def as_text(value: object) -> str:
    """Give bytes, or any other value, as text; what is not UTF-8 is replaced."""
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else str(value)
