"""Escaping of text for Markdown."""

import re

_MARKUP = re.compile(r"\||\\(?=[!-/:-@\[-`{-~]|$)|<(?=[A-Za-z/!?])|&(?=#?\w+;)")
"""The end of a table cell, an escape, a tag or an entity; "p < 0.001" is left unchanged."""


def one_line(text: str) -> str:
    """Escape text for one line of Markdown or one table cell."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(text.split()))
