"""Validation scores of audio-text retrieval: recall in both directions, with several captions per clip."""

from dataclasses import replace
from typing import Literal

from aadml.comparison.embeddings import Embeddings
from aadml.retrieval.evaluation import evaluate


def recall_sums(embeddings: Embeddings, reading: Literal["text-audio", "both"]) -> dict[str, float]:
    """Compute recall sums R@1 + R@5 + R@10 (hit rates, 0..3 per direction) and the MAP of each direction.

    The sound of a clip is ranked once for any number of captions. Cutoffs above the number of clips are omitted.

    Reference: Mei et al., On metric learning for audio-text cross-modal retrieval, Interspeech 2022, https://arxiv.org/abs/2203.15537

    Args:
        embeddings: `audio` and `text`, with the clip as label.
        reading: directions of "recall_sum": "text-audio" (the released code of Mei et al.) or "both".

    Returns:
        "recall_sum", and the sum and MAP of each direction.
    """
    clips = int(embeddings.labels.unique().numel())
    cutoffs = tuple(k for k in (1, 5, 10) if k <= clips)
    evaluation = evaluate(replace(embeddings, once=("audio",)), cutoffs=cutoffs, split="valid")
    sums = {result.name: float(result.curves.at(cutoffs).hit_rate.sum()) for result in evaluation.directions}
    chosen = sums["text-audio"] if reading == "text-audio" else sum(sums.values())
    scores = {"recall_sum": chosen} | {f"recall_sum {name}": value for name, value in sums.items()}
    return scores | {f"map {result.name}": result.map for result in evaluation.directions}
