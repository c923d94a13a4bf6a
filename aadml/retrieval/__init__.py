"""Retrieval: rankings, their metrics with exact ties, significance."""

from aadml.retrieval.evaluation import (
    EXTRA_METRICS,
    evaluate,
    mean_average_precision,
    running_average_precisions,
    score_direction,
)
from aadml.retrieval.results import DirectionResult, Evaluation
from aadml.retrieval.scores import SIMILARITIES, MatrixScores, ScoreSource, score_source

__all__ = [
    "EXTRA_METRICS",
    "SIMILARITIES",
    "DirectionResult",
    "Evaluation",
    "MatrixScores",
    "ScoreSource",
    "evaluate",
    "mean_average_precision",
    "running_average_precisions",
    "score_direction",
    "score_source",
]
