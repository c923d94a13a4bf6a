"""Compilation of metric losses in training."""

from aadml.feature_extraction.ground.errors import InputError
from aadml.losses.kernels.generated_negatives import GenerativeLoss
from aadml.methods.training.learner import Learner
from aadml.methods.training.settings import Training
from aadml.objective.objective import Objective


def compiled_objectives(learner: Learner, settings: Training) -> list[Objective]:
    """Return the objectives with losses to compile; empty if `training.compile` is false.

    Raises:
        InputError: with `training.compile`, the learner has no metric loss, or a metric loss has a generator.
    """
    if not settings.compile:
        return []
    objectives = [module for module in learner.modules() if isinstance(module, Objective)]
    if not objectives:
        raise InputError("training.compile is true, but this method has no metric loss; set training.compile to false")
    if any(isinstance(loss, GenerativeLoss) for objective in objectives for loss in objective.losses):
        raise InputError(
            "training.compile is true, but a loss with a generator cannot be compiled; set training.compile to false"
        )
    return objectives
