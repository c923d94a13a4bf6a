"""Validation scores of audio-text retrieval: recall in both directions, with several captions per clip."""

from dataclasses import replace
from typing import Literal

from aadml.comparison.embeddings import Embeddings
from aadml.retrieval.evaluation import evaluate


def recall_sums(embeddings: Embeddings, reading: Literal["text-audio", "both"]) -> dict[str, float]:
    """Compute the recall sum and the MAP of each direction.

    The recall sum is R@1 + R@5 + R@10. R@k is a hit rate, so the sum of a direction is between 0 and 3. Cutoffs k
    above the number of clips are omitted. The sound of a clip is ranked once for any number of captions.

    Reference: Mei et al., On metric learning for audio-text cross-modal retrieval, Interspeech 2022, https://arxiv.org/abs/2203.15537

    Args:
        embeddings: `audio` and `text`, with the clip as label.
        reading: directions that count in "recall_sum": "text-audio" (the released code of Mei et al.) or "both".

    Returns:
        "recall_sum", and "recall_sum DIRECTION" and "map DIRECTION" for each direction, such as "text-audio".
    """
    clips = int(embeddings.labels.unique().numel())
    cutoffs = tuple(k for k in (1, 5, 10) if k <= clips)
    evaluation = evaluate(replace(embeddings, once=("audio",)), cutoffs=cutoffs, split="valid")
    sums = {result.name: float(result.curves.at(cutoffs).hit_rate.sum()) for result in evaluation.directions}
    chosen = sums["text-audio"] if reading == "text-audio" else sum(sums.values())
    scores = {"recall_sum": chosen} | {f"recall_sum {name}": value for name, value in sums.items()}
    return scores | {f"map {result.name}": result.map for result in evaluation.directions}
