"""Escaping of text for a terminal."""

import re

_CONTROLS = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udc7f\udd00-\udfff]")
"""Control characters except tab, ends of lines and paragraphs, reordering of letters, and surrogates without a byte."""


def escaped(text: str) -> str:
    r"""Return a line of text with `_CONTROLS` escaped, such as "\\x1b".

    Non-UTF-8 bytes of paths are unchanged, unless several of them together encode a control character.
    """
    for _ in range(2):  # the first pass may join bytes
        text = _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)
        text = text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
    return text
