"""Under which names files of other people have the columns beside features."""

from collections.abc import Container

PLURALS = {"label": "labels", "id": "ids", "split": "splits"}
"""Column -> how many people call it."""


def written_as(column: str, keys: Container[str]) -> str:
    """Give the key of a column: its name, or its plural where a file has that alone.

    Args:
        column: "label", "id", "split", or any other name, which is its own key.
        keys: of the file.
    """
    plural = PLURALS.get(column, column)
    return plural if plural in keys and column not in keys else column
