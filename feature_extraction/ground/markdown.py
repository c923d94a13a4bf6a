"""Escaping of text for Markdown."""

import re

from aadml.feature_extraction.ground.terminal import escaped

_MARKUP = re.compile(r"\||\\(?=[!-/:-@\[-`{-~]|$)|<(?=[A-Za-z/!?])|&(?=#?\w+;)|\](?=\()")
"""Characters that begin an escape, a tag or an entity, or end a table cell or the text of a link.

"p < 0.001" is left unchanged.
"""


def one_line(text: str) -> str:
    """Return text for one line or one table cell of Markdown.

    White space is collapsed, and `_MARKUP` and control characters are escaped.
    """
    return inline(text.strip())


def inline(text: str) -> str:
    """Return text as `one_line` does, but keep a space at the start and at the end."""
    collapsed = re.sub(r"\s+", " ", text)
    return escaped(_MARKUP.sub(r"\\\g<0>", collapsed)).encode("utf-8", "backslashreplace").decode()
