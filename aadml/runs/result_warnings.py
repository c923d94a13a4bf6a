"""Warnings about a finished run: reasons to distrust its score."""

import math
from collections.abc import Iterator, Sequence

from aadml.comparison.clips import Clips
from aadml.comparison.features import Matrix
from aadml.comparison.stored_rows import BLOCK
from aadml.methods.training.session import Record, numbers
from aadml.model.facts import Facts
from aadml.retrieval.results import Evaluation

RAN_AWAY = 10.0
"""Ratio of the last loss to the loss of the first batch above which training is reported as diverged."""

FEWEST_EPOCHS = 5
"""Smallest number of epochs for a warning about the selected epoch; shorter runs are considered trials."""


def result_warnings(evaluation: Evaluation, train: Clips, history: Sequence[Record], facts: Facts) -> list[str]:
    """Return a warning for each problem of a training run.

    Args:
        evaluation: evaluation of the trained model.
        train: training clips, unscaled.
        history: records of all epochs.
        facts: facts of the model, with the selected epoch.
    """
    return [*_constant_features(train), *_chance(evaluation), *_diverged(history), *_selected_epoch(history, facts)]


def _constant_features(train: Clips) -> Iterator[str]:
    for modality, features in train.features.items():
        if isinstance(features, Matrix) and len(features) > 1:
            first = next(iter(features.split(BLOCK)))[0]
            if all(bool((part == first).all()) for part in features.split(BLOCK)):
                yield f"all {len(features)} training clips have the same {modality} features: nothing can be learned"


def _chance(evaluation: Evaluation) -> Iterator[str]:
    for result in evaluation.directions:
        low, high = result.map_interval
        level = float(result.chance.mean())
        if low <= level:
            yield (
                f"{result.name}: MAP {result.map:.3f} ({low:.3f} to {high:.3f} over test sets) is "
                f"{'below' if high < level else 'within noise of'} chance ({level:.3f})"
            )


def _diverged(history: Sequence[Record]) -> Iterator[str]:
    """Yield a warning for each training stage whose loss diverged.

    The last loss of a stage is compared with the loss of the first batch of the stage, since the loss may diverge
    within the first epoch.
    """
    for stage in dict.fromkeys(record.get("stage") for record in history):
        records = [numbers(record) for record in history if record.get("stage") == stage and "loss" in record]
        first = records[0].get("loss_of_first_batch", records[0]["loss"]) if records else 0.0
        last = records[-1]["loss"] if records else 0.0
        if first > 0 and (not math.isfinite(last) or last > RAN_AWAY * first):
            yield f"the loss diverged, from {first:.3g} to {last:.3g}; lower training.learning_rate"


def _selected_epoch(history: Sequence[Record], facts: Facts) -> Iterator[str]:
    """Yield a warning if the chosen epoch is the first or last epoch with a validation score.

    No warning is yielded for a config that selects the last epoch, or for fewer than `FEWEST_EPOCHS` epochs with a
    validation score.
    """
    scored = [record for record in history if any(key.startswith("valid ") for key in record.keys() - {"valid loss"})]
    if facts.selected_epoch is None or len(scored) < FEWEST_EPOCHS or facts.training.select == "last":
        return
    if facts.selected_epoch == scored[0]["epoch"]:
        yield "the very first epoch was chosen: further training lowered the validation score"
    elif facts.selected_epoch == scored[-1]["epoch"]:
        yield "the very last epoch was chosen: training longer (training.epochs) may help"
