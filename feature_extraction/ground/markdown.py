"""Escaping of text for Markdown."""

import re

_MARKUP = re.compile(r"\||\\(?=[!-/:-@\[-`{-~]|$)|<(?=[A-Za-z/!?])|&(?=#?\w+;)")
"""Characters that begin an escape, a tag or an entity, or end a table cell; "p < 0.001" is left unchanged."""


def one_line(text: str) -> str:
    """Return text for one line or one table cell of Markdown: white space is collapsed, and `_MARKUP` is escaped."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(text.split()))
