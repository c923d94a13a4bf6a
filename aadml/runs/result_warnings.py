"""Verdicts on a finished training: what a person must know before believing its number."""

import math
from collections.abc import Iterator, Sequence

from aadml.comparison.clips import Clips
from aadml.comparison.features import Matrix
from aadml.comparison.stored_rows import BLOCK
from aadml.methods.training.session import Record, numbers
from aadml.model.facts import Facts
from aadml.retrieval import Evaluation
from aadml.retrieval.intervals import bootstrap_interval

RAN_AWAY = 10.0
"""A loss that ends so many times above that of the first batch ran away."""

FEWEST_EPOCHS = 5
"""Trainings of fewer epochs are trials, in which the choice of the first or the last epoch says nothing."""


def verdicts(evaluation: Evaluation, train: Clips, history: Sequence[Record], facts: Facts) -> list[str]:
    """Say what is wrong with a training, a sentence each; nothing where all is well.

    Args:
        evaluation: of the trained model.
        train: clips that were fitted on, unscaled.
        history: records of all epochs.
        facts: of the model; the selected epoch is looked at.
    """
    return [*_views(train), *_chance(evaluation), *_losses(history), *_epochs(history, facts)]


def _views(train: Clips) -> Iterator[str]:
    for modality, features in train.features.items():
        if isinstance(features, Matrix) and len(features) > 1 and _are_one(features):
            yield f"all {len(features)} training clips have the same {modality} features: nothing can be learned"


def _are_one(features: Matrix) -> bool:
    parts = iter(features.split(BLOCK))
    first = next(parts)
    return bool((first == first[0]).all()) and all(bool((part == first[0]).all()) for part in parts)


def _chance(evaluation: Evaluation) -> Iterator[str]:
    for result in evaluation.directions:
        low, high = bootstrap_interval(result.average_precision)
        level = float(result.chance.mean())
        if low <= level:
            yield (
                f"{result.name}: MAP {result.map:.3f} ({low:.3f} to {high:.3f} over queries) is within noise of chance "
                f"({level:.3f})"
            )


def _losses(history: Sequence[Record]) -> Iterator[str]:
    """Look at each stage by itself: another stage minimizes another loss.

    It begins with the loss of its very first batch: the mean of a first epoch may have run away already.
    """
    for stage in dict.fromkeys(record.get("stage") for record in history):
        records = [numbers(record) for record in history if record.get("stage") == stage and "loss" in record]
        first = records[0].get("loss_of_first_batch", records[0]["loss"]) if records else 0.0
        last = records[-1]["loss"] if records else 0.0
        if first > 0 and (not math.isfinite(last) or last > RAN_AWAY * first):
            yield f"the loss ran away, from {first:.3g} to {last:.3g}; lower training.learning_rate"


def _chooses(key: str) -> bool:
    """Tell whether a figure of an epoch is a validation score; the validation loss is for people alone."""
    return key.startswith("valid ") and key != "valid loss"


def _epochs(history: Sequence[Record], facts: Facts) -> Iterator[str]:
    scored = [record for record in history if any(_chooses(key) for key in record)]
    if facts.selected_epoch is None or len(scored) < FEWEST_EPOCHS or facts.training.select == "last":
        return
    if facts.selected_epoch == scored[0]["epoch"]:
        yield "the very first epoch was chosen: training on made it worse on the validation clips"
    elif facts.selected_epoch == scored[-1]["epoch"]:
        yield "the very last epoch was chosen: training longer (training.epochs) may help"
