"""Hostile texts, and tags and text of HTML."""

import re
from html import unescape
from html.parser import HTMLParser

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    '" onmouseover="alert(3)',
    "$\\frac{1}$ & $x_",
    "_hidden \u2028 line",
    "<!-- --> ]]> {{7*7}}",
    "\u202eright to left",
    "漢字 🦜",
)


class Reader(HTMLParser):
    """Tags with their attributes, and all text."""

    def __init__(self):
        super().__init__()
        self.tags, self.words = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words.append(data)


def read(html):
    reader = Reader()
    reader.feed(html)
    reader.close()
    return reader.tags, "".join(reader.words)


def words(html):
    """The texts between tags, each on a line."""
    return "\n".join(text for part in re.split(r"<[^>]*>", html) if (text := unescape(part).strip()))
