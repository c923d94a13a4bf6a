"""Negatives chosen by similarity within one modality: text-based and audio-based strategies (Xie et al., ICASSP 2023).

If text j resembles text i, the audio of j is also a hard negative of audio i. Both directions therefore select the same
negatives.

Reference: Xie et al., On negative sampling for contrastive audio-text retrieval, ICASSP 2023, https://doi.org/10.1109/ICASSP49357.2023.10095319
"""

import torch

from aadml.comparison import Comparison
from aadml.comparison.row_choice import lowest
from aadml.feature_extraction.ground.errors import InputError


def text_based_hard(comparison: Comparison, generator: torch.Generator) -> Comparison:
    """Select the negative whose text is most like the anchor's: argmax_j T_ij.

    Args:
        comparison: with `guides["text"]`, (a, c) similarities of the items' texts.
        generator: not used.

    Raises:
        InputError: the comparison does not have this guide.
    """
    return _guided(comparison, "text", sign=-1)


def text_based_easy(comparison: Comparison, generator: torch.Generator) -> Comparison:
    """Select the negative whose text is least like the anchor's: argmin_j T_ij.

    Args:
        comparison: with `guides["text"]`, (a, c) similarities of the items' texts.
        generator: not used.

    Raises:
        InputError: the comparison does not have this guide.
    """
    return _guided(comparison, "text", sign=1)


def audio_based_hard(comparison: Comparison, generator: torch.Generator) -> Comparison:
    """Select the negative whose audio is most like the anchor's: argmax_k A_ik.

    Args:
        comparison: with `guides["audio"]`, (a, c) similarities of the items' audio.
        generator: not used.

    Raises:
        InputError: the comparison does not have this guide.
    """
    return _guided(comparison, "audio", sign=-1)


def audio_based_easy(comparison: Comparison, generator: torch.Generator) -> Comparison:
    """Select the negative whose audio is least like the anchor's: argmin_k A_ik.

    Args:
        comparison: with `guides["audio"]`, (a, c) similarities of the items' audio.
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
