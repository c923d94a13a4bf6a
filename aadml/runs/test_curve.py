"""Scores of the test clips during training, used in figures and never for selection.

Training has no test clips and receives none of these scores. The scores are written to the log on disk with a separate
prefix. A resumed run does not read these scores from the log.
"""

from dataclasses import dataclass

from aadml.comparison.clips import Clips
from aadml.methods.training.session import EpochWeights, Record
from aadml.retrieval.evaluation import mean_average_precision

PREFIX = "diagnosis test "
"""Prefix of the names of test scores."""


@dataclass(frozen=True)
class Diagnosis:
    """Function that scores the test clips with the weights of an epoch.

    Attributes:
        test: test clips, scaled like the training clips.
        every: epochs between two evaluations. The last epoch of a stage is always evaluated.
    """

    test: Clips
    every: int

    def __call__(self, epoch: int, weights: EpochWeights) -> Record:
        """Return the MAP of each direction after `epoch`, the mean of these MAPs, and the loss.

        `epoch` is counted from 1. A loss that is undefined is left out. The record is empty after an epoch without
        an evaluation.
        """
        if epoch % self.every and not weights.last:
            return {}
        embeddings = weights.learner.embed_clips(self.test)
        scores = {f"map {'-'.join(way)}": mean_average_precision(embeddings, way) for way in embeddings.directions()}
        scores |= {"map_mean": sum(scores.values()) / len(scores)}
        loss = weights.held_out_loss(self.test)
        return {f"{PREFIX}{key}": value for key, value in (scores | ({} if loss is None else {"loss": loss})).items()}


def without_diagnosis(record: Record) -> Record:
    """Return a record without the scores of the test clips."""
    return {key: value for key, value in record.items() if not key.startswith(PREFIX)}
