"""What a long training will cost in its metric loss, told before it begins."""

import math
from typing import Any

from aadml.methods.label_space_learner import LabelSpaceLearner
from aadml.methods.learned import LearnedMethod
from aadml.methods.method import Method
from aadml.methods.training_warnings import estimate

WORTH_TELLING = 60.0
"""Seconds of metric loss over a whole training from which on it is foretold."""


def forecast(method: Method, clips: int, classes: int) -> str | None:
    """Foretell time and memory of the metric loss of a training, measured on a small step.

    Args:
        method: built, not trained.
        clips: to train on.
        classes: C.

    Returns:
        A sentence, or None where it takes less than a minute or the method has no metric loss of ours.
    """
    learner = method.learner if isinstance(method, LearnedMethod) else None
    if not isinstance(method, LearnedMethod) or not isinstance(learner, LabelSpaceLearner) or not learner.metric_weight:
        return None
    settings, directions = method.settings, learner.objective.directions
    batch = min(settings.batch, clips)
    steps = settings.epochs * math.ceil(clips / batch)
    widest = 2 * batch if any("both" in direction for direction in directions) else batch
    first: Any = next(iter(learner.encoders.values()))
    step = estimate(
        learner.objective.losses[0], widest, classes, classes=classes, features=int(first.predicted.in_features)
    )
    seconds = step.seconds * len(directions) * steps
    if seconds < WORTH_TELLING:
        return None
    return (
        f"the metric loss alone will take about {seconds / 60:.0f} min over {steps:,} steps and "
        f"{step.bytes / 2**20:.0f} MiB (batch {batch}, {len(directions)} directions); the encoders come on top"
    )
