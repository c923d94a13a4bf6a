"""Negatives chosen by similarity within one modality: text-based and audio-based (Xie et al., ICASSP 2023).

The similarity of two items within a modality does not depend on the direction of retrieval. An item therefore has
the same negative item from audio to text and from text to audio.

Reference: Xie et al., On negative sampling for contrastive audio-text retrieval, ICASSP 2023, https://doi.org/10.1109/ICASSP49357.2023.10095319
"""

import torch

from aadml.comparison import Comparison
from aadml.comparison.row_choice import lowest
from aadml.feature_extraction.ground.errors import InputError


def text_based_hard(comparison: Comparison, generator: torch.Generator) -> Comparison:
    """Select the negative whose text is most like the anchor's: argmax_j T_ij.

    Args:
        comparison: a anchors against c candidates, with the guide T in `guides["text"]`: (a, c) similarities of
            the texts of anchors and candidates.
        generator: not used.

    Raises:
        InputError: the comparison does not have this guide.
    """
    return _guided(comparison, "text", sign=-1)


def text_based_easy(comparison: Comparison, generator: torch.Generator) -> Comparison:
    """Select the negative whose text is least like the anchor's: argmin_j T_ij.

    Args:
        comparison: a anchors against c candidates, with the guide T in `guides["text"]`: (a, c) similarities of
            the texts of anchors and candidates.
        generator: not used.

    Raises:
        InputError: the comparison does not have this guide.
    """
    return _guided(comparison, "text", sign=1)


def audio_based_hard(comparison: Comparison, generator: torch.Generator) -> Comparison:
    """Select the negative whose audio is most like the anchor's: argmax_k A_ik.

    Args:
        comparison: a anchors against c candidates, with the guide A in `guides["audio"]`: (a, c) similarities of
            the audio of anchors and candidates.
        generator: not used.

    Raises:
        InputError: the comparison does not have this guide.
    """
    return _guided(comparison, "audio", sign=-1)


def audio_based_easy(comparison: Comparison, generator: torch.Generator) -> Comparison:
    """Select the negative whose audio is least like the anchor's: argmin_k A_ik.

    Args:
        comparison: a anchors against c candidates, with the guide A in `guides["audio"]`: (a, c) similarities of
            the audio of anchors and candidates.
        generator: not used.

    Raises:
        InputError: the comparison does not have this guide.
    """
    return _guided(comparison, "audio", sign=1)


def _guided(comparison: Comparison, guide: str, *, sign: int) -> Comparison:
    if guide not in comparison.guides:
        available = ", ".join(comparison.guides) or "none"
        raise InputError(
            f"selection: this comparison has no similarities within {guide} (available guides: {available}); choose "
            "another selection"
        )
    return comparison.narrow(negatives=lowest(sign * comparison.guides[guide], comparison.negatives))
