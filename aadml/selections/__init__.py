"""SELECTIONS: functions that select anchors, positives and negatives of a comparison, by name."""

from typing import TYPE_CHECKING

from aadml.feature_extraction.ground.registry import Registry

if TYPE_CHECKING:
    from aadml.selections.contract import SelectionFunction

SELECTIONS: Registry["SelectionFunction"] = Registry(
    "selection",
    {
        "all": "aadml.selections.all_pairs:everything",
        "one-pair-a-class": "aadml.selections.pairs:one_pair_a_class",
        "hardest": "aadml.selections.hardest:hardest",
        "batch-hard": "aadml.selections.hardest:batch_hard",
        "semi-hard": "aadml.selections.semi_hard:semi_hard",
        "semi-hard-two-sided": "aadml.selections.semi_hard:semi_hard_two_sided",
        "multi-similarity": "aadml.selections.multi_similarity:multi_similarity",
        "random": "aadml.selections.random_negatives:random_negative",
        "text-based-hard": "aadml.selections.guided:text_based_hard",
        "text-based-easy": "aadml.selections.guided:text_based_easy",
        "audio-based-hard": "aadml.selections.guided:audio_based_hard",
        "audio-based-easy": "aadml.selections.guided:audio_based_easy",
    },
    group="aadml.selections",
    of="aadml.selections.contract:SelectionFunction",
)
"""Functions `(comparison, generator, *, options) -> Comparison` that narrow masks, on detached scores."""
