"""The `training` section of a config."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import torch
from annotated_types import Interval

from aadml.comparison.options import Count, CountOrZero, LearningRate, Momentum, Share
from aadml.feature_extraction.ground.option_types import Choice, OnlyWith, Tuning
from aadml.feature_extraction.ground.strings import listed
from aadml.retrieval.metric_functions import check_criterion
from aadml.retrieval.metric_names import split_name

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "adamax": torch.optim.Adamax,
    "rmsprop": torch.optim.RMSprop,
    "sgd": torch.optim.SGD,
}

AUTO = "auto"
"""Value of two options: the method's own `criterion`, or the `precision` chosen for method and machine."""

BY_FACTOR = OnlyWith("schedule", "step", "plateau")

Precision = Literal["auto", "float32", "tf32", "bfloat16"]


@dataclass(frozen=True, kw_only=True)
class Training:
    """The `training` section of a config.

    Attributes:
        epochs: passes over the training clips (400: AADML, section 5.2).
        batch: clips per batch (400 on VEGAS, 200 on AVE: AADML, section 5.2).
        optimizer: name of the optimizer.
        learning_rate: learning rate of all players without their own rate (1e-4: AADML, section 5.2).
        betas: betas of Adam, AdamW and Adamax.
        weight_decay: weight decay, as the optimizer defines it.
        momentum: momentum of SGD and RMSprop.
        schedule: "constant" keeps the learning rate. "step" multiplies the rate by `schedule_factor` every
            `schedule_every` epochs. "plateau" multiplies the rate by `schedule_factor` whenever the validation
            score has not risen for `schedule_every` epochs. "cosine" lowers the rate step by step along half a
            period of the cosine, down to `schedule_floor` at the end of the stage.
        schedule_every: for "step", epochs between two changes of the learning rate; for "plateau", epochs without a
            rise of the score before a change.
        schedule_factor: factor of the learning rate at each change.
        schedule_threshold: rise that the score must exceed to end a plateau. The rise is measured from the latest
            score with such a rise, or else from the first score of the stage.
        schedule_floor: smallest learning rate of the schedule; the warm-up also has smaller rates.
        warmup: epochs, or a part of an epoch, in which the learning rate rises linearly from step to step; 0 for
            none. Each stage begins with this rise.
        clip_norm: largest gradient norm of a player; 0 for no clipping.
        select: "best" keeps the epoch of the best validation score, and "last" keeps the last epoch.
        criterion: validation score for choosing the epoch, for plateaus and for patience. "auto" uses the score of
            the method, which is the mean MAP for most methods. Any other value is a metric of `aadml list metrics`,
            such as "recall@10", averaged over the directions. Larger values of the metric must be better. From a
            list such as "recall@10,map", the first metric without a cutoff above a tenth of the number of
            validation clips is used. If all metrics have larger cutoffs, the last metric is used.
        patience: epochs without a rise of the validation score after which a stage of training ends; 0 for no
            limit. A stage that trains only a generator never ends early.
        train_map: epochs between two computations of the training clips' MAP, the training loss and the validation
            loss. Each stage also ends with a computation. These values are only logged; training does not depend on
            them. The MAP of a direction is omitted if no query has a relevant item, as with judgments of other clips
            only. 0 computes none of these values.
        drop_last: whether to omit a last batch smaller than `batch`, unless this batch is the only batch.
        precision: precision of the products in hidden layers and in the generator of a loss, in training:
            "float32", "tf32", "bfloat16" or "auto". "tf32" needs a CUDA device, and also applies to the products of
            losses. "auto" chooses bfloat16 for methods with wide layers and with equal scores in bfloat16 and
            float32, on machines with bfloat16 multiplication in hardware (docs/lab/speed.md), and float32
            otherwise. The config of a run records the choice. Weights, optimizers and all evaluation are float32,
            and so are losses, except with "tf32".
        compile: whether to compile the metric loss with `torch.compile`. The compilation needs a C++ compiler, and
            some seconds at the first step. Results then differ by rounding.
    """

    removed_options: ClassVar[Mapping[str, int]] = {"micro_batch": 0, "valid_every": 1}

    epochs: Count = 400
    batch: Count = 400
    optimizer: Annotated[str, Choice(OPTIMIZERS)] = "adam"
    learning_rate: Annotated[LearningRate, Tuning(3e-5, 1e-4, 3e-4, 1e-3)] = 1e-4
    betas: Annotated[tuple[Momentum, Momentum], OnlyWith("optimizer", "adam", "adamw", "adamax")] = (0.9, 0.999)
    weight_decay: Annotated[float, Interval(ge=0, le=10)] = 0.0
    momentum: Annotated[Momentum, OnlyWith("optimizer", "sgd", "rmsprop")] = 0.0
    schedule: Literal["constant", "step", "plateau", "cosine"] = "constant"
    schedule_every: Annotated[Count, BY_FACTOR] = 20
    schedule_factor: Annotated[Share, BY_FACTOR] = 0.1
    schedule_threshold: Annotated[float, Interval(ge=0, le=1e6), OnlyWith("schedule", "plateau")] = 0.0
    schedule_floor: Annotated[LearningRate, OnlyWith("schedule", "step", "plateau", "cosine")] = 0.0
    warmup: Annotated[float, Interval(ge=0, le=1e6)] = 0.0
    clip_norm: Annotated[float, Interval(ge=0, le=1e6)] = 0.0
    select: Literal["best", "last"] = "best"
    criterion: str = AUTO
    patience: CountOrZero = 0
    train_map: CountOrZero = 10
    drop_last: bool = False
    precision: Precision = "float32"
    compile: bool = False

    def check(self) -> None:
        """Check the metrics of `criterion`, whose code is imported: only training needs this code.

        Raises:
            InputError: a name in `criterion` does not belong to a single metric, or belongs to a metric whose smaller
                values are better.
        """
        if self.criterion != AUTO:
            for name in listed(self.criterion) or [self.criterion]:
                check_criterion(name)

    def chosen_on(self, clips: int) -> "Training":
        """Return the settings with a single criterion for a number of validation clips; see `criterion`.

        Without validation clips, the first metric is kept.
        """
        *preferred, last = listed(self.criterion)
        fitting = (name for name in preferred if not clips or 10 * (split_name(name)[1] or 0) <= clips)
        return replace(self, criterion=next(fitting, last))
