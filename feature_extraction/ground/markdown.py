"""Escaping of text for Markdown."""

import re

from aadml.feature_extraction.ground.terminal import escaped

_MARKUP = re.compile(r"\||\\(?=[!-/:-@\[-`{-~]|$)|<(?=[A-Za-z/!?])|&(?=#?\w+;)|\](?=\()")
"""Characters that begin an escape, a tag or an entity, or end a table cell or the text of a link.

"p < 0.001" is left unchanged.
"""


def one_line(text: str) -> str:
    """Return a text escaped for one line or one table cell of Markdown.

    White space is collapsed, and removed at both ends. Control characters are escaped. The characters of `_MARKUP`,
    which have a meaning in Markdown, are escaped as well.
    """
    return inline(text.strip())


def inline(text: str) -> str:
    """Return a text with the escapes of `one_line`; white space at the start or the end becomes one space."""
    collapsed = re.sub(r"\s+", " ", text)
    return escaped(_MARKUP.sub(r"\\\g<0>", collapsed)).encode("utf-8", "backslashreplace").decode()
