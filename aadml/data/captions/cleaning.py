"""Cleaning of captions, as the papers on audio-text retrieval do it."""

import re
import string
from collections.abc import Callable, Mapping
from typing import Any

from aadml.feature_extraction.ground.errors import InputError

_SPACE_BEFORE = re.compile(r'\s([,.!?;:"](?:\s|$))')
_SENTENCE_MARKS = re.compile(r'[,.!?;:"]')
_PUNCTUATION = str.maketrans({mark: " " for mark in string.punctuation if mark != "-"})
_NLTK_NEEDS = "punkt_tab, averaged_perceptron_tagger_eng, maxent_ne_chunker_tab, words"


def clean_mei(caption: str) -> str:
    """Clean as Mei et al. (2022): lower case, marks of sentences become spaces, double spaces are halved once.

    Apostrophes, hyphens and brackets stay. Cleaning twice may halve spaces once more; the words stay the same.
    """
    text = _SPACE_BEFORE.sub(r"\1", caption.lower())
    return _SENTENCE_MARKS.sub(" ", text).replace("  ", " ").strip()


def clean_xie(caption: str, *, spelling: Mapping[str, str] | None = None, named_entities: bool = False) -> str:
    """Clean as Xie et al. (2022): lower case, all ASCII punctuation but the hyphen becomes a space, single spaces.

    Args:
        caption: as written.
        spelling: word -> its right spelling; the authors mended typing errors by hand, their list is not published.
        named_entities: put "ne" in the place of names, which needs NLTK and its models.

    Returns:
        The cleaned caption; cleaning it again changes nothing.
    """
    text = replace_named_entities(caption) if named_entities else caption
    words = text.lower().translate(_PUNCTUATION).split()
    return " ".join(word if spelling is None else spelling.get(word, word) for word in words)


def clean_spaces(caption: str) -> str:
    """Leave the words as written; runs of white space become one space."""
    return " ".join(caption.split())


CLEANINGS: dict[str, Callable[[str], str]] = {"mei": clean_mei, "xie": clean_xie, "spaces": clean_spaces}


def replace_named_entities(caption: str) -> str:
    """Put "NE" in the place of every named entity that NLTK's chunker finds.

    Raises:
        InputError: NLTK or one of its models is not there; the message says how to get them.
    """
    try:
        import nltk  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError as error:
        raise InputError(
            f"named entities need NLTK (pip install nltk) and its models {_NLTK_NEEDS} (python -m nltk.downloader ...)"
        ) from error
    try:
        tree: Any = nltk.ne_chunk(nltk.pos_tag(nltk.word_tokenize(caption)), binary=True)
    except LookupError as error:
        models = _NLTK_NEEDS.replace(",", "")
        raise InputError(f"named entities need NLTK's models: python -m nltk.downloader {models}") from error
    return " ".join("NE" if hasattr(part, "label") else part[0] for part in tree)
