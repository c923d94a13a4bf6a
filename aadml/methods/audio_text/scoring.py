"""Validation scores of audio-text retrieval: recall of text-to-audio and audio-to-text, five captions a clip."""

from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Modality
from aadml.feature_extraction.ground.errors import InputError
from aadml.retrieval import evaluate

ONCE: tuple[Modality, ...] = ("audio",)
READINGS = ("text-audio", "both")
"""What a recall sum adds up: the released code of Mei et al. takes text-to-audio alone; "both" is the other reading."""


def recall_sums(embeddings: Embeddings, reading: str) -> dict[str, float]:
    """Add up R@1, R@5 and R@10 (hit rates, in 0..3 each way), one row a clip on the audio side.

    Args:
        embeddings: `audio` and `text`, the clip as label.
        reading: which sum is "recall_sum": a key of READINGS.

    Returns:
        "recall_sum", and both directions' sums and MAP.
    """
    if reading not in READINGS:
        raise InputError(f"method.recall: no '{reading}'; there are {', '.join(READINGS)}")
    clips = int(embeddings.labels.unique().numel())
    cutoffs = tuple(k for k in (1, 5, 10) if k <= clips)
    found = evaluate(embeddings, once=ONCE, cutoffs=cutoffs, split="valid")
    sums = {result.name: float(result.curves.at(cutoffs).hit_rate.sum()) for result in found.directions}
    chosen = sums["text-audio"] if reading == "text-audio" else sum(sums.values())
    figures = {"recall_sum": chosen} | {f"recall_sum {name}": value for name, value in sums.items()}
    return figures | {f"map {result.name}": result.map for result in found.directions}
