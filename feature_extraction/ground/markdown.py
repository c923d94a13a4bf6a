"""Text for Markdown: shown as it is, never obeyed."""

import re

_OBEYED = re.compile(r"\||\\(?=[!-/:-@\[-`{-~]|$)|<(?=[A-Za-z/!?])|&(?=#?\w+;)")
"""The end of a cell, an escape, a tag, an entity; "p < 0.001" stays as it is."""


def one_line(text: str) -> str:
    """Write any text on one line of Markdown, or into a cell of a table."""
    return _OBEYED.sub(r"\\\g<0>", " ".join(text.split()))
