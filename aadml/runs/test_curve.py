"""What is measured on the test clips while a training goes on: for figures of epochs, never for a choice.

The training has no test clips and gets nothing back from the one who looks on: the figures go from here into the log on
disk, each under a name that says what it is, and are left out where the log is read to continue.
"""

from dataclasses import dataclass

from aadml.comparison.clips import Clips
from aadml.methods.training.session import EpochWeights, Record
from aadml.retrieval import mean_average_precision

PREFIX = "diagnosis test "
"""Begins the name of every figure of a diagnosis."""


@dataclass(frozen=True)
class Diagnosis:
    """Scores of the test clips with the weights of an epoch.

    Attributes:
        test: scaled as the training clips are.
        every: epochs between two diagnoses; the last epoch of a stage is always one.
    """

    test: Clips
    every: int

    def __call__(self, epoch: int, weights: EpochWeights) -> Record:
        """Measure after `epoch` (from 1): MAP of every direction, their mean, and the loss where there is one."""
        if epoch % self.every and not weights.last:
            return {}
        embeddings = weights.learner.embed_clips(self.test)
        scores = {f"map {'-'.join(one)}": mean_average_precision(embeddings, one) for one in embeddings.directions()}
        scores |= {"map_mean": sum(scores.values()) / len(scores)}
        loss = weights.held_out_loss(self.test)
        return {f"{PREFIX}{key}": value for key, value in (scores | ({} if loss is None else {"loss": loss})).items()}


def without_diagnosis(record: Record) -> Record:
    """Leave out the figures of a diagnosis."""
    return {key: value for key, value in record.items() if not key.startswith(PREFIX)}
