"""Estimate of time and memory of a metric loss, before a long training begins."""

import math

from aadml.methods.method import Method
from aadml.methods.step_cost import estimate

WORTH_TELLING = 60.0
"""Seconds of metric loss over a training above which an estimate is reported."""


def forecast(method: Method, clips: int, classes: int) -> str | None:
    """Estimate time and memory of the metric loss of a training by a small step.

    Args:
        method: untrained method.
        clips: number of training clips.
        classes: number of classes C.

    Returns:
        A sentence; None where the loss takes less than a minute or the method has no metric loss.
    """
    metric = method.metric_loss()
    if metric is None:
        return None
    batch, directions = min(metric.batch, clips), metric.directions
    steps = metric.epochs * math.ceil(clips / batch)
    widest = 2 * batch if any("both" in direction for direction in directions) else batch
    step = estimate(metric.loss, widest, classes, classes=classes, features=metric.features)
    seconds = step.seconds * len(directions) * steps
    if seconds < WORTH_TELLING:
        return None
    return (
        f"the metric loss alone will take about {seconds / 60:.0f} min over {steps:,} steps and "
        f"{step.bytes / 2**20:.0f} MiB (batch {batch}, {len(directions)} directions); the encoders come on top"
    )
