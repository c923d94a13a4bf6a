"""Cleaning of captions, as in two papers on audio-text retrieval.

Reference: Mei et al., On metric learning for audio-text cross-modal retrieval, Interspeech 2022, https://arxiv.org/abs/2203.15537
Reference: Xie et al., On negative sampling for contrastive audio-text retrieval, ICASSP 2023, https://doi.org/10.1109/ICASSP49357.2023.10095319
"""

import re
import string
from collections.abc import Callable

_SPACE_BEFORE = re.compile(r'\s([,.!?;:"](?:\s|$))')
_SENTENCE_MARKS = re.compile(r'[,.!?;:"]')
_PUNCTUATION = str.maketrans({mark: " " for mark in string.punctuation if mark != "-"})


def clean_mei(caption: str) -> str:
    """Clean a caption as Mei et al. (2022): lower case, and a space for each sentence mark and each double space.

    White space before a sentence mark is removed first if white space or the end follows the mark. Apostrophes, hyphens
    and brackets are kept. A second cleaning may shorten longer runs of spaces, but does not change words.
    """
    text = _SPACE_BEFORE.sub(r"\1", caption.lower())
    return _SENTENCE_MARKS.sub(" ", text).replace("  ", " ").strip()


def clean_xie(caption: str) -> str:
    """Clean a caption as Xie et al. (2023): lower case, spaces for ASCII punctuation except hyphens, merged spaces.

    Named entities and typing errors are not changed, although the authors replaced them.
    """
    return " ".join(caption.lower().translate(_PUNCTUATION).split())


def clean_spaces(caption: str) -> str:
    """Replace runs of white space by one space, and remove white space at the ends."""
    return " ".join(caption.split())


CLEANINGS: dict[str, Callable[[str], str]] = {"mei": clean_mei, "xie": clean_xie, "spaces": clean_spaces}
