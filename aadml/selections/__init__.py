"""SELECTIONS: which anchors, positives and negatives of a comparison count, by name."""

from collections.abc import Callable

from aadml.comparison import Comparison
from aadml.selections.chance import random_negative
from aadml.selections.guided import audio_based_easy, audio_based_hard, text_based_easy, text_based_hard
from aadml.selections.hardest import batch_hard, hardest
from aadml.selections.pairs import one_pair_a_class
from aadml.selections.semi_hard import semi_hard, semi_hard_two_sided
from aadml.selections.whole import everything

Selection = Callable[..., Comparison]
"""A function `(comparison, generator, *, options) -> Comparison` that narrows masks, on detached scores."""

SELECTIONS: dict[str, Selection] = {
    "all": everything,
    "one-pair-a-class": one_pair_a_class,
    "hardest": hardest,
    "batch-hard": batch_hard,
    "semi-hard": semi_hard,
    "semi-hard-two-sided": semi_hard_two_sided,
    "random": random_negative,
    "text-based-hard": text_based_hard,
    "text-based-easy": text_based_easy,
    "audio-based-hard": audio_based_hard,
    "audio-based-easy": audio_based_easy,
}
